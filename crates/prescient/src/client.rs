//! The client: a connection and the world it shows.

use std::collections::VecDeque;
use std::time::Duration;

#[cfg(feature = "tokio")]
use prescient_channels::Time;
use prescient_channels::lobby::{LobbyClient, PlayerId, ServerInfo};
use prescient_channels::{
    Carrier, CarrierEvent, ChannelId, CloseReason, ConnectError, ConnectionId, Input, InputError,
    InputTick, Keys, Received, RequestError, RequestId, SendError, Statistics,
};
use prescient_codec::DecodeError;
use prescient_replication::{
    Change, ClientError, EntityHandle, Position, Question, Reply, SetError, SettingsMismatch, Tick,
    TypedEvent, is_state,
};
use prescient_schema::{Difference, EntityRef, Schema, State};

use crate::blobs::BlobEvent;
use crate::clock::Clock;
use crate::error::JoinError;
use crate::local::LocalClient;
use crate::options::ClientOptions;
use crate::play_out::PlayOut;
use crate::protocol::{EVENTS, STATE};
use crate::reconnect::{Cancel, Due, Lost, may_pass};
use crate::{lobby, requests, watch};

/// An event that [`Client::poll`] returns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The server accepted the client. Only a client that was [`start`](Client::start)ed reports
    /// this.
    Joined,
    /// No server accepted the client, or none could be reached. No event follows.
    Failed(ConnectError),
    /// The schemas differ. In each [`Difference`], `here` is the server's side. The connection
    /// ends.
    OtherSchema(Vec<Difference>),
    /// The server has settings that this client cannot adopt. The connection ends.
    OtherSettings(SettingsMismatch),
    /// The shown world changed.
    Change(Change),
    /// The server sent an event of one of the schema's types
    /// ([`Server::broadcast`](crate::Server::broadcast)).
    Typed(TypedEvent),
    /// The server asks ([`Server::ask`](crate::Server::ask)); [`reply`](Client::reply) to it.
    Asked(Question),
    /// The server replied to what it was [asked](Client::ask).
    Replied(Reply),
    /// Something happened to a blob ([`Client::offer_blob`]).
    Blob(BlobEvent),
    /// The server asks for an answer ([`Client::respond`]).
    Request {
        /// Identifies the request.
        request: RequestId,
        /// The server's bytes.
        message: Vec<u8>,
    },
    /// The answer to a [`Client::request`], or why there is none.
    Answer {
        /// The request.
        request: RequestId,
        /// The server's bytes.
        answer: Result<Vec<u8>, RequestError>,
    },
    /// The server's name, message of the day and what to load, after [`Client::introduce`]. Once that
    /// is loaded, call [`Client::ready`].
    ServerInfo(ServerInfo),
    /// This client is ready: it is this player in the [`roster`](Client::roster).
    Ready(PlayerId),
    /// The server starts over; once what this names is loaded, call [`Client::ready`] again.
    LobbyRestarted(ServerInfo),
    /// The [`roster`](Client::roster) changed.
    RosterChanged,
    /// The server has been silent for a while; it may resume.
    Silent,
    /// The silent server is responsive again.
    Resumed,
    /// The connection was lost and the client tries to reconnect ([`ClientOptions::with_reconnect`]).
    /// The shown world stays as it was.
    Disconnected(CloseReason),
    /// The client reconnected. All shown entities are removed and the world is sent again.
    Reconnected,
    /// The connection ended. No event follows.
    Left(CloseReason),
}

/// What happened to the messages that a client received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ViewStatistics {
    /// Packets of state that were applied.
    pub applied: u64,
    /// Bytes of state that were received. What else is in
    /// [`Statistics::bytes_received`](crate::Statistics::bytes_received) are headers, events,
    /// acknowledgements and pings.
    pub state_bytes: u64,
    /// Packets of state that arrived after a newer one, or before the server's welcome, and were
    /// skipped. That is normal.
    pub late: u64,
    /// Messages that could not be decoded or applied, which heals by itself. If the number keeps
    /// growing, the server runs another version of the game, or requests more than the client can
    /// answer.
    pub refused: u64,
    /// Replies that were not sent because they exceed the maximum message length.
    pub too_long: u64,
}

/// A connection to a server, and the world that it shows.
pub struct Client {
    carrier: Box<dyn Carrier>,
    pub(crate) view: prescient_replication::Client,
    clock: Clock,
    options: ClientOptions,
    /// Whether the carrier is connected to a server.
    connected: bool,
    joined: bool,
    /// Set while a lost connection is being replaced.
    lost: Option<Lost>,
    /// State arrived that was not acknowledged yet.
    unanswered: bool,
    /// A reliable message that the connection had no room for.
    unsent: Option<Vec<u8>>,
    pub(crate) lobby: LobbyClient,
    /// Messages of the lobby that were not sent yet.
    pub(crate) queued: VecDeque<Vec<u8>>,
    /// The keys that were down in the last input, and that input's tick.
    keys_down: Keys,
    pushed: InputTick,
    pub(crate) events: VecDeque<ClientEvent>,
    pub(crate) statistics: ViewStatistics,
    play_out: PlayOut,
}

impl Client {
    /// Joins a server over a carrier of the program's choice. Blocks until that is done, ten
    /// seconds at most ([`ClientOptions::with_join_timeout`]).
    pub fn join_with_carrier(
        carrier: impl Carrier + 'static,
        schema: Schema,
        options: ClientOptions,
    ) -> Result<Self, JoinError> {
        let cancel = options.cancel.clone();
        Self::start_with_carrier(carrier, schema, options)?.finish_joining(&cancel)
    }

    /// Begins to join a server over a carrier of the program's choice and returns at once;
    /// [`ClientEvent::Joined`] or [`ClientEvent::Failed`] reports the result.
    pub fn start_with_carrier(
        carrier: impl Carrier + 'static,
        schema: Schema,
        options: ClientOptions,
    ) -> Result<Self, JoinError> {
        options.check()?;
        let view = prescient_replication::Client::new(schema, options.replication.clone())?;
        Ok(Self::new(view, Box::new(carrier), options))
    }

    /// A local client, which has joined already.
    pub(crate) fn from_local(view: prescient_replication::Client, carrier: LocalClient) -> Self {
        let mut client = Self::new(view, Box::new(carrier), ClientOptions::default());
        (client.connected, client.joined) = (true, true);
        client
    }

    fn new(
        view: prescient_replication::Client,
        carrier: Box<dyn Carrier>,
        options: ClientOptions,
    ) -> Self {
        Self {
            carrier,
            view,
            clock: Clock::start(),
            options,
            connected: false,
            joined: false,
            lost: None,
            unanswered: false,
            unsent: None,
            lobby: LobbyClient::default(),
            queued: VecDeque::new(),
            keys_down: Keys::NONE,
            pushed: InputTick(0),
            events: VecDeque::new(),
            statistics: ViewStatistics::default(),
            play_out: PlayOut::default(),
        }
    }

    /// Blocks until the client has joined.
    pub(crate) fn finish_joining(mut self, cancel: &Cancel) -> Result<Self, JoinError> {
        let deadline = self.clock.now().after(self.options.join_timeout);
        while !self.joined {
            self.answer();
            let now = self.clock.now();
            if cancel.is_cancelled() {
                self.leave();
                return Err(JoinError::Cancelled);
            }
            if now >= deadline {
                let error = self.why_not_joined(ConnectError::TimedOut);
                self.leave();
                return Err(error);
            }
            let turn = TURN.min(deadline.since(now));
            if let Some(event) = self.carrier.wait_until(self.carrier.now().after(turn)) {
                self.handle(event);
            }
            match self.events.pop_front() {
                Some(ClientEvent::Failed(error)) => return Err(self.why_not_joined(error)),
                Some(ClientEvent::OtherSchema(differences)) => {
                    self.answer();
                    self.leave();
                    return Err(JoinError::OtherSchema(differences));
                }
                Some(ClientEvent::OtherSettings(mismatch)) => {
                    return Err(JoinError::OtherSettings(mismatch));
                }
                Some(ClientEvent::Left(reason)) => return Err(JoinError::Closed(reason)),
                _ => {}
            }
        }
        Ok(self)
    }

    /// Explains why there is no connection, or why the server does not respond over it.
    pub(crate) fn why_not_joined(&self, error: ConnectError) -> JoinError {
        match self.connected {
            true => JoinError::NoAnswer,
            false => JoinError::Connection(self.carrier.explain(error)),
        }
    }

    /// The next event, if any.
    pub fn poll(&mut self) -> Option<ClientEvent> {
        // One packet causes many changes; reading the socket after each of them would cost more
        // than all of them.
        if let Some(event) = self.next_event() {
            return Some(event);
        }
        self.tend_connection();
        // A slow program leaves data in the socket, whose buffer is bounded.
        while !self.is_full()
            && let Some(event) = self.carrier.poll()
        {
            self.handle(event);
        }
        self.answer();
        self.next_event()
    }

    /// Whether so much waits to be polled that nothing more is received.
    fn is_full(&self) -> bool {
        self.view.is_full() || self.events.len() >= MAX_EVENTS
    }

    /// Reports changes before events of the connection, unless the changes belong to the next
    /// connection.
    fn next_event(&mut self) -> Option<ClientEvent> {
        if let Some(ClientEvent::Disconnected(_) | ClientEvent::Reconnected) = self.events.front() {
            return self.events.pop_front();
        }
        if let Some(change) = self.view.poll_change() {
            self.play_out.note(&change);
            return Some(match change {
                Change::Typed(event) => ClientEvent::Typed(event),
                Change::Question(question) => ClientEvent::Asked(question),
                Change::Reply(reply) => ClientEvent::Replied(reply),
                change => ClientEvent::Change(change),
            });
        }
        self.events.pop_front()
    }

    /// Whether the shown world is current, as far as the connection is concerned: `false` before
    /// joining, and from [`Disconnected`](ClientEvent::Disconnected) to
    /// [`Reconnected`](ClientEvent::Reconnected).
    pub fn is_connected(&self) -> bool {
        self.joined && self.lost.is_none()
    }

    /// The socket, to wait for several clients at once; `None` for a
    /// [`local_client`](crate::Server::local_client). [`Reconnected`](ClientEvent::Reconnected)
    /// replaces it. Read from it only through [`poll`](Self::poll), and call that every few
    /// milliseconds even if nothing arrives: there may be something to send.
    #[cfg(unix)]
    pub fn socket(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.carrier.socket()
    }

    /// Waits for `span` and receives meanwhile. Returns early if a megabyte of events waits to be
    /// [`poll`](Self::poll)ed.
    pub fn wait(&mut self, span: Duration) {
        let until = self.clock.now().after(span);
        while !self.is_full() {
            self.tend_connection();
            let left = until.since(self.clock.now());
            // Reconnecting needs attention in between.
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

    /// Handles what has arrived; returns the time that is left until then, or zero if a megabyte of
    /// events waits to be polled.
    #[cfg(feature = "tokio")]
    pub(crate) fn receive_until(&mut self, until: Time) -> Duration {
        self.tend_connection();
        while !self.is_full()
            && let Some(event) = self.carrier.poll()
        {
            self.handle(event);
        }
        self.answer();
        match self.is_full() {
            true => Duration::ZERO,
            false => until.since(self.clock.now()),
        }
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// All visible entities.
    pub fn entities(&self) -> impl Iterator<Item = EntityHandle> {
        self.view.entities()
    }

    /// All visible entities of a type, with their values in its first table.
    ///
    /// ```
    /// # use prescient::{Everything, Schema, Server, State};
    /// # #[derive(State)]
    /// # struct Tank { #[state(step = 0.01)] x: f32 }
    /// # #[derive(State)]
    /// # struct Turret { #[state(step = 0.1)] angle: f32 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Server::offline(Schema::of::<(Tank, Turret)>()?, Everything)?;
    /// let mut client = server.local_client();
    /// server.step()?.spawn(&Tank { x: 2.5 })?;
    /// server.step()?.spawn(&Turret { angle: 0.5 })?;
    /// server.send();
    /// while client.poll().is_some() {}
    /// for (entity, tank) in client.all::<Tank>() {
    ///     assert_eq!(tank.x, 2.5);
    ///     assert_eq!(client.tick_of(entity), client.tick());
    /// }
    /// assert_eq!(client.all::<Tank>().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn all<T: State>(&self) -> impl Iterator<Item = (EntityHandle, T)> {
        let entities = self.view.entities();
        entities.filter_map(|entity| Some((entity, self.view.get(entity)?)))
    }

    /// The tick of an entity's value in its first table. It may be older than [`tick`](Self::tick)
    /// if packets are too small for all entities.
    pub fn tick_of(&self, entity: EntityHandle) -> Option<Tick> {
        self.view.tick_of(entity, 0)
    }

    /// An entity's value in its first table, with its visible optional tables; `None` if it has
    /// another type or is gone. What was removed can be read with its last value until
    /// [`poll`](Self::poll) returns `None` after its [`Removed`](Change::Removed) or an event about
    /// it.
    ///
    /// ```
    /// # use prescient::*;
    /// # #[derive(State, Debug, PartialEq)]
    /// # struct Tank { #[state(step = 0.01)] x: f32 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut server = Server::offline(Schema::of::<Tank>()?, Everything)?;
    /// # let mut client = server.local_client();
    /// # let tank = server.step()?.spawn(&Tank { x: 2.5 })?;
    /// # server.send();
    /// # while client.poll().is_some() {}
    /// # server.step()?.despawn(tank)?;
    /// # server.send();
    /// while let Some(event) = client.poll() {
    ///     if let ClientEvent::Change(Change::Removed(entity)) = event {
    ///         let last: Option<Tank> = client.get(entity);
    ///         assert_eq!(last, Some(Tank { x: 2.5 })); // an explosion is drawn there
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn get<T: State>(&self, entity: EntityHandle) -> Option<T> {
        self.view.get(entity)
    }

    /// An entity's value in a table that is not optional; `None` if that table is not visible.
    pub fn get_table<T: State>(&self, entity: EntityHandle, table: &str) -> Option<T> {
        self.view.get_table(entity, table)
    }

    /// An entity's values in its first table at the recent ticks that were confirmed, oldest
    /// first; read from the back for the newest. Nothing is copied before it is asked for. Empty if
    /// the entity has another type or is gone.
    ///
    /// A tick is confirmed if a packet of it covered the entity, also if it stated no change. If
    /// packets are too small for all entities, ticks in which it was not this entity's turn are
    /// missing, and so are those whose packets were lost: what the server had then is not known
    /// here. These are the server's values also of entities that this client has authority over.
    ///
    /// [`ClientConfig::with_history`](crate::ClientConfig::with_history) says how far this reaches back. It
    /// never reaches before the entity appeared here, or the client last entered a world.
    pub fn samples<T: State>(
        &self,
        entity: EntityHandle,
    ) -> impl DoubleEndedIterator<Item = (Tick, T)> {
        self.view.samples(entity)
    }

    /// Like [`samples`](Self::samples), in another table; empty if that table is not visible. The
    /// tables of an entity may be confirmed at different ticks.
    pub fn table_samples<T: State>(
        &self,
        entity: EntityHandle,
        table: &str,
    ) -> impl DoubleEndedIterator<Item = (Tick, T)> {
        self.view.table_samples(entity, table)
    }

    /// Like [`samples`](Self::samples), as rows of the table with this index, with the columns of
    /// the server's schema.
    pub fn sample_rows(
        &self,
        entity: EntityHandle,
        table: usize,
    ) -> impl DoubleEndedIterator<Item = (Tick, &[i64])> {
        self.view.sample_rows(entity, table)
    }

    /// The indices of an entity's visible tables, ascending.
    pub fn tables(&self, entity: EntityHandle) -> impl Iterator<Item = usize> {
        self.view.tables(entity)
    }

    /// Whether the table with this index is visible: the entity has it, and the server shows it.
    pub fn has_table(&self, entity: EntityHandle, table: usize) -> bool {
        self.view.has_table(entity, table)
    }

    /// The entity that a reference in a value refers to; `None` if it is not visible, or not yet.
    pub fn resolve(&self, reference: impl Into<EntityRef>) -> Option<EntityHandle> {
        self.view.resolve(reference.into())
    }

    /// The reference to an entity, for use in a value that is sent to the server.
    pub fn reference(&self, entity: EntityHandle) -> Option<EntityRef> {
        self.view.reference(entity)
    }

    /// The position of an entity relative to another, exact at any distance from the origin.
    pub fn offset(&self, entity: EntityHandle, from: EntityHandle) -> Option<Position> {
        self.view.offset(entity, from)
    }

    /// Whether this client has authority over an entity: the server granted it
    /// ([`WorldStep::grant_authority`](crate::WorldStep::grant_authority)), and the values that
    /// this client [`set`](Self::set)s are the ones that all peers see.
    pub fn has_authority(&self, entity: EntityHandle) -> bool {
        self.view.has_authority(entity)
    }

    /// Sets the value of an entity over which this client has authority; [`report`](Self::report)
    /// sends it.
    pub fn set<T: State>(&mut self, entity: EntityHandle, value: &T) -> Result<(), SetError> {
        self.view.set(entity, value)
    }

    /// How many values were changed by [`set`](Self::set) since the client entered its world, because
    /// they did not fit fields that are declared `saturate`.
    pub fn saturated_values(&self) -> u64 {
        self.view.saturated()
    }

    /// Sends the server the values that were [`set`](Self::set); call it once per tick of the game.
    pub fn report(&mut self) {
        if self.lost.is_some() {
            return;
        }
        if let Some(message) = self.view.report(Some(MAX_REPORT_BYTES)) {
            // A report that finds no room is dropped, like a lost packet.
            let _ = self.send(STATE, &message);
        }
    }

    pub(crate) fn play_out(&self) -> &PlayOut {
        &self.play_out
    }

    /// What is shown, and of which shown world.
    pub(crate) fn play_out_parts(&mut self) -> (&mut prescient_replication::Client, &mut PlayOut) {
        (&mut self.view, &mut self.play_out)
    }

    /// The time of frames, and of states that arrive.
    pub(crate) fn play_out_time(&self) -> Duration {
        Duration::from_micros(self.carrier.now().as_micros())
    }

    pub(crate) fn carrier_mut(&mut self) -> &mut dyn Carrier {
        &mut *self.carrier
    }

    /// The client of the replication layer.
    pub(crate) fn view(&self) -> &prescient_replication::Client {
        &self.view
    }

    /// The tick of the shown world.
    pub fn tick(&self) -> Option<Tick> {
        self.view.tick()
    }

    /// Sends the server an event, optionally about an entity; if the entity is gone, nothing is
    /// sent. Fails before the client joined.
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
            None => self.send(EVENTS, &message),
            Some(_) => Err(SendError::Backlogged),
        }
    }

    /// Sends the keys that the player holds down, one bit per key; call it once per tick of the
    /// game. No key press is lost on the way, and ticks without a change cost next to nothing.
    ///
    /// The server gets them as [`Input`](crate::ServerEvent::Input) and
    /// [`keys`](crate::Server::keys). Peers that see the player's entities get them if the entity
    /// type has a field for them: `#[state(keys)] keys: u32`.
    pub fn press(&mut self, keys: u64) -> Result<InputTick, InputError> {
        let keys_down = Keys::from_bits(keys);
        self.act(Input {
            keys_down,
            pressed: keys_down.without(self.keys_down),
            ..Input::default()
        })
    }

    /// Like [`press`](Self::press), with a pointer, up to 256 keys, keys that were pressed and
    /// released within a tick, and a few bytes of application data.
    ///
    /// Returns the input's tick. [`consumed_input`](Self::consumed_input) tells which inputs the
    /// shown state has consumed already; those after it a predicting client applies itself.
    pub fn act(&mut self, input: Input) -> Result<InputTick, InputError> {
        if !self.is_connected() {
            return Err(InputError::NotConnected);
        }
        let (tick, keys_down) = (InputTick(self.pushed.0 + 1), input.keys_down);
        self.carrier.push_input(tick, input.clone())?;
        self.carrier.flush();
        (self.pushed, self.keys_down) = (tick, keys_down);
        self.play_out.act(&mut self.view, tick, input);
        Ok(tick)
    }

    /// The newest input of this client that the server's program was given before the shown tick;
    /// `None` if it was given none.
    pub fn consumed_input(&self) -> Option<InputTick> {
        let low = self.view.consumed_input()?;
        // No more than 64 inputs are ever unacknowledged.
        let behind = (self.pushed.0 as u16).wrapping_sub(low);
        self.pushed.0.checked_sub(behind.into()).map(InputTick)
    }

    /// The server's present tick, with its fraction, estimated from the synchronised clock; `None`
    /// before the first measurement, or if the server does not use
    /// [`next_tick`](crate::Server::next_tick).
    pub fn server_tick(&mut self) -> Option<f64> {
        let clock = self.view.clock()?;
        let now = self.carrier.remote_time(ConnectionId::SERVER)?;
        Some(clock.tick_at(now.as_micros()))
    }

    /// The time between two ticks of the server, if it uses
    /// [`next_tick`](crate::Server::next_tick).
    pub fn tick_interval(&self) -> Option<Duration> {
        let clock = self.view.clock()?;
        Some(Duration::from_micros(clock.interval_micros.into()))
    }

    /// Leaves, and returns when the server was notified.
    pub fn leave(mut self) {
        self.carrier.shut_down(CloseReason::Finished);
    }

    /// The statistics of the connection; `None` for a [local client](crate::Server::local_client).
    pub fn statistics(&self) -> Option<Statistics> {
        self.carrier.statistics(ConnectionId::SERVER)
    }

    /// How many received messages were applied, late or refused.
    pub fn view_statistics(&self) -> ViewStatistics {
        self.statistics
    }

    fn handle(&mut self, event: CarrierEvent) {
        watch::span!("handle");
        match event {
            CarrierEvent::Connected { .. } => self.connected = true,
            CarrierEvent::Received {
                received: Received::Message { message, .. },
                ..
            } => {
                let is_state = is_state(&message);
                if let Some(message) = lobby::message(&message) {
                    return self.handle_lobby(message);
                }
                // Other errors heal by themselves once the server learns from the acknowledgement
                // what was not applied.
                match self.view.handle(&message) {
                    Ok(()) if is_state => {
                        self.statistics.applied += 1;
                        let (consumed, now) = (self.consumed_input(), self.play_out_time());
                        self.play_out.handle_state(&self.view, consumed, now);
                    }
                    Ok(()) => {}
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
                        self.carrier.shut_down(CloseReason::Finished);
                    }
                    Err(_) => {
                        watch::count!("prescient_client_refused", 1);
                        self.statistics.refused += 1;
                    }
                }
                if is_state {
                    self.unanswered = true;
                    self.statistics.state_bytes += message.len() as u64;
                }
                if self.view.is_welcome() && !self.is_connected() {
                    self.joined = true;
                    self.events.push_back(match self.lost.take() {
                        Some(_) => ClientEvent::Reconnected,
                        None => ClientEvent::Joined,
                    });
                    self.send_introduction();
                }
            }
            CarrierEvent::Received { received, .. } => {
                let blob = |other| BlobEvent::of(other).map(ClientEvent::Blob);
                let event = requests::client_event(received).map_or_else(blob, Some);
                self.events.extend(event);
            }
            CarrierEvent::Failed(error) => self.fail(error),
            CarrierEvent::Silent(_) => self.events.push_back(ClientEvent::Silent),
            CarrierEvent::Resumed(_) => self.events.push_back(ClientEvent::Resumed),
            CarrierEvent::Closed { reason, .. } => self.lose(reason),
            _ => {}
        }
    }

    /// Handles the end of the connection, or of an attempt to replace it.
    fn lose(&mut self, reason: CloseReason) {
        let now = self.clock.now();
        if let Some(lost) = &mut self.lost {
            return lost.failed(now);
        }
        if self.joined && self.options.reconnect.is_some() {
            self.lost = Lost::new(reason, now);
        }
        self.events.push_back(match self.lost {
            Some(_) => ClientEvent::Disconnected(reason),
            None => ClientEvent::Left(reason),
        });
    }

    /// Handles that no server accepted the client.
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

    /// Advances the reconnecting of a lost connection.
    fn tend_connection(&mut self) {
        let Some(lost) = &mut self.lost else {
            return;
        };
        let now = self.clock.now();
        match lost.tend(&self.options, now) {
            Due::Nothing => {}
            Due::Attempt(carrier) => self.restart_with(carrier),
            Due::GiveUp => {
                let reason = lost.reason;
                self.lost = None;
                self.events.push_back(ClientEvent::Left(reason));
            }
        }
    }

    /// Continues with another connection, which is not established yet.
    fn restart_with(&mut self, carrier: Box<dyn Carrier>) {
        self.carrier = carrier;
        self.connected = false;
        self.view.reconnect();
        self.play_out.reset();
        (self.unanswered, self.unsent) = (false, None);
        self.lobby.reconnect();
        self.queued.clear();
        (self.keys_down, self.pushed) = (Keys::NONE, InputTick(0));
    }

    /// The keys that were down in the last input.
    pub(crate) fn keys_down(&self) -> Keys {
        self.keys_down
    }

    /// Sends what waits; whether some of it still does.
    pub(crate) fn is_backlogged(&mut self) -> bool {
        self.send_messages();
        self.unsent.is_some()
    }

    /// Sends a message at once.
    pub(crate) fn send(&mut self, channel: ChannelId, message: &[u8]) -> Result<(), SendError> {
        let sent = self.carrier.send(ConnectionId::SERVER, channel, message);
        self.carrier.flush();
        sent
    }

    /// Sends waiting messages, and an acknowledgement if state arrived.
    fn answer(&mut self) {
        self.send_messages();
        if !std::mem::take(&mut self.unanswered) {
            return;
        }
        if let Some(message) = self.view.acknowledgement() {
            // If this is lost, the next acknowledgement covers it.
            let _ = self.send(STATE, &message);
        }
    }

    fn next_message(&mut self) -> Option<Vec<u8>> {
        let waiting = self.unsent.take().or_else(|| self.queued.pop_front());
        waiting.or_else(|| self.view.poll_message())
    }

    /// Sends reliable messages, as far as there is room. At most one message waits here, whatever
    /// the server requests.
    pub(crate) fn send_messages(&mut self) {
        while let Some(message) = self.next_message() {
            match self.send(EVENTS, &message) {
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

/// How often a client that is joining or reconnecting checks its deadlines.
const TURN: Duration = Duration::from_millis(50);

/// Events of the connection that may wait to be polled.
const MAX_EVENTS: usize = 256;

/// Maximum bytes of a report, so that it fits into a packet.
const MAX_REPORT_BYTES: usize = 1100;
