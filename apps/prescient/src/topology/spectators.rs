//! `prescient named spectators`: one server and any number of spectators behind a tree of forwarders, on a virtual
//! clock.

use std::collections::VecDeque;
use std::time::Duration;

use clap::Args;
use prescient::named::{
    ConsumerConfig, Data, FaceConfig, FaceId, Freshness, Interest, LinkPacket, Name,
    ProducerConfig, Signer,
};
use prescient::{PublisherConfig, SpectatorConsumer, SpectatorProducer};
use prescient_replication::{
    Client, ClientConfig, Everything, PeerId, Publisher, Room, Server, ServerConfig, Tick,
};
use prescient_sim::world::Random;
use serde_json::json;

use super::simulation::{HOUSEKEEPING, Simulation};
use crate::text;
use crate::walkers::{self, Walker};

/// Options of `prescient named spectators`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SpectatorsOptions {
    /// Spectators.
    #[arg(long, default_value_t = 1000)]
    spectators: usize,
    /// Forwarders, or spectators, below each forwarder of the tree.
    #[arg(long, default_value_t = 10)]
    fan_out: usize,
    /// Entities of the world.
    #[arg(long, default_value_t = 100)]
    entities: u32,
    /// Seconds that are measured.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The seed of the links.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Ticks per second.
const RATE: u64 = 30;
/// Bytes of the UDP and IP headers.
const HEADERS: u64 = 28;
/// The time on a link, at least, and how much longer at most, in microseconds.
const DELAY: u64 = 5000;
const JITTER: i64 = 3000;
/// Capacity of a forwarder's content store, in bytes.
const STORE: usize = 1 << 20;
/// The time for spectators to begin.
const WARM_UP: u64 = 2;

/// Runs the command.
pub(crate) fn spectators(options: &SpectatorsOptions) {
    let mut hall = Hall::new(options);
    hall.run(Duration::from_secs(WARM_UP));
    let before = (
        hall.egress,
        hall.egress_packets,
        hall.producer.statistics().interests,
    );
    hall.run(Duration::from_secs(options.seconds.max(1)));
    let seconds = options.seconds.max(1) as f64;
    let rate = |count: u64| (count as f64 / seconds).round();
    let egress = rate(hall.egress - before.0);
    let client = rate(client_bytes(options));
    let behind = hall.ticks_behind();
    let figures = json!({
        "spectators": hall.spectators.len(),
        "forwarders": hall.simulation.nodes.len(),
        "entities": options.entities,
        "server_bytes_per_second": egress,
        "server_packets_per_second": rate(hall.egress_packets - before.1),
        "interests_seen_per_second":
            rate(hall.producer.statistics().interests - before.2),
        "client_bytes_per_second": client,
        "egress_in_clients": (egress / client * 100.0).round() / 100.0,
        "spectators_in_step": behind.len(),
        "most_ticks_behind": behind.into_iter().max(),
    });
    match options.json {
        true => println!("{figures}"),
        false => println!("{}", text::figures(&figures)),
    }
}

/// Bytes that one client of the same world costs the server in as many seconds: with acknowledgements three ticks
/// late, and without any overhead of its connection but UDP and IP headers.
fn client_bytes(options: &SpectatorsOptions) -> u64 {
    let peer = PeerId(1);
    let server = Server::new(walkers::schema(), ServerConfig::default(), Everything);
    let mut server = server.expect("a sound schema");
    let client = Client::new(walkers::schema(), ClientConfig::default());
    let mut client = client.expect("a sound schema");
    server.connect(peer);
    while let Some(message) = client.poll_message() {
        server.handle(peer, &message).expect("our own client");
    }
    while let Some(transmit) = server.poll_transmit(peer) {
        client.handle(transmit.message()).expect("our own server");
    }
    let (mut walkers, mut bytes) = (Vec::new(), 0);
    let mut acknowledgements = VecDeque::new();
    for tick in 1..=(options.seconds.max(1) + WARM_UP) * RATE {
        let step = server.step(Tick(tick)).expect("ticks ascend");
        let walked = walkers::walk(&mut walkers, step, tick, options.entities);
        walked.expect("they are there");
        server.encode(&|_| Room::one(60_000));
        while let Some(transmit) = server.poll_transmit(peer) {
            if tick > WARM_UP * RATE {
                bytes += transmit.message().len() as u64 + HEADERS;
            }
            client.handle(transmit.message()).expect("our own server");
        }
        acknowledgements.extend(client.acknowledgement());
        if acknowledgements.len() > 3
            && let Some(message) = acknowledgements.pop_front()
        {
            server.handle(peer, &message).expect("our own client");
        }
    }
    bytes
}

/// A server, a tree of forwarders and spectators.
struct Hall {
    simulation: Simulation<End, Event>,
    entities: u32,
    tick: u64,
    server: Server,
    publisher: Publisher,
    walkers: Vec<prescient::Ref<Walker>>,
    producer: SpectatorProducer,
    /// The server's face at the root of the tree.
    server_face: FaceId,
    spectators: Vec<Spectator>,
    random: Random,
    /// Traffic that left the server's machine.
    egress: u64,
    egress_packets: u64,
}

struct Spectator {
    consumer: SpectatorConsumer,
    node: usize,
    face: FaceId,
}

#[derive(Clone, Copy)]
enum End {
    Server,
    Spectator(usize),
    Node(usize, FaceId),
}

enum Event {
    Tick,
    Check,
    AtNode(usize, FaceId, Vec<u8>),
    AtServer(Vec<u8>),
    AtSpectator(usize, Vec<u8>),
}

impl Hall {
    fn new(options: &SpectatorsOptions) -> Self {
        let topic: Name = "/match/7/server/view".parse().unwrap_or_default();
        let signer = Signer::ed25519(&[9; 32], None);
        let verifier = signer.verifier();
        let freshness = Freshness::Fixed(Duration::from_millis(20));
        let config = ProducerConfig::new(signer).freshness(freshness);
        let server = Server::new(walkers::schema(), ServerConfig::default(), Everything);
        let server = server.expect("a sound schema");
        let publishing = PublisherConfig::default().with_base_interval(1);
        let publisher = Publisher::new(server.world(), publishing, Everything);
        let mut random = Random::new(options.seed);
        let mut simulation = Simulation::new();
        let root = simulation.add_node(STORE, random.bits());
        let server_face = simulation.add_face(root, &FaceConfig::remote(), End::Server);
        let mut hall = Self {
            simulation,
            server_face,
            entities: options.entities,
            tick: 0,
            publisher: publisher.expect("sound settings"),
            server,
            walkers: Vec::new(),
            producer: SpectatorProducer::new(topic.view(), config, 1).expect("a short name"),
            spectators: Vec::new(),
            random,
            egress: 0,
            egress_packets: 0,
        };
        hall.add_route(root, &topic, server_face);
        for node in hall.grow(root, options.spectators, options.fan_out.max(2), &topic) {
            let end = End::Spectator(hall.spectators.len());
            let face = hall.simulation.add_face(node, &FaceConfig::remote(), end);
            let mut key = [0; 16];
            key[..8].copy_from_slice(&hall.random.bits().to_be_bytes());
            let config = ConsumerConfig::new(verifier.clone());
            let schema = walkers::schema();
            let now = hall.simulation.now;
            let consumer = SpectatorConsumer::new(now, topic.view(), config, 1, schema, key);
            hall.spectators.push(Spectator {
                consumer: consumer.expect("a short name"),
                node,
                face,
            });
        }
        hall.schedule(Duration::ZERO, Event::Tick);
        hall.schedule(Duration::ZERO, Event::Check);
        hall
    }

    /// Adds forwarders until the last row has room for all spectators; returns the forwarder of each spectator.
    fn grow(&mut self, root: usize, spectators: usize, fan_out: usize, topic: &Name) -> Vec<usize> {
        let mut row = vec![root];
        while row.len() * fan_out < spectators {
            let mut next = Vec::new();
            for node in row {
                for _ in 0..fan_out {
                    let below = self.simulation.add_node(STORE, self.random.bits());
                    let config = FaceConfig::remote();
                    // Known once both ends are there.
                    let up = self.simulation.add_face(below, &config, End::Server);
                    let end = End::Node(below, up);
                    let down = self.simulation.add_face(node, &config, end);
                    self.simulation.connect(below, up, End::Node(node, down));
                    self.add_route(below, topic, up);
                    next.push(below);
                }
            }
            row = next;
        }
        let leaves = row.len();
        (0..spectators).map(|number| row[number % leaves]).collect()
    }

    fn add_route(&mut self, node: usize, prefix: &Name, face: FaceId) {
        let added = self.simulation.nodes[node].add_route(prefix.view(), face, 1);
        added.expect("one route");
    }

    /// How many ticks each spectator is behind whose entities are exactly those of the tick that it shows.
    fn ticks_behind(&mut self) -> Vec<u64> {
        let (entities, newest) = (self.entities, self.tick);
        let spectators = self.spectators.iter_mut();
        spectators
            .filter_map(|spectator| {
                let shown = spectator.consumer.subscriber();
                let tick = shown.tick()?;
                let mut count = 0;
                let is_true = shown.entities().all(|entity| {
                    count += 1;
                    let walker: Option<Walker> = shown.get(entity);
                    let truth = |it: &Walker| walkers::walker(it.number, tick.0, entities);
                    walker.is_some_and(|walker| truth(&walker) == walker)
                });
                let is_in_step = is_true && count == entities;
                is_in_step.then(|| newest.saturating_sub(tick.0))
            })
            .collect()
    }

    fn run(&mut self, span: Duration) {
        let end = self.simulation.now.after(span);
        while let Some(event) = self.simulation.next_until(end) {
            self.handle(event);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Tick => {
                self.step();
                self.schedule(Duration::from_secs(1) / RATE as u32, Event::Tick);
            }
            Event::Check => {
                for number in 0..self.spectators.len() {
                    self.request(number);
                }
                for node in self.simulation.handle_timeouts() {
                    self.pump(node);
                }
                self.schedule(HOUSEKEEPING, Event::Check);
            }
            Event::AtNode(node, face, packet) => {
                self.simulation.arrive(node, face, &packet);
                self.pump(node);
            }
            Event::AtServer(packet) => {
                let interest = LinkPacket::decode(&packet).ok();
                let interest = interest.and_then(|link| Interest::decode(link.packet).ok());
                let now = self.simulation.now;
                if let Some(interest) = interest
                    && let Some(segment) = self.producer.handle_interest(now, &interest)
                {
                    let segment = segment.to_vec();
                    self.send_from_server(segment);
                }
                self.answer();
            }
            Event::AtSpectator(number, packet) => {
                if let Ok(link) = LinkPacket::decode(&packet)
                    && let Ok(data) = Data::decode(link.packet)
                {
                    // A packet that cannot be applied is made up for by the next snapshot.
                    let now = self.simulation.now;
                    let consumer = &mut self.spectators[number].consumer;
                    let _ = consumer.handle_data(now, &data);
                    while consumer.subscriber().poll_change().is_some() {}
                }
                self.request(number);
            }
        }
    }

    fn step(&mut self) {
        self.tick += 1;
        let step = self.server.step(Tick(self.tick)).expect("ticks ascend");
        let walked = walkers::walk(&mut self.walkers, step, self.tick, self.entities);
        walked.expect("they are there");
        let packet = self.publisher.publish(self.server.world());
        self.producer.publish(packet.expect("a new tick"));
        self.answer();
    }

    fn answer(&mut self) {
        let mut bytes = Vec::new();
        while self.producer.poll_transmit(self.simulation.now, &mut bytes) {
            self.send_from_server(std::mem::take(&mut bytes));
        }
    }

    fn send_from_server(&mut self, packet: Vec<u8>) {
        self.egress += packet.len() as u64 + HEADERS;
        self.egress_packets += 1;
        let delay = self.delay();
        self.schedule(delay, Event::AtNode(0, self.server_face, packet));
    }

    fn request(&mut self, number: usize) {
        let now = self.simulation.now;
        let mut bytes = Vec::new();
        let spectator = &mut self.spectators[number];
        let (node, face) = (spectator.node, spectator.face);
        let mut packets = Vec::new();
        while spectator.consumer.poll_transmit(now, &mut bytes) {
            packets.push(std::mem::take(&mut bytes));
        }
        for packet in packets {
            let delay = self.delay();
            self.schedule(delay, Event::AtNode(node, face, packet));
        }
    }

    fn pump(&mut self, node: usize) {
        while let Some((end, packet)) = self.simulation.poll_transmit(node) {
            let event = match end {
                End::Server => Event::AtServer(packet),
                End::Spectator(number) => Event::AtSpectator(number, packet),
                End::Node(other, face) => Event::AtNode(other, face, packet),
            };
            let delay = self.delay();
            self.schedule(delay, event);
        }
    }

    fn delay(&mut self) -> Duration {
        Duration::from_micros(DELAY + self.random.range(0, JITTER) as u64)
    }

    fn schedule(&mut self, after: Duration, event: Event) {
        let time = self.simulation.now.after(after);
        self.simulation.schedule(time, event);
    }
}
