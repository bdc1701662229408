//! The client: what it was shown, and what changed since it last asked.

mod authority;
mod error;
mod inbox;
mod query;
mod schema_adapter;
mod shown_world;

use std::collections::VecDeque;

use prescient_codec::{Config, DecodeError, NetEntityId, Slot, Tick};
use prescient_schema::{Fingerprint, Schema, State, Tolerance};

use crate::audit;
use crate::event::About;
use crate::message::{Message, WorldMessage};
use crate::server::MAX_REPORT_BYTES;
use crate::settings;
use crate::world::WorldError;
use crate::world_generation::WorldGeneration;

use authority::AuthorityReporter;
pub use authority::SetError;
pub use error::ClientError;
use inbox::{Inbox, Notice};
use schema_adapter::SchemaAdapter;
use shown_world::ShownWorld;

/// An entity, as a client calls it. Not used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityHandle {
    id: u32,
    /// How many entities had this number before.
    generation: u32,
}

/// What is new since it was last asked; an entity comes up once, however much happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The client is in another world. What it showed of the last one is removed.
    Entered,
    /// An entity appeared.
    Created(EntityHandle),
    /// An entity changed.
    Updated(EntityHandle),
    /// An entity left, or is no longer shown.
    Removed(EntityHandle),
    /// The client is in charge of an entity, or no longer: what it [`set`](Client::set)s is what
    /// everybody sees.
    AuthorityChanged {
        /// The entity.
        entity: EntityHandle,
        /// Whether it is.
        granted: bool,
    },
    /// Something happened. Entities that were there at its tick were created before.
    Event {
        /// When, at the server.
        tick: Tick,
        /// To what.
        about: About<EntityHandle>,
        /// What, in the program's own words.
        payload: Vec<u8>,
    },
}

/// What a client does by default. How state is coded is the server's to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Whether what a server with another schema shows is read, as far as both tolerate it.
    pub tolerance: Tolerance,
    /// Entities that it is willing to hold. A server that may show more is refused.
    pub max_entities: usize,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            tolerance: Tolerance::Exact,
            max_entities: Config::default().max_entities,
        }
    }
}

/// What a client was shown.
///
/// [`handle`](Self::handle) whatever arrives, send what [`poll_message`](Self::poll_message) returns
/// so that it arrives once and in order, and an [`acknowledgement`](Self::acknowledgement) whenever
/// state arrived; [`poll_change`](Self::poll_change) to hear what is new.
pub struct Client {
    adapter: SchemaAdapter,
    /// Fingerprint of the schema by which state is read, as the server is told.
    fingerprint: Fingerprint,
    world_generation: WorldGeneration,
    entered: bool,
    shown_world: ShownWorld,
    inbox: Inbox,
    authority: AuthorityReporter,
    /// How state is coded, once the server said so.
    config: Config,
    max_entities: usize,
    /// Whether the server answered that its schema is another.
    schema_sent: bool,
    welcome: bool,
    /// Messages that are to be delivered once.
    outbox: VecDeque<Vec<u8>>,
    /// Where the answer to the server's question goes on.
    audit: Option<Slot>,
}

impl Client {
    /// A client that knows nothing but the schema.
    pub fn new(schema: Schema, config: ClientConfig) -> Result<Self, WorldError> {
        schema.validate().map_err(WorldError::Schema)?;
        let ClientConfig {
            tolerance,
            max_entities,
        } = config;
        let config = Config::default();
        let fingerprint = schema.fingerprint();
        let shown_world = ShownWorld::new(schema.clone(), config);
        Ok(Self {
            adapter: SchemaAdapter::new(schema, tolerance),
            fingerprint,
            world_generation: WorldGeneration::default(),
            entered: false,
            authority: AuthorityReporter::new(&shown_world, config),
            shown_world,
            inbox: Inbox::default(),
            config,
            max_entities,
            schema_sent: false,
            welcome: false,
            outbox: VecDeque::from([Message::Hello { fingerprint }.to_bytes()]),
            audit: None,
        })
    }

    /// Greets a server again, over a new connection in place of one that was lost. What is shown
    /// stays until that server's [welcome](Self::is_welcome); then it is removed, and the world
    /// appears anew. Events that were waiting for their tick are handed out now, about entities that
    /// are [`Gone`](About::Gone).
    pub fn reconnect(&mut self) {
        self.world_generation = WorldGeneration::default();
        self.inbox.cut_off();
        self.schema_sent = false;
        self.welcome = false;
        self.audit = None;
        let fingerprint = self.fingerprint;
        self.outbox = VecDeque::from([Message::Hello { fingerprint }.to_bytes()]);
    }

    /// Takes what the server sent.
    pub fn handle(&mut self, message: &[u8]) -> Result<(), ClientError> {
        match Message::read(message) {
            Some(Message::World {
                world_generation,
                body,
            }) => self.handle_world_message(self.world_generation.near(world_generation), body),
            Some(Message::Schema { tolerance, schema }) => self.adapt(schema, tolerance),
            Some(Message::Welcome { config }) => self.begin(config),
            Some(Message::AuditRequest) => match self.audit {
                None => {
                    self.audit = Some(FIRST);
                    Ok(())
                }
                Some(_) => Err(ClientError::AuditInProgress),
            },
            Some(Message::Hello { .. } | Message::Unreadable { .. }) | None => {
                Err(ClientError::Malformed)
            }
        }
    }

    /// Whether a megabyte of events waits to be [polled](Self::poll_change): until then, further
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
                if !self.welcome {
                    return Err(ClientError::Early);
                }
                if world_generation != self.world_generation {
                    return Err(ClientError::State(DecodeError::Late));
                }
                let tick = self.shown_world.apply(packet)?;
                self.inbox.release(world_generation, Some(tick));
                return Ok(());
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
            WorldMessage::Entered { config } => {
                if world_generation > self.world_generation {
                    self.config = settings::adopt(config, self.max_entities)?;
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
        // What is still shown after a reconnect is of another world's ticks.
        let shown = self.tick().filter(|_| self.welcome);
        self.inbox.release(self.world_generation, shown);
        Ok(())
    }

    /// Whether the server knows that this client reads by the right schema, and shows it the world.
    pub fn is_welcome(&self) -> bool {
        self.welcome
    }

    /// What to tell the server about what arrived, now and then and at least once per round trip.
    pub fn acknowledgement(&self) -> Option<Vec<u8>> {
        if !self.welcome {
            return None;
        }
        let ack = self.shown_world.decoder.acknowledgement()?;
        Some(self.world_message(WorldMessage::Applied(ack)))
    }

    /// The next message for the server that wants a carrier that delivers it once and in order. What
    /// there is no room for can be polled later: little waits in here.
    pub fn poll_message(&mut self) -> Option<Vec<u8>> {
        let message = self.outbox.pop_front();
        message.or_else(|| self.next_audit_report())
    }

    /// A message that tells the server what happened here, perhaps to an entity that is shown. It
    /// wants a carrier that delivers it once, after what was polled. `None` if that entity is not
    /// shown.
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

    /// The next thing that is new.
    pub fn poll_change(&mut self) -> Option<Change> {
        if std::mem::take(&mut self.entered) {
            return Some(Change::Entered);
        }
        if let Some(change) = self.shown_world.poll() {
            return Some(change);
        }
        while let Some((world_generation, tick, notice)) = self.inbox.poll() {
            // What it is about may have left since it arrived.
            let find = |id| {
                let here = (world_generation == Some(self.world_generation)).then_some(id)?;
                self.shown_world.at(here, tick)
            };
            match notice {
                Notice::Event { about, payload } => {
                    let about = match about {
                        None => About::Nothing,
                        Some(id) => find(id).map_or(About::Gone, About::Entity),
                    };
                    return Some(Change::Event {
                        tick,
                        about,
                        payload,
                    });
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

    /// Whether this client is in charge of an entity.
    pub fn has_authority(&self, entity: EntityHandle) -> bool {
        self.authority.has_authority(entity)
    }

    /// An entity that this client is in charge of is like this now.
    pub fn set<T: State>(&mut self, entity: EntityHandle, value: &T) -> Result<(), SetError> {
        if self.adapter.is_foreign() {
            return Err(SetError::OtherSchema);
        }
        self.authority.set(entity, value, &self.shown_world)
    }

    /// What to tell the server about everything that this client is in charge of, in no more than
    /// `budget` bytes and [`MAX_REPORT_BYTES`], as often as others shall see it move. May get lost.
    /// `None` if it is in charge of nothing, or was never said to be like anything.
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

    fn enter(&mut self, world_generation: WorldGeneration) {
        self.world_generation = world_generation;
        self.entered = true;
        self.restart();
        self.inbox.release(world_generation, None);
    }

    /// The server shows us the world from now on, coded like this.
    fn begin(&mut self, config: Config) -> Result<(), ClientError> {
        if self.welcome {
            return Err(ClientError::Malformed);
        }
        self.config = settings::adopt(config, self.max_entities)?;
        self.welcome = true;
        self.restart();
        Ok(())
    }

    /// Nothing is shown any more, and nothing was learned.
    fn restart(&mut self) {
        self.shown_world.restart(self.config);
        self.authority = AuthorityReporter::new(&self.shown_world, self.config);
        self.audit = self.audit.map(|_| FIRST);
    }

    /// The server has another schema than we said.
    fn adapt(&mut self, schema: &[u8], allows: Tolerance) -> Result<(), ClientError> {
        if self.welcome || std::mem::replace(&mut self.schema_sent, true) {
            return Err(ClientError::Malformed);
        }
        let server = self.adapter.own.read_other(schema);
        let server = server.map_err(|_| ClientError::Malformed)?;
        if let Err(differences) = self.adapter.adapt(&server, allows) {
            let schema = &self.adapter.own.to_bytes();
            self.outbox
                .push_back(Message::Unreadable { schema }.to_bytes());
            return Err(ClientError::Schema(differences));
        }
        let fingerprint = server.fingerprint();
        self.fingerprint = fingerprint;
        self.shown_world.read_by(server, self.config);
        self.authority = AuthorityReporter::new(&self.shown_world, self.config);
        self.outbox
            .push_back(Message::Hello { fingerprint }.to_bytes());
        Ok(())
    }

    /// The next part of the answer to a question, if there was one.
    fn next_audit_report(&mut self) -> Option<Vec<u8>> {
        let tick_of = |id| self.shown_world.tick_of_id(id);
        let chunk = audit::write(self.shown_world.decoder.world(), self.audit?, &tick_of);
        self.audit = chunk.next;
        let (last, rows) = (chunk.next.is_none(), &chunk.rows[..]);
        Some(self.world_message(WorldMessage::AuditReport { last, rows }))
    }
}

/// Where every testimony begins.
const FIRST: Slot = Slot(0);
