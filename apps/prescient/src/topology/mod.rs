//! `prescient named topology`: bots play the shooter over a network of forwarders, or over the IP engine in the same
//! network.

mod graph;
mod ip;
pub(crate) mod measures;
pub(crate) mod ndn;
mod player;
mod real;
mod simulation;
mod spectators;
mod truth;
mod wires;

use std::time::Duration;

use clap::{Args, ValueEnum};
use prescient::named::{Freshness, Grid, Radii, UpdateCheck};
use serde_json::{Value, json};

pub(crate) use graph::Graph;
use graph::GraphError;
pub(crate) use ip::{ArenaOptions, serve};
use measures::Histogram;
use ndn::Network;
pub(crate) use player::{PlayerOptions, play};
pub(crate) use spectators::{SpectatorsOptions, spectators};

use crate::shooter::settings::{Codecs, Finding, Settings};
use crate::text;

/// Options of `prescient named topology`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TopologyOptions {
    /// linear, square, tree, dumbbell, scale16, or a file with lines `player NAME`, `router NAME` and `link NAME NAME
    /// [delay=MS] [jitter=MS] [loss=PERCENT]`.
    #[arg(value_name = "TOPOLOGY|FILE")]
    topology: String,
    /// Players, if not the usual number of the topology.
    #[arg(long)]
    players: Option<u32>,
    /// Seconds that are measured, after players have found each other.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// The seed of bots and links.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long caches treat updates as fresh in milliseconds; 0 for no caching, `auto` for a freshness from the
    /// number of forwarders on the way.
    #[arg(long, value_name = "MS", default_value = "0")]
    caching: String,
    /// Publishes only updates that others extrapolate wrongly by more than this distance, or that change the velocity.
    #[arg(long, value_name = "UNITS")]
    throttle: Option<f64>,
    /// Requests players beyond a full radius less often, and those beyond a minimum radius after a sleep in seconds.
    #[arg(
        long,
        value_name = "FULL,MIN,SLEEP",
        value_delimiter = ',',
        num_args = 1
    )]
    interest: Option<Vec<f64>>,
    /// Characters without a player, which all peers share out among themselves.
    #[arg(long, default_value_t = 0)]
    npcs: u32,
    /// Players find those around them only: in regions with a side of this length, each with a group of its own.
    /// Players' machines are then hosts, which register at their routers. For thousands of players.
    #[arg(long, value_name = "SIDE")]
    region: Option<f64>,
    /// What carries the game.
    #[arg(long, value_enum, default_value_t = Backend::Ndn)]
    backend: Backend,
    /// Runs every node as a process in a network namespace of its own, instead of in a simulation. Needs root.
    #[arg(long)]
    real: bool,
    /// Prints JSON lines: one per node, then one that sums up.
    #[arg(long)]
    json: bool,
}

/// What carries the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// Named data, without a server.
    Ndn,
    /// The IP engine, with a server at the node in the centre.
    Ip,
}

impl Backend {
    fn name(self) -> &'static str {
        match self {
            Self::Ndn => "ndn",
            Self::Ip => "ip",
        }
    }
}

/// Why there is nothing to report.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// There is no such network.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Options that have no meaning.
    #[error("{0}")]
    Options(String),
    /// Processes in network namespaces could not be run.
    #[error("{what}: {error}")]
    Real {
        /// What was attempted.
        what: String,
        /// The reason.
        error: std::io::Error,
    },
}

/// More players know each other from the start: a vector of discovery does not hold as many.
const MAX_DISCOVERED: usize = 64;

/// The time for forwarders to find routes, and for players to find each other.
const WARM_UP: Duration = Duration::from_secs(8);

/// Runs the command.
pub(crate) fn topology(options: &TopologyOptions) -> Result<(), TopologyError> {
    let graph = Graph::named(&options.topology, options.players)?;
    let settings = settings(options, &graph)?;
    let nodes = match (options.real, options.backend) {
        (true, _) => real::run(&graph, &settings, options)?,
        (false, Backend::Ndn) => simulate(graph.clone(), settings, options.seconds),
        (false, Backend::Ip) => ip::simulate(&graph, &settings, options.seconds),
    };
    for node in &nodes.nodes {
        print(&node.to_json(nodes.seconds), options.json);
    }
    print(&nodes.totals(options), options.json);
    print(&nodes.summary(options, &graph), options.json);
    Ok(())
}

fn settings(options: &TopologyOptions, graph: &Graph) -> Result<Settings, TopologyError> {
    let wrong = |text: &str| TopologyError::Options(text.to_owned());
    if options.seconds == 0 {
        return Err(wrong("--seconds must be at least 1"));
    }
    let is_length = |length: f64| (0.0..=1e6).contains(&length);
    if options.throttle.is_some_and(|it| !is_length(it)) {
        return Err(wrong("--throttle needs a distance"));
    }
    let interest = match options.interest.as_deref() {
        None => None,
        Some(&[full, min, sleep])
            if is_length(full)
                && is_length(min)
                && full <= min
                && (0.0..=60.0).contains(&sleep) =>
        {
            Some(Radii {
                full,
                min,
                max_sleep: Duration::from_secs_f64(sleep),
            })
        }
        Some(_) => {
            return Err(wrong(
                "--interest needs two radii, the smaller one first, and a sleep in seconds, as in 10,20,2",
            ));
        }
    };
    Ok(Settings {
        seed: options.seed,
        players: graph.players as u32,
        freshness: freshness(&options.caching)?,
        throttle: options.throttle,
        interest,
        finding: finding(options, graph)?,
        npcs: options.npcs,
        codecs: Codecs::trained(),
    })
}

/// Settings of a game over the IP engine.
fn plain_settings(seed: u64, players: u32) -> Settings {
    Settings {
        seed,
        players,
        freshness: Freshness::None,
        throttle: None,
        interest: None,
        finding: Finding::Known,
        npcs: 0,
        codecs: Codecs::trained(),
    }
}

/// What `--caching` means.
fn freshness(text: &str) -> Result<Freshness, TopologyError> {
    let wrong = || TopologyError::Options("--caching needs milliseconds, or auto".to_owned());
    Ok(match text {
        "0" => Freshness::None,
        // An update of a player is out of date when the next one is due.
        "auto" => Freshness::MaxAge(Duration::from_millis(66)),
        text => {
            let period = text.parse().map_err(|_| wrong())?;
            Freshness::Fixed(Duration::from_millis(period))
        }
    })
}

fn finding(options: &TopologyOptions, graph: &Graph) -> Result<Finding, TopologyError> {
    let wrong = |text: &str| TopologyError::Options(text.to_owned());
    let Some(side) = options.region else {
        return Ok(match graph.players <= MAX_DISCOVERED {
            true => Finding::Group,
            false => Finding::Known,
        });
    };
    if options.backend == Backend::Ip || options.real {
        return Err(wrong("--region needs the simulated backend ndn"));
    }
    if options.npcs > 0 {
        return Err(wrong(
            "--npcs needs players that all know each other; leave --region out",
        ));
    }
    if !graph.players_are_leaves() {
        return Err(wrong("--region needs players with links to routers only"));
    }
    let grid = Grid::new(side, f64::from(ndn::VIEW_DISTANCE) + 5.0);
    let grid = grid.map_err(|error| wrong(&format!("--region: {error}")))?;
    Ok(Finding::Regions(grid))
}

/// What was measured at a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeReport {
    pub(crate) name: String,
    pub(crate) is_player: bool,
    pub(crate) rtt: Histogram,
    pub(crate) effective_rtt: Histogram,
    pub(crate) corrections: Histogram,
    pub(crate) deltas: Histogram,
    /// Interests for this player's updates: that arrived here, and that others have sent.
    pub(crate) seen: u64,
    pub(crate) expressed: u64,
    /// Of the forwarder.
    pub(crate) interests: u64,
    pub(crate) data: u64,
    pub(crate) store_hits: u64,
    pub(crate) store_misses: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) checks: std::collections::BTreeMap<UpdateCheck, u64>,
    pub(crate) hits: u64,
    pub(crate) known: usize,
    pub(crate) npcs: usize,
}

/// What was measured in a run.
pub(crate) struct Report {
    pub(crate) seconds: f64,
    pub(crate) nodes: Vec<NodeReport>,
    pub(crate) network_bytes: u64,
    /// See [`Network::pairs_in_range`].
    pub(crate) pairs_in_range: [u64; 2],
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// A number with three decimals.
fn short(number: Option<f64>) -> Value {
    number.map_or(Value::Null, |number| json!((number * 1e3).round() / 1e3))
}

fn check_name(check: UpdateCheck) -> &'static str {
    match check {
        UpdateCheck::Skip => "skip",
        UpdateCheck::Expiring => "expiring",
        UpdateCheck::Threshold => "threshold",
        UpdateCheck::Velocity => "velocity",
        UpdateCheck::Unknown => "unknown",
        _ => "other",
    }
}

impl NodeReport {
    fn to_json(&self, seconds: f64) -> Value {
        let rate = |count: u64| short(Some(count as f64 / seconds));
        let mut node = json!({
            "node": self.name,
            "player": self.is_player,
            "cache_hit_rate": short(share(self.store_hits, self.store_hits + self.store_misses)),
            "interests_per_second": rate(self.interests),
            "data_per_second": rate(self.data),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
        });
        if self.is_player
            && let Some(entries) = node.as_object_mut()
        {
            let checks: serde_json::Map<String, Value> = self
                .checks
                .iter()
                .map(|(check, count)| (check_name(*check).to_owned(), json!(count)))
                .collect();
            let more = json!({
                "rtt_p50_ms": short(self.rtt.quantile(0.5)),
                "rtt_p99_ms": short(self.rtt.quantile(0.99)),
                "effective_rtt_p50_ms": short(self.effective_rtt.quantile(0.5)),
                "effective_rtt_p99_ms": short(self.effective_rtt.quantile(0.99)),
                "iaf": short(share(self.seen, self.expressed)),
                "interests_seen_per_second": rate(self.seen),
                "position_delta_p50": short(self.deltas.quantile(0.5)),
                "position_delta_p99": short(self.deltas.quantile(0.99)),
                "correction_p50": short(self.corrections.quantile(0.5)),
                "correction_p99": short(self.corrections.quantile(0.99)),
                "checks": checks,
                "hits": self.hits,
                "players_known": self.known,
                "npcs_owned": self.npcs,
            });
            entries.extend(more.as_object().cloned().unwrap_or_default());
        }
        node
    }
}

impl Report {
    fn players(&self) -> Vec<&NodeReport> {
        self.nodes.iter().filter(|it| it.is_player).collect()
    }

    /// What all players measured together.
    fn merged(&self, histogram: impl Fn(&NodeReport) -> &Histogram) -> Histogram {
        let mut all = Histogram::default();
        for player in self.players() {
            all.merge(histogram(player));
        }
        all
    }

    fn sum(&self, count: impl Fn(&NodeReport) -> u64) -> u64 {
        self.nodes.iter().map(count).sum()
    }

    /// What the summary leaves out.
    fn totals(&self, options: &TopologyOptions) -> Value {
        let corrections = self.merged(|it| &it.corrections);
        let effective = self.merged(|it| &it.effective_rtt);
        let players = self.players();
        let known = players.iter().map(|it| it.known as u64).sum();
        json!({
            "seconds": self.seconds,
            "seed": options.seed,
            "real": options.real,
            "correction_p50": short(corrections.quantile(0.5)),
            "correction_p99": short(corrections.quantile(0.99)),
            "effective_rtt_p50_ms": short(effective.quantile(0.5)),
            "network_bytes_per_second": short(Some(self.network_bytes as f64 / self.seconds)),
            "hits": self.sum(|it| it.hits),
            "players_known": short(share(known, players.len() as u64)),
            "known_in_range": short(share(self.pairs_in_range[1], self.pairs_in_range[0])),
        })
    }

    /// The line that programs read: its keys do not change.
    fn summary(&self, options: &TopologyOptions, graph: &Graph) -> Value {
        let players = self.players();
        let count = players.len().max(1) as f64;
        let per_second = |total: u64| short(Some(total as f64 / self.seconds / count));
        let player_bytes = players.iter().map(|it| it.bytes_in + it.bytes_out).sum();
        let checks = |wanted: Option<UpdateCheck>| {
            let all = players.iter().flat_map(|it| &it.checks);
            all.filter(|(check, _)| wanted.is_none_or(|wanted| wanted == **check))
                .map(|(_, count)| *count)
                .sum::<u64>()
        };
        let hits = self.sum(|it| it.store_hits);
        let misses = self.sum(|it| it.store_misses);
        let seen = self.sum(|it| it.seen);
        let (deltas, rtt) = (self.merged(|it| &it.deltas), self.merged(|it| &it.rtt));
        json!({
            "topology": options.topology,
            "players": graph.players,
            "backend": options.backend.name(),
            "iaf": short(share(seen, self.sum(|it| it.expressed))),
            "cache_hit_rate": short(share(hits, hits + misses)),
            "interests_per_second_per_producer": per_second(seen),
            "bytes_per_second_per_player": per_second(player_bytes),
            "skipped_share": short(share(checks(Some(UpdateCheck::Skip)), checks(None))),
            "position_delta_p50": short(deltas.quantile(0.5)),
            "position_delta_p99": short(deltas.quantile(0.99)),
            "rtt_p50_ms": short(rtt.quantile(0.5)),
        })
    }
}

fn print(figures: &Value, json: bool) {
    if json {
        println!("{figures}");
        return;
    }
    println!("{}", text::figures(figures));
}

/// Runs the game over named data on a virtual clock.
fn simulate(graph: Graph, settings: Settings, seconds: u64) -> Report {
    let mut network = Network::new(graph, settings);
    network.run(WARM_UP);
    let before = Counts::take(&network);
    network.start_measuring();
    network.run(Duration::from_secs(seconds));
    let after = Counts::take(&network);
    let expressed = |counts: &Counts, player: usize| counts.expressed[player];
    let nodes = (0..network.graph.nodes.len()).map(|node| {
        let (new, old) = (&after.forwarders[node], &before.forwarders[node]);
        let mut report = NodeReport {
            name: network.graph.nodes[node].clone(),
            is_player: node < network.graph.players,
            interests: new.interests - old.interests,
            data: new.data - old.data,
            store_hits: new.store_hits - old.store_hits,
            store_misses: new.store_misses - old.store_misses,
            bytes_in: after.bytes[node][0] - before.bytes[node][0],
            bytes_out: after.bytes[node][1] - before.bytes[node][1],
            ..NodeReport::default()
        };
        if let Some(Some(peer)) = network.peers.get(node) {
            report.rtt = peer.measures.rtt.clone();
            report.effective_rtt = peer.measures.effective_rtt.clone();
            report.corrections = peer.measures.corrections.clone();
            report.deltas = network.deltas[node].clone();
            report.checks = peer.measures.checks.clone();
            report.hits = peer.measures.hits_accepted;
            report.known = peer.known();
            report.npcs = peer.npcs().count();
            report.seen = after.seen[node] - before.seen[node];
            report.expressed = expressed(&after, node) - expressed(&before, node);
        }
        report
    });
    Report {
        seconds: seconds as f64,
        nodes: nodes.collect(),
        network_bytes: after.network_bytes - before.network_bytes,
        pairs_in_range: network.pairs_in_range,
    }
}

/// Counts at a time.
struct Counts {
    forwarders: Vec<prescient::named::Statistics>,
    /// Into and out of each node.
    bytes: Vec<[u64; 2]>,
    network_bytes: u64,
    /// Interests for each player's updates that arrived there, and that others have sent.
    seen: Vec<u64>,
    expressed: Vec<u64>,
}

impl Counts {
    fn take(network: &Network) -> Self {
        let nodes = network.graph.nodes.len();
        let mut expressed = vec![0; network.graph.players];
        for peer in network.peers.iter().flatten() {
            for (other, count) in peer.expressed() {
                expressed[other as usize] += count;
            }
        }
        let seen = network.peers.iter();
        let seen = seen.map(|peer| peer.as_ref().map_or(0, |peer| peer.interests_seen()));
        Self {
            forwarders: (0..nodes).map(|node| network.statistics(node)).collect(),
            bytes: node_bytes(&network.graph, &network.wires),
            network_bytes: network.wires.all_bytes(),
            seen: seen.collect(),
            expressed,
        }
    }
}

/// Bytes into and out of each node.
fn node_bytes(graph: &Graph, wires: &wires::Wires) -> Vec<[u64; 2]> {
    let mut bytes = vec![[0; 2]; graph.nodes.len()];
    for (place, link) in graph.links.iter().enumerate() {
        for end in 0..2 {
            let sent = wires.bytes(place, end);
            bytes[link.ends[end]][1] += sent;
            bytes[link.ends[1 - end]][0] += sent;
        }
    }
    bytes
}
