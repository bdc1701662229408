//! A client: a connection, and what is seen through it.

use std::collections::VecDeque;
use std::time::Duration;

use prescient_codec::DecodeError;
use prescient_net::{AddressError, BlockingClient, Clock, insecure_token};
use prescient_replication::{
    Change, ClientConfig, ClientError, EntityHandle, Position, SetError, SettingsMismatch, Tick,
};
use prescient_schema::{Difference, EntityRef, Schema, State};
use prescient_transport::{
    ClientId, CloseReason, ConnectError, ConnectToken, Input, InputError, InputTick, Keys,
    LinkConfig, Received, SendError, Statistics,
};

use crate::carrier::ClientCarrier;
use crate::error::JoinError;
use crate::protocol::{EVENTS, STATE, protocol};
use crate::reconnect::{Cancel, Due, Lost, Reconnect, may_pass};
use crate::statistics::ViewStatistics;
use crate::watch;

/// What a client does by default.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How what the server shows is read.
    pub replication: ClientConfig,
    /// The client's side of the connection.
    pub link: LinkConfig,
    /// How long [`join`](Client::join) may take in all, over all of the token's servers, until one
    /// of them let us in *and* showed us the world; ten seconds by default.
    pub join_timeout: Duration,
    /// Ends [`join`](Client::join) early, from a handler of Ctrl-C or another thread.
    pub cancel: Cancel,
    /// How to get back in when the connection is lost; by default the client has
    /// [`Left`](ClientEvent::Left) then.
    pub reconnect: Option<Reconnect>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            replication: ClientConfig::default(),
            link: LinkConfig::default(),
            join_timeout: Duration::from_secs(10),
            cancel: Cancel::default(),
            reconnect: None,
        }
    }
}

/// What happened at a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The server let us in; said by a client that was [`start`](Client::start)ed.
    Joined,
    /// It did not, or could not be reached. Nothing follows.
    Failed(ConnectError),
    /// The server's schema is another, in what this names; *here* is the server. The connection
    /// ends.
    OtherSchema(Vec<Difference>),
    /// The server is set up in a way that this client cannot take over. The connection ends.
    OtherSettings(SettingsMismatch),
    /// Something is new in the world.
    Change(Change),
    /// Nothing was heard of the server for a while; it may come back.
    Silent,
    /// It came back.
    Resumed,
    /// The connection was lost, and the client tries to get back in
    /// ([`ClientOptions::reconnect`]). What is shown stays, and is of the past.
    Disconnected(CloseReason),
    /// It is in again. What was shown is removed, and the world appears anew.
    Reconnected,
    /// The connection is over. Nothing follows.
    Left(CloseReason),
}

/// A connection to a server, and the world as it shows it.
pub struct Client {
    carrier: ClientCarrier,
    view: prescient_replication::Client,
    clock: Clock,
    link: LinkConfig,
    join_timeout: Duration,
    reconnect: Option<Reconnect>,
    joined: bool,
    /// Set while a lost connection is being replaced.
    lost: Option<Lost>,
    /// State arrived, and the server does not know yet what became of it.
    unanswered: bool,
    /// What has to arrive and there was no room for.
    unsent: Option<Vec<u8>>,
    /// The keys that were down when last asked, and the number of that input.
    keys_down: Keys,
    pushed: InputTick,
    events: VecDeque<ClientEvent>,
    statistics: ViewStatistics,
}

impl Client {
    /// Joins a server on this machine that was made with [`Server::loopback`](crate::Server::loopback).
    pub fn loopback(server: &str, schema: Schema) -> Result<Self, JoinError> {
        Self::join(loopback_token(server)?, schema)
    }

    /// Joins one of the token's servers, and returns when that is done, or after ten seconds
    /// ([`ClientOptions::join_timeout`]).
    pub fn join(token: ConnectToken, schema: Schema) -> Result<Self, JoinError> {
        Self::join_with(token, schema, ClientOptions::default())
    }

    /// The same with other options.
    pub fn join_with(
        token: ConnectToken,
        schema: Schema,
        options: ClientOptions,
    ) -> Result<Self, JoinError> {
        let mut options = options;
        options.link = share(options.link, &token, options.join_timeout);
        let cancel = options.cancel.clone();
        let mut client = Self::start_with(token, schema, options)?;
        let deadline = client.clock.now().after(client.join_timeout);
        while !client.joined {
            client.answer();
            let now = client.clock.now();
            if cancel.is_cancelled() {
                client.leave();
                return Err(JoinError::Cancelled);
            }
            if now >= deadline {
                let error = client.carrier.why_not_joined(ConnectError::TimedOut);
                client.leave();
                return Err(error);
            }
            let turn = TURN.min(deadline.since(now));
            if let Some(event) = client.carrier.wait_until(client.carrier.now().after(turn)) {
                client.handle(event);
            }
            match client.events.pop_front() {
                Some(ClientEvent::Failed(error)) => {
                    return Err(client.carrier.why_not_joined(error));
                }
                Some(ClientEvent::OtherSchema(differences)) => {
                    client.answer();
                    client.leave();
                    return Err(JoinError::OtherSchema(differences));
                }
                Some(ClientEvent::OtherSettings(mismatch)) => {
                    return Err(JoinError::OtherSettings(mismatch));
                }
                Some(ClientEvent::Left(reason)) => return Err(JoinError::Closed(reason)),
                _ => {}
            }
        }
        Ok(client)
    }

    /// Begins to join one of the token's servers; an event says what comes of it.
    pub fn start(token: ConnectToken, schema: Schema) -> Result<Self, JoinError> {
        Self::start_with(token, schema, ClientOptions::default())
    }

    /// The same with other options.
    pub fn start_with(
        token: ConnectToken,
        schema: Schema,
        options: ClientOptions,
    ) -> Result<Self, JoinError> {
        let view = prescient_replication::Client::new(schema, options.replication)?;
        let carrier = connect(token, options.link)?;
        Ok(Self::new(view, carrier, options))
    }

    /// A client that has joined already.
    pub(crate) fn from_local(view: prescient_replication::Client, carrier: ClientCarrier) -> Self {
        let mut client = Self::new(view, carrier, ClientOptions::default());
        client.joined = true;
        client
    }

    fn new(
        view: prescient_replication::Client,
        carrier: ClientCarrier,
        options: ClientOptions,
    ) -> Self {
        Self {
            carrier,
            view,
            clock: Clock::start(),
            link: options.link,
            join_timeout: options.join_timeout,
            reconnect: options.reconnect,
            joined: false,
            lost: None,
            unanswered: false,
            unsent: None,
            keys_down: Keys::NONE,
            pushed: InputTick(0),
            events: VecDeque::new(),
            statistics: ViewStatistics::default(),
        }
    }

    /// The next thing that happened.
    pub fn poll(&mut self) -> Option<ClientEvent> {
        // A packet makes many changes, and to ask the socket after each of them would cost more than
        // all of them.
        if let Some(event) = self.next_event() {
            return Some(event);
        }
        self.tend_connection();
        // What a program has no time for waits in the socket, which has a limit.
        while !self.view.is_full()
            && let Some(event) = self.carrier.poll()
        {
            self.handle(event);
        }
        self.answer();
        self.next_event()
    }

    /// What is seen comes before what became of the connection, unless it is of another one.
    fn next_event(&mut self) -> Option<ClientEvent> {
        if let Some(ClientEvent::Disconnected(_) | ClientEvent::Reconnected) = self.events.front() {
            return self.events.pop_front();
        }
        let change = self.view.poll_change().map(ClientEvent::Change);
        change.or_else(|| self.events.pop_front())
    }

    /// Whether what is shown is of the present, as far as the connection goes: `false` from
    /// [`Disconnected`](ClientEvent::Disconnected) to [`Reconnected`](ClientEvent::Reconnected), and
    /// before it joined.
    pub fn is_connected(&self) -> bool {
        self.joined && self.lost.is_none()
    }

    /// Its socket, to wait for several clients at once; `None` for a
    /// [`local_client`](crate::Server::local_client). It is another one after a
    /// [`Reconnected`](ClientEvent::Reconnected). Read from it with [`poll`](Self::poll) alone, and do so every
    /// few milliseconds also if nothing arrives: there may be something to send.
    #[cfg(unix)]
    pub fn socket(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.carrier.socket()
    }

    /// Waits, and takes in what arrives. Returns early if a megabyte of events waits to be
    /// [`poll`](Self::poll)ed.
    pub fn wait(&mut self, span: Duration) {
        let until = self.clock.now().after(span);
        while !self.view.is_full() {
            self.tend_connection();
            let left = until.since(self.clock.now());
            // A lost connection is looked after in between.
            let turn = if self.lost.is_some() {
                left.min(TURN)
            } else {
                left
            };
            match self.carrier.wait_until(self.carrier.now().after(turn)) {
                Some(event) => {
                    self.handle(event);
                    self.answer();
                }
                None if self.clock.now() >= until => return,
                None => {}
            }
        }
    }

    /// Everything that is shown.
    pub fn entities(&self) -> impl Iterator<Item = EntityHandle> {
        self.view.entities()
    }

    /// An entity as its first table has it; `None` if it is of another type or gone.
    pub fn get<T: State>(&self, entity: EntityHandle) -> Option<T> {
        self.view.get(entity)
    }

    /// An entity as a table has it; `None` if that table is not shown.
    pub fn get_table<T: State>(&self, entity: EntityHandle, table: &str) -> Option<T> {
        self.view.get_table(entity, table)
    }

    /// The entity that a reference in a value refers to; `None` if it is not there, or not yet.
    pub fn resolve(&self, reference: EntityRef) -> Option<EntityHandle> {
        self.view.resolve(reference)
    }

    /// What a reference to an entity is, to be put into a value that the server is sent.
    pub fn reference(&self, entity: EntityHandle) -> Option<EntityRef> {
        self.view.reference(entity)
    }

    /// Where an entity is as seen from another, exact however far both are from the origin.
    pub fn offset(&self, entity: EntityHandle, from: EntityHandle) -> Option<Position> {
        self.view.offset(entity, from)
    }

    /// Whether this client is in charge of an object: the server let it
    /// ([`WorldStep::grant_authority`](crate::WorldStep::grant_authority)), and what it [`set`](Self::set)s is what everybody
    /// sees.
    pub fn has_authority(&self, entity: EntityHandle) -> bool {
        self.view.has_authority(entity)
    }

    /// An entity that this client is in charge of is like this now; [`report`](Self::report) says so.
    pub fn set<T: State>(&mut self, entity: EntityHandle, value: &T) -> Result<(), SetError> {
        self.view.set(entity, value)
    }

    /// Tells the server what this client has [`set`](Self::set), once per tick of the game.
    pub fn report(&mut self) {
        if self.lost.is_some() {
            return;
        }
        if let Some(message) = self.view.report(Some(MAX_REPORT_BYTES)) {
            // What a connection has no room for is lost, as it might be on the way.
            let _ = self.carrier.send(STATE, &message);
        }
    }

    /// Everything that is shown, for [`Views`](crate::Views) and whoever needs more of it.
    pub fn view(&self) -> &prescient_replication::Client {
        &self.view
    }

    /// The tick that is shown.
    pub fn tick(&self) -> Option<Tick> {
        self.view.tick()
    }

    /// Tells the server something, perhaps about an entity; if that is gone, nothing is said. Not
    /// before the server let us in.
    pub fn send_event(
        &mut self,
        about: Option<EntityHandle>,
        payload: &[u8],
    ) -> Result<(), SendError> {
        if !self.is_connected() {
            return Err(SendError::NotConnected);
        }
        let Some(message) = self.view.send_event(about, payload) else {
            return Ok(());
        };
        self.send_messages();
        match self.unsent {
            None => self.carrier.send(EVENTS, &message),
            Some(_) => Err(SendError::Backlogged),
        }
    }

    /// Tells the server which keys the player holds down, a bit each, once per tick of the game. No
    /// key press gets lost on the way, and ticks in which nothing changes are next to free.
    ///
    /// The server hears of them ([`Input`](crate::ServerEvent::Input),
    /// [`keys`](crate::Server::keys)), and so does everybody who sees the player's entities, if their
    /// type has a field for them: `#[state(keys)] keys: u32`.
    pub fn press(&mut self, keys: u64) -> Result<(), InputError> {
        let keys_down = Keys::from_bits(keys);
        self.act(Input {
            keys_down,
            pressed: keys_down.without(self.keys_down),
            ..Input::default()
        })
    }

    /// The same with a pointer, up to 256 keys, keys that went down and up again within a tick, and
    /// a few bytes of anything else.
    pub fn act(&mut self, input: Input) -> Result<(), InputError> {
        if !self.is_connected() {
            return Err(InputError::NotConnected);
        }
        let (tick, keys_down) = (InputTick(self.pushed.0 + 1), input.keys_down);
        self.carrier.push_input(tick, input)?;
        (self.pushed, self.keys_down) = (tick, keys_down);
        Ok(())
    }

    /// Leaves, and returns when that is said.
    pub fn leave(mut self) {
        self.carrier.close(CloseReason::Finished);
    }

    /// What the connection has seen so far; `None` without one, as for a client that
    /// [sits](crate::Server::local_client) beside its server.
    pub fn statistics(&self) -> Option<Statistics> {
        self.carrier.statistics()
    }

    /// What became of what the server sent.
    pub fn view_statistics(&self) -> ViewStatistics {
        self.statistics
    }

    fn handle(&mut self, event: prescient_transport::ClientEvent) {
        use prescient_transport::ClientEvent as Net;
        watch::span!("handle");
        match event {
            Net::Received(Received::Message { channel, message }) => {
                // What else could not be applied heals by itself when the server hears of it.
                match self.view.handle(&message) {
                    Ok(()) => self.statistics.applied += u64::from(channel == STATE),
                    Err(ClientError::State(DecodeError::Late) | ClientError::Early) => {
                        self.statistics.late += 1;
                    }
                    Err(ClientError::Schema(differences)) => {
                        self.lost = None;
                        let event = ClientEvent::OtherSchema(differences);
                        self.events.push_back(event);
                    }
                    Err(ClientError::Settings(mismatch)) => {
                        self.lost = None;
                        let event = ClientEvent::OtherSettings(mismatch);
                        self.events.push_back(event);
                        self.carrier.close(CloseReason::Finished);
                    }
                    Err(_) => {
                        watch::count!("prescient_client_refused", 1);
                        self.statistics.refused += 1;
                    }
                }
                self.unanswered |= channel == STATE;
                if self.view.is_welcome() && !self.is_connected() {
                    self.joined = true;
                    self.events.push_back(match self.lost.take() {
                        Some(_) => ClientEvent::Reconnected,
                        None => ClientEvent::Joined,
                    });
                }
            }
            Net::Failed(error) => self.fail(error),
            Net::Silent => self.events.push_back(ClientEvent::Silent),
            Net::Resumed => self.events.push_back(ClientEvent::Resumed),
            Net::Closed(reason) => self.lose(reason),
            _ => {}
        }
    }

    /// The connection ended, or the one that was to replace it.
    fn lose(&mut self, reason: CloseReason) {
        let now = self.clock.now();
        if let Some(lost) = &mut self.lost {
            return lost.failed(now);
        }
        if self.joined && self.reconnect.is_some() {
            self.lost = Lost::new(reason, now);
        }
        self.events.push_back(match self.lost {
            Some(_) => ClientEvent::Disconnected(reason),
            None => ClientEvent::Left(reason),
        });
    }

    /// No server let us in.
    fn fail(&mut self, error: ConnectError) {
        let now = self.clock.now();
        match &mut self.lost {
            Some(lost) if may_pass(error) => lost.failed(now),
            _ => {
                self.lost = None;
                self.events.push_back(ClientEvent::Failed(error));
            }
        }
    }

    /// Does what is due about a lost connection.
    fn tend_connection(&mut self) {
        let (Some(lost), Some(how)) = (&mut self.lost, &self.reconnect) else {
            return;
        };
        let now = self.clock.now();
        match lost.tend(how, self.join_timeout, now) {
            Due::Nothing => {}
            Due::Attempt(token) => {
                let link = share(self.link, &token, self.join_timeout);
                match connect(*token, link) {
                    Ok(carrier) => self.begin_anew(carrier),
                    // There may be a socket, or another token, in a moment.
                    Err(_) => lost.failed(now),
                }
            }
            Due::GiveUp => {
                let reason = lost.reason;
                self.lost = None;
                self.events.push_back(ClientEvent::Left(reason));
            }
        }
    }

    /// Goes on with another connection, which is still to be made.
    fn begin_anew(&mut self, carrier: ClientCarrier) {
        self.carrier = carrier;
        self.view.reconnect();
        (self.unanswered, self.unsent) = (false, None);
        (self.keys_down, self.pushed) = (Keys::NONE, InputTick(0));
    }

    /// Tells the server what was applied.
    fn answer(&mut self) {
        self.send_messages();
        if !std::mem::take(&mut self.unanswered) {
            return;
        }
        if let Some(message) = self.view.acknowledgement() {
            // The next one says the same and more.
            let _ = self.carrier.send(STATE, &message);
        }
    }

    /// Sends what has to arrive, as far as there is room. The rest stays where it is: nothing that a
    /// server asks for makes more than one message wait in here.
    fn send_messages(&mut self) {
        while let Some(message) = self.unsent.take().or_else(|| self.view.poll_message()) {
            match self.carrier.send(EVENTS, &message) {
                Err(SendError::Backlogged | SendError::NotConnected) => {
                    self.unsent = Some(message);
                    return;
                }
                Err(SendError::TooLong { .. }) => self.statistics.too_long += 1,
                Ok(()) | Err(_) => {}
            }
        }
    }
}

/// Lets all servers of a token have their turn within this time.
fn share(link: LinkConfig, token: &ConnectToken, within: Duration) -> LinkConfig {
    let servers = u32::try_from(token.servers().len()).unwrap_or(u32::MAX);
    LinkConfig {
        connect_timeout: link.connect_timeout.min(within / servers.max(1)),
        ..link
    }
}

fn connect(token: ConnectToken, link: LinkConfig) -> Result<ClientCarrier, JoinError> {
    let net = BlockingClient::start(token, protocol(), link)?;
    Ok(ClientCarrier::Socket(Box::new(net)))
}

/// The token by which [`Client::loopback`] joins a server on this machine.
pub fn loopback_token(server: &str) -> Result<ConnectToken, AddressError> {
    insecure_token(server, protocol(), ClientId(0))
}

/// How long a client that joins, or has lost its connection, waits before it looks again.
const TURN: Duration = Duration::from_millis(50);

/// Bytes of a report at most, so that it fits into a packet.
const MAX_REPORT_BYTES: usize = 1100;
