//! A seeded network in memory on a virtual clock, with all faults that datagrams may suffer.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

pub mod transcript;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::*;
#[allow(unused_imports, reason = "every test uses another part")]
pub use prescient_tests::seeds::{over_seeds, seeds};
use prescient_transport::*;

pub const PROTOCOL: ProtocolId = ProtocolId(*b"transport tests!");
pub const UNIX: UnixTime = UnixTime(1_800_000_000);
/// Far enough from zero that clocks can run behind.
pub const START: u64 = 1 << 50;
pub const KEY: [u8; 32] = [42; 32];

/// A small generator whose whole state is a number (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }
}

impl Entropy for Random {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.next() as u8);
    }
}

/// Faults of a link, in percent and microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub latency: u64,
    pub loss: u64,
    pub corruption: u64,
    /// How many datagrams are delayed by up to `delay` more.
    pub delayed: u64,
    pub delay: u64,
    /// How many datagrams are duplicated, up to `repeat` later.
    pub duplicated: u64,
    pub repeat: u64,
    /// Longer datagrams are lost.
    pub carries: usize,
}

pub const GOOD: Link = Link {
    latency: 20_000,
    loss: 0,
    corruption: 0,
    delayed: 0,
    delay: 1,
    duplicated: 0,
    repeat: 1,
    carries: MAX_DATAGRAM,
};

#[derive(Clone, Debug)]
pub struct Datagram {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
    pub damaged: bool,
    /// On the virtual clock.
    pub sent_at: u64,
}

pub struct Peer {
    pub client: Client,
    pub address: SocketAddr,
    pub events: Vec<ClientEvent>,
    /// Events are not polled.
    pub unpolled: bool,
}

impl Peer {
    pub fn connected(&self) -> bool {
        matches!(self.events.first(), Some(ClientEvent::Connected { .. }))
    }

    pub fn error(&self) -> Option<ConnectError> {
        self.events.iter().find_map(|event| match event {
            ClientEvent::Failed(error) => Some(*error),
            _ => None,
        })
    }

    pub fn closed(&self) -> Option<CloseReason> {
        self.events.iter().find_map(|event| match event {
            ClientEvent::Closed(reason) => Some(*reason),
            _ => None,
        })
    }

    /// All messages, of all channels.
    pub fn messages(&self) -> Vec<Vec<u8>> {
        let received = self.received().filter_map(|received| match received {
            Received::Message { message, .. } => Some(message.clone()),
            _ => None,
        });
        received.collect()
    }

    /// The messages of one channel.
    pub fn messages_on(&self, wanted: ChannelId) -> Vec<Vec<u8>> {
        on(self.received(), wanted)
    }

    pub fn received(&self) -> impl Iterator<Item = &Received> {
        self.events.iter().filter_map(|event| match event {
            ClientEvent::Received(received) => Some(received),
            _ => None,
        })
    }
}

fn on<'a>(received: impl Iterator<Item = &'a Received>, wanted: ChannelId) -> Vec<Vec<u8>> {
    let messages = received.filter_map(|received| match received {
        Received::Message { channel, message } if *channel == wanted => Some(message.clone()),
        _ => None,
    });
    messages.collect()
}

/// A server, its clients, and the network between them.
pub struct World {
    pub random: Random,
    pub link: Link,
    /// Whether everything to the server, or to the clients, is lost.
    pub silent_up: bool,
    pub silent_down: bool,
    /// Microseconds of the virtual clock.
    pub now: u64,
    /// How far the clocks of the server and of the clients are ahead of it.
    pub server_ahead: i64,
    pub client_ahead: i64,
    pub unix: UnixTime,
    pub server: Server,
    config: ServerConfig,
    pub server_address: SocketAddr,
    pub server_events: Vec<ServerEvent>,
    pub peers: Vec<Peer>,
    /// Every datagram that was sent.
    pub sent: Vec<Datagram>,
    /// Every datagram that was delivered, and when.
    pub arrived: Vec<(u64, Datagram)>,
    flying: BTreeMap<(u64, u64), Datagram>,
    count: u64,
}

pub fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

pub fn config() -> ServerConfig {
    let key = TokenKey::new(KEY).expect("not the public one");
    ServerConfig::new(key, PROTOCOL, vec![address("192.0.2.1:4000")])
}

pub fn grant(client: u64) -> Grant {
    Grant {
        client: ClientId(client),
        protocol: PROTOCOL,
        servers: vec![address("192.0.2.1:4000")],
        expires: UnixTime(UNIX.0 + 30),
        data: vec![7; 3],
    }
}

impl World {
    pub fn new(seed: u64, link: Link) -> Self {
        Self::with(seed, link, config())
    }

    pub fn with(seed: u64, link: Link, config: ServerConfig) -> Self {
        let mut random = Random(seed);
        let server_address = config.addresses()[0];
        let now = START;
        let server =
            Server::new(config.clone(), &mut random, Time::from_micros(now)).expect("it can work");
        Self {
            random,
            link,
            silent_up: false,
            silent_down: false,
            now,
            server_ahead: 0,
            client_ahead: 0,
            unix: UNIX,
            server,
            config,
            server_address,
            server_events: Vec::new(),
            peers: Vec::new(),
            sent: Vec::new(),
            arrived: Vec::new(),
            flying: BTreeMap::new(),
            count: 0,
        }
    }

    pub fn server_time(&self) -> Time {
        Time::from_micros(self.now.saturating_add_signed(self.server_ahead))
    }

    pub fn client_time(&self) -> Time {
        Time::from_micros(self.now.saturating_add_signed(self.client_ahead))
    }

    pub fn issue(&mut self, grant: &Grant) -> ConnectToken {
        let key = TokenKey::new(KEY).expect("not the public one");
        grant.issue(&key, &mut self.random).expect("a sound grant")
    }

    /// Kills the server without close packets, and starts it again with its configuration.
    pub fn restart_server(&mut self) {
        self.restart_server_with(self.config.clone());
    }

    pub fn restart_server_with(&mut self, config: ServerConfig) {
        let now = self.server_time();
        self.server = Server::new(config, &mut self.random, now).expect("it can work");
    }

    /// Adds a client with its own token and address.
    pub fn join(&mut self) -> usize {
        let number = self.peers.len() as u64;
        let token = self.issue(&grant(number));
        self.join_with(
            token,
            LinkConfig::default(),
            &format!("10.0.{number}.1:5000"),
        )
    }

    pub fn join_with(&mut self, token: ConnectToken, config: LinkConfig, from: &str) -> usize {
        let now = self.client_time();
        let client = Client::connect(token, PROTOCOL, config, &mut self.random, now);
        self.peers.push(Peer {
            client: client.expect("the same protocol"),
            address: address(from),
            events: Vec::new(),
            unpolled: false,
        });
        self.peers.len() - 1
    }

    pub fn connections(&self) -> Vec<ConnectionId> {
        self.server
            .clients()
            .map(|(connection, _)| connection)
            .collect()
    }

    /// The connection of a client that joined with [`join`](Self::join).
    pub fn connection_of(&self, peer: usize) -> Option<ConnectionId> {
        let found = self
            .server
            .clients()
            .find(|(_, client)| client.0 == peer as u64);
        found.map(|(connection, _)| connection)
    }

    /// Sends an unreliable message.
    pub fn client_send(&mut self, peer: usize, message: &[u8]) -> Result<(), SendError> {
        self.client_send_on(peer, ChannelId::UNRELIABLE, message)
    }

    pub fn client_send_on(
        &mut self,
        peer: usize,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let now = self.client_time();
        self.peers[peer].client.send(channel, message, now)
    }

    /// Sends an unreliable message.
    pub fn server_send(&mut self, to: ConnectionId, message: &[u8]) -> Result<(), SendError> {
        self.server_send_on(to, ChannelId::UNRELIABLE, message)
    }

    pub fn server_send_on(
        &mut self,
        to: ConnectionId,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let now = self.server_time();
        self.server.send(to, channel, message, now)
    }

    /// The messages that the server received, with their connections.
    pub fn received(&self) -> Vec<(ConnectionId, Vec<u8>)> {
        let received = self.server_events.iter().filter_map(|event| match event {
            ServerEvent::Received {
                connection,
                received: Received::Message { message, .. },
            } => Some((*connection, message.clone())),
            _ => None,
        });
        received.collect()
    }

    /// What the server received from one client.
    pub fn received_from(&self, wanted: ConnectionId) -> impl Iterator<Item = &Received> {
        self.server_events
            .iter()
            .filter_map(move |event| match event {
                ServerEvent::Received {
                    connection,
                    received,
                } if *connection == wanted => Some(received),
                _ => None,
            })
    }

    /// The messages that the server received from one client on one channel.
    pub fn received_on(&self, from: ConnectionId, wanted: ChannelId) -> Vec<Vec<u8>> {
        on(self.received_from(from), wanted)
    }

    pub fn statistics(&self, peer: usize) -> Statistics {
        let statistics = self.peers[peer].client.statistics();
        statistics.expect("connected")
    }

    pub fn server_statistics(&self, connection: ConnectionId) -> Statistics {
        let statistics = self.server.statistics(connection);
        statistics.expect("connected")
    }

    pub fn closed(&self) -> Vec<(ConnectionId, CloseReason)> {
        let closed = self.server_events.iter().filter_map(|event| match event {
            ServerEvent::Closed { connection, reason } => Some((*connection, *reason)),
            _ => None,
        });
        closed.collect()
    }

    /// How many `Silent` events the server and the clients reported, which must agree.
    pub fn silences(&self) -> usize {
        let silent = |event: &&ServerEvent| matches!(event, ServerEvent::Silent { .. });
        let by_server = self.server_events.iter().filter(silent).count();
        let events = self.peers.iter().flat_map(|peer| &peer.events);
        let by_clients = events.filter(|event| **event == ClientEvent::Silent);
        assert_eq!(by_clients.count(), by_server);
        by_server
    }

    /// Injects a datagram, which arrives unchanged after a delay.
    pub fn inject(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>, after: u64) {
        let datagram = Datagram {
            from,
            to,
            bytes,
            damaged: false,
            sent_at: self.now,
        };
        self.fly(datagram, after);
    }

    pub fn run_for(&mut self, span: Duration) {
        self.run_until(span, |_| false);
    }

    /// Runs until a condition holds, which is checked after every step; false if that took longer
    /// than `span`.
    pub fn run_until(&mut self, span: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + span.as_micros() as u64;
        loop {
            self.settle();
            if done(self) {
                return true;
            }
            let arrival = self.flying.keys().next().map(|&(time, _)| time);
            let timers = self.peers.iter().filter_map(|peer| {
                let time = peer.client.next_timeout()?.as_micros();
                Some(time.saturating_add_signed(-self.client_ahead))
            });
            let server = self
                .server
                .next_timeout()
                .map(|time| time.as_micros().saturating_add_signed(-self.server_ahead));
            let next = timers
                .chain(server)
                .chain(arrival)
                .min()
                .unwrap_or(u64::MAX);
            if next > end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
        }
    }

    pub fn connect_all(&mut self) {
        let wanted = self.peers.len();
        let all = |world: &Self| world.server.clients().count() == wanted;
        assert!(
            self.run_until(Duration::from_secs(10), all),
            "not all connected"
        );
    }

    /// Does everything that is due now.
    fn settle(&mut self) {
        loop {
            let before = (self.count, self.flying.len());
            while let Some(entry) = self.flying.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let datagram = entry.remove();
                self.deliver(datagram);
            }
            let (server_time, client_time) = (self.server_time(), self.client_time());
            if self
                .server
                .next_timeout()
                .is_some_and(|time| time <= server_time)
            {
                self.server.handle_timeout(server_time);
            }
            for peer in &mut self.peers {
                if peer
                    .client
                    .next_timeout()
                    .is_some_and(|time| time <= client_time)
                {
                    peer.client.handle_timeout(client_time);
                }
            }
            self.collect();
            if before == (self.count, self.flying.len()) {
                return;
            }
        }
    }

    fn deliver(&mut self, datagram: Datagram) {
        let Datagram {
            from, to, bytes, ..
        } = &datagram;
        let (server_time, client_time) = (self.server_time(), self.client_time());
        if *to == self.server_address {
            let random = &mut self.random;
            self.server
                .handle_datagram(*from, bytes, server_time, self.unix, random);
        } else if let Some(peer) = self.peers.iter_mut().find(|peer| peer.address == *to) {
            peer.client.handle_datagram(*from, bytes, client_time);
        }
        self.arrived.push((self.now, datagram));
    }

    fn collect(&mut self) {
        let mut out = Vec::new();
        let (server_time, client_time) = (self.server_time(), self.client_time());
        while let Some(Transmit { to, bytes, .. }) = self.server.poll_transmit(server_time) {
            out.push((self.server_address, to, bytes.into_vec()));
        }
        for peer in &mut self.peers {
            while let Some(Transmit { to, bytes, .. }) = peer.client.poll_transmit(client_time) {
                out.push((peer.address, to, bytes.into_vec()));
            }
            if !peer.unpolled {
                peer.events
                    .extend(std::iter::from_fn(|| peer.client.poll_event()));
            }
        }
        while let Some(event) = self.server.poll_event() {
            self.server_events.push(event);
        }
        for (from, to, bytes) in out {
            let damaged = false;
            let datagram = Datagram {
                from,
                to,
                bytes,
                damaged,
                sent_at: self.now,
            };
            self.sent.push(datagram.clone());
            self.carry(datagram);
        }
    }

    fn carry(&mut self, datagram: Datagram) {
        let link = self.link;
        if self.random.percent(link.duplicated) {
            let after = link.latency + self.random.below(link.repeat);
            self.fly(datagram.clone(), after);
        }
        let silent = if datagram.to == self.server_address {
            self.silent_up
        } else {
            self.silent_down
        };
        let too_long = datagram.bytes.len() > link.carries;
        if self.random.percent(link.loss) || silent || too_long {
            self.count += 1;
            return;
        }
        let mut datagram = datagram;
        if self.random.percent(link.corruption) {
            damage(&mut datagram.bytes, &mut self.random);
            datagram.damaged = true;
        }
        let mut after = link.latency;
        if self.random.percent(link.delayed) {
            after += self.random.below(link.delay);
        }
        self.fly(datagram, after);
    }

    fn fly(&mut self, datagram: Datagram, after: u64) {
        self.count += 1;
        self.flying.insert((self.now + after, self.count), datagram);
    }
}

/// Flips one to eight bits, or truncates.
pub fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    if random.percent(10) {
        let length = random.below(bytes.len() as u64) as usize;
        bytes.truncate(length);
        return;
    }
    let original = bytes.clone();
    while *bytes == original {
        for _ in 0..=random.below(8) {
            let bit = random.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

pub const SECOND: Duration = Duration::from_secs(1);
