//! The server: every connection of one socket, and the door that leads to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use crate::client::REQUEST_KEY;
use crate::config::ServerConfig;
use crate::connection::{Connection, Fate, Outbox, Transmit, close_reason};
use crate::cookie::Baker;
use crate::entropy::{Entropy, random};
use crate::error::{BanError, CloseReason, Denial, SendError};
use crate::exchange::blob::{BlobError, BlobId};
use crate::exchange::channel::ChannelId;
use crate::exchange::request::RequestId;
use crate::exchange::{Exchange, Received};
use crate::inbox::Inbox;
use crate::limits::{Origin, Origins, UsedTokens};
use crate::lobby::{
    ClientInfo, Guest, Heard, Host, Latency, PlayerNumber, ServerInfo, ServerMessage, Unwelcome,
};
use crate::packet::{self, Accept, Asked, Kind, Request, Type};
use crate::schedule::{Ephemeral, Keys, Secret, follow, mac};
use crate::session::{Opened, Session};
use crate::statistics::Statistics;
use crate::time::{Attention, Now, Time, UnixTime};
use crate::token::{ClientId, Private, canonical};

/// A connection of a server, as the packets of its client name it, too. Not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// What happened to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A client is there, and has proven that it holds its token and its address.
    Connected {
        /// What to call it from now on.
        connection: ConnectionId,
        /// Who it is to the backend.
        client: ClientId,
        /// Where it is.
        address: SocketAddr,
        /// What the backend put into the token for us.
        data: Vec<u8>,
    },
    /// Something came from a client, or became of what went there.
    Received {
        /// Which client.
        connection: ConnectionId,
        /// What.
        received: Received,
    },
    /// A client said who its player is, for the first time or anew.
    Info {
        /// Which client.
        connection: ConnectionId,
        /// What it said.
        info: ClientInfo,
    },
    /// A client has loaded what it was asked to and is in the game, as this player. Said again after
    /// each reset.
    Plays {
        /// Who.
        connection: ConnectionId,
        /// What all call it.
        player: PlayerNumber,
    },
    /// A client has another address now, and has proven that, too.
    Moved {
        /// Who.
        connection: ConnectionId,
        /// Where it is.
        address: SocketAddr,
    },
    /// Nothing was heard of a client for a while. It may come back; what is sent to it meanwhile
    /// may not arrive.
    Silent {
        /// Of whom.
        connection: ConnectionId,
    },
    /// A silent client is heard of again.
    Resumed {
        /// Who.
        connection: ConnectionId,
    },
    /// A connection that was [`Connected`](Self::Connected) is over; said once of each.
    Closed {
        /// Which.
        connection: ConnectionId,
        /// Why.
        reason: CloseReason,
    },
}

/// Somebody with a good token at the door.
#[derive(Clone, Copy, Debug)]
pub struct Applicant<'a> {
    /// Who it is to the backend.
    pub client: ClientId,
    /// Where it is, which it has proven.
    pub address: SocketAddr,
    /// What the backend put into the token for us.
    pub data: &'a [u8],
}

/// The game's own word on who may come in: `Err` with a code of its own turns the client away.
pub type Admission = Box<dyn FnMut(&Applicant<'_>) -> Result<(), u16> + Send>;

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

/// A server: feed it datagrams and time, and poll it for datagrams and events until both are
/// `None`.
pub struct Server {
    config: ServerConfig,
    clock: Attention,
    baker: Baker,
    admission: Option<Admission>,
    seats: BTreeMap<ConnectionId, Seat>,
    /// When to look at which connection; one entry for each.
    timers: BTreeSet<(Time, ConnectionId)>,
    /// Connections that may have something to say, each once, in turns.
    talkers: VecDeque<ConnectionId>,
    origins: Origins,
    used: UsedTokens,
    banned: BTreeSet<ClientId>,
    host: Host,
    outbox: Outbox,
    events: Inbox<ServerEvent>,
}

struct Seat {
    connection: Connection,
    client: ClientId,
    timer: Time,
    /// Whether it stands among the talkers.
    talks: bool,
    /// Until the client is heard of: what to repeat to it, and what to announce then.
    arriving: Option<Box<Arriving>>,
    /// An address that the client may have moved to.
    path: Option<Path>,
    guest: Guest,
}

struct Arriving {
    ephemeral: [u8; 32],
    accept: Vec<u8>,
    data: Vec<u8>,
}

struct Path {
    address: SocketAddr,
    question: [u8; 8],
}

impl Server {
    /// A server that waits for requests.
    pub fn new(config: ServerConfig, entropy: &mut dyn Entropy, now: Time) -> Self {
        let mut config = config;
        config.link = config.link.sane();
        for address in &mut config.addresses {
            *address = canonical(*address);
        }
        let clock = Attention::new(now, config.link.longest_step());
        Self {
            baker: Baker::new(entropy),
            admission: None,
            seats: BTreeMap::new(),
            timers: BTreeSet::new(),
            talkers: VecDeque::new(),
            origins: Origins::new(config.limits, clock.now()),
            used: UsedTokens::default(),
            banned: BTreeSet::new(),
            host: Host::new(config.info.clone(), clock.now()),
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
        match Type::of(bytes) {
            Some(Type::Request) => self.handle_request(from, bytes, now, unix, entropy),
            Some(Type::Sealed) => self.handle_sealed(from, bytes, at, entropy),
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
        if !self.seats.is_empty() && now >= self.host.next_update() {
            self.tell_roster(now);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called, on the caller's clock.
    /// `None` without connections.
    pub fn next_timeout(&self) -> Option<Time> {
        let (time, _) = self.timers.first()?;
        let time = (*time).min(self.host.next_update());
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
        while let Some(id) = self.talkers.pop_front() {
            let Some(seat) = self.seats.get_mut(&id) else {
                continue;
            };
            match seat.connection.poll_transmit(at) {
                Ok(Some(transmit)) => {
                    self.talkers.push_back(id);
                    return Some(transmit);
                }
                Ok(None) => {
                    seat.talks = false;
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

    /// Says something to a client on a channel, which decides what becomes of it. It goes out with
    /// the next datagram to that client that is polled.
    pub fn send(
        &mut self,
        connection: ConnectionId,
        channel: ChannelId,
        message: &[u8],
        now: Time,
    ) -> Result<(), SendError> {
        self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(SendError::NotConnected)?;
        exchange.send(channel, message)
    }

    /// Asks a client something. Exactly one [`Received::Answer`] follows.
    pub fn request(
        &mut self,
        connection: ConnectionId,
        message: &[u8],
        timeout: Duration,
        now: Time,
    ) -> Result<RequestId, SendError> {
        let now = self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(SendError::NotConnected)?;
        exchange.request(message, timeout, now)
    }

    /// Answers a [`Received::Request`]. Only the first answer counts, and none that comes too late.
    pub fn respond(
        &mut self,
        connection: ConnectionId,
        request: RequestId,
        message: &[u8],
        now: Time,
    ) -> Result<(), SendError> {
        self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(SendError::NotConnected)?;
        exchange.respond(request, message)
    }

    /// Offers a client something large, with a label of up to 64 bytes that tells it what.
    pub fn offer_blob(
        &mut self,
        connection: ConnectionId,
        label: &[u8],
        bytes: Vec<u8>,
        now: Time,
    ) -> Result<BlobId, BlobError> {
        self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(BlobError::NotConnected)?;
        exchange.offer_blob(label, bytes)
    }

    /// Accepts a [`Received::BlobOffered`]; from now on it takes memory.
    pub fn accept_blob(
        &mut self,
        connection: ConnectionId,
        blob: BlobId,
        now: Time,
    ) -> Result<(), BlobError> {
        self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(BlobError::NotConnected)?;
        let accepted = exchange.accept_blob(blob);
        self.collect(connection);
        accepted
    }

    /// Refuses or stops a blob of a client, or withdraws one of ours. Nothing more is heard of it,
    /// except that a blob of ours may have been complete before the client knew.
    pub fn cancel_blob(
        &mut self,
        connection: ConnectionId,
        blob: BlobId,
        now: Time,
    ) -> Result<(), BlobError> {
        self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(BlobError::NotConnected)?;
        exchange.cancel_blob(blob)
    }

    /// What newcomers are told about this server from now on.
    pub fn set_info(&mut self, info: ServerInfo) {
        self.host.set_info(info);
    }

    /// Begins something else: all clients that said who they are have to load again.
    pub fn reset(&mut self, info: ServerInfo, now: Time) {
        let now = self.clock.advance(now);
        let message = self.host.reset(info);
        let all = self.seats.iter_mut();
        let concerned = all.filter_map(|(&id, seat)| seat.guest.reset().then_some(id));
        for id in concerned.collect::<Vec<_>>() {
            self.say_around(id, &message, now);
        }
    }

    /// Sends any body in a packet of frames, which no honest server does.
    #[cfg(feature = "rogue")]
    #[doc(hidden)]
    pub fn send_raw(&mut self, connection: ConnectionId, body: &[u8], now: Time) {
        let now = self.clock.advance(now);
        if let Some(seat) = self.seats.get_mut(&connection) {
            let to = seat.connection.peer;
            let _ = seat
                .connection
                .send(Kind::Frames, body, to, now, &mut self.outbox);
        }
    }

    /// Ends a connection; nothing happens if there is none of that name. The goodbye is repeated a
    /// few times.
    pub fn close(&mut self, connection: ConnectionId, reason: CloseReason, now: Time) {
        let now = self.clock.advance(now);
        self.leave(connection, reason, now);
    }

    /// Ends all connections. Go on polling until [`next_timeout`](Self::next_timeout) is `None`.
    pub fn close_all(&mut self, reason: CloseReason, now: Time) {
        let now = self.clock.advance(now);
        let all: Vec<_> = self.seats.keys().copied().collect();
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
        let theirs = self.seats.iter().filter(|(_, seat)| seat.client == client);
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
        self.seats
            .iter()
            .filter(|(_, seat)| seat.connection.is_open())
            .map(|(&id, seat)| (id, seat.client))
    }

    /// What a connection has seen so far.
    pub fn statistics(&self, connection: ConnectionId) -> Option<Statistics> {
        let seat = self.seats.get(&connection)?;
        Some(seat.connection.statistics())
    }

    /// How much this server holds.
    pub fn footprint(&self) -> Footprint {
        Footprint {
            connections: self.seats.len(),
            tokens: self.used.len(),
            addresses: self.origins.len(),
            bans: self.banned.len(),
            waiting: self.outbox.len() + self.events.len(),
        }
    }

    fn handle_request(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        now: Time,
        unix: UnixTime,
        entropy: &mut dyn Entropy,
    ) {
        let request = match packet::read_request(bytes) {
            Some(Asked::Ours(request)) => request,
            Some(Asked::Foreign(prefix)) => {
                let denial = Denial::Version {
                    server: packet::VERSION,
                };
                let denied = packet::write_denied(denial, &prefix, &NOBODYS);
                return self.outbox.offer(from, denied);
            }
            None => return,
        };
        if !self
            .baker
            .made(&request.cookie, from, &request.opening, now)
        {
            let cookie = self.baker.bake(from, &request.opening, now);
            let challenge = packet::write_challenge(request.echo, cookie);
            return self.outbox.offer(from, challenge);
        }

        // From here on somebody really is at that address.
        if let Some(accept) = self.repeated(&request) {
            return self.outbox.offer(from, accept);
        }
        if !self.origins.may_knock(Origin::of(from), now) {
            return;
        }
        self.used.sweep(unix);
        if let Err((denial, key)) = self.admit(from, &request, now, unix, entropy) {
            let denied = packet::write_denied(denial, &request.prefix(), &key);
            self.outbox.offer(from, denied);
        }
    }

    /// What was answered to this very request before, as long as nothing was heard since.
    fn repeated(&self, request: &Request) -> Option<Vec<u8>> {
        let id = ConnectionId(self.used.find(&request.front.nonce)?);
        let arriving = self.seats.get(&id)?.arriving.as_ref()?;
        (arriving.ephemeral == request.ephemeral).then(|| arriving.accept.clone())
    }

    /// Lets a client in, or says why not and with which key to prove that.
    fn admit(
        &mut self,
        from: SocketAddr,
        request: &Request,
        now: Time,
        unix: UnixTime,
        entropy: &mut dyn Entropy,
    ) -> Result<(), (Denial, Secret)> {
        let front = &request.front;
        if front.protocol != self.config.protocol {
            return Err((Denial::Protocol, NOBODYS.into()));
        }
        let Some(private) = Private::open(&self.config.key, front, &request.sealed) else {
            return Err((Denial::Unreadable, NOBODYS.into()));
        };
        let key = follow(&private.secret, REQUEST_KEY);
        if !request.is_from_holder(&key) {
            return Ok(());
        }
        self.examine(from, request, &private, unix)
            .map_err(|denial| (denial, key))?;
        self.seat(from, request, private, now, entropy);
        Ok(())
    }

    fn examine(
        &mut self,
        from: SocketAddr,
        request: &Request,
        private: &Private,
        unix: UnixTime,
    ) -> Result<(), Denial> {
        if self.used.find(&request.front.nonce).is_some() {
            return Err(Denial::Used);
        }
        if self.used.is_expired(request.front.expires, unix) {
            return Err(Denial::Expired);
        }
        let ours = |server: &SocketAddr| self.config.addresses.contains(server);
        if !private.servers.iter().any(ours) {
            return Err(Denial::WrongServer);
        }
        if self.banned.contains(&private.client) {
            return Err(Denial::Banned);
        }
        let limits = &self.config.limits;
        if self.seats.len() >= limits.connections || self.used.len() >= limits.memory {
            return Err(Denial::Full);
        }
        if !self.origins.has_room(Origin::of(from)) {
            return Err(Denial::Crowded);
        }
        let applicant = Applicant {
            client: private.client,
            address: from,
            data: &private.data,
        };
        match &mut self.admission {
            Some(admission) => admission(&applicant).map_err(Denial::Refused),
            None => Ok(()),
        }
    }

    fn seat(
        &mut self,
        from: SocketAddr,
        request: &Request,
        mut private: Private,
        now: Time,
        entropy: &mut dyn Entropy,
    ) {
        let id = ConnectionId(u64::from_le_bytes(random(entropy)));
        // Two equal numbers of 64 bits mean that the randomness is none: no ground to build on.
        if self.seats.contains_key(&id) {
            return;
        }
        let ephemeral = Ephemeral::new(entropy);
        let mut accept = Accept {
            echo: request.echo,
            connection: id.0,
            ephemeral: ephemeral.public(),
            mac: [0; 16],
        };
        let answer = accept.answer();
        let keys = Keys::derive(
            &private.secret,
            &ephemeral,
            &request.ephemeral,
            &request.opening,
            &answer,
        );
        // A client that spoils its own key exchange gets no answer.
        let Some(keys) = keys else {
            return;
        };
        accept.mac = mac(&keys.accept, &[&answer]);
        let session = Session::new(keys.down, keys.up, self.config.link.rekeying(), now);
        let connection = Connection::of_server(session, from, &self.config.link, now);
        let timer = connection.deadline(&self.config.link);
        let seat = Seat {
            connection,
            client: private.client,
            timer,
            talks: false,
            arriving: Some(Box::new(Arriving {
                ephemeral: request.ephemeral,
                accept: accept.to_bytes(),
                data: std::mem::take(&mut private.data),
            })),
            path: None,
            guest: Guest::default(),
        };
        self.seats.insert(id, seat);
        self.timers.insert((timer, id));
        self.origins.enter(Origin::of(from), now);
        self.used
            .remember(request.front.nonce, request.front.expires, id.0);
        self.outbox.offer(from, accept.to_bytes());
    }

    fn handle_sealed(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        at: Now,
        entropy: &mut dyn Entropy,
    ) {
        let now = at.now;
        let Some(name) = bytes.get(1..).and_then(|rest| rest.first_chunk()) else {
            return;
        };
        let id = ConnectionId(u64::from_le_bytes(*name));
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        let was_silent = seat.connection.is_silent();
        let Ok(opened) = seat.connection.open(bytes, now) else {
            if seat.connection.is_worn_out() {
                self.leave(id, CloseReason::Exhausted, now);
            }
            return;
        };
        if let Some(arriving) = seat.arriving.take() {
            self.events.push(ServerEvent::Connected {
                connection: id,
                client: seat.client,
                address: seat.connection.peer,
                data: arriving.data,
            });
            // The client repeats itself until it hears of us.
            let to = seat.connection.peer;
            let greeted = seat
                .connection
                .send(Kind::KeepAlive, &[], to, now, &mut self.outbox);
            debug_assert!(greeted.is_ok(), "a fresh session has numbers left");
        }
        if was_silent {
            self.resume(id, now);
        }
        self.handle_opened(id, from, opened, bytes.len(), at, entropy);
        self.hurry(id, now);
    }

    /// Tells the game, and the client, which may still believe that we are gone.
    fn resume(&mut self, id: ConnectionId, now: Time) {
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        let connection = id;
        self.events.push(ServerEvent::Resumed { connection });
        let to = seat.connection.peer;
        let sent = seat
            .connection
            .send(Kind::KeepAlive, &[], to, now, &mut self.outbox);
        if sent.is_err() {
            self.end(id, CloseReason::Exhausted);
        }
    }

    fn handle_opened(
        &mut self,
        id: ConnectionId,
        from: SocketAddr,
        opened: Opened,
        length: usize,
        at: Now,
        entropy: &mut dyn Entropy,
    ) {
        let now = at.now;
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        let leaving = seat.connection.is_leaving();
        match opened.kind {
            Kind::Frames if !leaving => {
                let handled = seat.connection.handle_frames(&opened, at);
                self.collect(id);
                if let Err(fault) = handled {
                    return self.leave(id, fault.into(), now);
                }
                self.hear_around(id, now);
                self.let_talk(id);
            }
            Kind::Close => {
                if let Some(reason) = close_reason(&opened.payload) {
                    return self.end(id, reason);
                }
            }
            Kind::PathResponse if !leaving => self.handle_path_response(id, from, &opened.payload),
            Kind::Frames | Kind::KeepAlive | Kind::PathChallenge | Kind::PathResponse => {}
        }
        if opened.newest && !leaving {
            self.look_at_path(id, from, length, now, entropy);
        }
    }

    fn hear_around(&mut self, id: ConnectionId, now: Time) {
        while let Some(seat) = self.seats.get_mut(&id)
            && let Some(message) = seat.connection.poll_around()
        {
            let mut answers = Vec::new();
            let connection = id;
            match self.host.handle(&mut seat.guest, &message, &mut answers) {
                Ok(Heard::Nothing) => {}
                Ok(Heard::Info(info)) => self.events.push(ServerEvent::Info { connection, info }),
                Ok(Heard::Plays(player)) => {
                    self.events.push(ServerEvent::Plays { connection, player });
                }
                Err(Unwelcome::Violation) => return self.leave(id, CloseReason::Violation, now),
                Err(Unwelcome::Full) => return self.leave(id, CloseReason::Kicked, now),
            }
            for answer in answers {
                self.say_around(id, &answer, now);
            }
        }
    }

    /// Says something around the game to who is known to take part in it.
    fn say_around(&mut self, id: ConnectionId, message: &ServerMessage, now: Time) {
        if let Some(exchange) = self.exchange(id)
            && !exchange.say_around(message.to_bytes())
        {
            self.leave(id, CloseReason::Stalled, now);
        }
    }

    /// Tells all clients who came and went, and how long everybody's round trip takes.
    fn tell_roster(&mut self, now: Time) {
        let mut guests = Vec::new();
        for (&id, seat) in &self.seats {
            let latency = seat.connection.round_trip().map(Latency::of);
            self.host.note_latency(&seat.guest, latency);
            if seat.guest.is_introduced() {
                guests.push(id);
            }
        }
        for update in self.host.poll_updates(now) {
            for id in &guests {
                self.say_around(*id, &update, now);
            }
        }
    }

    /// Asks whoever is at a new address to prove it, with no more bytes than came from there, and
    /// for every packet, because each of them or its answer may be lost. An older packet that
    /// comes from elsewhere was late, or is somebody's copy.
    fn look_at_path(
        &mut self,
        id: ConnectionId,
        from: SocketAddr,
        length: usize,
        now: Time,
        entropy: &mut dyn Entropy,
    ) {
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        if from == seat.connection.peer {
            seat.path = None;
            return;
        }
        if length < PATH_CHALLENGE_LEN {
            return;
        }
        let known = seat.path.take().filter(|path| path.address == from);
        let path = known.unwrap_or_else(|| Path {
            address: from,
            question: random(entropy),
        });
        let sent = seat.connection.send(
            Kind::PathChallenge,
            &path.question,
            from,
            now,
            &mut self.outbox,
        );
        seat.path = Some(path);
        if sent.is_err() {
            self.end(id, CloseReason::Exhausted);
        }
    }

    /// Moves to a new address if the answer is right and came from there.
    fn handle_path_response(&mut self, id: ConnectionId, from: SocketAddr, answer: &[u8]) {
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        let proven = seat
            .path
            .as_ref()
            .is_some_and(|path| path.address == from && path.question == answer);
        let (old, new) = (Origin::of(seat.connection.peer), Origin::of(from));
        if !proven || (old != new && !self.origins.has_room(new)) {
            return;
        }
        seat.path = None;
        let now = self.clock.now();
        seat.connection.move_to(from, now);
        self.origins.leave(old);
        self.origins.enter(new, now);
        self.events.push(ServerEvent::Moved {
            connection: id,
            address: from,
        });
    }

    /// Says goodbye, and to the game at once that it is over.
    fn leave(&mut self, id: ConnectionId, reason: CloseReason, now: Time) {
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        if seat.connection.is_leaving() {
            return;
        }
        let known = seat.arriving.take().is_none();
        seat.connection.leave(reason, now);
        self.host.leave(&mut seat.guest);
        self.collect(id);
        if known {
            self.events.push(ServerEvent::Closed {
                connection: id,
                reason,
            });
        }
        self.wake(id, now);
    }

    fn wake(&mut self, id: ConnectionId, now: Time) {
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        let fate = seat
            .connection
            .wake(&self.config.link, now, &mut self.outbox);
        self.collect(id);
        match fate {
            Fate::Lives | Fate::Silent => {
                if fate == Fate::Silent {
                    self.events.push(ServerEvent::Silent { connection: id });
                }
                self.let_talk(id);
                // What is due and waits to be polled shall not be waited for here.
                self.set_timer(id, now.after(Duration::from_micros(1)));
            }
            Fate::Dead => self.end(id, CloseReason::TimedOut),
            Fate::Exhausted => self.end(id, CloseReason::Exhausted),
            Fate::Broken(reason) => self.leave(id, reason, now),
            Fate::Left => self.end(id, CloseReason::Finished),
        }
    }

    /// Where messages to a client go in, which then may have something to say.
    fn exchange(&mut self, id: ConnectionId) -> Option<&mut Exchange> {
        self.let_talk(id);
        self.seats.get_mut(&id)?.connection.exchange()
    }

    fn let_talk(&mut self, id: ConnectionId) {
        if let Some(seat) = self.seats.get_mut(&id)
            && !seat.talks
        {
            seat.talks = true;
            self.talkers.push_back(id);
        }
    }

    /// Hands on what a connection has to tell.
    fn collect(&mut self, id: ConnectionId) {
        if let Some(seat) = self.seats.get_mut(&id) {
            while let Some(received) = seat.connection.poll_event() {
                let event = |received| ServerEvent::Received {
                    connection: id,
                    received,
                };
                self.events.push_received(received, event);
            }
        }
    }

    /// Sets the timer of a connection if it wants to be woken earlier than was planned. One that
    /// goes off too early does no harm.
    fn hurry(&mut self, id: ConnectionId, now: Time) {
        let seat = self.seats.get(&id);
        if seat.is_some_and(|seat| seat.connection.deadline(&self.config.link) < seat.timer) {
            self.set_timer(id, now);
        }
    }

    fn set_timer(&mut self, id: ConnectionId, earliest: Time) {
        if let Some(seat) = self.seats.get_mut(&id) {
            self.timers.remove(&(seat.timer, id));
            seat.timer = seat.connection.deadline(&self.config.link).max(earliest);
            self.timers.insert((seat.timer, id));
        }
    }

    /// Frees everything that a connection holds, without a further word to its client.
    fn end(&mut self, id: ConnectionId, reason: CloseReason) {
        if let Some(seat) = self.seats.get_mut(&id)
            && seat.arriving.is_none()
            && !seat.connection.is_leaving()
        {
            seat.connection.leave(reason, self.clock.now());
            self.collect(id);
            self.events.push(ServerEvent::Closed {
                connection: id,
                reason,
            });
        }
        if let Some(mut seat) = self.seats.remove(&id) {
            self.host.leave(&mut seat.guest);
            self.timers.remove(&(seat.timer, id));
            self.origins.leave(Origin::of(seat.connection.peer));
        }
    }
}

/// The key of a refusal where the server knows none.
const NOBODYS: [u8; 32] = [0; 32];
/// No longer than the shortest packet of a client, whose header has a name in it.
const PATH_CHALLENGE_LEN: usize = 1 + 4 + 8 + 16;
