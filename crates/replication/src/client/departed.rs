//! The last states of entities that were removed.

use std::collections::{BTreeMap, VecDeque};

use prescient_codec::{LastRow, Tick};

use super::EntityHandle;
use crate::entity_types::EntityType;

/// Removed entities: those whose removal was not reported yet, and the last few of the others, for
/// events that are late.
#[derive(Default)]
pub(super) struct DepartedEntities {
    departed: BTreeMap<EntityHandle, Departed>,
    /// Those whose removal was reported, the earliest first.
    reported: VecDeque<EntityHandle>,
    reported_bytes: usize,
}

/// A removed entity.
pub(super) struct Departed {
    pub entity_type: EntityType,
    /// Its last row in each table that was visible.
    pub tables: Vec<Option<LastRow>>,
    /// When the previous entity with its id was removed.
    pub after: Option<Tick>,
    /// When it was removed.
    pub ended: Tick,
}

impl Departed {
    /// Its last row in a table.
    pub(super) fn last_row(&self, table: usize) -> Option<&LastRow> {
        self.tables.get(table)?.as_ref()
    }

    fn bytes(&self) -> usize {
        let rows = self.tables.iter().flatten().map(LastRow::bytes);
        size_of::<Self>() + rows.sum::<usize>()
    }
}

impl DepartedEntities {
    pub(super) fn keep(&mut self, entity: EntityHandle, departed: Departed) {
        self.departed.insert(entity, departed);
    }

    pub(super) fn get(&self, entity: EntityHandle) -> Option<&Departed> {
        self.departed.get(&entity)
    }

    /// The last removed entity that had an id.
    pub(super) fn newest(&self, id: u32) -> Option<EntityHandle> {
        let of_id = EntityHandle::new(id, 0)..=EntityHandle::new(id, u32::MAX);
        let (&entity, _) = self.departed.range(of_id).next_back()?;
        Some(entity)
    }

    /// The entity that had an id at a tick.
    pub(super) fn at(&self, id: u32, tick: Tick) -> Option<EntityHandle> {
        let of_id = EntityHandle::new(id, 0)..=EntityHandle::new(id, u32::MAX);
        let had_it = |departed: &Departed| {
            let is_later = departed.after.is_none_or(|after| after < tick);
            is_later && tick <= departed.ended
        };
        let mut found = self.departed.range(of_id);
        let (&entity, _) = found.find(|(_, departed)| had_it(departed))?;
        Some(entity)
    }

    /// Notes that the program was told of a removal: from now on the entity is kept only while there
    /// is room.
    pub(super) fn note_reported(&mut self, entity: EntityHandle) {
        let Some(departed) = self.departed.get(&entity) else {
            return;
        };
        self.reported_bytes += departed.bytes();
        self.reported.push_back(entity);
        // The last one is being reported, however long it is.
        while self.reported.len() > MAX_REPORTED
            || self.reported_bytes > MAX_REPORTED_BYTES && self.reported.len() > 1
        {
            let first = self.reported.pop_front();
            let first = first.and_then(|entity| self.departed.remove(&entity));
            self.reported_bytes -= first.map_or(0, |departed| departed.bytes());
        }
    }
}

/// Maximum entities that are kept after their removal was reported, and their bytes.
const MAX_REPORTED: usize = 256;
const MAX_REPORTED_BYTES: usize = 256 << 10;
