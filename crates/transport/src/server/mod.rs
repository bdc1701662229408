//! The server: all connections of one socket, and the handshakes that establish them.

mod client_connection;
mod event;
mod handshake;
mod lobby;
mod path;
mod send;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use client_connection::ClientConnection;
pub use event::ServerEvent;
pub use handshake::{Admission, Applicant};

use prescient_channels::{
    AttendedClock, ClientId, CloseReason, ConfigError, ConnectionId, Reception, Statistics, Time,
};

use crate::config::ServerConfig;
use crate::connection::Transmit;
use crate::cookie::CookieKey;
use crate::entropy::Entropy;
use crate::error::BanError;
use crate::limits::{Origins, UsedTokens};
use crate::packet::DatagramType;
#[cfg(feature = "__test_hooks")]
use crate::packet::PacketKind;
use crate::queues::{Inbox, Outbox};
use crate::reset::Resets;
use crate::token::UnixTime;
use crate::token::canonical;
use prescient_channels::lobby::LobbyServer;

/// A server. Pass in datagrams and time, and poll datagrams and events until both are `None`.
pub struct Server {
    config: ServerConfig,
    clock: AttendedClock,
    cookie_key: CookieKey,
    resets: Resets,
    /// No more clients are admitted.
    closing: bool,
    admission: Option<Admission>,
    connections: BTreeMap<ConnectionId, ClientConnection>,
    /// The timer of each connection; one entry for each.
    timers: BTreeSet<(Time, ConnectionId)>,
    /// Connections that may have something to send, each once, served round-robin.
    send_queue: VecDeque<ConnectionId>,
    origins: Origins,
    used: UsedTokens,
    banned: BTreeSet<ClientId>,
    lobby: LobbyServer,
    outbox: Outbox,
    events: Inbox<ServerEvent>,
}

/// The sizes of a server's tables. Unauthenticated datagrams cannot make them grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footprint {
    /// Connections, including those in the handshake and those that are closing.
    pub connections: usize,
    /// Tokens remembered as used.
    pub tokens: usize,
    /// Addresses with a handshake allowance.
    pub addresses: usize,
    /// Banned clients.
    pub bans: usize,
    /// Datagrams and events that wait to be polled.
    pub waiting: usize,
}

impl Server {
    /// A server without connections. Fails if the configuration cannot work.
    pub fn new(
        mut config: ServerConfig,
        entropy: &mut dyn Entropy,
        now: Time,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        for address in &mut config.addresses {
            *address = canonical(*address);
        }
        let clock = AttendedClock::new(now, config.link.max_step());
        Ok(Self {
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
            origins: Origins::new(config.limits.clone(), clock.now()),
            used: UsedTokens::default(),
            banned: BTreeSet::new(),
            lobby: LobbyServer::new(config.info.clone(), clock.now()),
            outbox: Outbox::new(config.link.outbox),
            events: Inbox::new(&config.link),
            clock,
            config,
        })
    }

    /// Consults `admission` about every client that passes all other checks. The token of a refused
    /// client stays valid.
    pub fn set_admission(&mut self, admission: Admission) {
        self.admission = Some(admission);
    }

    /// Handles a received datagram. Malformed and forged ones are dropped. Before an address is
    /// validated, answers are shorter than the datagram they answer, and no state is kept.
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
        self.handle_waiting_datagram(from, bytes, Reception::default(), now, unix, entropy);
    }

    /// Like [`handle_datagram`](Self::handle_datagram), for a datagram that has waited since it
    /// arrived, or was marked by a router. What is measured of the network does not include the wait.
    pub fn handle_waiting_datagram(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        reception: impl Into<Reception>,
        now: Time,
        unix: UnixTime,
        entropy: &mut dyn Entropy,
    ) {
        let at = self.clock.advance_waited(now, reception.into());
        let now = at.handled.now;
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

    /// Does what is due: retransmits, sends keep-alives and close packets, detects silence.
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

    /// When to call [`handle_timeout`](Self::handle_timeout), on the caller's clock.
    /// `None` without connections.
    pub fn next_timeout(&self) -> Option<Time> {
        let (time, _) = self.timers.first()?;
        let time = (*time).min(self.lobby.next_update());
        Some(self.clock.on_callers_clock(time))
    }

    /// The next datagram to send. It is built now, from everything that waits to be sent to a
    /// client; clients are served round-robin.
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

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop()
    }

    /// Sends an arbitrary body in a packet of frames, as an attacker might.
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

    /// Closes a connection, if it exists. The close packet is repeated a few times.
    pub fn close(&mut self, connection: ConnectionId, reason: CloseReason, now: Time) {
        let now = self.clock.advance(now);
        self.leave(connection, reason, now);
    }

    /// Closes all connections and admits no more: requests are denied with
    /// [`Closing`](prescient_channels::Denial::Closing). Continue to poll until
    /// [`next_timeout`](Self::next_timeout) is `None`, which takes a quarter of a second.
    pub fn close_all(&mut self, reason: CloseReason, now: Time) {
        let now = self.clock.advance(now);
        self.closing = true;
        let all: Vec<_> = self.connections.keys().copied().collect();
        for connection in all {
            self.leave(connection, reason, now);
        }
    }

    /// Bans a client, whatever token it has, and closes its connections. A server does not share
    /// its bans or keep them across restarts: for a permanent ban the backend must stop issuing
    /// tokens.
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

    /// Lifts a ban. `false` if the client was not banned.
    pub fn unban(&mut self, client: ClientId) -> bool {
        self.banned.remove(&client)
    }

    /// All banned clients.
    pub fn banned(&self) -> impl Iterator<Item = ClientId> {
        self.banned.iter().copied()
    }

    /// All open connections and the account ids of their clients.
    pub fn clients(&self) -> impl Iterator<Item = (ConnectionId, ClientId)> {
        self.connections
            .iter()
            .filter(|(_, client_connection)| client_connection.connection.is_open())
            .map(|(&id, client_connection)| (id, client_connection.client))
    }

    /// A connection's statistics.
    pub fn statistics(&self, connection: ConnectionId) -> Option<Statistics> {
        let client_connection = self.connections.get(&connection)?;
        Some(client_connection.connection.statistics())
    }

    /// The sizes of this server's tables.
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
