//! The network with a process for every node, in network namespaces of its own.
//!
//! Every link is a pair of virtual interfaces with an address at each end. A node runs `prescient named forwarder`
//! with link-state routing, and a player's node `prescient named player` beside it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Args;
use prescient::named::{AppFace, Name, Radii, Signer, Time, UpdateCheck};
use prescient_net::{Clock, SystemEntropy, new_key};
use prescient_sim::world::Random;
use serde_json::{Value, json};

use super::graph::Graph;
use super::measures::Histogram;
use super::{
    NodeReport, Report, TopologyError, TopologyOptions, WARM_UP, check_name, freshness, short,
};
use crate::interrupt::Interrupt;
use crate::shooter::peer::Peer;
use crate::shooter::settings::{Codecs, Finding, GROUP, Settings, player_name};
use crate::shooter::{Arena, FRAMES, Player, Seen, distance};

/// Options of `prescient named player`, which `topology --real` runs.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlayerOptions {
    /// The forwarder.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6363")]
    forwarder: SocketAddr,
    /// This player's number, from 0.
    #[arg(long)]
    number: u32,
    /// The number of players.
    #[arg(long)]
    players: u32,
    /// Seconds that are measured, after six seconds to find the others.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// The seed of the bots.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long caches treat updates as fresh, in milliseconds; 0 for no caching, `auto` as for `topology`.
    #[arg(long, value_name = "MS", default_value = "0")]
    caching: String,
    /// When the game starts for all players, in milliseconds since 1970; now if not given.
    #[arg(long, value_name = "MS")]
    start: Option<u64>,
    /// Characters without a player.
    #[arg(long, default_value_t = 0)]
    npcs: u32,
    /// The threshold of dead reckoning.
    #[arg(long, value_name = "UNITS")]
    throttle: Option<f64>,
    /// Two radii and a sleep in seconds.
    #[arg(
        long,
        value_name = "FULL,MIN,SLEEP",
        value_delimiter = ',',
        num_args = 1
    )]
    interest: Option<Vec<f64>>,
}

/// Runs a player on sockets, and prints what it measured as JSON.
#[expect(clippy::disallowed_methods, reason = "a process on the system's clock")]
pub(crate) fn play(options: &PlayerOptions) -> Result<(), TopologyError> {
    let fails = |what: &'static str| {
        move |error: io::Error| TopologyError::Real {
            what: what.to_owned(),
            error,
        }
    };
    let interest = match options.interest.as_deref() {
        Some(&[full, min, sleep]) => Some(Radii {
            full,
            min,
            max_sleep: Duration::try_from_secs_f64(sleep).unwrap_or_default(),
        }),
        _ => None,
    };
    let settings = Settings {
        seed: options.seed,
        players: options.players,
        freshness: freshness(&options.caching)?,
        throttle: options.throttle,
        interest,
        finding: Finding::Group,
        npcs: options.npcs,
        codecs: Codecs::trained(),
    };
    let clock = Clock::start();
    let boot = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let mut face = connect(options.forwarder).map_err(fails("connecting to the forwarder"))?;
    let group: Name = GROUP.parse().unwrap_or_default();
    for prefix in [player_name(options.number), sync_prefix(&group)] {
        let registered = face.register(prefix, &Signer::digest());
        registered.map_err(|error| TopologyError::Real {
            what: "registering a prefix".to_owned(),
            error: io::Error::other(error.to_string()),
        })?;
    }
    let wait = options
        .start
        .map_or(0, |start| start.saturating_sub(Clock::unix_millis()));
    let start = clock.now().after(Duration::from_millis(wait));
    let mut truth = Truth::new(start, &settings);
    let first = start.after(phase(options.number, &settings));
    let mut peer = Peer::new(options.number, Arc::new(settings), first, boot);
    let frame = Duration::from_secs(1) / FRAMES;
    let warm = start.after(WARM_UP);
    let end = warm.after(Duration::from_secs(options.seconds));
    let (mut next, mut before) = (first, None);
    let mut deltas = Histogram::default();
    let mut bytes = Vec::new();
    loop {
        let now = clock.now();
        if now >= end {
            break;
        }
        if now >= warm && before.is_none() {
            before = Some((peer.interests_seen(), peer.expressed()));
            let past = std::mem::take(&mut peer.measures);
            peer.measures.past_expressed = past.past_expressed;
        }
        if now >= next {
            // A frame that is late is made up for: others know at which time each one is.
            next = next.after(frame);
            peer.frame(now);
            if before.is_some() {
                for (other, place) in peer.shown(now) {
                    let apart = truth.at(now, other).map(|is| distance(place, is));
                    apart.into_iter().for_each(|it| deltas.add(f64::from(it)));
                }
            }
        }
        while peer.poll_transmit(&mut bytes) {
            face.send(&bytes).map_err(fails("sending"))?;
        }
        let wait = next.since(clock.now());
        if let Some(packet) = face.receive(wait).map_err(fails("receiving"))? {
            peer.handle_packet(clock.now(), &packet);
        }
    }
    let (seen, expressed) = before.unwrap_or_default();
    println!("{}", to_json(&peer, seen, &expressed, &deltas));
    Ok(())
}

/// Players do not have their frames at the same times.
fn phase(number: u32, settings: &Settings) -> Duration {
    let mut random = Random::new(settings.seed ^ 0x9ba5e ^ u64::from(number) << 32);
    Duration::from_micros(random.range(0, 500_000) as u64)
}

/// Where all players are: their paths depend on the seed alone, so every process can compute them.
struct Truth {
    start: Time,
    arena: Arena,
    /// Each player, and its phase.
    players: Vec<(Player, Duration)>,
}

impl Truth {
    fn new(start: Time, settings: &Settings) -> Self {
        let arena = Arena::for_players(settings.players);
        let player = |number| Player::new(number, settings.seed, &arena);
        let players = 0..settings.players;
        let players = players.map(|number| (player(number), phase(number, settings)));
        Self {
            start,
            players: players.collect(),
            arena,
        }
    }

    /// Where a player is at a time that is not before the last one that was asked for.
    fn at(&mut self, now: Time, number: u32) -> Option<[f32; 2]> {
        let (player, phase) = self.players.get_mut(number as usize)?;
        let since = now.since(self.start).checked_sub(*phase)?;
        let frame = since.as_micros() as u64 * u64::from(FRAMES) / 1_000_000 + 1;
        while player.frame < frame {
            player.step(&self.arena, &Seen::default());
        }
        Some(player.status.position)
    }
}

/// The forwarder beside it may have started just now.
#[expect(clippy::disallowed_methods, reason = "waits for another process")]
fn connect(forwarder: SocketAddr) -> io::Result<AppFace> {
    for _ in 0..100 {
        if let Ok(face) = AppFace::connect_tcp(forwarder) {
            return Ok(face);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    AppFace::connect_tcp(forwarder).map_err(|error| io::Error::other(error.to_string()))
}

fn sync_prefix(group: &Name) -> Name {
    let mut name = group.clone();
    let pushed = name.push_number(prescient::named::ComponentKind::VERSION, 3);
    debug_assert!(pushed.is_ok());
    name
}

fn to_json(peer: &Peer, seen: u64, expressed: &BTreeMap<u32, u64>, deltas: &Histogram) -> Value {
    let measures = &peer.measures;
    let sent: BTreeMap<String, u64> = peer
        .expressed()
        .into_iter()
        .map(|(other, count)| {
            let before = expressed.get(&other).copied().unwrap_or(0);
            (other.to_string(), count - before)
        })
        .collect();
    let checks: BTreeMap<&str, u64> = measures
        .checks
        .iter()
        .map(|(check, count)| (check_name(*check), *count))
        .collect();
    let quantiles = |histogram: &Histogram| {
        let points = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99];
        points.map(|share| short(histogram.quantile(share)))
    };
    json!({
        "seen": peer.interests_seen() - seen,
        "expressed": sent,
        "checks": checks,
        "rtt": quantiles(&measures.rtt),
        "effective_rtt": quantiles(&measures.effective_rtt),
        "corrections": quantiles(&measures.corrections),
        "deltas": quantiles(deltas),
        "hits": measures.hits_accepted,
        "known": peer.known(),
    })
}

/// Namespaces and processes, which end with it.
struct Nodes {
    spaces: Vec<String>,
    children: Vec<Child>,
    /// The file with the key that all routers share.
    key: PathBuf,
}

impl Nodes {
    /// Ends all processes.
    fn kill(&mut self) {
        for mut child in self.children.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.kill();
        for space in &self.spaces {
            let _ = ip(&["netns", "del", space]);
        }
        let _ = fs::remove_file(&self.key);
    }
}

fn ip(words: &[&str]) -> Result<(), TopologyError> {
    let what = format!("ip {}", words.join(" "));
    let fails = |error| TopologyError::Real {
        what: what.clone(),
        error,
    };
    let output = Command::new("ip").args(words).output().map_err(fails)?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(fails(io::Error::other(text)))
        }
    }
}

/// Runs the network with processes, and collects what players measured.
pub(super) fn run(
    graph: &Graph,
    settings: &Settings,
    options: &TopologyOptions,
) -> Result<Report, TopologyError> {
    let fails = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| TopologyError::Real { what, error }
    };
    let interrupt = Interrupt::listen();
    let _interrupt = interrupt.map_err(|error| fails("Ctrl-C")(io::Error::other(error)))?;
    let program = std::env::current_exe().map_err(fails("this program"))?;
    let mark = std::process::id();
    let space = |node: usize| format!("prescient-{mark}-{node}");
    let mut nodes = Nodes {
        spaces: Vec::new(),
        children: Vec::new(),
        key: std::env::temp_dir().join(format!("prescient-{mark}.key")),
    };
    let entropy = SystemEntropy::new();
    let mut entropy = entropy.map_err(|error| fails("randomness")(io::Error::other(error)))?;
    let key = new_key(&mut entropy);
    fs::write(&nodes.key, key.as_bytes()).map_err(fails("a routing key"))?;
    for node in 0..graph.nodes.len() {
        ip(&["netns", "add", &space(node)])?;
        nodes.spaces.push(space(node));
        ip(&["-n", &space(node), "link", "set", "lo", "up"])?;
    }
    for (place, link) in graph.links.iter().enumerate() {
        connect_spaces(graph, place, link.ends, &space)?;
    }
    // Processes need a while to start, and forwarders to become neighbours.
    let lead = 2 + graph.nodes.len() as u64 / 20;
    let mut forwarders = Vec::new();
    for node in 0..graph.nodes.len() {
        let mut command = inside(&space(node), &program);
        command.args(["named", "forwarder", "--json", "--udp", "0.0.0.0:6363"]);
        command.args(["--tcp", "127.0.0.1:6363", "--multicast", GROUP]);
        command.args(["--router", &format!("/router/{node}")]);
        command.arg("--routing-key").arg(&nodes.key);
        for (place, link) in graph.links.iter().enumerate() {
            if link.ends[0] == node {
                let [high, low] = ((place + 1) as u16).to_be_bytes();
                let neighbour = format!("udp:10.{high}.{low}.2:6363");
                command.args(["--neighbour", &neighbour]);
            }
        }
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .map_err(fails("a forwarder"))?;
        if let Some(output) = child.stdout.take() {
            let (from, seconds) = (lead + WARM_UP.as_secs(), options.seconds);
            forwarders.push(thread::spawn(move || {
                forwarder_counts(output, from, seconds)
            }));
        }
        nodes.children.push(child);
    }
    let start = Clock::unix_millis() + lead * 1000;
    let mut players = Vec::new();
    for node in 0..graph.players {
        let mut command = inside(&space(node), &program);
        let mut give = |key: &str, value: String| {
            command.args([key, &value]);
        };
        give("named", "player".to_owned());
        give("--number", node.to_string());
        give("--players", graph.players.to_string());
        give("--seconds", options.seconds.to_string());
        give("--seed", options.seed.to_string());
        give("--caching", options.caching.clone());
        give("--start", start.to_string());
        give("--npcs", settings.npcs.to_string());
        if let Some(threshold) = settings.throttle {
            give("--throttle", threshold.to_string());
        }
        if let Some(radii) = settings.interest {
            let sleep = radii.max_sleep.as_secs_f64();
            give(
                "--interest",
                format!("{},{},{sleep}", radii.full, radii.min),
            );
        }
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(fails("a player"))?;
        players.push(child.stdout.take());
        nodes.children.push(child);
    }
    let count_bytes = || -> Result<Vec<[u64; 2]>, TopologyError> {
        (0..graph.nodes.len())
            .map(|node| link_bytes(&space(node)))
            .collect()
    };
    wait_until(start + WARM_UP.as_millis() as u64);
    let before = count_bytes()?;
    let mut reports = Vec::new();
    for (node, output) in players.into_iter().enumerate() {
        let mut line = String::new();
        if let Some(output) = output {
            let read = BufReader::new(output).read_line(&mut line);
            read.map_err(fails("a player's report"))?;
        }
        let report = serde_json::from_str(&line).unwrap_or(Value::Null);
        if report.is_null() {
            let text = format!("player {} ended without a report", graph.nodes[node]);
            return Err(fails("a player")(io::Error::other(text)));
        }
        reports.push(report);
    }
    let after = count_bytes()?;
    let bytes = before.iter().zip(&after);
    let bytes: Vec<_> = bytes
        .map(|(before, after)| [after[0] - before[0], after[1] - before[1]])
        .collect();
    // The forwarders' output ends with them.
    nodes.kill();
    let forwarders = forwarders.into_iter().map(JoinHandle::join);
    let forwarders: Vec<_> = forwarders.map(Result::unwrap_or_default).collect();
    let measured = Measured {
        players: &reports,
        forwarders: &forwarders,
        bytes: &bytes,
    };
    Ok(collect(graph, &measured, options.seconds))
}

/// Waits for a time in milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "as long as other processes do")]
fn wait_until(time: u64) {
    thread::sleep(Duration::from_millis(
        time.saturating_sub(Clock::unix_millis()),
    ));
}

/// What each node measured; players are the first nodes.
struct Measured<'a> {
    players: &'a [Value],
    forwarders: &'a [ForwarderCounts],
    /// Received and sent.
    bytes: &'a [[u64; 2]],
}

fn inside(space: &str, program: &std::path::Path) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", space]).arg(program);
    command
}

/// A pair of interfaces with addresses, and with the delay of the link where the system can add one.
fn connect_spaces(
    graph: &Graph,
    place: usize,
    ends: [usize; 2],
    space: &dyn Fn(usize) -> String,
) -> Result<(), TopologyError> {
    let [high, low] = ((place + 1) as u16).to_be_bytes();
    let mark = std::process::id() % 0xffff;
    let names = [0, 1].map(|end| format!("v{mark:x}n{place}e{end}"));
    ip(&[
        "link", "add", &names[0], "type", "veth", "peer", "name", &names[1],
    ])?;
    for end in 0..2 {
        let space = space(ends[end]);
        let address = format!("10.{high}.{low}.{}/24", end + 1);
        ip(&["link", "set", &names[end], "netns", &space])?;
        ip(&["-n", &space, "addr", "add", &address, "dev", &names[end]])?;
        ip(&["-n", &space, "link", "set", &names[end], "up"])?;
        let link = &graph.links[place];
        let delay = format!("{}ms", link.delay);
        let loss = format!("{}%", link.loss);
        let mut tc = Command::new("ip");
        tc.args(["netns", "exec", &space, "tc", "qdisc", "add", "dev"])
            .args([&names[end], "root", "netem", "delay", &delay, "loss", &loss]);
        // Without the kernel's netem the links have no delay.
        let _ = tc.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
    Ok(())
}

/// Bytes that a node has received and sent over its links so far, with IP headers.
fn link_bytes(space: &str) -> Result<[u64; 2], TopologyError> {
    let what = "counting bytes";
    let fails = |error| TopologyError::Real {
        what: what.to_owned(),
        error,
    };
    let output = Command::new("ip")
        .args(["-n", space, "-s", "-j", "link", "show"])
        .output();
    let output = output.map_err(fails)?.stdout;
    let links: Value = serde_json::from_slice(&output).map_err(|error| fails(error.into()))?;
    let is_link = |link: &&Value| link["ifname"] != "lo";
    let of = |way: &str| {
        let links = links.as_array().into_iter().flatten().filter(is_link);
        links.fold(0, |sum, link| {
            let statistics = &link["stats64"][way];
            let count = |key: &str| statistics[key].as_u64().unwrap_or(0);
            sum + count("bytes").saturating_sub(ETHERNET_HEADER * count("packets"))
        })
    };
    Ok([of("rx"), of("tx")])
}

const ETHERNET_HEADER: u64 = 14;

/// What a forwarder counted in the measured seconds, from the lines that it prints.
fn forwarder_counts(output: ChildStdout, from: u64, seconds: u64) -> ForwarderCounts {
    let measured = from + 1..=from + seconds;
    let mut counts = ForwarderCounts::default();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let line: Value = serde_json::from_str(&line).unwrap_or_default();
        let count = |key: &str| line[key].as_u64().unwrap_or(0);
        if measured.contains(&count("second")) {
            counts.interests += count("interests");
            counts.data += count("data");
            counts.store_hits += count("store_hits");
            counts.store_misses += count("store_misses");
        }
    }
    counts
}

#[derive(Default)]
struct ForwarderCounts {
    interests: u64,
    data: u64,
    store_hits: u64,
    store_misses: u64,
}

fn collect(graph: &Graph, measured: &Measured<'_>, seconds: u64) -> Report {
    let reports = measured.players;
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let histogram = |value: &Value| {
        let mut all = Histogram::default();
        let values = value.as_array().into_iter().flatten();
        values
            .filter_map(Value::as_f64)
            .for_each(|value| all.add(value));
        all
    };
    let checks = [
        UpdateCheck::Skip,
        UpdateCheck::Expiring,
        UpdateCheck::Threshold,
        UpdateCheck::Velocity,
        UpdateCheck::Unknown,
        UpdateCheck::Other,
    ];
    let nodes = graph.nodes.iter().enumerate().map(|(node, name)| {
        let forwarder = &measured.forwarders[node];
        let [bytes_in, bytes_out] = measured.bytes[node];
        let shared = NodeReport {
            name: name.clone(),
            interests: forwarder.interests,
            data: forwarder.data,
            store_hits: forwarder.store_hits,
            store_misses: forwarder.store_misses,
            bytes_in,
            bytes_out,
            ..NodeReport::default()
        };
        let Some(report) = reports.get(node) else {
            return shared;
        };
        let key = node.to_string();
        let expressed = reports
            .iter()
            .map(|other| number(&other["expressed"][&key]));
        NodeReport {
            is_player: true,
            seen: number(&report["seen"]),
            expressed: expressed.sum(),
            rtt: histogram(&report["rtt"]),
            effective_rtt: histogram(&report["effective_rtt"]),
            corrections: histogram(&report["corrections"]),
            deltas: histogram(&report["deltas"]),
            checks: checks
                .into_iter()
                .map(|check| (check, number(&report["checks"][check_name(check)])))
                .filter(|(_, count)| *count > 0)
                .collect(),
            hits: number(&report["hits"]),
            known: number(&report["known"]) as usize,
            ..shared
        }
    });
    Report {
        seconds: seconds as f64,
        nodes: nodes.collect(),
        // Every byte is sent by one node.
        network_bytes: measured.bytes.iter().map(|[_, sent]| sent).sum(),
        sights: [0; 2],
    }
}
