//! `prescient swarm`: a real server process and many real, encrypted clients on loopback.
//!
//! Clients can compute the world's state at every tick, so each of them verifies every value it
//! receives; a value that the server never had is a desync.

mod crowd;
mod ghosts;
mod ready;
mod server;

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use prescient::key_from_text;
use prescient_net::{AddressError, OpenError, SystemEntropy, new_key, resolve};
use serde_json::{Value, json};

use crate::table::number;

use crowd::{Crowd, Seen};
use ghosts::{GhostKind, Haunted, Hours, haunt};
pub(crate) use server::{ServeError, ServeOptions, serve};

/// Options of `prescient swarm`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SwarmOptions {
    /// Number of clients.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: u32,
    /// Number of entities in the world.
    #[arg(long, default_value_t = 1000)]
    pub entities: u32,
    /// Approximate number of entities that each client sees.
    #[arg(long, default_value_t = 100)]
    pub visible: u32,
    /// Ticks per second.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub hz: u32,
    /// Seconds to measure, once all clients have joined.
    #[arg(long, default_value_t = 10)]
    pub seconds: u32,
    /// Percentage of packets lost, in each direction.
    #[arg(long, default_value_t = 0.0, value_name = "PERCENT")]
    pub loss: f64,
    /// Latency of a packet in milliseconds, in each direction.
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub latency: u64,
    /// File of a recorded link that carries the packets to the clients instead.
    #[arg(long, value_name = "FILE")]
    pub link: Option<std::path::PathBuf>,
    /// Clients per second that leave and are replaced.
    ///
    /// Half of all clients take turns; the others remain, and only their events are counted.
    #[arg(long, default_value_t = 0)]
    pub churn: u32,
    /// Number of ghosts: clients that never apply the state they receive.
    ///
    /// They join after the measured seconds, remain for as many, and leave again; each of these
    /// spans is measured.
    #[arg(long, default_value_t = 0)]
    pub ghosts: u32,
    /// What ghosts do instead of applying state.
    #[arg(long, value_enum, default_value_t = GhostKind::Deaf)]
    pub ghost: GhostKind,
    /// Print one JSON line at the end.
    #[arg(long)]
    pub json: bool,
}

impl SwarmOptions {
    /// Number of clients that remain connected from start to end.
    fn staying(&self) -> u32 {
        match self.churn {
            0 => self.clients,
            _ => self.clients / 2,
        }
    }
}

/// Why a swarm failed.
#[derive(Debug, thiserror::Error)]
pub enum SwarmError {
    /// The server process did not start, or ended early.
    #[error("the server process: {0}")]
    Process(io::Error),
    /// The server process did not follow the protocol on its standard output.
    #[error("the server process ended early; its message is above")]
    EndedEarly,
    /// The clients' sockets cannot be polled.
    #[error("cannot poll sockets: {0}")]
    Sockets(io::Error),
    /// The relay to the server cannot be started.
    #[error("cannot start the relay: {0}")]
    Relay(io::Error),
    /// The recorded link cannot be used.
    #[error(transparent)]
    Link(#[from] prescient_sim::link::RecordedLinkError),
    /// A client could not be created.
    #[error(transparent)]
    Client(#[from] prescient::JoinError),
    /// A token could not be issued.
    #[error(transparent)]
    Token(#[from] prescient_transport::TokenError),
    /// The server's address cannot be resolved.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The system has no random numbers.
    #[error(transparent)]
    Entropy(#[from] OpenError),
    /// Some clients bypass the simulated link.
    #[error("{bypassing} clients bypassed the relay, so their results say nothing about the link")]
    Bypassed {
        /// Number of clients.
        bypassing: usize,
    },
    /// Some clients could not join.
    #[error("{missing} of {clients} clients could not join")]
    NotJoined {
        /// Clients that could not join.
        missing: usize,
        /// All clients.
        clients: u32,
    },
}

/// Runs a swarm and prints its figures.
pub(crate) fn swarm(options: &SwarmOptions) -> Result<(), SwarmError> {
    let key = new_key(&mut SystemEntropy::new()?);
    let program = std::env::current_exe().map_err(SwarmError::Process)?;
    let mut process = Command::new(program)
        .arg("swarm-server")
        .args(["--clients", &options.clients.to_string()])
        .args(["--entities", &options.entities.to_string()])
        .args(["--visible", &options.visible.to_string()])
        .args(["--hz", &options.hz.to_string()])
        .args(["--seconds", &options.seconds.to_string()])
        .args(["--staying", &options.staying().to_string()])
        .args(["--ghosts", &options.ghosts.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(SwarmError::Process)?;
    if options.clients >= MANY {
        yield_to_the_server();
    }
    let (Some(mut input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
        return Err(SwarmError::EndedEarly);
    };
    let mut lines = BufReader::new(output).lines();
    let mut line = || match lines.next() {
        Some(line) => line.map_err(SwarmError::Process),
        None => Err(SwarmError::EndedEarly),
    };
    writeln!(input, "{}", *key).map_err(SwarmError::Process)?;
    let address = line()?;
    let stop = AtomicBool::new(false);
    let hours = Hours::new();
    let secret = key_from_text(&key).map_err(|_| SwarmError::EndedEarly)?;
    let servers = resolve(&address)?;
    let done = Crowd::gather(options, &key, &address).and_then(|crowd| {
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| crowd.watch(options, &stop));
            let haunting = scope.spawn(|| {
                let count = options.ghosts as usize;
                haunt(count, options.ghost, &secret, &servers, &hours)
            });
            let report = loop {
                match line() {
                    Ok(line) if line == GHOSTS_COME => hours.begin(),
                    Ok(line) if line == GHOSTS_GO => hours.end(),
                    report => break report,
                }
            };
            hours.end();
            stop.store(true, Ordering::Relaxed);
            let seen = watching.join().expect("the clients do not panic");
            let haunted = haunting.join().expect("ghosts do not panic");
            Ok((report?, seen?, haunted?))
        })
    });
    // The server ends when its standard input is closed.
    drop(input);
    process.wait().map_err(SwarmError::Process)?;
    let (report, seen, haunted) = done?;
    let report = serde_json::from_str(&report).map_err(|_| SwarmError::EndedEarly)?;
    print(options, &report, &seen, haunted);
    Ok(())
}

/// Lowers the priority of the clients, where the system allows it: clients of a real server have
/// machines of their own.
fn yield_to_the_server() {
    let own = std::process::id().to_string();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let ended = quiet.args(arguments).arg(&own).status();
        ended.is_ok_and(|status| status.success())
    };
    // On Linux a process can be limited to idle time; elsewhere it can at least be nice.
    let _ = run("chrt", &["--idle", "--pid", "0"]) || run("renice", &["-n", "10", "-p"]);
}

fn print(options: &SwarmOptions, server: &Value, seen: &Seen, haunted: Haunted) {
    let mut all = json!({
        "clients": options.clients,
        "entities": options.entities,
        "hz": options.hz,
        "seconds": options.seconds,
        "server_cpu_us_per_client_tick": server["server_cpu_us_per_client_tick"],
        "bytes_per_client_tick": server["bytes_per_client_tick"],
        "state_bytes_per_client_tick": server["state_bytes_per_client_tick"],
        "bytes_received_per_client_tick": server["bytes_received_per_client_tick"],
        "bytes_down_with_headers_per_client_tick": server["bytes_down_with_headers_per_client_tick"],
        "bytes_up_with_headers_per_client_tick": server["bytes_up_with_headers_per_client_tick"],
        "tick_p99_ms": server["tick_p99_ms"],
        "packets_per_second": server["packets_per_second"],
        "packets_sent_per_client_tick": server["packets_sent_per_client_tick"],
        "packets_received_per_client_tick": server["packets_received_per_client_tick"],
        "desyncs": seen.desyncs,
        "disconnects": seen.disconnects,
        "events_sent": server["events_sent"],
        "events_delivered": seen.events,
        "rss_mb": server["rss_mb"],
        "heap_mb": server["heap_mb"],
        "rss_growth_percent": server["rss_growth_percent"],
        "heap_growth_percent": server["heap_growth_percent"],
        "visible_growth_percent": server["visible_growth_percent"],
        "model_growth_percent": server["model_growth_percent"],
    });
    if options.ghosts > 0 {
        all["ghosts"] = json!(options.ghosts);
        all["players_lost"] = server["players_lost"].clone();
        all["ghosts_closed_not_applying"] = json!(haunted.not_applying);
        all["ghosts_closed_otherwise"] = json!(haunted.otherwise);
        for name in ["before", "after"] {
            all[name] = server[name].clone();
        }
    }
    if options.json {
        println!("{all}");
        return;
    }
    println!("{:<39} {}", "values checked", seen.checked);
    println!("{:<39} {:.0}", "entities seen by a client", seen.visible);
    for (name, value) in all.as_object().into_iter().flatten() {
        let rounded = value.as_f64().filter(|_| value.is_f64());
        let text = rounded.map_or_else(|| value.to_string(), |value| number(Some(value)));
        println!("{:<39} {text}", name.replace('_', " "));
    }
}

/// Lines by which the server process requests that ghosts join and leave.
const GHOSTS_COME: &str = "ghosts come";
const GHOSTS_GO: &str = "ghosts go";

/// From this many clients on, their CPU time would slow down the server.
const MANY: u32 = 50;
