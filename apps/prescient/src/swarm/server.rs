//! The server of a swarm, as a process of its own.

use std::fs;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use prescient::{
    Distance, Limits, PeerId, Place, Ref, Server, ServerEvent, ServerOptions, WorldError,
    key_from_text,
};
use prescient_net::Clock;
use prescient_sim::link::Delays;
use serde_json::{Value, json};

use crate::walkers::{Walker, home, reach, schema, walk};

/// Options of the hidden command that `prescient swarm` starts.
#[derive(Args, Clone, Debug)]
pub struct ServeOptions {
    #[arg(long)]
    clients: u32,
    #[arg(long)]
    entities: u32,
    #[arg(long)]
    visible: u32,
    #[arg(long)]
    hz: u32,
    #[arg(long)]
    seconds: u32,
    /// Clients with lower numbers stay to the end.
    #[arg(long)]
    staying: u32,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The key on standard input is none.
    #[error("standard input has no key: {0}")]
    Key(String),
    /// There is no server.
    #[error(transparent)]
    Server(#[from] prescient::ServeError),
    /// The world does not take what happens in it.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// Serves until the time is over or standard input ends, and prints what it took.
pub fn serve(options: &ServeOptions) -> Result<(), ServeError> {
    let mut key = String::new();
    let read = io::stdin().lock().read_line(&mut key);
    read.map_err(|error| ServeError::Key(error.to_string()))?;
    let key = key_from_text(key.trim()).map_err(|error| ServeError::Key(error.to_string()))?;
    let sight = reach(options.visible);
    let mut settings = ServerOptions {
        limits: Limits {
            connections: 2 * options.clients as usize + 8,
            connections_per_address: usize::MAX,
            handshakes_per_address: u32::MAX,
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    settings.replication.cell = sight / 2.0;
    let policy = Distance::new(sight, sight * 1.1);
    let server = Server::bind("127.0.0.1:0", key, schema(), policy, settings)?;
    if let Some(address) = server.address() {
        println!("{address}");
    }
    let left = Arc::new(AtomicBool::new(false));
    let noticed = left.clone();
    std::thread::spawn(move || {
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        noticed.store(true, Ordering::Relaxed);
    });
    let mut stage = Stage {
        server,
        options: options.clone(),
        walkers: Vec::new(),
        staying: Vec::new(),
        joined: 0,
        tick: 0,
        spans: Delays::default(),
    };
    stage.run(&left)?;
    Ok(())
}

struct Stage {
    server: Server,
    options: ServeOptions,
    walkers: Vec<Ref<Walker>>,
    /// Peers that stay to the end.
    staying: Vec<PeerId>,
    joined: u32,
    tick: u32,
    /// How long ticks took.
    spans: Delays,
}

impl Stage {
    fn run(&mut self, left: &AtomicBool) -> Result<(), WorldError> {
        let clock = Clock::start();
        let every = Duration::from_micros(1_000_000 / u64::from(self.options.hz));
        let over = Duration::from_secs(u64::from(self.options.seconds));
        let mut due = clock.now();
        let mut start = None;
        let mut report = None;
        let mut early_rss = None;
        while !left.load(Ordering::Relaxed) {
            let begun = clock.now();
            self.step(report.is_none())?;
            self.spans.push(clock.now().since(begun));
            match (&start, &report) {
                (None, _) if self.joined >= self.options.clients => {
                    start = Some((clock.now(), self.tick, Cost::now(&self.server)));
                    self.spans = Delays::default();
                }
                (Some((since, tick, cost)), None) if clock.now().since(*since) >= over => {
                    let now = clock.now();
                    let mut done = self.report(now.since(*since), self.tick - tick, cost);
                    let growth = |(early, late): (f64, f64)| (late / early - 1.0) * 100.0;
                    done["rss_growth_percent"] = json!(early_rss.zip(rss_mb()).map(growth));
                    report = Some((now, Some(done)));
                }
                // What it takes to join was taken by then.
                (Some((since, ..)), None)
                    if early_rss.is_none() && clock.now().since(*since) >= over / 10 =>
                {
                    early_rss = rss_mb();
                }
                _ => {}
            }
            // Nobody shouts any more, so what was shouted can arrive.
            if let Some((since, unsaid)) = &mut report
                && clock.now().since(*since) >= QUIET
                && let Some(mut report) = unsaid.take()
            {
                report["events_sent"] = json!(self.events());
                println!("{report}");
            }
            due = due.after(every).max(clock.now());
            self.server.wait(due.since(clock.now()));
        }
        Ok(())
    }

    /// Events that those who stay were told, once for each who heard of it.
    fn events(&mut self) -> u64 {
        let stage = self.server.stage();
        let peers = self.staying.iter();
        let told = peers.filter_map(|&peer| stage.statistics(peer));
        told.map(|statistics| statistics.events).sum()
    }

    fn step(&mut self, shouting: bool) -> Result<(), WorldError> {
        while let Some(event) = self.server.poll() {
            if let ServerEvent::Joined { peer, client, .. } = event {
                self.joined += 1;
                if client.0 < u64::from(self.options.staying) {
                    self.staying.push(peer);
                }
                let clients = u64::from(self.options.clients.max(1));
                let place = u64::from(self.options.entities) * (client.0 % clients) / clients;
                let [x, y] = home(place as u32, self.options.entities);
                let eye = Place([f64::from(x), f64::from(y), 0.0]);
                let looks = self.server.stage().look_from(peer, eye);
                debug_assert!(looks.is_ok(), "it has just joined");
            }
        }
        self.tick += 1;
        let all = self.options.entities;
        walk(&mut self.walkers, self.server.step()?, self.tick, all)?;
        let shouts = self
            .walkers
            .get(self.tick as usize * 31 % self.walkers.len().max(1));
        if let Some(object) = shouts.filter(|_| shouting) {
            self.server.announce(object.entity(), b"hey")?;
        }
        self.server.send();
        Ok(())
    }

    fn report(&mut self, over: Duration, ticks: u32, before: &Cost) -> Value {
        let spent = Cost::now(&self.server);
        let turns = f64::from(ticks.max(1)) * f64::from(self.options.clients.max(1));
        let p99 = self.spans.percentile(99).unwrap_or_default();
        let cpu = match (before.cpu_nanos, spent.cpu_nanos) {
            (Some(before), Some(after)) => json!((after - before) as f64 / 1e3 / turns),
            _ => json!(null),
        };
        json!({
            "server_cpu_us_per_client_tick": cpu,
            "bytes_per_client_tick": (spent.bytes - before.bytes) as f64 / turns,
            "tick_p99_ms": p99.as_secs_f64() * 1e3,
            "packets_per_second": (spent.packets - before.packets) as f64 / over.as_secs_f64(),
            "rss_mb": rss_mb(),
        })
    }
}

/// What a server has spent so far.
#[derive(Clone, Copy)]
struct Cost {
    /// Where the system tells.
    cpu_nanos: Option<u64>,
    bytes: u64,
    packets: u64,
}

impl Cost {
    fn now(server: &Server) -> Self {
        let socket = server.socket_statistics();
        Self {
            cpu_nanos: cpu_nanos(),
            bytes: socket.bytes_sent,
            packets: socket.datagrams_sent + socket.datagrams_received,
        }
    }
}

/// Time on a processor of all threads, on Linux.
fn cpu_nanos() -> Option<u64> {
    let tasks = fs::read_dir("/proc/self/task").ok()?;
    let spent = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Some(spent.sum())
}

/// Memory that is in use, on Linux.
fn rss_mb() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}

/// How long what was told may take to arrive.
const QUIET: Duration = Duration::from_secs(3);
