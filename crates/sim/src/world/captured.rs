//! A world in an archive, as the codec encodes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use prescient_codec::history::{Archive, CaptureError};
use prescient_codec::{HISTORY, Slot, Tick};
use prescient_schema::Schema;

use super::{TickChanges, TickUpdate, World};

/// A world whose ticks are captured into an archive.
pub struct CapturedWorld {
    world: World,
    archive: Archive,
    slots: BTreeMap<u64, Slot>,
    ids: BTreeMap<Slot, u64>,
}

impl CapturedWorld {
    /// An empty world.
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            world: World::default(),
            archive: Archive::new(schema, HISTORY),
            slots: BTreeMap::new(),
            ids: BTreeMap::new(),
        }
    }

    /// Applies and captures a tick.
    pub fn apply(&mut self, update: TickUpdate) -> Result<TickChanges, CaptureError> {
        let changes = self.world.apply(update);
        let mut capture = self.archive.begin(Tick(changes.tick))?;
        for id in changes.despawned.iter().chain(&changes.spawned) {
            if let Some(slot) = self.slots.remove(id) {
                self.ids.remove(&slot);
                capture.despawn(slot)?;
            }
        }
        for &id in &changes.spawned {
            if let Some(entity) = self.world.get(id) {
                let slot = capture.spawn(entity.class, &entity.row)?;
                self.slots.insert(id, slot);
                self.ids.insert(slot, id);
            }
        }
        for id in &changes.changed {
            if let (Some(&slot), Some(entity)) = (self.slots.get(id), self.world.get(*id)) {
                capture.write(slot, &entity.row)?;
            }
        }
        capture.finish();
        Ok(changes)
    }

    /// The present state.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The recent ticks.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The world's id of an entity in the archive.
    pub fn id(&self, slot: Slot) -> Option<u64> {
        self.ids.get(&slot).copied()
    }
}
