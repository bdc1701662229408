//! `prescient serve`: a server with a world of walkers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use prescient::recording::RecordingConfig;
use prescient::{
    Difference, Everything, Prior, Ref, Server, ServerEvent, ServerOptions, TokenKey, WorldError,
};
use prescient_net::{AddressError, Clock, resolve};
use serde_json::json;

use crate::interrupt::{Interrupt, InterruptError};
use crate::table::byte_text;
use crate::token::{IssueError, read_key};
use crate::walkers::{Walker, schema, walk};

/// Options of `prescient serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeOptions {
    /// Address to listen on, as host:port; port 0 chooses a free one.
    #[arg(long, default_value = "127.0.0.1:4000")]
    address: String,
    /// Address that clients connect to, if it differs, as behind a router; may be repeated.
    #[arg(long, value_name = "ADDRESS", requires = "key_file")]
    public: Vec<String>,
    /// Ticks per second.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    hz: u32,
    /// Number of entities in the world.
    #[arg(long, default_value_t = 200)]
    entities: u32,
    /// Seconds to run; until Ctrl-C by default.
    #[arg(long)]
    seconds: Option<u64>,
    /// Accept clients with a token that `prescient token` made with this key.
    ///
    /// After a restart with the same key and address, the server resets the connections of its
    /// previous run.
    #[arg(long, value_name = "FILE", conflicts_with = "local")]
    key_file: Option<PathBuf>,
    /// Accept every client on this machine, without a token, and no others. The default.
    #[arg(long)]
    local: bool,
    /// Start models from this file that `prescient train` made; clients need the same.
    #[arg(long, value_name = "FILE")]
    pub(crate) prior: Option<PathBuf>,
    /// Record everything into this file, for `prescient replay`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
}

/// Why the server did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The key could not be read.
    #[error(transparent)]
    Key(#[from] IssueError),
    /// An address cannot be resolved.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The server could not start.
    #[error(transparent)]
    Server(#[from] prescient::ServeError),
    /// A change of the world was refused.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The world cannot be recorded.
    #[error(transparent)]
    Recording(#[from] prescient::RecordingError),
    /// Ctrl-C cannot be handled.
    #[error(transparent)]
    Interrupt(#[from] InterruptError),
}

/// Runs until `--seconds` have passed or Ctrl-C is pressed.
pub(crate) fn serve(options: &ServeOptions, prior: Option<Prior>) -> Result<(), ServeError> {
    let interrupt = Interrupt::listen()?;
    let key = match &options.key_file {
        Some(path) => read_key(path)?,
        None => TokenKey::insecure_for_loopback_tests(),
    };
    let mut public: Vec<SocketAddr> = Vec::new();
    for name in &options.public {
        public.extend(resolve(name)?);
    }
    let bound = resolve(&options.address)?[0];
    if public.is_empty() && bound.ip().is_unspecified() && bound.port() != 0 {
        public = own_addresses(bound);
    }
    let mut settings = ServerOptions::default().with_public_addresses(public.clone());
    if let Some(prior) = prior {
        settings = settings.with_prior(prior);
    }
    let mut server = Server::bind(&options.address, key, schema(), Everything, settings)?;
    if let Some(path) = &options.record {
        let interval = Duration::from_secs(1) / options.hz;
        let file = std::fs::File::create(path).map_err(prescient::RecordingError::from)?;
        let config = RecordingConfig::default().with_tick_interval(interval);
        server.record_with(file, config)?;
    }
    let mut serving = Serving {
        server,
        walkers: Vec::new(),
        tick: 0,
        clients: 0,
        bytes: 0,
        packets: 0,
        max_tick: Duration::ZERO,
        public,
        options,
    };
    serving.introduce();
    serving.run(&interrupt)?;
    serving.server.stop_recording().transpose()?;
    serving.server.shut_down();
    Ok(())
}

struct Serving<'a> {
    server: Server,
    walkers: Vec<Ref<Walker>>,
    tick: u64,
    clients: u32,
    /// Totals of the socket at the last report.
    bytes: u64,
    packets: u64,
    /// The longest tick since the last report.
    max_tick: Duration,
    /// Addresses that tokens may name; the bound one if there are none.
    public: Vec<SocketAddr>,
    options: &'a ServeOptions,
}

impl Serving<'_> {
    fn introduce(&self) {
        let address = self.server.address().map(|address| address.to_string());
        let address = address.unwrap_or_default();
        let protocol = self.server.protocol().0;
        let protocol: String = protocol.iter().map(|byte| format!("{byte:02x}")).collect();
        let who = self.reachable_by(&address, &protocol);
        self.print(
            json!({
                "event": "serving",
                "address": address,
                "protocol": protocol,
                "unix_ms": Clock::unix_millis(),
            }),
            format!("serving at {address}\n{who}"),
        );
    }

    /// Who can reach the server, and how.
    fn reachable_by(&self, address: &str, protocol: &str) -> String {
        if self.options.key_file.is_none() {
            return format!(
                "only this machine can reach it: prescient join {}\n\
                 for other machines, give it a key: --key-file FILE, as made by \
                 prescient token --new-key FILE",
                address.replace("0.0.0.0", "127.0.0.1"),
            );
        }
        let named: Vec<String> = match &self.public[..] {
            [] => vec![address.to_owned()],
            public => public.iter().map(SocketAddr::to_string).collect(),
        };
        let mut text = format!(
            "clients with a token that names one of these addresses can reach it: {}\n\
             to make one: prescient token --key FILE --client ID --server {} \\\n    \
             --protocol {protocol} -o token.txt",
            named.join(", "),
            named[0],
        );
        if self.options.public.is_empty() {
            text += "\nif clients use another address (a router's, a name), start it with \
                     --public ADDRESS";
        }
        text
    }

    fn run(&mut self, interrupt: &Interrupt) -> Result<(), WorldError> {
        let clock = Clock::start();
        let every = Duration::from_micros(1_000_000 / u64::from(self.options.hz));
        let over = self.options.seconds.map(Duration::from_secs);
        let (begun, mut due, mut told) = (clock.now(), clock.now(), clock.now());
        while !interrupt.is_asked() && over.is_none_or(|over| clock.now().since(begun) < over) {
            let tick = clock.now();
            self.step()?;
            self.max_tick = self.max_tick.max(clock.now().since(tick));
            if clock.now().since(told) >= SECOND {
                told = told.after(SECOND);
                self.report();
            }
            due = due.after(every).max(clock.now());
            self.server.wait(due.since(clock.now()));
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), WorldError> {
        while let Some(event) = self.server.poll() {
            match event {
                ServerEvent::Joined { peer, client, .. } => {
                    self.clients += 1;
                    // The number of walkers, which a client needs to compute every expected value.
                    let all = self.options.entities.to_le_bytes();
                    let told = self.server.send_event(peer, &all);
                    debug_assert!(told.is_ok(), "the peer has just joined");
                    self.print(
                        json!({"event": "joined", "peer": peer.0, "client": client.0}),
                        format!("client {} joined", client.0),
                    );
                }
                ServerEvent::Left { peer, reason } => {
                    self.clients = self.clients.saturating_sub(1);
                    self.print(
                        json!({"event": "left", "peer": peer.0, "reason": reason.to_string()}),
                        format!("a client left: {reason}"),
                    );
                }
                ServerEvent::OtherSchema {
                    client,
                    differences,
                } => {
                    let what = Difference::list(&differences);
                    self.print(
                        json!({"event": "turned away", "client": client.0, "differences": what}),
                        format!("client {} was turned away: {what}", client.0),
                    );
                }
                _ => {}
            }
        }
        self.tick += 1;
        let all = self.options.entities;
        walk(&mut self.walkers, self.server.step()?, self.tick, all)?;
        self.server.send();
        Ok(())
    }

    fn report(&mut self) {
        let socket = self.server.traffic();
        let bytes = socket.bytes_sent - self.bytes;
        let packets = socket.packets_sent + socket.packets_received - self.packets;
        (self.bytes, self.packets) = (self.bytes + bytes, self.packets + packets);
        let max_tick = std::mem::take(&mut self.max_tick).as_secs_f64() * 1e3;
        let (tick, clients) = (self.tick, self.clients);
        let clients_text = if clients == 1 { "client" } else { "clients" };
        self.print(
            json!({
                "event": "second",
                "tick": tick,
                "clients": clients,
                "bytes_sent": bytes,
                "packets": packets,
                "longest_tick_ms": max_tick,
            }),
            format!(
                "tick {tick}: {clients} {clients_text}, {} sent, {packets} packets in and out, \
                 longest tick {max_tick:.1} ms",
                byte_text(bytes),
            ),
        );
    }

    fn print(&self, json: serde_json::Value, text: String) {
        if self.options.json {
            println!("{json}");
        } else {
            println!("{text}");
        }
    }
}

/// The addresses by which a server that listens on all of them is reached, as far as they are known:
/// that of the interface which leads to the internet or the local network, and loopback.
fn own_addresses(bound: SocketAddr) -> Vec<SocketAddr> {
    let (any, far, loopback): (IpAddr, IpAddr, IpAddr) = match bound.ip() {
        IpAddr::V4(any) => (any.into(), FAR_V4.into(), Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(any) => (any.into(), FAR_V6.into(), Ipv6Addr::LOCALHOST.into()),
    };
    // Connecting a UDP socket sends nothing; it only asks the system for a route.
    let route = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((far, 9))?;
        socket.local_addr()
    });
    let outside = route.ok().map(|address| address.ip());
    let outside = outside.filter(|ip| !ip.is_loopback() && !ip.is_unspecified());
    let all = outside.into_iter().chain([loopback]);
    all.map(|ip| SocketAddr::new(ip, bound.port())).collect()
}

/// Addresses for documentation, which no host has.
const FAR_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const SECOND: Duration = Duration::from_secs(1);
