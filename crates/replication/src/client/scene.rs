//! What a client shows, and what changed in it since a program last asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use prescient_codec::{Applied, ClientId, Config, DecodeError, Decoder, Slot, Tick};
use prescient_schema::{EntityRef, Schema};

use super::{Change, Object};
use crate::kinds::{Kind, Kinds};

/// What is shown of one world after the other.
pub(super) struct Scene {
    kinds: Kinds,
    pub decoder: Decoder,
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
    /// How often a number was given to an object, and when it was last taken away in this world.
    lives: Vec<Life>,
    pending: BTreeMap<Object, Pending>,
}

pub(super) struct Shown {
    pub object: Object,
    pub kind: Kind,
    /// The entity of each table that is shown.
    pub entities: Vec<Option<ClientId>>,
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

impl Scene {
    pub fn new(schema: Schema, config: Config) -> Self {
        let (kinds, schema) = Kinds::of(schema);
        Self {
            kinds,
            decoder: Decoder::new(Arc::new(schema), config),
            shown: BTreeMap::new(),
            parts: BTreeMap::new(),
            belongings: BTreeSet::new(),
            complete: None,
            covered: Vec::new(),
            lives: Vec::new(),
            pending: BTreeMap::new(),
        }
    }

    /// Shows another world from now on, coded like this.
    pub fn restart(&mut self, config: Config) {
        let tick = self.tick().unwrap_or_default();
        while let Some((&id, _)) = self.shown.first_key_value() {
            self.leave(id, tick);
        }
        self.parts.clear();
        self.belongings.clear();
        self.complete = None;
        self.covered.clear();
        self.lives.iter_mut().for_each(|life| life.ended = None);
        let schema = self.decoder.world().schema().clone();
        self.decoder = Decoder::new(schema, config);
    }

    /// Shows a world of another schema from now on. What was shown is removed.
    pub fn read_by(&mut self, schema: Schema, config: Config) {
        self.restart(config);
        let (kinds, schema) = Kinds::of(schema);
        self.kinds = kinds;
        self.decoder = Decoder::new(Arc::new(schema), config);
    }

    pub fn apply(&mut self, packet: &[u8]) -> Result<Tick, DecodeError> {
        let applied = self.decoder.decode(packet)?;
        self.follow(applied.tick);
        self.cover(&applied);
        Ok(applied.tick)
    }

    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    pub fn tick(&self) -> Option<Tick> {
        self.decoder.world().newest()
    }

    pub fn complete_tick(&self) -> Option<Tick> {
        self.complete
    }

    pub fn objects(&self) -> impl Iterator<Item = Object> {
        self.shown.values().map(|shown| shown.object)
    }

    pub fn entry(&self, object: Object) -> Option<&Shown> {
        let shown = self.shown.get(&object.id)?;
        (shown.object == object).then_some(shown)
    }

    /// The object that has a number now.
    pub fn by_number(&self, id: u32) -> Option<Object> {
        self.shown.get(&id).map(|shown| shown.object)
    }

    /// The object that had a number at a tick, if it is still shown: a number is given to another
    /// object only after the first has left here.
    pub fn at(&self, id: ClientId, tick: Tick) -> Option<Object> {
        let ended = self.lives.get(id.0 as usize).and_then(|life| life.ended);
        let object = self.by_number(id.0)?;
        ended.is_none_or(|ended| ended < tick).then_some(object)
    }

    /// The row of an object in a table, without the column that says whose it is.
    pub fn row(&self, object: Object, table: usize) -> Option<&[i64]> {
        let row = self.decoder.row(self.entity(object, table)?)?;
        row.get(..row.len() - usize::from(table > 0))
    }

    /// The tick that a table of an object is shown as of.
    pub fn tick_of(&self, object: Object, table: usize) -> Option<Tick> {
        self.entity_tick(self.entity(object, table)?)
    }

    /// The tick that an entity is shown as of.
    pub fn entity_tick(&self, entity: ClientId) -> Option<Tick> {
        let alone = self.covered.get(entity.0 as usize).copied().flatten();
        alone.max(self.complete)
    }

    fn entity(&self, object: Object, table: usize) -> Option<ClientId> {
        *self.entry(object)?.entities.get(table)?
    }

    pub fn poll(&mut self) -> Option<Change> {
        Some(match self.pending.pop_first()? {
            (object, Pending::Created) => Change::Created(object),
            (object, Pending::Updated) => Change::Updated(object),
            (object, Pending::Removed) => Change::Removed(object),
        })
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
}
