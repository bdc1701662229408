//! The server: every connection of one socket, and the door that leads to them.

mod client_connection;
mod event;
mod handshake;
mod lobby;
mod path;
mod send;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use client_connection::ClientConnection;
pub use event::{ConnectionId, ServerEvent};
pub use handshake::{Admission, Applicant};

use crate::config::ServerConfig;
use crate::connection::{Outbox, Transmit};
use crate::cookie::CookieKey;
use crate::entropy::Entropy;
use crate::error::{BanError, CloseReason};
use crate::inbox::Inbox;
use crate::limits::{Origins, UsedTokens};
use crate::lobby::LobbyServer;
use crate::packet::DatagramType;
#[cfg(feature = "__test_hooks")]
use crate::packet::PacketKind;
use crate::reset::Resets;
use crate::statistics::Statistics;
use crate::time::{AttendedClock, Time, UnixTime};
use crate::token::{ClientId, canonical};

/// A server: feed it datagrams and time, and poll it for datagrams and events until both are
/// `None`.
pub struct Server {
    config: ServerConfig,
    clock: AttendedClock,
    cookie_key: CookieKey,
    resets: Resets,
    /// Nobody is let in any more.
    closing: bool,
    admission: Option<Admission>,
    connections: BTreeMap<ConnectionId, ClientConnection>,
    /// When to look at which connection; one entry for each.
    timers: BTreeSet<(Time, ConnectionId)>,
    /// Connections that may have something to say, each once, in turns.
    send_queue: VecDeque<ConnectionId>,
    origins: Origins,
    used: UsedTokens,
    banned: BTreeSet<ClientId>,
    lobby: LobbyServer,
    outbox: Outbox,
    events: Inbox<ServerEvent>,
}

/// How much a server holds at the moment. None of it grows by what strangers send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Connections, including those that are being made and those that take leave.
    pub connections: usize,
    /// Tokens remembered as used.
    pub tokens: usize,
    /// Addresses remembered for their limits.
    pub addresses: usize,
    /// Clients that are banned.
    pub bans: usize,
    /// Datagrams and events that wait to be polled.
    pub waiting: usize,
}

impl Server {
    /// A server that waits for requests.
    pub fn new(config: ServerConfig, entropy: &mut dyn Entropy, now: Time) -> Self {
        let mut config = config;
        config.link = config.link.sane();
        for address in &mut config.addresses {
            *address = canonical(*address);
        }
        let clock = AttendedClock::new(now, config.link.max_step());
        Self {
            cookie_key: CookieKey::new(entropy),
            resets: Resets::new(
                &config.key,
                &config.addresses,
                config.limits.resets_per_second,
                clock.now(),
            ),
            closing: false,
            admission: None,
            connections: BTreeMap::new(),
            timers: BTreeSet::new(),
            send_queue: VecDeque::new(),
            origins: Origins::new(config.limits, clock.now()),
            used: UsedTokens::default(),
            banned: BTreeSet::new(),
            lobby: LobbyServer::new(config.info.clone(), clock.now()),
            outbox: Outbox::new(config.link.outbox),
            events: Inbox::new(&config.link),
            clock,
            config,
        }
    }

    /// Asks `admission` about everybody who could come in otherwise. A token whose holder it turns
    /// away stays good.
    pub fn set_admission(&mut self, admission: Admission) {
        self.admission = Some(admission);
    }

    /// Takes a datagram that arrived. What is not understood is dropped without a word; before an
    /// address is proven, answers are shorter than what they answer and nothing is remembered.
    ///
    /// `unix` is the wall clock, which decides whether tokens have expired.
    pub fn handle_datagram(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        now: Time,
        unix: UnixTime,
        entropy: &mut dyn Entropy,
    ) {
        let at = self.clock.advance_both(now);
        let now = at.now;
        let stranger = self.config.key.is_public() && !from.ip().to_canonical().is_loopback();
        if stranger || self.events.is_full() {
            return;
        }
        match DatagramType::of(bytes) {
            Some(DatagramType::Request) => self.handle_request(from, bytes, now, unix, entropy),
            Some(DatagramType::Sealed) => self.handle_sealed(from, bytes, at, entropy),
            _ => {}
        }
    }

    /// Does what time demands: repeats what was lost, keeps alive, says goodbye, notices silence.
    pub fn handle_timeout(&mut self, now: Time) {
        let now = self.clock.advance(now);
        while let Some(&(time, id)) = self.timers.first()
            && time <= now
        {
            self.wake(id, now);
        }
        if !self.connections.is_empty() && now >= self.lobby.next_update() {
            self.send_roster(now);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called, on the caller's clock.
    /// `None` without connections.
    pub fn next_timeout(&self) -> Option<Time> {
        let (time, _) = self.timers.first()?;
        let time = (*time).min(self.lobby.next_update());
        Some(self.clock.on_callers_clock(time))
    }

    /// The next datagram to send. It is made now, of everything that was said to a client and not
    /// sent yet; clients take turns.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        let at = self.clock.advance_both(now);
        let now = at.now;
        if let Some(transmit) = self.outbox.poll() {
            return Some(transmit);
        }
        while let Some(id) = self.send_queue.pop_front() {
            let Some(client_connection) = self.connections.get_mut(&id) else {
                continue;
            };
            match client_connection.connection.poll_transmit(at) {
                Ok(Some(transmit)) => {
                    self.send_queue.push_back(id);
                    return Some(transmit);
                }
                Ok(None) => {
                    client_connection.in_send_queue = false;
                    self.hurry(id, now);
                }
                Err(_) => self.end(id, CloseReason::Exhausted),
            }
        }
        None
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop()
    }

    /// Sends any body in a packet of frames, which no honest server does.
    #[cfg(feature = "__test_hooks")]
    #[doc(hidden)]
    pub fn send_raw(&mut self, connection: ConnectionId, body: &[u8], now: Time) {
        let now = self.clock.advance(now);
        if let Some(client_connection) = self.connections.get_mut(&connection) {
            let to = client_connection.connection.peer;
            let _ = client_connection.connection.send(
                PacketKind::Frames,
                body,
                to,
                now,
                &mut self.outbox,
            );
        }
    }

    /// Ends a connection; nothing happens if there is none of that name. The goodbye is repeated a
    /// few times.
    pub fn close(&mut self, connection: ConnectionId, reason: CloseReason, now: Time) {
        let now = self.clock.advance(now);
        self.leave(connection, reason, now);
    }

    /// Ends all connections, and lets nobody in any more: who asks is told that the server is
    /// [`Closing`](crate::Denial::Closing). Go on polling until
    /// [`next_timeout`](Self::next_timeout) is `None`, which takes a quarter of a second.
    pub fn close_all(&mut self, reason: CloseReason, now: Time) {
        let now = self.clock.advance(now);
        self.closing = true;
        let all: Vec<_> = self.connections.keys().copied().collect();
        for connection in all {
            self.leave(connection, reason, now);
        }
    }

    /// Keeps a client out, whatever token it has, and ends its connections. A server knows its own
    /// bans only: to keep somebody out for good, the backend issues no more tokens.
    pub fn ban(&mut self, client: ClientId, now: Time) -> Result<(), BanError> {
        let now = self.clock.advance(now);
        let full = self.banned.len() >= self.config.limits.memory;
        if full && !self.banned.contains(&client) {
            return Err(BanError::Full(self.banned.len()));
        }
        self.banned.insert(client);
        let theirs = self
            .connections
            .iter()
            .filter(|(_, client_connection)| client_connection.client == client);
        for connection in theirs.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.leave(connection, CloseReason::Kicked, now);
        }
        Ok(())
    }

    /// Lets a client in again. `false` if it was not banned.
    pub fn unban(&mut self, client: ClientId) -> bool {
        self.banned.remove(&client)
    }

    /// Everybody who is banned.
    pub fn banned(&self) -> impl Iterator<Item = ClientId> {
        self.banned.iter().copied()
    }

    /// Everybody who is connected, and who they are to the backend.
    pub fn clients(&self) -> impl Iterator<Item = (ConnectionId, ClientId)> {
        self.connections
            .iter()
            .filter(|(_, client_connection)| client_connection.connection.is_open())
            .map(|(&id, client_connection)| (id, client_connection.client))
    }

    /// What a connection has seen so far.
    pub fn statistics(&self, connection: ConnectionId) -> Option<Statistics> {
        let client_connection = self.connections.get(&connection)?;
        Some(client_connection.connection.statistics())
    }

    /// How much this server holds.
    pub fn footprint(&self) -> Footprint {
        Footprint {
            connections: self.connections.len(),
            tokens: self.used.len(),
            addresses: self.origins.len(),
            bans: self.banned.len(),
            waiting: self.outbox.len() + self.events.len(),
        }
    }
}
