//! The game over the IP engine in the same network: a server at the node in the centre, and every player is a client
//! with authority over its own avatar.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use prescient::{Ref, Schema, SchemaBuilder, State};
use prescient_channels::{ChannelId, ClientId, ConnectionId, Received, Time};
use prescient_replication::{
    Change, Client, ClientConfig, Delivery, EntityHandle, Everything, FromClient, PeerId, Room,
    Server, ServerConfig, Tick,
};
use prescient_sim::world::Random;
use prescient_transport::{
    self as transport, ClientEvent, Entropy, Grant, LinkConfig, ProtocolId, ServerEvent, TokenKey,
    UnixTime,
};

use super::graph::Graph;
use super::measures::Histogram;
use super::wires::Wires;
use super::{NodeReport, Report, WARM_UP, node_bytes};
use crate::shooter::settings::Settings;
use crate::shooter::{
    Arena, Block, Deed, FRAMES, FRAMES_PER_UPDATE, Player, Seen, Status, Target, distance,
};

/// What a client reports of its player. The server decides on health.
#[derive(State, Clone, Debug, PartialEq)]
#[state(tick_hz = 30)]
struct Avatar {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    #[state(step = 0.01, velocity_of = "position")]
    velocity: [f32; 2],
    ammunition: u8,
    #[state(only_on_spawn)]
    number: u32,
}

impl Avatar {
    fn of(status: &Status, number: u32) -> Self {
        Self {
            position: status.position,
            velocity: status.velocity,
            ammunition: status.ammunition,
            number,
        }
    }
}

/// What the server decides on of a player.
#[derive(State, Clone, Debug, PartialEq)]
struct Vitals {
    health: u8,
    #[state(only_on_spawn)]
    number: u32,
}

/// A block of a player.
#[derive(State, Clone, Debug, PartialEq)]
struct Placed {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    health: u8,
    #[state(only_on_spawn)]
    owner: u32,
    #[state(only_on_spawn)]
    number: u32,
}

fn schema() -> Schema {
    let builder = SchemaBuilder::new();
    let builder = builder
        .state::<Avatar>()
        .state::<Vitals>()
        .state::<Placed>();
    builder.build().expect("sound types")
}

/// Runs the game on a virtual clock.
pub(super) fn simulate(graph: &Graph, settings: &Settings, seconds: u64) -> Report {
    let mut match_ = Match::new(graph, settings);
    match_.run(WARM_UP);
    let before = (node_bytes(graph, &match_.wires), match_.wires.all_bytes());
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
            report.hits = player.measures.hits;
            report.known = player.shown.len();
        }
        report
    });
    Report {
        seconds: seconds as f64,
        nodes: nodes.collect(),
        network_bytes: after.1 - before.1,
    }
}

/// A server and its clients, in steps of a millisecond.
struct Match {
    now: Time,
    arena: Arena,
    wires: Wires,
    random: Dice,
    server: Server,
    server_net: transport::Server,
    connections: BTreeMap<PeerId, ConnectionId>,
    tick: u64,
    avatars: BTreeMap<u32, (Ref<Avatar>, Ref<Vitals>, u8)>,
    blocks: BTreeMap<(u32, u32), (Ref<Placed>, Placed)>,
    /// What clients asked for since the last tick.
    wishes: Vec<(u32, Wish)>,
    players: Vec<Guest>,
    /// The links from each player to the server, with the end at which each is entered.
    paths: Vec<Vec<(usize, usize)>>,
    datagrams: BinaryHeap<Reverse<Datagram>>,
    sent: u64,
}

/// When it arrives, its number with the player, the player if it is for one, and its bytes.
type Datagram = (Time, u64, Option<usize>, Vec<u8>);

/// A request of a client.
enum Wish {
    Join,
    Shot(Vec<u8>),
    Place(u32, [f32; 2]),
    Hit(Target),
}

/// A client with its player.
struct Guest {
    player: Player,
    view: Client,
    net: transport::Client,
    own: Option<EntityHandle>,
    /// Other players: what was received, and when.
    shown: BTreeMap<u32, (Avatar, Time)>,
    entities: BTreeMap<EntityHandle, u32>,
    blocks: BTreeMap<EntityHandle, Placed>,
    frame_at: Time,
    measures: Measures,
}

#[derive(Clone, Default)]
struct Measures {
    rtt: Histogram,
    corrections: Histogram,
    deltas: Histogram,
    hits: u64,
}

impl Guest {
    fn shown_at(&self, number: u32, now: Time) -> Option<[f32; 2]> {
        let (avatar, since) = self.shown.get(&number)?;
        let seconds = now.since(*since).as_secs_f32();
        let [x, y] = avatar.position;
        Some([
            x + avatar.velocity[0] * seconds,
            y + avatar.velocity[1] * seconds,
        ])
    }
}

impl Match {
    fn new(graph: &Graph, settings: &Settings) -> Self {
        let mut random = Dice(Random::new(settings.seed ^ 0x1b));
        let now = START;
        let key = || TokenKey::new([7; 32]).expect("not the public one");
        let limits = transport::Limits::default().with_handshakes_per_address(1000);
        let config = transport::ServerConfig::new(key(), PROTOCOL, vec![server_address()])
            .with_limits(limits);
        let server_net = transport::Server::new(config, &mut random, now);
        let arena = Arena::for_players(settings.players);
        let guest = |number: u32, random: &mut Dice| {
            let grant = Grant {
                client: ClientId(u64::from(number) + 1),
                protocol: PROTOCOL,
                servers: vec![server_address()],
                expires: UnixTime(UNIX.0 + 30),
                data: Vec::new(),
            };
            let token = grant.issue(&key(), random).expect("a sound grant");
            let link = LinkConfig::default();
            let net = transport::Client::connect(token, PROTOCOL, link, random, now);
            let phase = Duration::from_micros(random.0.range(0, 500_000) as u64);
            Guest {
                player: Player::new(number, settings.seed, &arena),
                view: Client::new(schema(), ClientConfig::default()).expect("sound types"),
                net: net.expect("the same protocol"),
                own: None,
                shown: BTreeMap::new(),
                entities: BTreeMap::new(),
                blocks: BTreeMap::new(),
                frame_at: now.after(phase),
                measures: Measures::default(),
            }
        };
        let players = (0..settings.players).map(|number| guest(number, &mut random));
        let players = players.collect();
        let hops = graph.next_hops(graph.centre());
        let paths = (0..graph.players).map(|player| graph.path(player, &hops));
        Self {
            now,
            wires: Wires::new(graph, settings.seed),
            server: Server::new(schema(), ServerConfig::default(), Everything)
                .expect("sound types"),
            server_net: server_net.expect("sound settings"),
            connections: BTreeMap::new(),
            tick: 0,
            avatars: BTreeMap::new(),
            blocks: BTreeMap::new(),
            wishes: Vec::new(),
            players,
            paths: paths.collect(),
            datagrams: BinaryHeap::new(),
            sent: 0,
            arena,
            random,
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now.after(span);
        while self.now < end {
            self.deliver();
            self.attend_server();
            let update = FRAMES_PER_UPDATE * 1_000_000 / u64::from(FRAMES);
            if (self.now.as_micros() - START.as_micros()) / update >= self.tick {
                self.step();
            }
            for player in 0..self.players.len() {
                self.attend_client(player);
            }
            self.now = self.now.after(Duration::from_millis(1));
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
                Some(player) => {
                    let net = &mut self.players[player].net;
                    net.handle_datagram(server_address(), &bytes, self.now);
                }
                None => {
                    let from = client_address((from & 0xffff) as usize);
                    let random = &mut self.random;
                    self.server_net
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

    fn attend_server(&mut self) {
        let now = self.now;
        if self.server_net.next_timeout().is_some_and(|due| due <= now) {
            self.server_net.handle_timeout(now);
        }
        while let Some(event) = self.server_net.poll_event() {
            match event {
                ServerEvent::Connected {
                    connection, client, ..
                } => {
                    let peer = PeerId(client.0);
                    self.connections.insert(peer, connection);
                    self.server.connect(peer);
                }
                ServerEvent::Received {
                    connection,
                    received: Received::Message { message, .. },
                } => {
                    let mut peers = self.connections.iter();
                    let peer = peers.find(|(_, it)| **it == connection);
                    let Some((&peer, _)) = peer else { continue };
                    let number = peer.0 as u32 - 1;
                    match self.server.handle(peer, &message) {
                        Ok(FromClient::Greeted) => self.wishes.push((number, Wish::Join)),
                        Ok(FromClient::Event { payload, .. }) => {
                            let wish = read_wish(&payload);
                            self.wishes.extend(wish.map(|wish| (number, wish)));
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        while let Some(datagram) = self.server_net.poll_transmit(now) {
            let player = player_at(datagram.to);
            self.send(player, true, datagram.bytes.to_vec());
        }
    }

    /// Simulates a tick of the server, and sends it.
    fn step(&mut self) {
        self.tick += 1;
        let wishes = std::mem::take(&mut self.wishes);
        let mut shots = Vec::new();
        let mut step = self.server.step(Tick(self.tick)).expect("ticks ascend");
        for (number, wish) in wishes {
            match wish {
                Wish::Join => {
                    let status = &self.players[number as usize].player.status;
                    let avatar = step.spawn(&Avatar::of(status, number)).expect("sound");
                    let health = status.health;
                    let vitals = step.spawn(&Vitals { health, number }).expect("sound");
                    let peer = PeerId(u64::from(number) + 1);
                    let granted = step.grant_authority(avatar.entity_ref(), peer);
                    granted.expect("it was just spawned");
                    self.avatars.insert(number, (avatar, vitals, health));
                }
                Wish::Shot(bytes) => shots.push((number, bytes)),
                Wish::Place(block, position) => {
                    let placed = Placed {
                        position,
                        health: 5,
                        owner: number,
                        number: block,
                    };
                    let entity = step.spawn(&placed).expect("sound");
                    self.blocks.insert((number, block), (entity, placed));
                    let own = self.blocks.range((number, 0)..(number + 1, 0));
                    if own.clone().count() > 8
                        && let Some((&oldest, _)) = own.into_iter().next()
                        && let Some((entity, _)) = self.blocks.remove(&oldest)
                    {
                        step.despawn(entity.entity_ref()).expect("it is there");
                    }
                }
                Wish::Hit(Target::Player(other)) => {
                    if let Some((_, vitals, health)) = self.avatars.get_mut(&other) {
                        *health = if *health > 1 { *health - 1 } else { 10 };
                        let value = Vitals {
                            health: *health,
                            number: other,
                        };
                        step.set(*vitals, &value).expect("it is there");
                        self.players[other as usize].measures.hits += 1;
                    }
                }
                Wish::Hit(Target::Block(owner, block)) => {
                    let Some((entity, placed)) = self.blocks.get_mut(&(owner, block)) else {
                        continue;
                    };
                    self.players[owner as usize].measures.hits += 1;
                    placed.health -= 1;
                    if placed.health > 0 {
                        step.set(*entity, placed).expect("it is there");
                    } else {
                        step.despawn(entity.entity_ref()).expect("it is there");
                        self.blocks.remove(&(owner, block));
                    }
                }
            }
        }
        step.finish();
        let peers: Vec<PeerId> = self.server.peers().collect();
        for (number, shot) in shots {
            for peer in peers.iter().filter(|peer| peer.0 as u32 != number + 1) {
                // A peer that has not joined yet is not told.
                let _ = self.server.send_event(*peer, &shot);
            }
        }
        self.send_state();
    }

    fn send_state(&mut self) {
        let now = self.now;
        let (net, connections) = (&mut self.server_net, &self.connections);
        let rooms: BTreeMap<PeerId, Room> = connections
            .iter()
            .map(|(peer, connection)| {
                let capacity = net.capacity(*connection, now);
                let room = Room {
                    message: capacity.message,
                    total: capacity.total,
                    headroom: 0,
                };
                (*peer, room)
            })
            .collect();
        let room = |peer| rooms.get(&peer).copied().unwrap_or(Room::NONE);
        self.server.encode(&room);
        for (peer, connection) in connections {
            while let Some(transmit) = self.server.poll_transmit(*peer) {
                let channel = match transmit.delivery {
                    Delivery::Reliable | Delivery::Unordered => EVENTS,
                    Delivery::Unreliable | Delivery::Sequenced => STATE,
                };
                // State that finds no room is made up for by later state.
                let _ = net.send(*connection, channel, transmit.message(), now);
            }
        }
    }

    fn attend_client(&mut self, place: usize) {
        let now = self.now;
        let guest = &mut self.players[place];
        if guest.net.next_timeout().is_some_and(|due| due <= now) {
            guest.net.handle_timeout(now);
        }
        let mut arrived = false;
        while let Some(event) = guest.net.poll_event() {
            match event {
                ClientEvent::Connected { .. } => {
                    while let Some(hello) = guest.view.poll_message() {
                        let _ = guest.net.send(EVENTS, &hello, now);
                    }
                }
                ClientEvent::Received(Received::Message { channel, message }) => {
                    // A packet that is late is made up for by later ones.
                    let _ = guest.view.handle(&message);
                    arrived |= channel == STATE;
                }
                _ => {}
            }
        }
        guest.note_changes(now);
        if arrived && let Some(ack) = guest.view.acknowledgement() {
            let _ = guest.net.send(STATE, &ack, now);
        }
        if guest.frame_at <= now {
            guest.frame_at = guest.frame_at.after(Duration::from_secs(1) / FRAMES);
            guest.frame(now, &self.arena);
            self.measure(place);
        }
        while let Some(datagram) = self.players[place].net.poll_transmit(now) {
            self.send(place, false, datagram.bytes.to_vec());
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
            if let Some(shown) = guest.shown_at(number, self.now) {
                guest.measures.deltas.add(f64::from(distance(shown, truth)));
            }
        }
        let statistics = guest.net.statistics();
        if let Some(round_trip) = statistics.and_then(|statistics| statistics.round_trip) {
            let latest = round_trip.latest.as_secs_f64();
            guest.measures.rtt.add(latest * 1e3);
        }
    }
}

impl Guest {
    fn note_changes(&mut self, now: Time) {
        while let Some(change) = self.view.poll_change() {
            match change {
                Change::AuthorityChanged { entity, granted } => {
                    self.own = granted.then_some(entity);
                    if let Some(number) = self.entities.get(&entity) {
                        self.shown.remove(number);
                    }
                }
                Change::Created(entity) | Change::Updated(entity) => {
                    if let Some(avatar) = self.view.get::<Avatar>(entity) {
                        let number = avatar.number;
                        self.entities.insert(entity, number);
                        if number == self.player.number {
                            continue;
                        }
                        if let Some(before) = self.shown_at(number, now) {
                            let correction = distance(before, avatar.position);
                            self.measures.corrections.add(f64::from(correction));
                        }
                        self.shown.insert(number, (avatar, now));
                    } else if let Some(block) = self.view.get::<Placed>(entity) {
                        self.blocks.insert(entity, block);
                    } else if let Some(vitals) = self.view.get::<Vitals>(entity)
                        && vitals.number == self.player.number
                    {
                        self.player.status.health = vitals.health;
                    }
                }
                Change::Removed(entity) => {
                    self.blocks.remove(&entity);
                    if let Some(number) = self.entities.remove(&entity) {
                        self.shown.remove(&number);
                    }
                }
                _ => {}
            }
        }
    }

    fn frame(&mut self, now: Time, arena: &Arena) {
        let players = self.shown.keys();
        let players = players.filter_map(|number| Some((*number, self.shown_at(*number, now)?)));
        let blocks = self.blocks.values();
        let blocks = blocks.filter(|block| block.owner != self.player.number);
        let seen = Seen {
            players: players.collect(),
            blocks: blocks
                .map(|block| (block.owner, block.number, block.position))
                .collect(),
        };
        for deed in self.player.step(arena, &seen) {
            let wish = match deed {
                Deed::Shot(shot) => Some(Wish::Shot(shot.to_bytes().to_vec())),
                Deed::Blocks => {
                    let newest = self.player.blocks.last_key_value();
                    newest.map(|(number, Block { position, .. })| Wish::Place(*number, *position))
                }
                Deed::Hit(target) => Some(Wish::Hit(target)),
            };
            let bytes = wish.map(|wish| write_wish(&wish));
            let event = bytes.and_then(|bytes| self.view.send_event(None, &bytes));
            if let Some(event) = event {
                let _ = self.net.send(EVENTS, &event, now);
            }
        }
        if self.player.frame.is_multiple_of(FRAMES_PER_UPDATE)
            && let Some(own) = self.own
        {
            let avatar = Avatar::of(&self.player.status, self.player.number);
            let _ = self.view.set(own, &avatar);
            if let Some(report) = self.view.report(None) {
                let _ = self.net.send(STATE, &report, now);
            }
        }
    }
}

fn write_wish(wish: &Wish) -> Vec<u8> {
    let pair =
        |kind: u8, a: u32, b: u32| [&[kind][..], &a.to_be_bytes(), &b.to_be_bytes()].concat();
    match wish {
        Wish::Join => Vec::new(),
        Wish::Shot(bytes) => [&[1], &bytes[..]].concat(),
        Wish::Place(number, position) => {
            let [x, y] = position.map(f32::to_be_bytes);
            [&[2][..], &number.to_be_bytes(), &x, &y].concat()
        }
        Wish::Hit(Target::Player(other)) => pair(3, *other, 0),
        Wish::Hit(Target::Block(owner, number)) => pair(4, *owner, *number),
    }
}

fn read_wish(bytes: &[u8]) -> Option<Wish> {
    let (kind, rest) = bytes.split_first()?;
    let word = |place: usize| Some(u32::from_be_bytes(*rest.get(place..)?.first_chunk()?));
    Some(match kind {
        1 => Wish::Shot(rest.to_vec()),
        2 => Wish::Place(
            word(0)?,
            [f32::from_bits(word(4)?), f32::from_bits(word(8)?)],
        ),
        3 => Wish::Hit(Target::Player(word(0)?)),
        4 => Wish::Hit(Target::Block(word(0)?, word(4)?)),
        _ => return None,
    })
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
const STATE: ChannelId = ChannelId::UNRELIABLE;
const EVENTS: ChannelId = ChannelId::ORDERED;
const PROTOCOL: ProtocolId = ProtocolId(*b"prescient arena!");
const UNIX: UnixTime = UnixTime(1_700_000_000);
