//! The client: handshake, connection and lobby.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::{
    Arrival, AttendedClock, BlobError, BlobId, ChannelId, CloseReason, ConnectError, Denial,
    Exchange, Input, InputError, InputTick, Received, Reception, RequestId, SendError, Statistics,
    Time,
};

use crate::config::LinkConfig;
use crate::connection::{Connection, TimerOutcome, Transmit, close_reason};
use crate::entropy::{Entropy, random};
use crate::key_schedule::{ConnectionKeys, Ephemeral, Secret, follow};
use crate::packet::{self, Accept, Cookie, DatagramType, PREFIX_LEN, PacketKind};
use crate::packet_protection::PacketProtection;
use crate::queues::{Inbox, Outbox};
use crate::reset::ResetToken;
use crate::token::{ConnectToken, ProtocolId, canonical};
use prescient_channels::lobby::{
    ClientInfo, ClientLobbyEvent, ClientMessage, LobbyClient, PlayerId, Roster, ServerInfo,
};

/// An event of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The connection is established. The server has proven that it can open the token.
    Connected {
        /// The server's address, one of the token's.
        server: SocketAddr,
    },
    /// The connection could not be established. This is the last event.
    Failed(ConnectError),
    /// A message of the server, or the outcome of a request or blob.
    Received(Received),
    /// The server's info, in answer to [`set_info`](Client::set_info). Load what it names, then
    /// call [`loaded`](Client::loaded).
    Info(ServerInfo),
    /// The client is in the game, as this player.
    Welcome(PlayerId),
    /// The server started over. Load again, as after [`Info`](Self::Info).
    Reset(ServerInfo),
    /// The [`roster`](Client::roster) has changed.
    Roster,
    /// No packet of the server arrived for a while. It may recover; what is sent meanwhile may be
    /// lost.
    Silent,
    /// Packets of the silent server arrive again.
    Resumed,
    /// The connection has ended. This is the last event.
    Closed(CloseReason),
}

/// A client: one token, one connection.
///
/// Pass in datagrams and time, and poll datagrams and events until both are `None`. After
/// [`Failed`](ClientEvent::Failed) or [`Closed`](ClientEvent::Closed) make a new one.
pub struct Client {
    config: LinkConfig,
    clock: AttendedClock,
    token: ConnectToken,
    request_key: Secret,
    ephemeral: Ephemeral,
    opening: Vec<u8>,
    server: usize,
    state: State,
    /// The token that authenticates a stateless reset of this connection.
    reset: Option<ResetToken>,
    lobby: LobbyClient,
    outbox: Outbox,
    events: Inbox<ClientEvent>,
}

enum State {
    /// Sends requests with the cookie of the server's last challenge.
    Asking {
        cookie: Cookie,
        next: Time,
        until: Time,
    },
    Open(Box<Connection>),
    Over,
}

impl Client {
    /// Starts to connect to the token's servers, one after the other.
    ///
    /// Fails if the token is for another protocol than `protocol`, which the server could not
    /// detect, or if the configuration cannot work. The token's expiry is checked by the server only, because its clock is more likely to
    /// be right.
    pub fn connect(
        token: ConnectToken,
        protocol: ProtocolId,
        config: LinkConfig,
        entropy: &mut dyn Entropy,
        now: Time,
    ) -> Result<Self, ConnectError> {
        if token.front.protocol != protocol {
            return Err(Denial::Protocol.into());
        }
        config.check()?;
        let clock = AttendedClock::new(now, config.max_step());
        let ephemeral = Ephemeral::new(entropy);
        let opening = packet::opening(&token, random(entropy), ephemeral.public());
        let mut client = Self {
            state: State::Over,
            reset: None,
            lobby: LobbyClient::default(),
            request_key: follow(&token.secret, REQUEST_KEY),
            outbox: Outbox::new(config.outbox),
            events: Inbox::new(&config),
            server: 0,
            config,
            clock,
            token,
            ephemeral,
            opening,
        };
        client.ask(0);
        Ok(client)
    }

    /// Handles a received datagram. Datagrams that are malformed or not authentic are dropped.
    pub fn handle_datagram(&mut self, from: SocketAddr, bytes: &[u8], now: Time) {
        self.handle_waiting_datagram(from, bytes, Reception::default(), now);
    }

    /// Like [`handle_datagram`](Self::handle_datagram), for a datagram that has waited since it
    /// arrived, or was marked by a router. What is measured of the network does not include the wait.
    pub fn handle_waiting_datagram(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        reception: impl Into<Reception>,
        now: Time,
    ) {
        let at = self.clock.advance_waited(now, reception.into());
        let now = at.handled.now;
        if self.events.is_full() || canonical(from) != self.address() {
            return;
        }
        match (DatagramType::of(bytes), &mut self.state) {
            (Some(DatagramType::Challenge), State::Asking { .. }) => {
                self.handle_challenge(bytes, now)
            }
            (Some(DatagramType::Accept), State::Asking { .. }) => self.handle_accept(bytes, now),
            (Some(DatagramType::Denied), State::Asking { .. }) => {
                if let Some(denial) = packet::read_denied(bytes, &self.prefix(), &self.request_key)
                {
                    self.try_next(denial.into());
                }
            }
            (Some(DatagramType::Sealed), State::Open(_)) => self.handle_sealed(bytes, at),
            (Some(DatagramType::Reset), State::Open(_)) => self.handle_reset(bytes),
            _ => {}
        }
    }

    /// Does what is due: retransmits, sends keep-alives, detects silence.
    pub fn handle_timeout(&mut self, now: Time) {
        let now = self.clock.advance(now);
        match &mut self.state {
            State::Asking { until, .. } if now >= *until => self.try_next(ConnectError::TimedOut),
            State::Asking { cookie, next, .. } if now >= *next => {
                *next = now.after(self.config.retry);
                let request = packet::write_request(&self.opening, *cookie, &self.request_key);
                let to = self.address();
                self.outbox.offer(to, request);
            }
            State::Open(_) => self.wake(now),
            State::Asking { .. } | State::Over => {}
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), on the caller's clock. A late call is
    /// harmless, but the peer may time out. `None` once the client has ended.
    pub fn next_timeout(&self) -> Option<Time> {
        let deadline = match &self.state {
            State::Asking { next, until, .. } => (*next).min(*until),
            State::Open(connection) => connection.deadline(&self.config),
            State::Over => return None,
        };
        Some(self.clock.on_callers_clock(deadline))
    }

    /// The next datagram to send. It is built now, from everything that waits to be sent.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        let at = self.clock.advance_both(now);
        if let Some(transmit) = self.outbox.poll() {
            return Some(transmit);
        }
        let State::Open(connection) = &mut self.state else {
            return None;
        };
        connection.poll_transmit(at).unwrap_or_else(|_| {
            self.end(CloseReason::Exhausted);
            None
        })
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop()
    }

    /// Queues a message on a channel; the channel decides its delivery. It is sent with the next
    /// datagram that is polled.
    pub fn send(&mut self, channel: ChannelId, message: &[u8], now: Time) -> Result<(), SendError> {
        self.clock.advance(now);
        let exchange = self.exchange().ok_or(SendError::NotConnected)?;
        exchange.send(channel, message)
    }

    /// Queues the player's input for a tick; ticks must increase. It is sent with the next datagram
    /// that is polled, and repeated in later ones until it is acknowledged.
    pub fn push_input(
        &mut self,
        tick: InputTick,
        input: Input,
        now: Time,
    ) -> Result<(), InputError> {
        self.clock.advance(now);
        let exchange = self.exchange().ok_or(InputError::NotConnected)?;
        exchange.push_input(tick, input)
    }

    /// Sends a request. Exactly one [`Received::Answer`] follows.
    pub fn request(
        &mut self,
        message: &[u8],
        timeout: Duration,
        now: Time,
    ) -> Result<RequestId, SendError> {
        let now = self.clock.advance(now);
        let exchange = self.exchange().ok_or(SendError::NotConnected)?;
        exchange.request(message, timeout, now)
    }

    /// Answers a [`Received::Request`]. Only the first answer counts, and none after the request's
    /// timeout.
    pub fn respond(
        &mut self,
        request: RequestId,
        message: &[u8],
        now: Time,
    ) -> Result<(), SendError> {
        self.clock.advance(now);
        let exchange = self.exchange().ok_or(SendError::NotConnected)?;
        exchange.respond(request, message)
    }

    /// Offers a blob to the server, with a label of up to 64 bytes that describes it.
    pub fn offer_blob(
        &mut self,
        label: &[u8],
        bytes: Vec<u8>,
        now: Time,
    ) -> Result<BlobId, BlobError> {
        self.clock.advance(now);
        let exchange = self.exchange().ok_or(BlobError::NotConnected)?;
        exchange.offer_blob(label, bytes)
    }

    /// Accepts a [`Received::BlobOffered`] and reserves its memory.
    pub fn accept_blob(&mut self, blob: BlobId, now: Time) -> Result<(), BlobError> {
        self.clock.advance(now);
        let exchange = self.exchange().ok_or(BlobError::NotConnected)?;
        let accepted = exchange.accept_blob(blob);
        self.collect();
        accepted
    }

    /// Refuses or stops an incoming blob, or withdraws an outgoing one. No event of it follows,
    /// except that an outgoing blob may have been completed before the server is told.
    pub fn cancel_blob(&mut self, blob: BlobId, now: Time) -> Result<(), BlobError> {
        self.clock.advance(now);
        let exchange = self.exchange().ok_or(BlobError::NotConnected)?;
        exchange.cancel_blob(blob)
    }

    /// Sends an arbitrary body in a packet of frames, as an attacker might.
    #[cfg(feature = "__test_hooks")]
    #[doc(hidden)]
    pub fn send_raw(&mut self, body: &[u8], now: Time) {
        let now = self.clock.advance(now);
        if let State::Open(connection) = &mut self.state {
            let to = connection.peer;
            let _ = connection.send(PacketKind::Frames, body, to, now, &mut self.outbox);
        }
    }

    /// Closes the connection, or aborts the handshake. The close packet is repeated a few times;
    /// continue to poll until [`next_timeout`](Self::next_timeout) is `None`.
    pub fn close(&mut self, reason: CloseReason, now: Time) {
        let now = self.clock.advance(now);
        match &mut self.state {
            State::Asking { .. } => {
                self.state = State::Over;
                self.events.push(ClientEvent::Failed(ConnectError::Closed));
            }
            State::Open(_) => self.leave(reason, now),
            State::Over => {}
        }
    }

    /// An estimate of the server's clock, that is, of the `now` that the server's caller passes in;
    /// `None` before the first measurement.
    ///
    /// It never runs backwards, and it runs at most a tenth faster or slower than the local clock.
    /// If it is wrong by more than a quarter of a second, because a clock was set, it jumps instead
    /// and [`server_time_leaps`](Self::server_time_leaps) counts that.
    pub fn server_time(&mut self, now: Time) -> Option<Time> {
        self.exchange()?.remote_clock().read(now)
    }

    /// A bound on the error of [`server_time`](Self::server_time), once that has finished
    /// adjusting. It assumes that the two clocks drift apart by at most 0.1 % and that neither is
    /// set.
    pub fn server_time_uncertainty(&mut self, now: Time) -> Option<Duration> {
        self.exchange()?.remote_clock().uncertainty(now)
    }

    /// How often [`server_time`](Self::server_time) jumped. Schedules that depend on it must be
    /// restarted when this changes.
    pub fn server_time_leaps(&mut self) -> u64 {
        self.exchange()
            .map_or(0, |exchange| exchange.remote_clock().leaps())
    }

    /// Sets the player's info and sends it, once connected. Without it the client receives neither
    /// the server's info nor the roster.
    pub fn set_info(&mut self, info: ClientInfo, now: Time) {
        let now = self.clock.advance(now);
        self.lobby.set_info(info);
        self.introduce(now);
    }

    /// Reports that everything the server asked for is loaded; a [`Welcome`](ClientEvent::Welcome)
    /// or a [`Reset`](ClientEvent::Reset) follows. Returns `false` if nothing was asked for since
    /// the last call.
    pub fn loaded(&mut self, now: Time) -> bool {
        let now = self.clock.advance(now);
        let message = self.lobby.loaded();
        let is_time = message.is_some();
        self.send_lobby(message, now);
        is_time
    }

    /// The players in the game, as last received.
    pub fn roster(&self) -> &Roster {
        self.lobby.roster()
    }

    /// Whether messages can be sent.
    pub fn is_connected(&self) -> bool {
        matches!(&self.state, State::Open(connection) if !connection.is_leaving())
    }

    /// The connection's statistics; `None` without a connection.
    pub fn statistics(&self) -> Option<Statistics> {
        match &self.state {
            State::Open(connection) => Some(connection.statistics()),
            State::Asking { .. } | State::Over => None,
        }
    }

    fn handle_challenge(&mut self, bytes: &[u8], now: Time) {
        let prefix = self.prefix();
        let (Some((echo, given)), State::Asking { cookie, next, .. }) =
            (packet::read_challenge(bytes), &mut self.state)
        else {
            return;
        };
        if echo[..] == prefix[2..] && given != *cookie {
            // Only the first challenge is answered at once. Otherwise repeated requests and
            // challenges would multiply.
            let first = *cookie == Cookie::default();
            *cookie = given;
            if first {
                *next = now;
            }
        }
    }

    fn handle_accept(&mut self, bytes: &[u8], now: Time) {
        let Some(accept) = Accept::read(bytes) else {
            return;
        };
        if accept.echo[..] != self.prefix()[2..] {
            return;
        }
        let answer = accept.answer();
        let keys = ConnectionKeys::derive(
            &self.token.secret,
            &self.ephemeral,
            &accept.ephemeral,
            &self.opening,
            &answer,
        );
        let Some(keys) = keys else {
            return;
        };
        let Some(reset) = ResetToken::open(&keys.accept, &answer, accept.sealed_reset) else {
            return;
        };
        self.reset = Some(reset);
        let protection = PacketProtection::new(keys.up, keys.down, self.config.rekeying(), now);
        let server = self.address();
        let mut connection =
            Connection::of_client(protection, accept.connection, server, &self.config, now);
        // The server waits for this packet to confirm the handshake. A new connection has packet
        // numbers left.
        let sent = connection.send(PacketKind::KeepAlive, &[], server, now, &mut self.outbox);
        debug_assert!(sent.is_ok());
        self.state = State::Open(Box::new(connection));
        self.events.push(ClientEvent::Connected { server });
        self.introduce(now);
    }

    fn handle_reset(&mut self, bytes: &[u8]) {
        let claimed = packet::read_reset(bytes);
        if let (Some(reset), Some(claimed)) = (self.reset, claimed)
            && reset.is(&claimed)
        {
            self.end(CloseReason::StatelessReset);
        }
    }

    fn introduce(&mut self, now: Time) {
        self.send_lobby(self.lobby.introduction(), now);
    }

    fn send_lobby(&mut self, message: Option<ClientMessage>, now: Time) {
        if let (Some(message), Some(exchange)) = (message, self.exchange())
            && !exchange.send_lobby(message.to_bytes())
        {
            self.leave(CloseReason::Stalled, now);
        }
    }

    fn handle_sealed(&mut self, bytes: &[u8], at: Arrival) {
        let now = at.handled.now;
        let State::Open(connection) = &mut self.state else {
            return;
        };
        let was_silent = connection.is_silent();
        let Ok(opened) = connection.open(bytes, now) else {
            if connection.is_worn_out() {
                self.leave(CloseReason::Exhausted, now);
            }
            return;
        };
        if was_silent {
            self.events.push(ClientEvent::Resumed);
            // The server may still consider us silent.
            let to = connection.peer;
            let sent = connection.send(PacketKind::KeepAlive, &[], to, now, &mut self.outbox);
            if sent.is_err() {
                return self.end(CloseReason::Exhausted);
            }
        }
        match opened.kind {
            PacketKind::Frames if !connection.is_leaving() => {
                let handled = connection.handle_frames(&opened, at);
                self.collect();
                if let Err(fault) = handled {
                    self.leave(fault.into(), now);
                }
                self.receive_lobby(now);
            }
            PacketKind::PathChallenge => {
                let (to, challenge) = (connection.peer, &opened.payload);
                connection.move_to(to, now);
                let sent = connection.send(
                    PacketKind::PathResponse,
                    challenge,
                    to,
                    now,
                    &mut self.outbox,
                );
                if sent.is_err() {
                    self.end(CloseReason::Exhausted);
                }
            }
            PacketKind::Close => {
                if let Some(reason) = close_reason(&opened.payload) {
                    self.end(reason);
                }
            }
            PacketKind::Frames | PacketKind::KeepAlive | PacketKind::PathResponse => {}
        }
    }

    fn receive_lobby(&mut self, now: Time) {
        while let State::Open(connection) = &mut self.state
            && let Some(message) = connection.poll_lobby()
        {
            let event = match self.lobby.handle(&message) {
                Ok(ClientLobbyEvent::Info(info)) => ClientEvent::Info(info),
                Ok(ClientLobbyEvent::Welcome(player)) => ClientEvent::Welcome(player),
                Ok(ClientLobbyEvent::Reset(info)) => ClientEvent::Reset(info),
                Ok(ClientLobbyEvent::Roster) => ClientEvent::Roster,
                Err(_) => return self.leave(CloseReason::Violation, now),
            };
            self.events.push(event);
        }
    }

    fn wake(&mut self, now: Time) {
        let State::Open(connection) = &mut self.state else {
            return;
        };
        let outcome = connection.wake(&self.config, now, &mut self.outbox);
        self.collect();
        match outcome {
            TimerOutcome::Alive => {}
            TimerOutcome::Silent => self.events.push(ClientEvent::Silent),
            TimerOutcome::TimedOut => self.end(CloseReason::TimedOut),
            TimerOutcome::Exhausted => self.end(CloseReason::Exhausted),
            TimerOutcome::Broken(reason) => self.leave(reason, now),
            TimerOutcome::Closed => self.state = State::Over,
        }
    }

    fn exchange(&mut self) -> Option<&mut Exchange> {
        match &mut self.state {
            State::Open(connection) => connection.exchange(),
            State::Asking { .. } | State::Over => None,
        }
    }

    /// Forwards the connection's events.
    fn collect(&mut self) {
        if let State::Open(connection) = &mut self.state {
            while let Some(received) = connection.poll_event() {
                self.events.push_received(received, ClientEvent::Received);
            }
        }
    }

    /// Starts closing and reports the end to the game at once.
    fn leave(&mut self, reason: CloseReason, now: Time) {
        let State::Open(connection) = &mut self.state else {
            return;
        };
        if connection.is_leaving() {
            return;
        }
        connection.leave(reason, now);
        self.collect();
        self.events.push(ClientEvent::Closed(reason));
        self.wake(now);
    }

    /// Ends the connection without sending a close packet.
    fn end(&mut self, reason: CloseReason) {
        if let State::Open(connection) = &mut self.state
            && !connection.is_leaving()
        {
            connection.leave(reason, self.clock.now());
            self.collect();
            self.events.push(ClientEvent::Closed(reason));
        }
        self.state = State::Over;
    }

    /// Starts the handshake with a server of the token.
    fn ask(&mut self, server: usize) {
        let now = self.clock.now();
        self.server = server;
        self.state = State::Asking {
            cookie: Cookie::default(),
            next: now,
            until: now.after(self.config.connect_timeout),
        };
    }

    fn try_next(&mut self, error: ConnectError) {
        if self.server + 1 < self.token.servers.len() {
            self.ask(self.server + 1);
        } else {
            self.state = State::Over;
            self.events.push(ClientEvent::Failed(error));
        }
    }

    fn address(&self) -> SocketAddr {
        // `issue` and `from_bytes` reject tokens without servers.
        self.token.servers[self.server]
    }

    fn prefix(&self) -> [u8; PREFIX_LEN] {
        *self.opening.first_chunk().expect("an opening is longer")
    }
}

/// The label by which client and server derive the request's key from the token's secret.
pub(crate) const REQUEST_KEY: &[u8] = b"request";
