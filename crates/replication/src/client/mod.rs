//! The client: what it was shown, and what changed since it last asked.

mod author;
mod inbox;
mod reading;
mod scene;

use std::collections::VecDeque;

use prescient_codec::{ClientId, Config, DecodeError, Slot, Tick};
use prescient_schema::{Content, Difference, EntityRef, Library, Schema, State, Tolerance};
use thiserror::Error;

use crate::event::About;
use crate::grid::Place;
use crate::message::{Message, Said};
use crate::settings::{self, SettingsMismatch};
use crate::stay::Stay;
use crate::testimony;
use crate::world::WorldError;

use author::Author;
pub use author::SetError;
use inbox::{Inbox, Notice};
use reading::{Reading, table_of};
use scene::Scene;

/// An object, as a client calls it. Not used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object {
    id: u32,
    /// How many objects had this number before.
    life: u32,
}

/// What is new since it was last asked; an object comes up once, however much happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The client is in another world. What it showed of the last one is removed.
    Entered,
    /// An object appeared.
    Created(Object),
    /// An object changed.
    Updated(Object),
    /// An object left, or is no longer shown.
    Removed(Object),
    /// The client is in charge of an object, or no longer: what it [`set`](Client::set)s is what
    /// everybody sees.
    Charged {
        /// The object.
        object: Object,
        /// Whether it is.
        yours: bool,
    },
    /// Something happened. Objects that were there at its tick were created before.
    Event {
        /// When, at the server.
        tick: Tick,
        /// To what.
        about: About<Object>,
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

/// Why a message was not taken. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The bytes are not a message of a server.
    #[error("not a message of a server; it runs another program or is hostile")]
    Malformed,
    /// A packet could not be applied. Those that come late are normal; the others heal by
    /// themselves, too.
    #[error(transparent)]
    State(#[from] DecodeError),
    /// State that came before the server said how it is coded. What follows makes up for it.
    #[error("state came before it is known how to read it")]
    Early,
    /// The server's schema is another, and this end cannot read by it. *Here* is the server.
    #[error("the server's schema is another: {}", Difference::list(.0))]
    Schema(Vec<Difference>),
    /// The server codes state in a way that this end cannot take over.
    #[error(transparent)]
    Settings(#[from] SettingsMismatch),
    /// The server asks what is shown before it was told the last time. It is told once.
    #[error("the server asks again before it was answered")]
    AskedAgain,
}

/// What a client was shown.
///
/// [`handle`](Self::handle) whatever arrives, send what [`poll_message`](Self::poll_message) returns
/// so that it arrives once and in order, and an [`acknowledgement`](Self::acknowledgement) whenever
/// state arrived; [`poll_change`](Self::poll_change) to hear what is new.
pub struct Client {
    reading: Reading,
    stay: Stay,
    entered: bool,
    scene: Scene,
    inbox: Inbox,
    author: Author,
    /// How state is coded, once the server said so.
    config: Config,
    max_entities: usize,
    /// Whether the server answered that its schema is another.
    corrected: bool,
    welcome: bool,
    /// Messages that are to be delivered once.
    outbox: VecDeque<Vec<u8>>,
    /// Where the answer to the server's question goes on.
    testimony: Option<Slot>,
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
        let scene = Scene::new(schema.clone(), config);
        Ok(Self {
            reading: Reading::new(schema, tolerance),
            stay: Stay::default(),
            entered: false,
            author: Author::new(&scene, config),
            scene,
            inbox: Inbox::default(),
            config,
            max_entities,
            corrected: false,
            welcome: false,
            outbox: VecDeque::from([Message::Hello { fingerprint }.to_bytes()]),
            testimony: None,
        })
    }

    /// Takes what the server sent.
    pub fn handle(&mut self, message: &[u8]) -> Result<(), ClientError> {
        match Message::read(message) {
            Some(Message::Here { stay, said }) => self.hear(self.stay.near(stay), said),
            Some(Message::Schema { tolerance, schema }) => self.adapt(schema, tolerance),
            Some(Message::Welcome { config }) => self.begin(config),
            Some(Message::Question) => match self.testimony {
                None => {
                    self.testimony = Some(FIRST);
                    Ok(())
                }
                Some(_) => Err(ClientError::AskedAgain),
            },
            Some(Message::Hello { .. } | Message::Unreadable { .. }) | None => {
                Err(ClientError::Malformed)
            }
        }
    }

    fn hear(&mut self, stay: Stay, said: Said<'_>) -> Result<(), ClientError> {
        let notice = match said {
            Said::State(packet) => {
                if !self.welcome {
                    return Err(ClientError::Early);
                }
                if stay != self.stay {
                    return Err(ClientError::State(DecodeError::Late));
                }
                let tick = self.scene.apply(packet)?;
                self.inbox.release(stay, Some(tick));
                return Ok(());
            }
            Said::Applied(ack) => {
                if stay == self.stay {
                    let taken = self.author.acknowledge(&ack);
                    taken.map_err(|_| ClientError::Malformed)?;
                }
                return Ok(());
            }
            Said::Event {
                tick,
                about,
                payload,
            } => {
                let payload = payload.to_vec();
                (tick, Notice::Event { about, payload })
            }
            Said::Charge { tick, about, yours } => (tick, Notice::Charge { about, yours }),
            Said::Entered { config } => {
                if stay > self.stay {
                    self.config = settings::adopt(config, self.max_entities)?;
                    self.enter(stay);
                }
                return Ok(());
            }
            Said::Told { .. } | Said::Testimony { .. } => return Err(ClientError::Malformed),
        };
        self.inbox.put(stay, notice.0, notice.1);
        self.inbox.release(self.stay, self.tick());
        Ok(())
    }

    /// Whether the server knows that this client reads by the right schema, and shows it the world.
    pub fn is_welcome(&self) -> bool {
        self.welcome
    }

    /// What to tell the server about what arrived, now and then and at least once per round trip.
    pub fn acknowledgement(&self) -> Option<Vec<u8>> {
        let ack = self.scene.decoder.acknowledgement()?;
        Some(self.here(Said::Applied(ack)))
    }

    /// The next message for the server that wants a carrier that delivers it once and in order. What
    /// there is no room for can be polled later: little waits in here.
    pub fn poll_message(&mut self) -> Option<Vec<u8>> {
        let message = self.outbox.pop_front();
        message.or_else(|| self.testify())
    }

    /// A message that tells the server what happened here, perhaps to an object that is shown. It
    /// wants a carrier that delivers it once, after what was polled. `None` if that object is not
    /// shown.
    pub fn tell(&self, about: Option<Object>, payload: &[u8]) -> Option<Vec<u8>> {
        let about = match about {
            Some(object) => Some(ClientId(self.scene.entry(object)?.object.id)),
            None => None,
        };
        let tick = self.tick().unwrap_or_default();
        Some(self.here(Said::Told {
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
        if let Some(change) = self.scene.poll() {
            return Some(change);
        }
        while let Some((stay, tick, notice)) = self.inbox.poll() {
            // What it is about may have left since it arrived.
            let find = |id| {
                let here = (stay == self.stay).then_some(id)?;
                self.scene.at(here, tick)
            };
            match notice {
                Notice::Event { about, payload } => {
                    let about = match about {
                        None => About::Nothing,
                        Some(id) => find(id).map_or(About::Gone, About::Object),
                    };
                    return Some(Change::Event {
                        tick,
                        about,
                        payload,
                    });
                }
                Notice::Charge { about, yours } => {
                    if let Some(object) = find(about) {
                        let since = self.scene.tick().unwrap_or_default();
                        self.author.charge(object, yours, since);
                        return Some(Change::Charged { object, yours });
                    }
                }
            }
        }
        None
    }

    /// The newest tick of which something was applied.
    pub fn tick(&self) -> Option<Tick> {
        self.scene.tick()
    }

    /// The newest tick of which everything was shown that there was to see.
    pub fn complete_tick(&self) -> Option<Tick> {
        self.scene.complete_tick()
    }

    /// Everything that is shown.
    pub fn objects(&self) -> impl Iterator<Item = Object> {
        self.scene.objects()
    }

    /// An object as its first table has it; `None` if it is of another type or gone.
    pub fn get<T: State>(&self, object: Object) -> Option<T> {
        self.get_table(object, T::TABLES.first()?)
    }

    /// An object as a table has it; `None` if that table is not shown. What this client is in
    /// charge of is as it was last [`set`](Self::set).
    pub fn get_table<T: State>(&self, object: Object, table: &str) -> Option<T> {
        let (kind, number) = table_of::<T>(self.scene.kinds(), table)?;
        if self.scene.entry(object)?.kind != kind {
            return None;
        }
        if let Some(parcel) = self.author.latest(object, number) {
            return T::from_row_in(table, &parcel.row, parcel).ok();
        }
        let row = self.scene.row(object, usize::from(number))?;
        let class = self.scene.kinds().tables(kind)[usize::from(number)];
        let library = self.scene.decoder.world();
        self.reading.value(table, class, row, library)
    }

    /// The name of an object's type; `None` if it is gone.
    pub fn kind_of(&self, object: Object) -> Option<&str> {
        let kind = self.scene.entry(object)?.kind;
        let class = usize::from(*self.scene.kinds().tables(kind).first()?);
        let schema = self.scene.decoder.world().schema();
        schema.classes.get(class).map(|class| class.name.as_str())
    }

    /// An object as one of its tables has it, by number, in the columns of the server's schema;
    /// `None` if that table is not shown.
    pub fn row(&self, object: Object, table: usize) -> Option<&[i64]> {
        self.scene.row(object, table)
    }

    /// What the column of a container holds that a [`row`](Self::row) has this cell of; `None` if
    /// that is nothing.
    pub fn content(&self, cell: i64) -> Option<&Content> {
        self.scene.decoder.world().content(cell)
    }

    /// The tick that a table of an object is shown as of. Where packets are too short for all,
    /// that is not the same for all.
    pub fn tick_of(&self, object: Object, table: usize) -> Option<Tick> {
        self.scene.tick_of(object, table)
    }

    /// Where an object is as seen from another, both as they are shown: exact however far both are
    /// from the origin of the world. `None` if one of them is gone or has no position, or they
    /// count theirs in different steps.
    pub fn offset(&self, object: Object, from: Object) -> Option<Place> {
        let coordinates = |object: Object| {
            let kind = self.scene.entry(object)?.kind;
            let class = usize::from(self.scene.kinds().tables(kind)[0]);
            let class = &self.scene.decoder.world().schema().classes[class];
            let row = match self.author.latest(object, 0) {
                Some(parcel) => &parcel.row,
                None => self.scene.row(object, 0)?,
            };
            let fields = class.position.iter().map(|&field| usize::from(field));
            let pairs: Option<Vec<_>> = fields
                .map(|field| Some((row.get(field)?, class.fields.get(field)?.kind.unit()?)))
                .collect();
            pairs
        };
        let (object, from) = (coordinates(object)?, coordinates(from)?);
        if object.is_empty() || object.len() != from.len() {
            return None;
        }
        let mut offset = Place::default();
        for (axis, ((to, unit), (from, other))) in
            offset.0.iter_mut().zip(object.into_iter().zip(from))
        {
            if unit != other {
                return None;
            }
            *axis = unit.value(to.wrapping_sub(*from));
        }
        Some(offset)
    }

    /// The object that a reference in a value refers to; `None` if it is not there yet, or refers
    /// to nothing.
    pub fn resolve(&self, reference: EntityRef) -> Option<Object> {
        self.scene.by_number(reference.index()?)
    }

    /// What a reference to an object is, to be put into a value or an event's own bytes.
    pub fn reference(&self, object: Object) -> Option<EntityRef> {
        self.scene.entry(object)?;
        Some(EntityRef::new(object.id, 0))
    }

    /// Whether this client is in charge of an object.
    pub fn is_in_charge(&self, object: Object) -> bool {
        self.author.is_in_charge(object)
    }

    /// An object that this client is in charge of is like this now.
    pub fn set<T: State>(&mut self, object: Object, value: &T) -> Result<(), SetError> {
        if self.reading.is_foreign() {
            return Err(SetError::OtherSchema);
        }
        self.author.set(object, value, &self.scene)
    }

    /// What to tell the server about everything that this client is in charge of, in no more than
    /// `budget` bytes, as often as others shall see it move. May get lost. `None` if it is in
    /// charge of nothing, or was never said to be like anything.
    pub fn report(&mut self, budget: Option<usize>) -> Option<Vec<u8>> {
        let packet = self.author.report(&self.scene, budget)?;
        Some(self.here(Said::State(&packet)))
    }

    fn here(&self, said: Said<'_>) -> Vec<u8> {
        let stay = self.stay.bits();
        Message::Here { stay, said }.to_bytes()
    }

    fn enter(&mut self, stay: Stay) {
        self.stay = stay;
        self.entered = true;
        self.restart();
        self.inbox.release(stay, None);
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
        self.scene.restart(self.config);
        self.author = Author::new(&self.scene, self.config);
        self.testimony = self.testimony.map(|_| FIRST);
    }

    /// The server has another schema than we said.
    fn adapt(&mut self, schema: &[u8], allows: Tolerance) -> Result<(), ClientError> {
        if self.welcome || std::mem::replace(&mut self.corrected, true) {
            return Err(ClientError::Malformed);
        }
        let server = self.reading.own.read_other(schema);
        let server = server.map_err(|_| ClientError::Malformed)?;
        if let Err(differences) = self.reading.adapt(&server, allows) {
            let schema = &self.reading.own.to_bytes();
            self.outbox
                .push_back(Message::Unreadable { schema }.to_bytes());
            return Err(ClientError::Schema(differences));
        }
        let fingerprint = server.fingerprint();
        self.scene = Scene::new(server, self.config);
        self.author = Author::new(&self.scene, self.config);
        self.outbox
            .push_back(Message::Hello { fingerprint }.to_bytes());
        Ok(())
    }

    /// The next part of the answer to a question, if there was one.
    fn testify(&mut self) -> Option<Vec<u8>> {
        let tick_of = |id| self.scene.entity_tick(id);
        let part = testimony::write(self.scene.decoder.world(), self.testimony?, &tick_of);
        self.testimony = part.next;
        let (last, rows) = (part.next.is_none(), &part.rows[..]);
        Some(self.here(Said::Testimony { last, rows }))
    }
}

/// Where every testimony begins.
const FIRST: Slot = Slot(0);
