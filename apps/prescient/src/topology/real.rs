//! The network with a process for every node, in network namespaces of its own.
//!
//! Every link is a pair of virtual interfaces with an address at each end. A node runs `prescient named forwarder`
//! with link-state routing, and a player's node `prescient named player` beside it. With the IP engine there are no
//! forwarders, but `prescient named arena` at the node in the centre, and the system forwards.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use prescient::named::{Time, UpdateCheck};
use prescient_net::{Clock, SystemEntropy, new_key};
use serde_json::Value;

use super::graph::Graph;
use super::measures::Histogram;
use super::{
    Backend, NodeReport, Report, TopologyError, TopologyOptions, WARM_UP, check_name, short,
};
use crate::interrupt::Interrupt;
use crate::shooter::settings::{GROUP, Settings};

/// What a process reports of a distribution.
pub(super) fn quantiles(histogram: &Histogram) -> [Value; 7] {
    let points = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99];
    points.map(|share| short(histogram.quantile(share)))
}

/// When a game starts on a process's own clock.
pub(super) fn start_of(unix_millis: Option<u64>, clock: &Clock) -> Time {
    let wait = unix_millis.map_or(0, |start| start.saturating_sub(Clock::unix_millis()));
    clock.now().after(Duration::from_millis(wait))
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
    if options.backend == Backend::Ip {
        add_ip_routes(graph, &space)?;
    }
    // Processes need a while to start, and forwarders to become neighbours.
    let lead = 2 + graph.nodes.len() as u64 / 20;
    let forwarders = match options.backend {
        Backend::Ndn => start_forwarders(graph, &mut nodes, &program, options.seconds, lead)?,
        Backend::Ip => Vec::new(),
    };
    let start = Clock::unix_millis() + lead * 1000;
    let server = match options.backend {
        Backend::Ndn => None,
        Backend::Ip => Some(start_server(graph, &mut nodes, &program, options, start)?),
    };
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
        if let Some((address, _)) = &server {
            give("--server", address.to_string());
        }
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
    if let Some((_, output)) = server {
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        read.map_err(fails("the server's report"))?;
        let report: Value = serde_json::from_str(&line).unwrap_or_default();
        for (player, hits) in reports
            .iter_mut()
            .zip(report["hits"].as_array().into_iter().flatten())
        {
            player["hits"] = hits.clone();
        }
    }
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

/// Starts a forwarder with routing at every node. They are measured from some seconds after their start on.
fn start_forwarders(
    graph: &Graph,
    nodes: &mut Nodes,
    program: &Path,
    seconds: u64,
    lead: u64,
) -> Result<Vec<JoinHandle<ForwarderCounts>>, TopologyError> {
    let mut forwarders = Vec::new();
    for node in 0..graph.nodes.len() {
        let mut command = inside(&nodes.spaces[node], program);
        command.args(["named", "forwarder", "--json", "--udp", "0.0.0.0:6363"]);
        command.args(["--tcp", "127.0.0.1:6363", "--multicast", GROUP]);
        command.args(["--router", &format!("/router/{node}")]);
        command.arg("--routing-key").arg(&nodes.key);
        for (place, link) in graph.links.iter().enumerate() {
            if link.ends[0] == node {
                let neighbour = format!("udp:{}:6363", address(place, 1));
                command.args(["--neighbour", &neighbour]);
            }
        }
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| TopologyError::Real {
            what: "a forwarder".to_owned(),
            error,
        })?;
        if let Some(output) = child.stdout.take() {
            let from = lead + WARM_UP.as_secs();
            forwarders.push(thread::spawn(move || {
                forwarder_counts(output, from, seconds)
            }));
        }
        nodes.children.push(child);
    }
    Ok(forwarders)
}

/// Starts the server of the IP engine at the node in the centre, and returns its address and its output.
fn start_server(
    graph: &Graph,
    nodes: &mut Nodes,
    program: &Path,
    options: &TopologyOptions,
    start: u64,
) -> Result<(SocketAddr, ChildStdout), TopologyError> {
    let at = SocketAddr::new(node_address(graph, graph.centre()).into(), GAME_PORT);
    let mut command = inside(&nodes.spaces[graph.centre()], program);
    command.args(["named", "arena"]);
    for (key, value) in [
        ("--address", at.to_string()),
        ("--players", graph.players.to_string()),
        ("--seconds", options.seconds.to_string()),
        ("--seed", options.seed.to_string()),
        ("--start", start.to_string()),
    ] {
        command.args([key, &value]);
    }
    let fails = |error| TopologyError::Real {
        what: "the server".to_owned(),
        error,
    };
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(fails)?;
    let output = child.stdout.take();
    nodes.children.push(child);
    let output = output.ok_or_else(|| fails(io::Error::other("it has no output")))?;
    Ok((at, output))
}

const GAME_PORT: u16 = 7777;

/// The address of an end of a link.
fn address(link: usize, end: usize) -> Ipv4Addr {
    let [high, low] = ((link + 1) as u16).to_be_bytes();
    Ipv4Addr::new(10, high, low, end as u8 + 1)
}

/// The address by which a node is known: that of its first link.
fn node_address(graph: &Graph, node: usize) -> Ipv4Addr {
    let mut ends = graph.links.iter().enumerate().flat_map(|(place, link)| {
        let ends = link.ends.into_iter().enumerate();
        ends.map(move |(end, node)| (node, address(place, end)))
    });
    let found = ends.find(|(at, _)| *at == node);
    found.map_or(Ipv4Addr::LOCALHOST, |(_, address)| address)
}

/// Routes from every player to the server and back, along shortest paths.
fn add_ip_routes(graph: &Graph, space: &dyn Fn(usize) -> String) -> Result<(), TopologyError> {
    for node in 0..graph.nodes.len() {
        let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        ip(&["netns", "exec", &space(node), "sh", "-c", forward])?;
    }
    let hops = graph.next_hops(graph.centre());
    let add = |node: usize, to: Ipv4Addr, via: Ipv4Addr| {
        let (to, via) = (format!("{to}/32"), via.to_string());
        // `replace`: several players may share a part of the way.
        ip(&["-n", &space(node), "route", "replace", &to, "via", &via])
    };
    let server = node_address(graph, graph.centre());
    for player in 0..graph.players {
        let path = graph.path(player, &hops);
        let Some(&(link, end)) = path.first() else {
            continue;
        };
        // The system sends from the address of the link that it sends over.
        let own = address(link, end);
        for (place, &(link, end)) in path.iter().enumerate() {
            let ends = graph.links[link].ends;
            let (here, there) = (ends[end], ends[1 - end]);
            if server != address(link, 1 - end) {
                add(here, server, address(link, 1 - end))?;
            }
            if place > 0 {
                add(there, own, address(link, end))?;
            }
        }
    }
    Ok(())
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
    let mark = std::process::id() % 0xffff;
    let names = [0, 1].map(|end| format!("v{mark:x}n{place}e{end}"));
    ip(&[
        "link", "add", &names[0], "type", "veth", "peer", "name", &names[1],
    ])?;
    for end in 0..2 {
        let space = space(ends[end]);
        let address = format!("{}/24", address(place, end));
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

#[derive(Clone, Copy, Default)]
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
        let forwarder = measured.forwarders.get(node).copied().unwrap_or_default();
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
        pairs_in_range: [0; 2],
    }
}
