//! `prescient scenario crowd`: large worlds over links of several rates, in simulated time.
//!
//! Measures how long a client takes to join a world, compared with what its bytes take on the link,
//! and how stale a client's state gets in a world whose ticks need several packets.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use prescient::{Ref, Schema, State};
use prescient_channels::{ChannelId, ClientId, ConnectionId, PacketBuffer, Received, Time};
use prescient_replication::{
    Client, ClientConfig, Delivery, Everything, PeerId, Room, Server, ServerConfig, Tick,
};
use prescient_sim::link::{self, Conditions, EndpointId, Network};
use prescient_sim::world::Random;
use prescient_transport::{
    self as transport, ClientEvent, Entropy, Grant, LinkConfig, ProtocolId, ServerEvent, TokenKey,
    UnixTime,
};
use serde_json::json;

use super::ScenarioError;
use crate::text;

/// Options of `prescient scenario crowd`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CrowdOptions {
    /// Entities of the world that is joined.
    #[arg(long, default_value_t = 50_000)]
    entities: u32,
    /// Rates of the links, in kilobits per second.
    #[arg(long, value_delimiter = ',', default_values_t = [256, 5_000, 50_000])]
    kilobits: Vec<u64>,
    /// Letters of each entity's text. Without any, 50,000 entities are 0.3 MB, which 50 Mbit/s carry
    /// in less time than a connection takes to begin.
    #[arg(long, default_value_t = 0)]
    letters: usize,
    /// Time in each direction, in milliseconds.
    #[arg(long, default_value_t = 10)]
    latency: u64,
    /// Print a JSON object per line.
    #[arg(long)]
    json: bool,
}

/// An entity of the crowd.
#[derive(State, Clone)]
struct Person {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    aim: i16,
    health: u8,
    story: String,
}

pub(crate) fn crowd(options: &CrowdOptions) -> Result<(), ScenarioError> {
    for &kilobits in &options.kilobits {
        let bits = kilobits * 1000;
        let mut world = Meeting::new(
            options.entities,
            options.letters,
            false,
            bits,
            options.latency,
        );
        let seconds = world.run_until(Duration::from_secs(120), |world| {
            world.view.entities().count() == world.people.len()
        });
        let bytes = world.bytes_down();
        let ideal = bytes as f64 * 8.0 / bits as f64;
        let seconds = seconds.ok_or(ScenarioError::Unfinished)?.as_secs_f64();
        let figures = json!({
            "measured": "join",
            "entities": options.entities,
            "letters": options.letters,
            "kilobits": kilobits,
            "bytes": bytes,
            "connected_seconds": world.connected.as_micros() as f64 / 1e6,
            "seconds": seconds,
            "ratio": seconds / ideal,
        });
        print(&figures, options.json);
    }
    let mut world = Meeting::new(MOVING, 0, true, 5_000_000, options.latency);
    let joined = world.run_until(Duration::from_secs(60), |world| {
        world.view.entities().count() == world.people.len()
    });
    joined.ok_or(ScenarioError::Unfinished)?;
    world.run_until(Duration::from_secs(3), |_| false);
    let before = (world.bytes_down(), world.tick);
    world.stalest = 0;
    world.run_until(Duration::from_secs(10), |_| false);
    let ticks = world.tick - before.1;
    let figures = json!({
        "measured": "moving",
        "entities": MOVING,
        "kilobits": 5_000,
        "bytes_per_tick": (world.bytes_down() - before.0) / ticks,
        "stalest_ticks": world.stalest,
    });
    print(&figures, options.json);
    Ok(())
}

fn print(figures: &serde_json::Value, json: bool) {
    if json {
        println!("{figures}");
        return;
    }
    println!("{}", text::figures(figures));
}

/// A server and a client with a link between them, in steps of a millisecond.
struct Meeting {
    random: Dice,
    network: Network,
    ends: [EndpointId; 2],
    now: link::Time,
    tick: u64,
    moving: bool,
    letters: usize,
    people: Vec<(Ref<Person>, Person)>,
    server: Server,
    server_net: transport::Server,
    connection: Option<ConnectionId>,
    /// When the connection began.
    connected: link::Time,
    view: Client,
    client_net: transport::Client,
    /// How old the oldest shown value was after any packet of state, in ticks behind the newest
    /// that was shown.
    stalest: u64,
}

impl Meeting {
    fn new(entities: u32, letters: usize, moving: bool, bits: u64, latency: u64) -> Self {
        let mut random = Dice(Random::new(7));
        let mut network = Network::new(7);
        let ends = [SERVER, CLIENT].map(|at| network.add(at).expect("a new address"));
        let way = Conditions::default().with_latency(Duration::from_millis(latency));
        let down = way
            .clone()
            .with_bandwidth(bits)
            .with_queue_limit(bits as usize / 8);
        let joined = network.join(ends[0], ends[1], down, way);
        joined.expect("both exist");
        let now = link::Time::ZERO;
        let key = || TokenKey::new([7; 32]).expect("not the public one");
        let config = transport::ServerConfig::new(key(), PROTOCOL, vec![SERVER]);
        let server_net = transport::Server::new(config, &mut random, transport_time(now));
        let grant = Grant {
            client: ClientId(1),
            protocol: PROTOCOL,
            servers: vec![SERVER],
            expires: UnixTime(UNIX.0 + 30),
            data: Vec::new(),
        };
        let token = grant.issue(&key(), &mut random).expect("a sound grant");
        let link = LinkConfig::default();
        let at = transport_time(now);
        let client_net = transport::Client::connect(token, PROTOCOL, link, &mut random, at);
        let schema = Schema::of::<Person>().expect("a sound schema");
        let view = Client::new(schema.clone(), ClientConfig::default());
        let mut meeting = Self {
            network,
            ends,
            now,
            tick: 0,
            moving,
            letters,
            people: Vec::new(),
            server: Server::new(schema, ServerConfig::default(), Everything)
                .expect("a sound schema"),
            server_net: server_net.expect("sound settings"),
            connection: None,
            connected: now,
            view: view.expect("a sound schema"),
            client_net: client_net.expect("the same protocol"),
            stalest: 0,
            random,
        };
        meeting.step(entities);
        meeting
    }

    /// Spawns the missing people, and moves all if they move.
    fn step(&mut self, entities: u32) {
        self.tick += 1;
        let mut step = self.server.step(Tick(self.tick)).expect("ticks ascend");
        let random = &mut self.random.0;
        if self.moving {
            for (entity, person) in &mut self.people {
                person.position = person
                    .position
                    .map(|at| at + random.range(0, 40) as f32 / 100.0);
                person.aim = person.aim.wrapping_add(random.range(0, 9) as i16);
                step.set(*entity, person).expect("it is there");
            }
        }
        while self.people.len() < entities as usize {
            let person = Person {
                position: [0; 2].map(|_: u8| random.range(0, 100_000) as f32 / 100.0),
                aim: random.range(0, 360) as i16,
                health: 100,
                story: (0..self.letters)
                    .map(|_| char::from(b'a' + random.range(0, 25) as u8))
                    .collect(),
            };
            let entity = step.spawn(&person).expect("it is sound");
            self.people.push((entity, person));
        }
        step.finish();
    }

    /// Runs until something holds and returns how long that took; `None` if it did not.
    fn run_until(&mut self, limit: Duration, holds: impl Fn(&Self) -> bool) -> Option<Duration> {
        let begun = self.now;
        while self.now.since(begun) < limit {
            if self.now.as_micros().is_multiple_of(TICK) && self.connection.is_some() {
                let entities = self.people.len() as u32;
                self.step(entities);
                self.send_state();
            }
            self.attend_server();
            if self.attend_client() && holds(self) {
                return Some(self.now.since(begun));
            }
            self.now = self.now + Duration::from_millis(1);
        }
        None
    }

    fn bytes_down(&self) -> u64 {
        let link = self.network.link(self.ends[0], self.ends[1]);
        link.map_or(0, |link| link.statistics().sent_bytes)
    }

    fn send_state(&mut self) {
        let Some(connection) = self.connection else {
            return;
        };
        let now = transport_time(self.now);
        let capacity = self.server_net.capacity(connection, now);
        let room = Room {
            message: capacity.message,
            total: capacity.total,
            headroom: PacketBuffer::HEADROOM,
        };
        self.server.encode(&|_| room);
        while let Some(transmit) = self.server.poll_transmit(PEER) {
            let channel = match transmit.delivery {
                Delivery::Reliable | Delivery::Unordered => EVENTS,
                Delivery::Unreliable | Delivery::Sequenced => STATE,
            };
            let message = PacketBuffer::with_headroom(transmit.buffer, transmit.headroom);
            let sent = self
                .server_net
                .send_buffer(connection, channel, message, now);
            sent.expect("no more than the capacity");
        }
    }

    fn attend_server(&mut self) {
        let (now, at) = (transport_time(self.now), self.ends[0]);
        while let Ok(Some(datagram)) = self.network.poll(self.now, at) {
            let (from, bytes) = (datagram.path.from, &datagram.bytes);
            self.server_net
                .handle_datagram(from, bytes, now, UNIX, &mut self.random);
        }
        if self.server_net.next_timeout().is_some_and(|due| due <= now) {
            self.server_net.handle_timeout(now);
        }
        while let Some(event) = self.server_net.poll_event() {
            match event {
                ServerEvent::Connected { connection, .. } => {
                    self.connection = Some(connection);
                    self.connected = self.now;
                    self.server.connect(PEER);
                }
                ServerEvent::Received {
                    received: Received::Message { message, .. },
                    ..
                } => {
                    self.server
                        .handle(PEER, &message)
                        .expect("an honest client");
                }
                _ => {}
            }
        }
        while let Some(datagram) = self.server_net.poll_transmit(now) {
            let sent = self
                .network
                .send(self.now, at, datagram.to, &datagram.bytes);
            sent.expect("the client is part of the network");
        }
    }

    /// Returns whether state arrived.
    fn attend_client(&mut self) -> bool {
        let (now, at) = (transport_time(self.now), self.ends[1]);
        while let Ok(Some(datagram)) = self.network.poll(self.now, at) {
            let (from, bytes) = (datagram.path.from, &datagram.bytes);
            self.client_net.handle_datagram(from, bytes, now);
        }
        if self.client_net.next_timeout().is_some_and(|due| due <= now) {
            self.client_net.handle_timeout(now);
        }
        let mut arrived = false;
        while let Some(event) = self.client_net.poll_event() {
            match event {
                ClientEvent::Connected { .. } => {
                    while let Some(hello) = self.view.poll_message() {
                        let sent = self.client_net.send(EVENTS, &hello, now);
                        sent.expect("a new connection has room");
                    }
                }
                ClientEvent::Received(Received::Message { channel, message }) => {
                    // A packet that is late is made up for by later ones.
                    let _ = self.view.handle(&message);
                    arrived |= channel == STATE;
                }
                _ => {}
            }
        }
        while self.view.poll_change().is_some() {}
        if arrived {
            self.note_stalest();
            if let Some(ack) = self.view.acknowledgement() {
                let _ = self.client_net.send(STATE, &ack, now);
            }
        }
        while let Some(datagram) = self.client_net.poll_transmit(now) {
            let sent = self
                .network
                .send(self.now, at, datagram.to, &datagram.bytes);
            sent.expect("the server is part of the network");
        }
        arrived
    }

    fn note_stalest(&mut self) {
        if !self.moving {
            return;
        }
        let newest = self.view.tick().unwrap_or_default();
        let shown = self.view.entities();
        let ages = shown.filter_map(|entity| Some(newest.since(self.view.tick_of(entity, 0)?)));
        self.stalest = self.stalest.max(ages.max().unwrap_or(0));
    }
}

/// The seed's randomness where a transport needs some.
struct Dice(Random);

impl Entropy for Dice {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.0.bits() as u8);
    }
}

fn transport_time(now: link::Time) -> Time {
    Time::from_micros(now.as_micros() + (1 << 40))
}

const STATE: ChannelId = ChannelId::UNRELIABLE;
const EVENTS: ChannelId = ChannelId::ORDERED;
const PEER: PeerId = PeerId(1);
const PROTOCOL: ProtocolId = ProtocolId(*b"prescient crowd!");
const UNIX: UnixTime = UnixTime(1_700_000_000);
/// People of the world that moves: a tick needs about 3,000 bytes.
const MOVING: u32 = 1500;
/// Microseconds of a tick.
const TICK: u64 = 33_000;
const SERVER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)),
    7777,
);
const CLIENT: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)),
    7778,
);
