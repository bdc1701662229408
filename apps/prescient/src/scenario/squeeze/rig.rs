//! A server and a client with a bottleneck between them, in steps of a millisecond.

use std::net::SocketAddr;
use std::time::Duration;

use prescient::Ref;
use prescient_channels::{
    BytesPerSecond, ChannelId, ClientId, CongestionControl, ConnectionId, ExchangeConfig,
    PacketBuffer, Received, Time,
};
use prescient_replication::adaptation::{Adaptation, AdaptationReport, LinkEstimate};
use prescient_replication::{
    Client, ClientConfig, Delivery, Distance, PeerId, Position, Room, Server, ServerConfig, Tick,
    WorldError, WorldStep,
};
use prescient_sim::link::{self, Conditions, Departure, EndpointId, Network};
use prescient_sim::world::Random;
use prescient_transport::{
    self as transport, ClientEvent, Entropy, Grant, LinkConfig, ProtocolId, ServerEvent, TokenKey,
    UnixTime,
};

use super::units::{Far, Middle, Near, Player, Pose, Roamer, UNITS, priority, schema};

/// What a run is made of.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) adaptive: bool,
    pub(super) policy: CongestionControl,
    pub(super) seed: u64,
    /// The link at first.
    pub(super) normal: Conditions,
    /// Other conditions from a time on.
    pub(super) changes: Vec<(link::Time, Conditions)>,
    /// The highest rate of the server; `None` for the default.
    pub(super) cap: Option<u64>,
    pub(super) ticks: u64,
}

/// What happened in a tick.
#[derive(Clone, Debug)]
pub(super) struct TickRecord {
    pub(super) at: link::Time,
    pub(super) number: u64,
    pub(super) truth: Vec<[f32; 2]>,
    /// Bytes that congestion control allowed per second.
    pub(super) rate: u64,
    pub(super) report: Option<AdaptationReport>,
    /// Packets lost so far.
    pub(super) lost: u64,
}

/// The log of a run, from the first tick of which the client knows on.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) ticks: Vec<TickRecord>,
    /// Per unit: when a value arrived, its tick, and the position.
    pub(super) shown: Vec<Vec<(link::Time, u64, [f32; 2])>>,
    /// What left the bottleneck.
    pub(super) departures: Vec<Departure>,
}

/// When a tick is due.
pub(super) fn time_of(tick: u64) -> link::Time {
    link::Time::from_micros(START.as_micros() + tick * 1_000_000 / 30)
}

enum Entity {
    Player(Ref<Player>),
    Near(Ref<Near>),
    Middle(Ref<Middle>),
    Far(Ref<Far>),
}

impl Entity {
    fn spawn(step: &mut WorldStep<'_>, pose: Pose) -> Result<Self, WorldError> {
        Ok(match priority(usize::from(pose.number)) {
            0 => Self::Player(step.spawn(&pose.into())?),
            1 => Self::Near(step.spawn(&pose.into())?),
            2 => Self::Middle(step.spawn(&pose.into())?),
            _ => Self::Far(step.spawn(&pose.into())?),
        })
    }

    fn set(&self, step: &mut WorldStep<'_>, pose: Pose) -> Result<(), WorldError> {
        match self {
            Self::Player(entity) => step.set(*entity, &pose.into()),
            Self::Near(entity) => step.set(*entity, &pose.into()),
            Self::Middle(entity) => step.set(*entity, &pose.into()),
            Self::Far(entity) => step.set(*entity, &pose.into()),
        }
    }
}

/// Plays a setting.
pub(super) fn play(setting: &Setting) -> Log {
    let mut rig = Rig::new(setting);
    let end = time_of(setting.ticks);
    let mut tick = 0;
    while rig.now < end {
        if rig.connection.is_some() && rig.now >= time_of(tick) {
            rig.step();
            rig.send_state();
            tick += 1;
        } else if rig.connection.is_none() {
            tick = (rig.now.as_micros().saturating_sub(START.as_micros())) * 30 / 1_000_000 + 1;
        }
        rig.attend_server();
        rig.attend_client();
        rig.now = rig.now + Duration::from_millis(1);
    }
    let link = rig.network.link(rig.ends[0], rig.ends[1]);
    rig.log.departures = link.map_or_else(Vec::new, |link| link.departures().to_vec());
    rig.log
}

struct Rig {
    random: Dice,
    units: Vec<Roamer>,
    entities: Vec<Entity>,
    network: Network,
    ends: [EndpointId; 2],
    now: link::Time,
    tick: u64,
    adaptive: bool,
    server: Server,
    server_net: transport::Server,
    connection: Option<ConnectionId>,
    view: Client,
    client_net: transport::Client,
    log: Log,
}

impl Rig {
    fn new(setting: &Setting) -> Self {
        let mut random = Dice(Random::new(setting.seed));
        let mut network = Network::new(setting.seed);
        let ends = [SERVER, CLIENT].map(|at| network.add(at).expect("a new address"));
        let up = Conditions {
            rate: link::Rate::Unlimited,
            ..setting.normal.clone()
        };
        network
            .join(ends[0], ends[1], setting.normal.clone(), up)
            .expect("both exist");
        if let Some(down) = network.link_mut(ends[0], ends[1]) {
            down.record_departures();
            for (at, conditions) in &setting.changes {
                down.change_at(*at, conditions.clone());
            }
        }
        let now = link::Time::ZERO;
        let key = || TokenKey::new([7; 32]).expect("not the public one");
        let mut exchange = ExchangeConfig::default().with_congestion(setting.policy);
        if let Some(cap) = setting.cap {
            exchange = exchange.with_rate(BytesPerSecond(cap));
        }
        let link = LinkConfig::default().with_exchange(exchange);
        let config =
            transport::ServerConfig::new(key(), PROTOCOL, vec![SERVER]).with_link(link.clone());
        let server_net = transport::Server::new(config, &mut random, transport_time(now));
        let grant = Grant {
            client: ClientId(1),
            protocol: PROTOCOL,
            servers: vec![SERVER],
            expires: UnixTime(UNIX.0 + 30),
            data: Vec::new(),
        };
        let token = grant.issue(&key(), &mut random).expect("a sound grant");
        let at = transport_time(now);
        let client_net = transport::Client::connect(token, PROTOCOL, link, &mut random, at);
        let mut server = Server::new(
            schema(),
            ServerConfig::default(),
            Distance::new(200.0, 200.0).expect("a sound distance"),
        )
        .expect("a sound schema");
        let view = Client::new(schema(), ClientConfig::default()).expect("a sound schema");
        let mut world = Random::new(setting.seed);
        let units: Vec<Roamer> = (0..UNITS.iter().sum())
            .map(|number| Roamer::new(number, &mut world))
            .collect();
        let mut step = server.step(Tick(1)).expect("the first");
        let entities = units
            .iter()
            .map(|unit| Entity::spawn(&mut step, unit.pose).expect("it is sound"))
            .collect();
        step.finish();
        random.0 = world;
        let shown = vec![Vec::new(); units.len()];
        Self {
            random,
            units,
            entities,
            network,
            ends,
            now,
            tick: 1,
            adaptive: setting.adaptive,
            server,
            server_net: server_net.expect("sound settings"),
            connection: None,
            view,
            client_net: client_net.expect("the same protocol"),
            log: Log {
                shown,
                ..Log::default()
            },
        }
    }

    fn step(&mut self) {
        self.tick += 1;
        let mut step = self.server.step(Tick(self.tick)).expect("ticks ascend");
        for (unit, entity) in self.units.iter_mut().zip(&self.entities) {
            unit.step(&mut self.random.0);
            entity.set(&mut step, unit.pose).expect("it is there");
        }
        step.finish();
        // The player looks from its own unit.
        let [x, y] = self.units[0].pose.position;
        let at = Position([f64::from(x), f64::from(y), 0.0]);
        let _ = self.server.set_view_position(PEER, at);
    }

    fn send_state(&mut self) {
        let Some(connection) = self.connection else {
            return;
        };
        let now = transport_time(self.now);
        let rate = self
            .server_net
            .statistics(connection)
            .map_or(0, |it| it.rate_allowed.0);
        if self.adaptive {
            let estimate = LinkEstimate {
                bytes_per_second: rate,
                overhead: OVERHEAD,
                micros: now.as_micros(),
            };
            let adaptation = Some(Adaptation::default());
            self.server
                .set_adaptation(PEER, adaptation)
                .expect("connected");
            self.server.set_estimate(PEER, estimate).expect("connected");
        }
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
            // A full backlog drops state, as a lost packet would.
            let _ = self
                .server_net
                .send_buffer(connection, channel, message, now);
        }
        let link = self.network.link(self.ends[0], self.ends[1]);
        self.log.ticks.push(TickRecord {
            at: self.now,
            number: self.tick,
            truth: self.units.iter().map(|unit| unit.pose.position).collect(),
            rate,
            report: self.server.adaptation(PEER),
            lost: link.map_or(0, |link| link.statistics().lost.total()),
        });
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

    fn attend_client(&mut self) {
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
            self.note_shown();
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
    }

    fn note_shown(&mut self) {
        let entities: Vec<_> = self.view.entities().collect();
        for entity in entities {
            let view = &self.view;
            let pose = (view.get::<Player>(entity).map(Pose::from))
                .or_else(|| view.get::<Near>(entity).map(Pose::from))
                .or_else(|| view.get::<Middle>(entity).map(Pose::from))
                .or_else(|| view.get::<Far>(entity).map(Pose::from));
            let (Some(pose), Some(tick)) = (pose, view.tick_of(entity, 0)) else {
                continue;
            };
            let shown = &mut self.log.shown[usize::from(pose.number)];
            if shown.last().is_none_or(|(_, last, _)| *last < tick.0) {
                shown.push((self.now, tick.0, pose.position));
            }
        }
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
const PROTOCOL: ProtocolId = ProtocolId(*b"prescientsqueeze");
const UNIX: UnixTime = UnixTime(1_700_000_000);
/// What a packet adds to a message of state, about, with IP and UDP headers.
const OVERHEAD: usize = 58;
/// IP and UDP headers.
pub(super) const HEADERS: usize = 28;
const START: link::Time = link::Time::from_millis(200);
const SERVER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)),
    7777,
);
const CLIENT: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)),
    7778,
);
