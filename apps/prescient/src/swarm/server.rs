//! The server of a swarm, as a process of its own.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use prescient::{
    CloseReason, Distance, Limits, PeerId, Position, Ref, Server, ServerConfig, ServerEvent,
    ServerOptions, WorldError, key_from_text,
};
use prescient_channels::Time;
use prescient_net::Clock;
use prescient_sim::link::Delays;
use serde_json::{Value, json};

use super::ghosts::FIRST_GHOST;
use super::{GHOSTS_COME, GHOSTS_GO};
use crate::walkers::{Walker, home, reach, schema, walk};

/// Options of the hidden command that `prescient swarm` starts.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeOptions {
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
    /// Clients with lower numbers remain to the end.
    #[arg(long)]
    staying: u32,
    #[arg(long, default_value_t = 0)]
    ghosts: u32,
}

/// Why the server did not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Standard input contains no key.
    #[error("standard input has no key: {0}")]
    Key(String),
    /// The server could not start.
    #[error(transparent)]
    Server(#[from] prescient::ServeError),
    /// A change of the world was refused.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The distance within which clients see walkers cannot be used.
    #[error(transparent)]
    Distance(#[from] prescient::DistanceError),
}

/// Runs until the time is over or standard input ends, and prints its figures.
pub(crate) fn serve(options: &ServeOptions) -> Result<(), ServeError> {
    let mut key = String::new();
    let read = io::stdin().lock().read_line(&mut key);
    read.map_err(|error| ServeError::Key(error.to_string()))?;
    let key = key_from_text(key.trim()).map_err(|error| ServeError::Key(error.to_string()))?;
    let distance = reach(options.visible);
    let limits = Limits::default()
        .with_connections(2 * (options.clients + options.ghosts) as usize + 8)
        .with_connections_per_address(usize::MAX)
        .with_handshakes_per_address(u32::MAX);
    let replication = ServerConfig::default().with_grid_cell(distance / 2.0);
    let settings = ServerOptions::default()
        .with_limits(limits)
        .with_replication(replication);
    let policy = Distance::new(distance, distance * 1.1)?;
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
    let mut swarm_server = SwarmServer {
        server,
        options: options.clone(),
        walkers: Vec::new(),
        staying: Vec::new(),
        joined: 0,
        ghosts: BTreeSet::new(),
        lost: 0,
        tick: 0,
        spans: Delays::default(),
    };
    swarm_server.run(&left)?;
    Ok(())
}

struct SwarmServer {
    server: Server,
    options: ServeOptions,
    walkers: Vec<Ref<Walker>>,
    /// Peers that remain to the end.
    staying: Vec<PeerId>,
    joined: u32,
    /// Connected ghosts.
    ghosts: BTreeSet<PeerId>,
    /// Players whose connection was closed or timed out.
    lost: u32,
    tick: u64,
    /// Durations of ticks.
    spans: Delays,
}

impl SwarmServer {
    fn run(&mut self, left: &AtomicBool) -> Result<(), WorldError> {
        let clock = Clock::start();
        let every = Duration::from_micros(1_000_000 / u64::from(self.options.hz));
        let mut due = clock.now();
        let mut phase = Phase::Gathering;
        let mut report = json!({});
        while !left.load(Ordering::Relaxed) {
            let begun = clock.now();
            let is_over = matches!(phase, Phase::Quiet(_) | Phase::Over);
            self.step(!is_over)?;
            self.spans.push(clock.now().since(begun));
            phase = self.advance(phase, clock.now(), &mut report);
            due = due.after(every).max(clock.now());
            self.server.wait(due.since(clock.now()));
        }
        Ok(())
    }

    /// Enters the next phase when the current one is over.
    fn advance(&mut self, phase: Phase, now: Time, report: &mut Value) -> Phase {
        let span = Duration::from_secs(u64::from(self.options.seconds));
        let haunted = self.options.ghosts > 0;
        match phase {
            Phase::Gathering if self.joined >= self.options.clients && haunted => {
                Phase::Before(self.mark(now))
            }
            Phase::Gathering if self.joined >= self.options.clients => {
                Phase::Measured(self.mark(now))
            }
            Phase::Before(mark) if now.since(mark.since) >= span => {
                report["before"] = self.report(&mark, now);
                println!("{GHOSTS_COME}");
                Phase::Arriving(now)
            }
            // Ghosts that were closed reconnect, so 90 % of them at once are enough.
            Phase::Arriving(since)
                if self.ghosts.len() * 10 >= self.options.ghosts as usize * 9
                    || now.since(since) >= PATIENCE =>
            {
                Phase::Measured(self.mark(now))
            }
            Phase::Measured(mut mark) => {
                let spent = now.since(mark.since);
                mark.sample(spent, span, self.tick, &self.server);
                if spent < span {
                    return Phase::Measured(mark);
                }
                let mut measured = self.report(&mark, now);
                measured["rss_growth_percent"] = json!(growth(&mark.early.rss, &mark.late.rss));
                measured["heap_growth_percent"] = json!(growth(&mark.early.heap, &mark.late.heap));
                let visible = growth(&mark.early.visible, &mark.late.visible);
                measured["visible_growth_percent"] = json!(visible);
                let models = growth(&mark.early.models, &mark.late.models);
                measured["model_growth_percent"] = json!(models);
                measured["before"] = report["before"].take();
                *report = measured;
                if !haunted {
                    return Phase::Quiet(now);
                }
                println!("{GHOSTS_GO}");
                Phase::Leaving(now)
            }
            Phase::Leaving(since) if self.ghosts.is_empty() || now.since(since) >= PATIENCE => {
                Phase::After(self.mark(now))
            }
            Phase::After(mark) if now.since(mark.since) >= span => {
                report["after"] = self.report(&mark, now);
                Phase::Quiet(now)
            }
            // No new events are sent, so that those under way can arrive.
            Phase::Quiet(since) if now.since(since) >= QUIET => {
                report["events_sent"] = json!(self.events());
                report["players_lost"] = json!(self.lost);
                println!("{report}");
                Phase::Over
            }
            phase => phase,
        }
    }

    /// Starts a measured span.
    fn mark(&mut self, now: Time) -> Mark {
        self.spans = Delays::default();
        Mark {
            since: now,
            tick: self.tick,
            cost: Cost::now(&self.server),
            early: Memory::default(),
            late: Memory::default(),
        }
    }

    /// Events sent to the peers that remain, counted per peer.
    fn events(&mut self) -> u64 {
        let peers = self.staying.iter();
        let told = peers.filter_map(|&peer| self.server.statistics(peer));
        told.map(|report| report.state.events).sum()
    }

    fn step(&mut self, shouting: bool) -> Result<(), WorldError> {
        while let Some(event) = self.server.poll() {
            if let ServerEvent::Left { peer, reason } = event
                && !self.ghosts.remove(&peer)
                && reason != CloseReason::Finished
            {
                self.lost += 1;
            }
            if let ServerEvent::Joined { peer, client, .. } = event {
                if client.0 >= FIRST_GHOST {
                    self.ghosts.insert(peer);
                } else {
                    self.joined += 1;
                }
                if client.0 < u64::from(self.options.staying) {
                    self.staying.push(peer);
                }
                let clients = u64::from(self.options.clients.max(1));
                let first = u64::from(self.options.entities) * (client.0 % clients) / clients;
                let [x, y] = home(first as u32, self.options.entities);
                let view_position = Position([f64::from(x), f64::from(y), 0.0]);
                let looks = self.server.set_view_position(peer, view_position);
                debug_assert!(looks.is_ok(), "the peer has just joined");
            }
        }
        self.tick += 1;
        let all = self.options.entities;
        walk(&mut self.walkers, self.server.step()?, self.tick, all)?;
        let shouts = self
            .walkers
            .get(self.tick as usize * 31 % self.walkers.len().max(1));
        if let Some(entity) = shouts.filter(|_| shouting) {
            self.server.send_entity_event(entity.entity_ref(), b"hey")?;
        }
        self.server.send();
        Ok(())
    }

    /// The figures since a mark.
    fn report(&mut self, mark: &Mark, now: Time) -> Value {
        let (over, before) = (now.since(mark.since), &mark.cost);
        let spent = Cost::now(&self.server);
        let ticks = self.tick - mark.tick;
        let turns = ticks.max(1) as f64 * f64::from(self.options.clients.max(1));
        let p99 = self.spans.percentile(99).unwrap_or_default();
        let cpu = match (before.cpu_nanos, spent.cpu_nanos) {
            (Some(before), Some(after)) => json!((after - before) as f64 / 1e3 / turns),
            _ => json!(null),
        };
        json!({
            "server_cpu_us_per_client_tick": cpu,
            "bytes_per_client_tick": (spent.bytes - before.bytes) as f64 / turns,
            "bytes_received_per_client_tick":
                (spent.bytes_received - before.bytes_received) as f64 / turns,
            // Of peers that have left, nothing is known.
            "state_bytes_per_client_tick": (self.options.staying == self.options.clients)
                .then(|| spent.state.saturating_sub(before.state) as f64 / turns),
            "bytes_down_with_headers_per_client_tick": (spent.down() - before.down()) as f64 / turns,
            "bytes_up_with_headers_per_client_tick": (spent.up() - before.up()) as f64 / turns,
            "tick_p99_ms": p99.as_secs_f64() * 1e3,
            "packets_per_second": (spent.packets() - before.packets()) as f64 / over.as_secs_f64(),
            "packets_sent_per_client_tick": (spent.sent - before.sent) as f64 / turns,
            "packets_received_per_client_tick": (spent.received - before.received) as f64 / turns,
            "rss_mb": rss_mb(),
            "heap_mb": heap_mb(),
        })
    }
}

/// Phases of the server.
enum Phase {
    Gathering,
    /// Measured before the ghosts join, if there are any.
    Before(Mark),
    Arriving(Time),
    Measured(Mark),
    Leaving(Time),
    /// Measured after the ghosts left.
    After(Mark),
    Quiet(Time),
    Over,
}

/// The start of a measured span.
struct Mark {
    since: Time,
    tick: u64,
    cost: Cost,
    /// Memory in the second tenth of the span (the cost of joining is not part of the
    /// measurement), and in the last.
    early: Memory,
    late: Memory,
}

impl Mark {
    /// Samples the memory once a second or so.
    fn sample(&mut self, spent: Duration, span: Duration, tick: u64, server: &Server) {
        if !tick.is_multiple_of(SAMPLE_EVERY) {
            return;
        }
        let tenth = span / 10;
        if spent >= tenth && spent < 2 * tenth {
            self.early.sample(server);
        } else if spent >= 9 * tenth {
            self.late.sample(server);
        }
    }
}

/// Samples of resident memory and of allocated bytes, in megabytes, and what they depend on: how
/// many entities all peers see together, and the bytes of their models.
#[derive(Default)]
struct Memory {
    rss: Vec<f64>,
    heap: Vec<f64>,
    visible: Vec<f64>,
    models: Vec<f64>,
}

impl Memory {
    fn sample(&mut self, server: &Server) {
        self.rss.extend(rss_mb());
        self.heap.extend(heap_mb());
        let reports: Vec<_> = (server.peers())
            .filter_map(|peer| server.statistics(peer))
            .collect();
        let visible: usize = reports.iter().map(|report| report.state.visible).sum();
        let models: usize = reports.iter().map(|report| report.state.model_bytes).sum();
        self.visible.push(visible as f64);
        self.models.push(models as f64);
    }
}

/// By how many percent the mean of the later samples exceeds that of the earlier ones.
fn growth(early: &[f64], late: &[f64]) -> Option<f64> {
    let mean = |samples: &[f64]| {
        let sum: f64 = samples.iter().sum();
        (!samples.is_empty()).then(|| sum / samples.len() as f64)
    };
    Some((mean(late)? / mean(early)? - 1.0) * 100.0)
}

/// Totals of the server so far.
#[derive(Clone, Copy)]
struct Cost {
    /// `None` where the system does not provide it.
    cpu_nanos: Option<u64>,
    /// Bytes sent and received, as UDP payload, and bytes of state for the clients that are there.
    bytes: u64,
    bytes_received: u64,
    state: u64,
    /// Packets sent and received.
    sent: u64,
    received: u64,
}

impl Cost {
    fn now(server: &Server) -> Self {
        let socket = server.traffic();
        let reports = server.peers().filter_map(|peer| server.statistics(peer));
        Self {
            state: reports.map(|report| report.state_bytes_down()).sum(),
            bytes_received: socket.bytes_received,
            cpu_nanos: cpu_nanos(),
            bytes: socket.bytes_sent,
            sent: socket.packets_sent,
            received: socket.packets_received,
        }
    }

    fn packets(&self) -> u64 {
        self.sent + self.received
    }

    /// Bytes sent, with the headers of IPv4 and UDP.
    fn down(&self) -> u64 {
        self.bytes + self.sent * HEADERS
    }

    /// Bytes received, likewise.
    fn up(&self) -> u64 {
        self.bytes_received + self.received * HEADERS
    }
}

/// Bytes of the headers of IPv4 and UDP.
const HEADERS: u64 = 28;

/// CPU time of all threads, on Linux.
fn cpu_nanos() -> Option<u64> {
    let tasks = fs::read_dir("/proc/self/task").ok()?;
    let spent = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Some(spent.sum())
}

/// Resident memory, on Linux.
fn rss_mb() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}

/// Bytes that are allocated and not freed, where jemalloc is the allocator.
#[cfg(not(target_env = "msvc"))]
fn heap_mb() -> Option<f64> {
    tikv_jemalloc_ctl::epoch::advance().ok()?;
    let bytes = tikv_jemalloc_ctl::stats::allocated::read().ok()?;
    Some(bytes as f64 / 1024.0 / 1024.0)
}

#[cfg(target_env = "msvc")]
fn heap_mb() -> Option<f64> {
    None
}

/// Ticks between two samples of the memory.
const SAMPLE_EVERY: u64 = 32;
/// Time for the last events to arrive.
const QUIET: Duration = Duration::from_secs(3);
/// Time limit for ghosts to join or to leave.
const PATIENCE: Duration = Duration::from_secs(60);
