//! All entities of a world, with what is known of them besides their values.

use std::collections::{BTreeMap, BTreeSet};

use prescient_codec::{Slot, Tick};

use prescient_schema::EntityRef;

use crate::entity_types::EntityType;
use crate::grid::{Grid, Position};
use crate::input_state::InputState;
use crate::server::PeerId;

/// Identifies an entity by its spawn order. Nothing that a peer sees may depend on slots, which
/// would reveal how many entities are hidden from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Serial {
    pub order: u64,
    /// The slot of its first table, whose id stands for the entity at both ends.
    pub first: Slot,
}

/// An entity's data besides its values.
#[derive(Clone, Debug)]
pub(crate) struct EntityRecord {
    pub serial: Serial,
    pub entity_type: EntityType,
    /// The tables that it has and their slots, ascending; the first table is always among them.
    pub slots: Vec<(u8, Slot)>,
    pub owner: Option<PeerId>,
    /// The client that has authority over it.
    pub authority: Option<PeerId>,
    /// Its parent and children in the hierarchy.
    pub parent: Option<Serial>,
    pub children: Vec<Serial>,
    /// Its position, if its type has one, and the tick at which that last changed.
    pub position: Option<Position>,
    pub moved: Tick,
}

impl EntityRecord {
    /// The slot of a table, if the entity has it.
    pub(crate) fn slot(&self, table: usize) -> Option<Slot> {
        let at = self.position(table).ok()?;
        Some(self.slots[at].1)
    }

    /// Sets the slot of a table; `None` if the entity lost it.
    pub(crate) fn set_slot(&mut self, table: usize, slot: Option<Slot>) {
        match (self.position(table), slot) {
            (Ok(at), Some(slot)) => self.slots[at].1 = slot,
            (Ok(at), None) => {
                self.slots.remove(at);
            }
            (Err(at), Some(slot)) => self.slots.insert(at, (table as u8, slot)),
            (Err(_), None) => {}
        }
    }

    fn position(&self, table: usize) -> Result<usize, usize> {
        self.slots
            .binary_search_by_key(&table, |&(table, _)| usize::from(table))
    }
}

/// All entities of a world.
#[derive(Debug)]
pub(crate) struct EntityTable {
    pub records: EntityRecords,
    pub next_serial: u64,
    /// Values that were changed to fit their fields.
    pub saturated: u64,
    pub grid: Grid,
    pub touched: Vec<Touched>,
    /// The entities that were despawned in this tick.
    pub despawned: Vec<(EntityRef, Serial, EntityType)>,
    /// The entities over which a client has authority.
    pub with_authority: BTreeSet<Serial>,
    pub now: Tick,
    pub input_state: InputState,
    /// The entities of each owner.
    pub owned: BTreeMap<PeerId, BTreeSet<Serial>>,
}

impl EntityTable {
    /// Updates the index of owners.
    pub(crate) fn change_owner(
        &mut self,
        serial: Serial,
        from: Option<PeerId>,
        to: Option<PeerId>,
    ) {
        if let Some(from) = from
            && let Some(owned) = self.owned.get_mut(&from)
        {
            owned.remove(&serial);
            if owned.is_empty() {
                self.owned.remove(&from);
            }
        }
        if let Some(to) = to {
            self.owned.entry(to).or_default().insert(serial);
        }
    }

    /// Sets or removes an entity's position.
    pub(crate) fn set_position(&mut self, serial: Serial, position: Option<Position>) {
        self.grid.put(serial, position);
        if let Some(record) = self.records.get_mut(serial)
            && record.position != position
        {
            record.position = position;
            record.moved = self.now;
        }
    }
}

/// The records of a world's entities, by slot and in the order in which they were spawned.
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

/// A change of an entity that may affect its visibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// It was spawned, or its owner, parent or authority changed.
    Here(Serial),
    /// It was despawned.
    Gone(Serial),
    /// It was despawned and had a further table in this slot.
    GoneTable(Slot),
    /// It gained the table with this index.
    Gained(Serial, u8),
    /// It lost the table that had this slot.
    Lost(Slot),
}
