//! The client: the world as the server showed it, and its changes since the last poll.

mod authority;
mod departed;
mod error;
mod inbox;
mod query;
mod schema_adapter;
mod shown_world;
mod subscriber;
mod typed_events;

use std::collections::{BTreeSet, VecDeque};

use prescient_codec::{Config, DecodeError, NetEntityId, Prior, Slot, Tick};
use prescient_schema::{Fingerprint, Schema, State, Tolerance};

use crate::audit;
use crate::config::ClientConfig;
use crate::event_coders::EventCoders;
use crate::message::{Message, TickClock, WorldMessage};
use crate::server::MAX_REPORT_BYTES;
use crate::settings::{self, Settings};
use crate::typed_event::{About, Question, Reply, TypedEvent};
use crate::world::WorldError;
use crate::world_generation::WorldGeneration;

use authority::AuthorityReporter;
pub use authority::SetError;
pub use error::ClientError;
use inbox::{Inbox, Notice};
use schema_adapter::SchemaAdapter;
use shown_world::{ShownWorld, StateLimits};
pub use subscriber::{SubscribeError, Subscriber};

/// A client's handle of an entity. Never reused for another entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityHandle {
    id: u32,
    /// How many entities had this id before.
    generation: u32,
}

impl EntityHandle {
    const fn new(id: u32, generation: u32) -> Self {
        Self { id, generation }
    }
}

/// A change since the last poll; an entity is reported once, however often it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The client is in another world. The entities of the previous one are removed.
    Entered,
    /// An entity appeared.
    Created(EntityHandle),
    /// An entity changed.
    Updated(EntityHandle),
    /// An entity was despawned, or is no longer visible. Until all changes are polled it can still be
    /// [read](Client::get), with its last values.
    Removed(EntityHandle),
    /// A further table of an entity appeared: the entity gained it, or it became visible. Tables
    /// that an entity has when it is [`Created`](Self::Created) are not reported, nor is one that
    /// disappeared and appeared again since the last poll.
    TableAdded {
        /// The entity.
        entity: EntityHandle,
        /// Index of the table, as in [`Client::row`].
        table: usize,
    },
    /// A further table of an entity disappeared: the entity lost it, or it is no longer visible.
    /// The tables of an entity that was [`Removed`](Self::Removed) are not reported.
    TableRemoved {
        /// The entity.
        entity: EntityHandle,
        /// Index of the table, as in [`Client::row`].
        table: usize,
    },
    /// The client got or lost authority over an entity: with authority, the values that it
    /// [`set`](Client::set)s are the ones that all peers see.
    AuthorityChanged {
        /// The entity.
        entity: EntityHandle,
        /// Whether the client has authority now.
        granted: bool,
    },
    /// The server sent an event. Entities that existed at its tick were created before. If the
    /// entity was removed at that tick, as by a bullet that hits and vanishes, it can still be
    /// [read](Client::get) until all changes are polled, with its last values.
    Event {
        /// The server's tick at which it was sent.
        tick: Tick,
        /// The entity that it is about, if any.
        about: About<EntityHandle>,
        /// The program's own bytes.
        payload: Vec<u8>,
    },
    /// The server sent an event of one of the schema's event types.
    Typed(TypedEvent),
    /// The server asks; [`Client::reply`] replies.
    Question(Question),
    /// The server replied to what [`Client::ask`] asked.
    Reply(Reply),
}

/// The world as a server shows it.
///
/// [`handle`](Self::handle) whatever arrives; send what [`poll_message`](Self::poll_message)
/// returns reliably and in order, and an [`acknowledgement`](Self::acknowledgement) whenever state
/// arrived; [`poll_change`](Self::poll_change) reports what changed.
pub struct Client {
    adapter: SchemaAdapter,
    /// Fingerprint of the schema in which state is read, as sent to the server.
    fingerprint: Fingerprint,
    world_generation: WorldGeneration,
    entered: bool,
    shown_world: ShownWorld,
    inbox: Inbox,
    authority: AuthorityReporter,
    typed_out: EventCoders,
    typed_in: EventCoders,
    /// The number of questions asked over this connection.
    questions: u32,
    /// The server's settings, once they arrived.
    config: Config,
    prior: Option<Prior>,
    max_entities: usize,
    /// Whether the server sent its schema because ours differs.
    schema_sent: bool,
    welcome: bool,
    /// Messages that must be delivered once.
    outbox: VecDeque<Vec<u8>>,
    /// Where the report of a running audit continues.
    audit: Option<Slot>,
    consumed_input: Option<u16>,
    clock: Option<TickClock>,
    /// Removed entities that changes polled since the last [`None`] are about.
    departed: BTreeSet<EntityHandle>,
}

impl Client {
    /// A client without any state.
    pub fn new(schema: Schema, config: ClientConfig) -> Result<Self, WorldError> {
        schema.validate().map_err(WorldError::Schema)?;
        config.check()?;
        let ClientConfig {
            prior,
            tolerance,
            max_entities,
            history,
            max_state_bytes,
        } = config;
        let limits = StateLimits {
            history,
            max_state_bytes,
        };
        let config = Config::default();
        let fingerprint = schema.fingerprint();
        let shown_world = ShownWorld::new(schema.clone(), config, limits)?;
        Ok(Self {
            adapter: SchemaAdapter::new(schema, tolerance),
            fingerprint,
            world_generation: WorldGeneration::default(),
            entered: false,
            authority: AuthorityReporter::new(&shown_world, config),
            typed_out: EventCoders::new(shown_world.plain_layout().clone()),
            typed_in: EventCoders::new(shown_world.plain_layout().clone()),
            questions: 0,
            shown_world,
            inbox: Inbox::default(),
            config,
            prior,
            max_entities,
            schema_sent: false,
            welcome: false,
            outbox: VecDeque::from([Message::Hello { fingerprint }.to_bytes()]),
            audit: None,
            consumed_input: None,
            clock: None,
            departed: BTreeSet::new(),
        })
    }

    /// Prepares for a new connection that replaces a lost one. Shown entities stay until the
    /// server's [welcome](Self::is_welcome); then they are removed and the world is sent again.
    /// Events that were waiting for their tick are released now, about entities that are
    /// [`Gone`](About::Gone).
    pub fn reconnect(&mut self) {
        self.world_generation = WorldGeneration::default();
        self.inbox.cut_off();
        self.schema_sent = false;
        self.welcome = false;
        self.audit = None;
        (self.consumed_input, self.clock) = (None, None);
        self.reset_events();
        let fingerprint = self.fingerprint;
        self.outbox = VecDeque::from([Message::Hello { fingerprint }.to_bytes()]);
    }

    /// Handles a message of the server.
    pub fn handle(&mut self, message: &[u8]) -> Result<(), ClientError> {
        match Message::read(message) {
            Some(Message::World {
                world_generation,
                body,
            }) => self.handle_world_message(self.world_generation.near(world_generation), body),
            Some(Message::Schema { tolerance, schema }) => self.adapt(schema, tolerance),
            Some(Message::Welcome { settings }) => self.begin(settings),
            Some(Message::AuditRequest) => match self.audit {
                None => {
                    self.audit = Some(FIRST);
                    Ok(())
                }
                Some(_) => Err(ClientError::AuditInProgress),
            },
            Some(Message::Clock(clock)) => {
                self.clock = Some(clock);
                Ok(())
            }
            Some(Message::Hello { .. } | Message::Unreadable { .. }) | None => {
                Err(ClientError::Malformed)
            }
        }
    }

    /// Whether a megabyte of events waits to be [polled](Self::poll_change); until then, further
    /// ones are refused.
    pub fn is_full(&self) -> bool {
        self.inbox.is_full()
    }

    fn handle_world_message(
        &mut self,
        world_generation: WorldGeneration,
        body: WorldMessage<'_>,
    ) -> Result<(), ClientError> {
        let notice = match body {
            WorldMessage::State(packet) => {
                return self.apply(world_generation, packet, None);
            }
            WorldMessage::StateAfter { input, packet } => {
                return self.apply(world_generation, packet, Some(input));
            }
            WorldMessage::Applied(ack) => {
                if world_generation == self.world_generation {
                    let taken = self.authority.acknowledge(&ack);
                    taken.map_err(|_| ClientError::Malformed)?;
                }
                return Ok(());
            }
            WorldMessage::Event {
                tick,
                about,
                payload,
            } => {
                let payload = payload.to_vec();
                (tick, Notice::Event { about, payload })
            }
            WorldMessage::Authority {
                tick,
                about,
                granted,
            } => (tick, Notice::Authority { about, granted }),
            // Not read, because reading it again would break the stream.
            WorldMessage::TypedEvent { .. } if self.inbox.is_full() => {
                return Err(ClientError::Full);
            }
            WorldMessage::TypedEvent { kind, row } => self.read_typed(kind, row)?,
            WorldMessage::Entered { settings } => {
                if world_generation > self.world_generation {
                    self.adopt(settings)?;
                    self.enter(world_generation);
                }
                return Ok(());
            }
            WorldMessage::ClientEvent { .. } | WorldMessage::AuditReport { .. } => {
                return Err(ClientError::Malformed);
            }
        };
        if self.inbox.is_full() {
            return Err(ClientError::Full);
        }
        self.inbox.put(world_generation, notice.0, notice.1);
        // After a reconnect, the shown tick belongs to the previous world.
        let shown = self.tick().filter(|_| self.welcome);
        self.inbox.release(self.world_generation, shown);
        Ok(())
    }

    fn apply(
        &mut self,
        world_generation: WorldGeneration,
        packet: &[u8],
        input: Option<u16>,
    ) -> Result<(), ClientError> {
        if !self.welcome {
            return Err(ClientError::Early);
        }
        if world_generation != self.world_generation {
            return Err(ClientError::State(DecodeError::Late));
        }
        let tick = self.shown_world.apply(packet)?;
        self.consumed_input = input;
        self.inbox.release(world_generation, Some(tick));
        Ok(())
    }

    /// The last bits of the newest input tick that the shown state has consumed; `None` if it has
    /// consumed none.
    pub fn consumed_input(&self) -> Option<u16> {
        self.consumed_input
    }

    /// When ticks are due, if the server has said so.
    pub fn clock(&self) -> Option<TickClock> {
        self.clock
    }

    /// Whether the server accepted this client's schema and shows it the world.
    pub fn is_welcome(&self) -> bool {
        self.welcome
    }

    /// The acknowledgement of received state, to be sent at least once per round trip. Messages of
    /// state that arrive together should be handled before it is asked for: after that, one that
    /// was overtaken by them is not applied any more.
    pub fn acknowledgement(&mut self) -> Option<Vec<u8>> {
        if !self.welcome {
            return None;
        }
        let ack = self.shown_world.decoder.acknowledgement()?;
        Some(self.world_message(WorldMessage::Applied(ack)))
    }

    /// The next message for the server that must be delivered once and in order. Poll only as many
    /// as can be sent: the rest waits here and takes little memory.
    pub fn poll_message(&mut self) -> Option<Vec<u8>> {
        let message = self.outbox.pop_front();
        message.or_else(|| self.next_audit_report())
    }

    /// An event for the server, optionally about a visible entity. It must be delivered once, after
    /// the messages polled before. `None` if the entity is not visible.
    pub fn send_event(&self, about: Option<EntityHandle>, payload: &[u8]) -> Option<Vec<u8>> {
        let about = match about {
            Some(entity) => Some(NetEntityId(self.shown_world.entry(entity)?.entity.id)),
            None => None,
        };
        let tick = self.tick().unwrap_or_default();
        Some(self.world_message(WorldMessage::ClientEvent {
            tick,
            about,
            payload,
        }))
    }

    /// The next change, if any.
    pub fn poll_change(&mut self) -> Option<Change> {
        let change = self.next_change();
        match &change {
            Some(
                Change::Removed(entity)
                | Change::Event {
                    about: About::Entity(entity),
                    ..
                },
            ) => drop(self.departed.insert(*entity)),
            Some(_) => {}
            None => self.departed.clear(),
        }
        change
    }

    fn next_change(&mut self) -> Option<Change> {
        if std::mem::take(&mut self.entered) {
            return Some(Change::Entered);
        }
        if let Some(change) = self.shown_world.poll() {
            return Some(change);
        }
        while let Some((world_generation, tick, notice)) = self.inbox.poll() {
            // The entity may have been removed since the notice arrived.
            let is_here = world_generation == Some(self.world_generation);
            let find = |id| self.shown_world.at(id, tick).filter(|_| is_here);
            let find_any = |id| {
                self.shown_world
                    .at_or_departed(id, tick)
                    .filter(|_| is_here)
            };
            match notice {
                Notice::Event { about, payload } => {
                    let about = match about {
                        None => About::Nothing,
                        Some(id) => find_any(id).map_or(About::Gone, About::Entity),
                    };
                    return Some(Change::Event {
                        tick,
                        about,
                        payload,
                    });
                }
                Notice::Typed {
                    kind,
                    class,
                    parcel,
                } => {
                    let event = (kind, class, parcel);
                    if let Some(change) = self.typed_change(world_generation, tick, event) {
                        return Some(change);
                    }
                }
                Notice::Authority { about, granted } => {
                    if let Some(entity) = find(about) {
                        let since = self.shown_world.tick().unwrap_or_default();
                        self.authority
                            .set_authority(entity, granted, since, &self.shown_world);
                        return Some(Change::AuthorityChanged { entity, granted });
                    }
                }
            }
        }
        None
    }

    /// Whether this client has authority over an entity.
    pub fn has_authority(&self, entity: EntityHandle) -> bool {
        self.authority.has_authority(entity)
    }

    /// Sets the value of an entity over which this client has authority.
    pub fn set<T: State>(&mut self, entity: EntityHandle, value: &T) -> Result<(), SetError> {
        if self.adapter.is_foreign() {
            return Err(SetError::OtherSchema);
        }
        self.authority.set(entity, value, &self.shown_world)
    }

    /// How many values were changed by [`set`](Self::set) since the client last entered a world,
    /// because they did not fit fields that are declared `saturate`.
    pub fn saturated(&self) -> u64 {
        self.authority.saturated
    }

    /// A report of the entities over which this client has authority, in at most `budget` bytes and
    /// [`MAX_REPORT_BYTES`]; send one as often as others shall see changes. It may be lost. `None`
    /// if there is nothing to report.
    pub fn report(&mut self, budget: Option<usize>) -> Option<Vec<u8>> {
        let budget = budget.map_or(MAX_REPORT_BYTES, |budget| budget.min(MAX_REPORT_BYTES));
        let packet = self.authority.report(&self.shown_world, Some(budget))?;
        Some(self.world_message(WorldMessage::State(&packet)))
    }

    fn world_message(&self, body: WorldMessage<'_>) -> Vec<u8> {
        let world_generation = self.world_generation.bits();
        Message::World {
            world_generation,
            body,
        }
        .to_bytes()
    }

    /// Begins the streams of typed events of another connection, or by another schema.
    fn reset_events(&mut self) {
        let layout = self.shown_world.plain_layout();
        self.typed_out = EventCoders::new(layout.clone());
        self.typed_in = EventCoders::new(layout.clone());
        self.questions = 0;
    }

    fn enter(&mut self, world_generation: WorldGeneration) {
        self.world_generation = world_generation;
        self.entered = true;
        self.restart();
        self.inbox.release(world_generation, None);
    }

    /// Starts showing the world, with the server's settings.
    fn begin(&mut self, settings: Settings) -> Result<(), ClientError> {
        if self.welcome {
            return Err(ClientError::Malformed);
        }
        self.adopt(settings)?;
        self.welcome = true;
        self.restart();
        Ok(())
    }

    fn adopt(&mut self, settings: Settings) -> Result<(), ClientError> {
        let prior = self.prior.as_ref();
        let (config, prior) = settings::adopt(settings, self.max_entities, prior)?;
        self.shown_world.start_from(prior, config.profile());
        self.config = config;
        Ok(())
    }

    /// Removes all entities and resets the models.
    fn restart(&mut self) {
        self.shown_world.restart(self.config);
        self.authority = AuthorityReporter::new(&self.shown_world, self.config);
        self.audit = self.audit.map(|_| FIRST);
    }

    /// Switches to the server's schema, if it is compatible.
    fn adapt(&mut self, schema: &[u8], allows: Tolerance) -> Result<(), ClientError> {
        if self.welcome || std::mem::replace(&mut self.schema_sent, true) {
            return Err(ClientError::Malformed);
        }
        let server = self.adapter.own.read_other(schema);
        let server = server.ok().filter(ShownWorld::can_show);
        let server = server.ok_or(ClientError::Malformed)?;
        if let Err(differences) = self.adapter.adapt(&server, allows) {
            let schema = &self.adapter.own.to_bytes();
            self.outbox
                .push_back(Message::Unreadable { schema }.to_bytes());
            return Err(ClientError::Schema(differences));
        }
        let fingerprint = server.fingerprint();
        self.fingerprint = fingerprint;
        let read = self.shown_world.read_by(server, self.config);
        read.map_err(|_| ClientError::Malformed)?;
        self.reset_events();
        self.authority = AuthorityReporter::new(&self.shown_world, self.config);
        self.outbox
            .push_back(Message::Hello { fingerprint }.to_bytes());
        Ok(())
    }

    /// The next part of a requested audit report, if any.
    fn next_audit_report(&mut self) -> Option<Vec<u8>> {
        let tick_of = |id| self.shown_world.tick_of_id(id);
        let chunk = audit::write(self.shown_world.decoder.world(), self.audit?, &tick_of);
        self.audit = chunk.next;
        let (last, rows) = (chunk.next.is_none(), &chunk.rows[..]);
        Some(self.world_message(WorldMessage::AuditReport { last, rows }))
    }
}

/// Where every audit report begins.
const FIRST: Slot = Slot(0);
