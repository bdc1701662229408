//! The client: what it was shown, and what changed since it last asked.

mod author;
mod error;
mod inbox;
mod picture;
mod reading;
mod scene;

use std::collections::VecDeque;

use prescient_codec::{ClientId, Config, DecodeError, Slot, Tick};
use prescient_schema::{Fingerprint, Schema, State, Tolerance};

use crate::event::About;
use crate::message::{Message, Said};
use crate::server::MAX_REPORT_BYTES;
use crate::settings;
use crate::stay::Stay;
use crate::testimony;
use crate::world::WorldError;

use author::Author;
pub use author::SetError;
pub use error::ClientError;
use inbox::{Inbox, Notice};
use reading::Reading;
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

/// What a client was shown.
///
/// [`handle`](Self::handle) whatever arrives, send what [`poll_message`](Self::poll_message) returns
/// so that it arrives once and in order, and an [`acknowledgement`](Self::acknowledgement) whenever
/// state arrived; [`poll_change`](Self::poll_change) to hear what is new.
pub struct Client {
    reading: Reading,
    /// Fingerprint of the schema by which state is read, as the server is told.
    fingerprint: Fingerprint,
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
            fingerprint,
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

    /// Greets a server again, over a new connection in place of one that was lost. What is shown
    /// stays until that server's [welcome](Self::is_welcome); then it is removed, and the world
    /// appears anew. Events that were waiting for their tick are handed out now, about objects that
    /// are [`Gone`](About::Gone).
    pub fn reconnect(&mut self) {
        self.stay = Stay::default();
        self.inbox.cut_off();
        self.corrected = false;
        self.welcome = false;
        self.testimony = None;
        let fingerprint = self.fingerprint;
        self.outbox = VecDeque::from([Message::Hello { fingerprint }.to_bytes()]);
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

    /// Whether a megabyte of events waits to be [polled](Self::poll_change): until then, further
    /// ones are refused.
    pub fn is_full(&self) -> bool {
        self.inbox.is_full()
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
        if self.inbox.is_full() {
            return Err(ClientError::Full);
        }
        self.inbox.put(stay, notice.0, notice.1);
        // What is still shown after a reconnect is of another world's ticks.
        let shown = self.tick().filter(|_| self.welcome);
        self.inbox.release(self.stay, shown);
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
                let here = (stay == Some(self.stay)).then_some(id)?;
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
                        self.author.charge(object, yours, since, &self.scene);
                        return Some(Change::Charged { object, yours });
                    }
                }
            }
        }
        None
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
    /// `budget` bytes and [`MAX_REPORT_BYTES`], as often as others shall see it move. May get lost.
    /// `None` if it is in charge of nothing, or was never said to be like anything.
    pub fn report(&mut self, budget: Option<usize>) -> Option<Vec<u8>> {
        let budget = budget.map_or(MAX_REPORT_BYTES, |budget| budget.min(MAX_REPORT_BYTES));
        let packet = self.author.report(&self.scene, Some(budget))?;
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
        self.fingerprint = fingerprint;
        self.scene.read_by(server, self.config);
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
