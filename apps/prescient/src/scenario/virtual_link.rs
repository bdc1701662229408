//! A server and clients of the facade on a simulated network, in simulated time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prescient::{
    Carrier, CarrierEvent, Client, ClientEvent as Joining, ClientOptions, Schema, States, Tick,
};
use prescient_channels::{
    ChannelId, ClientId, CloseReason, ConnectionId, Input, InputError, InputTick, PacketBuffer,
    Received, SendError, Time,
};
use prescient_replication::{Delivery, Everything, PeerId, Room, Server, ServerConfig, TickClock};
use prescient_sim::link::{self, Conditions, EndpointId, Network};
use prescient_sim::world::Random;
use prescient_transport::{
    self as transport, ClientEvent, Entropy, Grant, LinkConfig, ProtocolId, ServerEvent, TokenKey,
    UnixTime,
};

/// The network and the time, which all ends share.
pub(super) struct Wire {
    network: Network,
    now: link::Time,
    random: Dice,
}

type Shared = Arc<Mutex<Wire>>;

fn lock(wire: &Shared) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A latency in each direction, of which a part is random, and a loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub latency: Duration,
    pub jitter: Duration,
    /// Parts per million.
    pub loss: u32,
}

impl Way {
    pub(super) fn of(latency_ms: u64, loss_percent: u32) -> Self {
        let latency = Duration::from_millis(latency_ms);
        Self {
            latency,
            jitter: latency / 5,
            loss: loss_percent * 10_000,
        }
    }

    /// The average latency is the one declared.
    fn conditions(&self) -> Conditions {
        Conditions::default()
            .with_latency(self.latency - self.jitter / 2)
            .with_jitter(self.jitter)
            .with_loss(self.loss)
    }
}

/// The server's end, and the time of all.
pub(super) struct Host {
    wire: Shared,
    at: EndpointId,
    pub server: Server,
    net: transport::Server,
    peers: Vec<ConnectionId>,
    tick: u64,
}

impl Host {
    pub(super) fn new<T: States>(seed: u64) -> Self {
        let mut network = Network::new(seed);
        let at = network.add(SERVER).expect("a new address");
        let mut random = Dice(Random::new(seed));
        let config = transport::ServerConfig::new(key(), PROTOCOL, vec![SERVER]);
        let now = link::Time::ZERO;
        let net = transport::Server::new(config, &mut random, time(now));
        let schema = Schema::of::<T>().expect("a sound schema");
        let server = Server::new(schema, ServerConfig::default(), Everything);
        Self {
            wire: Arc::new(Mutex::new(Wire {
                network,
                now,
                random,
            })),
            at,
            server: server.expect("a sound schema"),
            net: net.expect("sound settings"),
            peers: Vec::new(),
            tick: 0,
        }
    }

    /// A client that begins to join over a link.
    pub(super) fn client<T: States>(&mut self, way: Way) -> Client {
        let number = self.peers.len() as u8 + 2;
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)), 7778);
        let grant = Grant {
            client: ClientId(number.into()),
            protocol: PROTOCOL,
            servers: vec![SERVER],
            expires: UnixTime(UNIX.0 + 30),
            data: Vec::new(),
        };
        let mut wire = lock(&self.wire);
        let at = wire.network.add(address).expect("a new address");
        let joined = (wire.network).join(self.at, at, way.conditions(), way.conditions());
        joined.expect("both exist");
        let now = time(wire.now);
        let token = grant
            .issue(&key(), &mut wire.random)
            .expect("a sound grant");
        let link = LinkConfig::default();
        let net = transport::Client::connect(token, PROTOCOL, link, &mut wire.random, now);
        drop(wire);
        let carrier = VirtualClient {
            wire: self.wire.clone(),
            at,
            net: net.expect("the same protocol"),
        };
        let schema = Schema::of::<T>().expect("a sound schema");
        let client = Client::start_with_carrier(carrier, schema, ClientOptions::default());
        client.expect("a sound schema")
    }

    /// Lets time pass until a client has joined.
    pub(super) fn wait_for(&mut self, client: &mut Client) {
        for _ in 0..1000 {
            self.pass(tick());
            self.receive(|_, _, _| {});
            self.step().finish();
            self.send();
            while let Some(event) = client.poll() {
                if event == Joining::Joined {
                    return;
                }
            }
        }
        panic!("the client does not join in time");
    }

    pub(super) fn pass(&mut self, span: Duration) {
        let mut wire = lock(&self.wire);
        wire.now = wire.now + span;
    }

    pub(super) fn now(&self) -> Duration {
        lock(&self.wire).now.since(link::Time::ZERO)
    }

    /// Handles what arrived; returns inputs in their order.
    pub(super) fn receive(&mut self, mut given: impl FnMut(PeerId, InputTick, Input)) {
        let mut wire = lock(&self.wire);
        let at = wire.now;
        let now = time(at);
        while let Ok(Some(datagram)) = wire.network.poll(at, self.at) {
            let (from, bytes) = (datagram.path.from, &datagram.bytes);
            self.net
                .handle_datagram(from, bytes, now, UNIX, &mut wire.random);
        }
        if self.net.next_timeout().is_some_and(|due| due <= now) {
            self.net.handle_timeout(now);
        }
        while let Some(event) = self.net.poll_event() {
            match event {
                ServerEvent::Connected { connection, .. } => {
                    self.peers.push(connection);
                    self.server.connect(PeerId(connection.0));
                }
                ServerEvent::Received {
                    connection,
                    received: Received::Message { message, .. },
                } => {
                    let handled = self.server.handle(PeerId(connection.0), &message);
                    handled.expect("an honest client");
                }
                ServerEvent::Received {
                    connection,
                    received: Received::Input { tick, input },
                } => {
                    let peer = PeerId(connection.0);
                    self.server.note_input(peer, tick.0).expect("it has joined");
                    given(peer, tick, input);
                }
                _ => {}
            }
        }
        drop(wire);
        self.flush();
    }

    /// Begins a tick, and tells clients that are new when ticks are due.
    pub(super) fn step(&mut self) -> prescient_replication::WorldStep<'_> {
        self.tick += 1;
        self.server.step(Tick(self.tick)).expect("ticks ascend")
    }

    /// Sends the state of the tick.
    pub(super) fn send(&mut self) {
        let now = time(lock(&self.wire).now);
        let clock = TickClock {
            tick: Tick(self.tick),
            due_micros: now.as_micros(),
            interval_micros: tick().as_micros() as u32,
        };
        for connection in &self.peers {
            // The clock does not drift, so telling it in the first ticks is enough.
            if self.tick < CLOCK_TICKS {
                let _ = self.server.send_clock(PeerId(connection.0), clock);
            }
        }
        let net = &mut self.net;
        let rooms: Vec<(PeerId, Room)> = (self.peers.iter())
            .map(|&connection| {
                let capacity = net.capacity(connection, now);
                let room = Room {
                    message: capacity.message,
                    total: capacity.total,
                    headroom: PacketBuffer::HEADROOM,
                };
                (PeerId(connection.0), room)
            })
            .collect();
        self.server.encode(&|peer| {
            let room = rooms.iter().find(|(other, _)| *other == peer);
            room.map_or(Room::UNLIMITED, |(_, room)| *room)
        });
        for &connection in &self.peers {
            while let Some(transmit) = self.server.poll_transmit(PeerId(connection.0)) {
                let channel = match transmit.delivery {
                    Delivery::Reliable | Delivery::Unordered => ChannelId::ORDERED,
                    Delivery::Unreliable | Delivery::Sequenced => ChannelId::UNRELIABLE,
                };
                let message = PacketBuffer::with_headroom(transmit.buffer, transmit.headroom);
                let _ = self.net.send_buffer(connection, channel, message, now);
            }
        }
        self.flush();
    }

    fn flush(&mut self) {
        let mut wire = lock(&self.wire);
        let now = wire.now;
        while let Some(datagram) = self.net.poll_transmit(time(now)) {
            let sent = wire
                .network
                .send(now, self.at, datagram.to, &datagram.bytes);
            sent.expect("the client is part of the network");
        }
    }
}

/// A client's end.
struct VirtualClient {
    wire: Shared,
    at: EndpointId,
    net: transport::Client,
}

impl VirtualClient {
    fn pump(&mut self) {
        let mut wire = lock(&self.wire);
        let at = wire.now;
        let now = time(at);
        while let Ok(Some(datagram)) = wire.network.poll(at, self.at) {
            self.net
                .handle_datagram(datagram.path.from, &datagram.bytes, now);
        }
        if self.net.next_timeout().is_some_and(|due| due <= now) {
            self.net.handle_timeout(now);
        }
        while let Some(datagram) = self.net.poll_transmit(now) {
            let sent = wire.network.send(at, self.at, datagram.to, &datagram.bytes);
            sent.expect("the server is part of the network");
        }
    }
}

impl Carrier for VirtualClient {
    fn now(&self) -> Time {
        time(lock(&self.wire).now)
    }

    fn poll(&mut self) -> Option<CarrierEvent> {
        self.pump();
        std::iter::from_fn(|| self.net.poll_event()).find_map(|event| {
            let connection = ConnectionId::SERVER;
            Some(match event {
                ClientEvent::Connected { .. } => CarrierEvent::Connected {
                    connection,
                    client: ClientId(0),
                    data: Vec::new(),
                },
                ClientEvent::Received(received) => CarrierEvent::Received {
                    connection,
                    received,
                },
                _ => return None,
            })
        })
    }

    fn wait_until(&mut self, _: Time) -> Option<CarrierEvent> {
        self.poll()
    }

    fn send(
        &mut self,
        _: ConnectionId,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let now = self.now();
        self.net.send(channel, message, now)
    }

    fn push_input(&mut self, tick: InputTick, input: Input) -> Result<(), InputError> {
        let now = self.now();
        self.net.push_input(tick, input, now)
    }

    fn flush(&mut self) {
        self.pump();
    }

    fn close(&mut self, _: ConnectionId, reason: CloseReason) {
        let now = self.now();
        self.net.close(reason, now);
    }

    fn shut_down(&mut self, reason: CloseReason) {
        self.close(ConnectionId::SERVER, reason);
    }

    fn remote_time(&mut self, _: ConnectionId) -> Option<Time> {
        let now = self.now();
        self.net.server_time(now)
    }
}

/// The seed's randomness where a transport needs some.
struct Dice(Random);

impl Entropy for Dice {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.0.bits() as u8);
    }
}

fn key() -> TokenKey {
    TokenKey::new([7; 32]).expect("not the public one")
}

/// Times of connections are far from zero, so that they can go back from any.
fn time(now: link::Time) -> Time {
    Time::from_micros(now.as_micros() + (1 << 40))
}

/// Time between two ticks of the simulated games.
pub(super) fn tick() -> Duration {
    Duration::from_micros(33_333)
}

const PROTOCOL: ProtocolId = ProtocolId(*b"prescient smooth");
const UNIX: UnixTime = UnixTime(1_700_000_000);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 7777);
const CLOCK_TICKS: u64 = 90;
