//! The state of every tick, and its sources.
//!
//! A [`Source`] yields [`TickUpdate`]s; a [`World`] applies them. Recorded traces and synthetic
//! worlds have the same interface, so every method and every test runs on both.

mod captured;
mod idle;
mod particles;
mod rts;
mod script;
mod source;
mod steady;
mod view;
mod walkers;

use std::{collections::BTreeMap, sync::Arc};

pub use captured::CapturedWorld;
pub use idle::Idle;
pub use particles::Particles;
pub use prescient_links::Random;
pub use rts::Rts;
pub use script::{Scene, Script};
pub use source::{Recording, Source, SourceError, WorldSpec, open};
pub use steady::Steady;
pub use view::View;
pub use walkers::Walkers;

/// The changes of one tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TickUpdate {
    /// Strictly increasing.
    pub tick: u64,
    /// Despawned entities.
    pub despawns: Vec<u64>,
    /// Spawned entities.
    pub spawns: Vec<Spawn>,
    /// Living entities with changed fields.
    pub changes: Vec<Change>,
}

impl TickUpdate {
    /// An empty update.
    pub fn at(tick: u64) -> Self {
        Self {
            tick,
            ..Self::default()
        }
    }
}

/// A spawned entity with its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// Must not be alive.
    pub id: u64,
    /// Index into the schema's classes.
    pub class: u16,
    /// One value per field.
    pub row: Vec<i64>,
}

/// Changed fields of a living entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Must be alive.
    pub id: u64,
    /// Field number and new value.
    pub values: Vec<(u16, i64)>,
}

/// An entity's state. The row is shared: keeping a past tick costs only what changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Index into the schema's classes.
    pub class: u16,
    /// One value per field.
    pub row: Arc<[i64]>,
}

/// The ids that one tick touched, ascending, so that a sender can skip the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TickChanges {
    /// The tick.
    pub tick: u64,
    /// Entities that did not exist before (or despawned and respawned within this tick).
    pub spawned: Vec<u64>,
    /// Entities that existed and have at least one new value.
    pub changed: Vec<u64>,
    /// Despawned entities.
    pub despawned: Vec<u64>,
}

/// The current state.
#[derive(Clone, Debug, Default)]
pub struct World {
    entities: BTreeMap<u64, Entity>,
}

impl World {
    /// Applies one tick. Changes and despawns of ids that are not alive are ignored: the source has
    /// already validated them, where their line number was known.
    pub fn apply(&mut self, update: TickUpdate) -> TickChanges {
        let mut changes = TickChanges {
            tick: update.tick,
            ..TickChanges::default()
        };
        for id in update.despawns {
            if self.entities.remove(&id).is_some() {
                changes.despawned.push(id);
            }
        }
        for Spawn { id, class, row } in update.spawns {
            self.entities.insert(
                id,
                Entity {
                    class,
                    row: row.into(),
                },
            );
            changes.spawned.push(id);
        }
        for Change { id, values } in update.changes {
            let Some(entity) = self.entities.get_mut(&id) else {
                continue;
            };
            let row = Arc::make_mut(&mut entity.row);
            let mut differs = false;
            for (field, value) in values {
                if let Some(slot) = row.get_mut(usize::from(field)) {
                    differs |= *slot != value;
                    *slot = value;
                }
            }
            if differs {
                changes.changed.push(id);
            }
        }
        changes.spawned.sort_unstable();
        changes.despawned.sort_unstable();
        changes.changed.sort_unstable();
        changes.changed.dedup();
        changes
            .changed
            .retain(|id| changes.spawned.binary_search(id).is_err());
        changes
    }

    /// The entity, if it is alive.
    pub fn get(&self, id: u64) -> Option<&Entity> {
        self.entities.get(&id)
    }

    /// All entities by ascending id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, &Entity)> {
        self.entities.iter().map(|(&id, entity)| (id, entity))
    }

    /// Number of living entities.
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Whether no entity is alive.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }
}
