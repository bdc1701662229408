//! The game over the IP engine in the same network: a server at the node in the centre, and every player is a client
//! with authority over its own avatar.

mod guest;
mod messages;
mod real;
mod server;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use prescient_channels::Time;
use prescient_sim::world::Random;
use prescient_transport::{Entropy, UnixTime};

use super::graph::Graph;
use super::wires::Wires;
use super::{NodeReport, Report, WARM_UP, node_bytes};
use crate::shooter::settings::Settings;
use guest::{Guest, Measures};
pub(super) use real::play;
pub(crate) use real::{ArenaOptions, serve};
use server::GameServer;

/// Runs the game on a virtual clock.
pub(super) fn simulate(graph: &Graph, settings: &Settings, seconds: u64) -> Report {
    let mut match_ = Match::new(graph, settings);
    match_.run(WARM_UP);
    let before = (node_bytes(graph, &match_.wires), match_.wires.all_bytes());
    let hits = |match_: &Match, player: u32| match_.server.hits.get(&player).copied().unwrap_or(0);
    let before_hits = 0..graph.players as u32;
    let before_hits: Vec<u64> = before_hits.map(|player| hits(&match_, player)).collect();
    for player in &mut match_.players {
        player.measures = Measures::default();
    }
    match_.run(Duration::from_secs(seconds));
    let after = (node_bytes(graph, &match_.wires), match_.wires.all_bytes());
    let nodes = (0..graph.nodes.len()).map(|node| {
        let mut report = NodeReport {
            name: graph.nodes[node].clone(),
            is_player: node < graph.players,
            bytes_in: after.0[node][0] - before.0[node][0],
            bytes_out: after.0[node][1] - before.0[node][1],
            ..NodeReport::default()
        };
        if let Some(player) = match_.players.get(node) {
            report.rtt = player.measures.rtt.clone();
            report.effective_rtt = player.measures.rtt.clone();
            report.corrections = player.measures.corrections.clone();
            report.deltas = player.measures.deltas.clone();
            report.hits = hits(&match_, node as u32) - before_hits[node];
            report.known = player.shown.len();
        }
        report
    });
    Report {
        seconds: seconds as f64,
        nodes: nodes.collect(),
        network_bytes: after.1 - before.1,
        pairs_in_range: [0; 2],
    }
}

/// A server and its clients, in steps of a millisecond.
struct Match {
    now: Time,
    wires: Wires,
    random: Dice,
    server: GameServer,
    players: Vec<Guest>,
    /// The links from each player to the server, with the end at which each is entered.
    paths: Vec<Vec<(usize, usize)>>,
    datagrams: BinaryHeap<Reverse<Datagram>>,
    sent: u64,
}

/// When it arrives, its number with the player, the player if it is for one, and its bytes.
type Datagram = (Time, u64, Option<usize>, Vec<u8>);

impl Match {
    fn new(graph: &Graph, settings: &Settings) -> Self {
        let mut random = Dice(Random::new(settings.seed ^ 0x1b));
        let now = START;
        let server = GameServer::new(settings, server_address(), &mut random, now);
        let mut guest = |number: u32| {
            let mut guest = Guest::new(number, settings, server_address(), &mut random, now, UNIX);
            let phase = Duration::from_micros(random.0.range(0, 500_000) as u64);
            guest.frame_at = now.after(phase);
            guest
        };
        let players = (0..settings.players).map(&mut guest).collect();
        let hops = graph.next_hops(graph.centre());
        let paths = (0..graph.players).map(|player| graph.path(player, &hops));
        Self {
            now,
            wires: Wires::new(graph, settings.seed),
            server,
            players,
            paths: paths.collect(),
            datagrams: BinaryHeap::new(),
            sent: 0,
            random,
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now.after(span);
        while self.now < end {
            self.deliver();
            self.server.attend(self.now);
            self.send_from_server();
            self.server.run_ticks(self.now);
            for player in 0..self.players.len() {
                self.attend_client(player);
            }
            self.now = self.now.after(Duration::from_millis(1));
        }
    }

    fn send_from_server(&mut self) {
        while let Some(datagram) = self.server.poll_transmit(self.now) {
            let player = player_at(datagram.to);
            self.send(player, true, datagram.bytes.to_vec());
        }
    }

    fn attend_client(&mut self, place: usize) {
        if self.players[place].attend(self.now) {
            self.measure(place);
        }
        while let Some(datagram) = self.players[place].poll_transmit(self.now) {
            self.send(place, false, datagram.bytes.to_vec());
        }
    }

    /// Hands over the datagrams that have arrived.
    fn deliver(&mut self) {
        while let Some(Reverse((due, ..))) = self.datagrams.peek() {
            if *due > self.now {
                return;
            }
            let Some(Reverse((_, from, to, bytes))) = self.datagrams.pop() else {
                return;
            };
            match to {
                Some(player) => self.players[player].handle_datagram(&bytes, self.now),
                None => {
                    let from = client_address((from & 0xffff) as usize);
                    let random = &mut self.random;
                    self.server
                        .handle_datagram(from, &bytes, self.now, UNIX, random);
                }
            }
        }
    }

    /// Sends a datagram between a player and the server over all links on the way.
    fn send(&mut self, player: usize, to_player: bool, bytes: Vec<u8>) {
        let path = &self.paths[player];
        let mut at = Some(self.now);
        let mut cross = |link: usize, end: usize, at: Option<Time>| {
            at.and_then(|at| self.wires.cross(link, end, at, bytes.len()))
        };
        match to_player {
            true => path
                .iter()
                .rev()
                .for_each(|&(link, end)| at = cross(link, 1 - end, at)),
            false => path
                .iter()
                .for_each(|&(link, end)| at = cross(link, end, at)),
        }
        if let Some(at) = at {
            self.sent += 1;
            let order = self.sent << 16 | player as u64;
            let to = to_player.then_some(player);
            self.datagrams.push(Reverse((at, order, to, bytes)));
        }
    }

    fn measure(&mut self, place: usize) {
        let others: Vec<(u32, [f32; 2])> = self
            .players
            .iter()
            .map(|other| (other.player.number, other.player.status.position))
            .collect();
        let every = 1 + others.len() as u64 / 16;
        let guest = &mut self.players[place];
        if !guest.player.frame.is_multiple_of(every) {
            return;
        }
        for (number, truth) in others {
            guest.measure_delta(number, truth, self.now);
        }
        guest.measure_rtt();
    }
}

/// The seed's randomness where a transport needs some.
struct Dice(Random);

impl Entropy for Dice {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.0.bits() as u8);
    }
}

fn server_address() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 7777)
}

fn client_address(player: usize) -> SocketAddr {
    let [_, _, high, low] = (player as u32).to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, high, low)), 7778)
}

fn player_at(address: SocketAddr) -> usize {
    match address.ip() {
        IpAddr::V4(address) => {
            let [_, _, high, low] = address.octets();
            usize::from(high) << 8 | usize::from(low)
        }
        IpAddr::V6(_) => 0,
    }
}

const START: Time = Time::from_micros(1 << 40);
const UNIX: UnixTime = UnixTime(1_700_000_000);
