//! The records of a world's entities, indexed by slot.

use std::collections::BTreeSet;

use prescient_codec::Slot;

use crate::world::{EntityRecord, Serial};

#[derive(Debug, Default)]
pub(crate) struct EntityRecords {
    /// By the slot of the first table.
    rows: Vec<Option<EntityRecord>>,
    /// In the order in which the entities were spawned.
    serials: BTreeSet<Serial>,
}

impl EntityRecords {
    pub(crate) fn len(&self) -> usize {
        self.serials.len()
    }

    /// In the order in which the entities were spawned.
    pub(crate) fn serials(&self) -> impl Iterator<Item = Serial> {
        self.serials.iter().copied()
    }

    /// The entity whose first table has this slot.
    pub(crate) fn at(&self, first: Slot) -> Option<&EntityRecord> {
        self.rows.get(first.0 as usize)?.as_ref()
    }

    pub(crate) fn get(&self, serial: Serial) -> Option<&EntityRecord> {
        self.at(serial.first)
            .filter(|record| record.serial == serial)
    }

    pub(crate) fn get_mut(&mut self, serial: Serial) -> Option<&mut EntityRecord> {
        let record = self.rows.get_mut(serial.first.0 as usize)?.as_mut();
        record.filter(|record| record.serial == serial)
    }

    pub(crate) fn insert(&mut self, record: EntityRecord) {
        let at = record.serial.first.0 as usize;
        if self.rows.len() <= at {
            self.rows.resize(at + 1, None);
        }
        self.serials.insert(record.serial);
        self.rows[at] = Some(record);
    }

    pub(crate) fn remove(&mut self, serial: Serial) -> Option<EntityRecord> {
        self.get(serial)?;
        self.serials.remove(&serial);
        self.rows.get_mut(serial.first.0 as usize)?.take()
    }
}
