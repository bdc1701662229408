//! The client: what it was shown, and what changed since it last asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use prescient_codec::{Applied, ClientId, Config, DecodeError, Decoder, Slot, Tick};
use prescient_schema::{Content, EntityRef, Library, Schema, State};
use thiserror::Error;

use crate::event::About;
use crate::kinds::{Kind, Kinds};
use crate::message::Message;
use crate::world::WorldError;

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
    /// An object appeared.
    Created(Object),
    /// An object changed.
    Updated(Object),
    /// An object left, or is no longer shown.
    Removed(Object),
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

/// Why a message was not taken. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The bytes are not a message of a server.
    #[error("not a message of a server; it runs another program or is hostile")]
    Malformed,
    /// A packet could not be applied. Those that come late are normal; the others heal by
    /// themselves, too.
    #[error(transparent)]
    State(#[from] DecodeError),
}

/// What a client was shown.
pub struct Client {
    kinds: Kinds,
    decoder: Decoder,
    /// Everything that is shown, by the number of its first table's entity.
    shown: BTreeMap<u32, Shown>,
    /// Whose the entities of further tables are, as far as that is known.
    parts: BTreeMap<u32, u32>,
    /// The same by whose they are, who may be still to come.
    belongings: BTreeSet<(u32, u32)>,
    /// Up to which tick everything was shown at last.
    complete: Option<Tick>,
    /// The newest tick of which each entity was shown by a packet that did not hold all.
    covered: Vec<Option<Tick>>,
    /// How often a number was given to an object, and when it was last taken away.
    lives: Vec<Life>,
    pending: BTreeMap<Object, Pending>,
    /// Events of ticks that were not applied yet, in the order of their ticks and then arrival.
    held: BTreeMap<(Tick, u64), Held>,
    arrived: u64,
    /// Events that can be handed out.
    events: VecDeque<(Tick, Held)>,
}

struct Shown {
    object: Object,
    kind: Kind,
    /// The entity of each table that is shown.
    entities: Vec<Option<ClientId>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Life {
    count: u32,
    ended: Option<Tick>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Created,
    Updated,
    Removed,
}

struct Held {
    about: Option<ClientId>,
    payload: Vec<u8>,
}

impl Client {
    /// A client that knows nothing but the schema.
    pub fn new(schema: Schema, config: Config) -> Result<Self, WorldError> {
        schema.validate().map_err(WorldError::Schema)?;
        let (kinds, schema) = Kinds::of(schema);
        Ok(Self {
            kinds,
            decoder: Decoder::new(Arc::new(schema), config),
            shown: BTreeMap::new(),
            parts: BTreeMap::new(),
            belongings: BTreeSet::new(),
            complete: None,
            covered: Vec::new(),
            lives: Vec::new(),
            pending: BTreeMap::new(),
            held: BTreeMap::new(),
            arrived: 0,
            events: VecDeque::new(),
        })
    }

    /// Takes what the server sent.
    pub fn handle(&mut self, message: &[u8]) -> Result<(), ClientError> {
        match Message::read(message) {
            Some(Message::State(packet)) => {
                let applied = self.decoder.decode(packet)?;
                self.follow(applied.tick);
                self.cover(&applied);
                self.release(applied.tick);
                Ok(())
            }
            Some(Message::Event {
                tick,
                about,
                payload,
            }) => {
                let payload = payload.to_vec();
                self.held
                    .insert((tick, self.arrived), Held { about, payload });
                self.arrived += 1;
                let shown = self.tick();
                // Should nothing arrive but events, they are not kept for ever.
                let early = self.held.len().checked_sub(MOST_HELD);
                let upto = early.and_then(|early| self.held.keys().nth(early));
                let upto = upto.map(|&(tick, _)| tick).max(shown);
                if let Some(upto) = upto {
                    self.release(upto);
                }
                Ok(())
            }
            Some(Message::Applied(_) | Message::Said { .. }) | None => Err(ClientError::Malformed),
        }
    }

    /// What to tell the server about what arrived, now and then and at least once per round trip.
    pub fn acknowledgement(&self) -> Option<Vec<u8>> {
        let ack = self.decoder.acknowledgement()?;
        Some(Message::Applied(ack).to_bytes())
    }

    /// A message that tells the server what happened here, perhaps to an object that is shown. It
    /// wants a carrier that delivers it once. `None` if that object is not shown.
    pub fn tell(&self, about: Option<Object>, payload: &[u8]) -> Option<Vec<u8>> {
        let about = match about {
            Some(object) => Some(ClientId(self.entry(object)?.object.id)),
            None => None,
        };
        let said = Message::Said {
            tick: self.tick().unwrap_or_default(),
            about,
            payload,
        };
        Some(said.to_bytes())
    }

    /// The next thing that is new.
    pub fn poll_change(&mut self) -> Option<Change> {
        match self.pending.pop_first() {
            Some((object, Pending::Created)) => Some(Change::Created(object)),
            Some((object, Pending::Updated)) => Some(Change::Updated(object)),
            Some((object, Pending::Removed)) => Some(Change::Removed(object)),
            None => self.events.pop_front().map(|event| self.told(event)),
        }
    }

    /// The newest tick of which something was applied.
    pub fn tick(&self) -> Option<Tick> {
        self.decoder.world().newest()
    }

    /// The newest tick of which everything was shown that there was to see.
    pub fn complete_tick(&self) -> Option<Tick> {
        self.complete
    }

    /// Everything that is shown.
    pub fn objects(&self) -> impl Iterator<Item = Object> {
        self.shown.values().map(|shown| shown.object)
    }

    /// An object as its first table has it; `None` if it is of another type or gone.
    pub fn get<T: State>(&self, object: Object) -> Option<T> {
        self.get_table(object, T::TABLES.first()?)
    }

    /// An object as a table has it; `None` if that table is not shown.
    pub fn get_table<T: State>(&self, object: Object, table: &str) -> Option<T> {
        let shown = self.entry(object)?;
        if self.kinds.find(T::NAME) != Some(shown.kind) {
            return None;
        }
        let number = T::TABLES.iter().position(|&name| name == table)?;
        T::from_row_in(table, self.row(object, number)?, self.decoder.world()).ok()
    }

    /// The name of an object's type; `None` if it is gone.
    pub fn kind_of(&self, object: Object) -> Option<&str> {
        let shown = self.entry(object)?;
        let class = usize::from(*self.kinds.tables(shown.kind).first()?);
        let schema = self.decoder.world().schema();
        schema.classes.get(class).map(|class| class.name.as_str())
    }

    /// An object as one of its tables has it, by number; `None` if that table is not shown.
    pub fn row(&self, object: Object, table: usize) -> Option<&[i64]> {
        let row = self.decoder.row(self.entity(object, table)?)?;
        // Further tables say at their end whose they are.
        row.get(..row.len() - usize::from(table > 0))
    }

    /// What the column of a container holds that a [`row`](Self::row) has this cell of; `None` if
    /// that is nothing.
    pub fn content(&self, cell: i64) -> Option<&Content> {
        self.decoder.world().content(cell)
    }

    /// The tick that a table of an object is shown as of. Where packets are too short for all,
    /// that is not the same for all.
    pub fn tick_of(&self, object: Object, table: usize) -> Option<Tick> {
        let entity = self.entity(object, table)?;
        let alone = self.covered.get(entity.0 as usize).copied().flatten();
        alone.max(self.complete)
    }

    /// The object that a reference in a value refers to; `None` if it is not there yet, or refers
    /// to nothing.
    pub fn resolve(&self, reference: EntityRef) -> Option<Object> {
        let id = reference.index()?;
        self.shown.get(&id).map(|shown| shown.object)
    }

    fn entity(&self, object: Object, table: usize) -> Option<ClientId> {
        *self.entry(object)?.entities.get(table)?
    }

    fn entry(&self, object: Object) -> Option<&Shown> {
        let shown = self.shown.get(&object.id)?;
        (shown.object == object).then_some(shown)
    }

    /// Notes what the packet of a tick changed.
    fn follow(&mut self, tick: Tick) {
        let Some(changes) = self.decoder.world().changes(tick).cloned() else {
            return;
        };
        for &Slot(id) in &changes.despawned {
            self.leave(id, tick);
        }
        for &Slot(id) in &changes.spawned {
            self.enter(id);
        }
        for &Slot(id) in changes.changed.iter().chain(&changes.spawned) {
            self.belong(id);
            let whose = self.parts.get(&id).copied().unwrap_or(id);
            if let Some(shown) = self.shown.get(&whose) {
                self.pending.entry(shown.object).or_insert(Pending::Updated);
            }
        }
    }

    /// Notes what is now shown as of the packet's tick.
    fn cover(&mut self, applied: &Applied) {
        if applied.full {
            self.complete = Some(applied.tick);
            return;
        }
        for ClientId(id) in self.decoder.covered() {
            let at = id as usize;
            if self.covered.len() <= at {
                self.covered.resize(at + 1, None);
            }
            self.covered[at] = Some(applied.tick);
        }
    }

    fn enter(&mut self, id: u32) {
        let Some((kind, 0)) = self.class(id) else {
            return;
        };
        let at = id as usize;
        if self.lives.len() <= at {
            self.lives.resize(at + 1, Life::default());
        }
        let object = Object {
            id,
            life: self.lives[at].count,
        };
        self.lives[at].count += 1;
        let mut entities = vec![None; self.kinds.tables(kind).len()];
        entities[0] = Some(ClientId(id));
        let shown = Shown {
            object,
            kind,
            entities,
        };
        self.shown.insert(id, shown);
        self.pending.insert(object, Pending::Created);
        let parts = self.belongings.range((id, 0)..=(id, u32::MAX));
        let parts: Vec<u32> = parts.map(|&(_, part)| part).collect();
        parts.into_iter().for_each(|part| self.attach(part, id));
    }

    /// Notes whose the entity of a further table is.
    fn belong(&mut self, id: u32) {
        let Some((_, 1..)) = self.class(id) else {
            return;
        };
        let row = self.decoder.row(ClientId(id)).unwrap_or_default();
        let whose = row
            .last()
            .and_then(|&cell| EntityRef::from_cell(cell)?.index());
        self.detach(id);
        let Some(whose) = whose else {
            return;
        };
        self.parts.insert(id, whose);
        self.belongings.insert((whose, id));
        self.attach(id, whose);
    }

    /// Makes the entity of a further table part of its object, if that is there.
    fn attach(&mut self, id: u32, whose: u32) {
        if let Some((kind, table)) = self.class(id)
            && let Some(shown) = self.shown.get_mut(&whose)
            && shown.kind == kind
        {
            shown.entities[usize::from(table)] = Some(ClientId(id));
        }
    }

    fn detach(&mut self, id: u32) {
        let Some(whose) = self.parts.remove(&id) else {
            return;
        };
        self.belongings.remove(&(whose, id));
        if let Some(shown) = self.shown.get_mut(&whose) {
            let entities = shown.entities.iter_mut();
            entities
                .filter(|entity| **entity == Some(ClientId(id)))
                .for_each(|entity| *entity = None);
            self.pending.entry(shown.object).or_insert(Pending::Updated);
        }
    }

    fn leave(&mut self, id: u32, tick: Tick) {
        self.detach(id);
        let Some(shown) = self.shown.remove(&id) else {
            return;
        };
        if let Some(life) = self.lives.get_mut(id as usize) {
            life.ended = Some(tick);
        }
        // Nobody need hear of what came and went unnoticed.
        match self.pending.insert(shown.object, Pending::Removed) {
            Some(Pending::Created) => {
                self.pending.remove(&shown.object);
            }
            Some(Pending::Updated | Pending::Removed) | None => {}
        }
    }

    fn class(&self, id: u32) -> Option<(Kind, u8)> {
        let class = self.decoder.world().class(Slot(id))?;
        Some(self.kinds.kind(class))
    }

    /// Hands out the events of ticks up to this one.
    fn release(&mut self, upto: Tick) {
        while let Some(entry) = self.held.first_entry()
            && entry.key().0 <= upto
        {
            let ((tick, _), held) = entry.remove_entry();
            self.events.push_back((tick, held));
        }
    }

    /// An event as it is handed out, when everything that is pending was: what it is about may have
    /// left since it arrived.
    fn told(&self, (tick, Held { about, payload }): (Tick, Held)) -> Change {
        let find = |id: ClientId| {
            // A number is given to another object only after the first has left here.
            let ended = self.lives.get(id.0 as usize).and_then(|life| life.ended);
            let shown = self.shown.get(&id.0)?;
            ended
                .is_none_or(|ended| ended < tick)
                .then_some(shown.object)
        };
        let about = match about {
            None => About::Nothing,
            Some(id) => find(id).map_or(About::Gone, About::Object),
        };
        Change::Event {
            tick,
            about,
            payload,
        }
    }
}

/// Events that wait for their tick at most.
const MOST_HELD: usize = 1024;
