//! The entities of a client's world: a few bytes for one at rest, a record for an active one.

use alloc::{boxed::Box, vec::Vec};

use crate::shared_model::{FieldState, Head};

/// The entities that both ends know of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Population {
    statuses: Vec<EntityStatus>,
    /// Records of active entities. Their order may differ between the ends.
    entities: Vec<Entity>,
    /// For each record, its id.
    owners: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntityStatus {
    pub phase: Phase,
    pub level: u8,
    pub class: u16,
    /// Index of the record, if active.
    record_index: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Absent,
    Active,
    Resting,
}

/// An active entity.
#[derive(Clone, Debug)]
pub(crate) struct Entity {
    pub head: Head,
    pub fields: Box<[FieldState]>,
}

impl Population {
    /// One more than the highest id so far.
    pub(crate) fn len(&self) -> usize {
        self.statuses.len()
    }

    pub(crate) fn grow(&mut self, len: usize) {
        if self.statuses.len() < len {
            self.statuses.resize(len, EntityStatus::default());
        }
    }

    /// Removes ids from `len` on, which must be absent.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.statuses.truncate(len);
    }

    #[inline]
    pub(crate) fn status(&self, id: u32) -> EntityStatus {
        self.statuses.get(id as usize).copied().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn phase(&self, id: u32) -> Phase {
        self.status(id).phase
    }

    /// The record of an active entity.
    #[inline]
    pub(crate) fn active(&self, id: u32) -> Option<&Entity> {
        let status = self.statuses.get(id as usize)?;
        match status.phase {
            Phase::Active => self.entities.get(status.record_index as usize),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn active_mut(&mut self, id: u32) -> Option<&mut Entity> {
        let status = self.statuses.get(id as usize)?;
        match status.phase {
            Phase::Active => self.entities.get_mut(status.record_index as usize),
            _ => None,
        }
    }

    /// Sets the level of an entity and returns the old one.
    pub(crate) fn set_level(&mut self, id: u32, level: u8) -> u8 {
        match self.statuses.get_mut(id as usize) {
            Some(status) => core::mem::replace(&mut status.level, level),
            None => 0,
        }
    }

    /// Replaces the status of an entity and returns the old one; `record` is for an active one.
    pub(crate) fn put(
        &mut self,
        id: u32,
        status: EntityStatus,
        record: Option<Entity>,
    ) -> (EntityStatus, Option<Entity>) {
        self.grow(id as usize + 1);
        let old = self.status(id);
        let before = (old.phase == Phase::Active).then(|| self.take(old.record_index));
        let mut status = status;
        if let Some(record) = record {
            status.record_index = self.entities.len() as u32;
            self.entities.push(record);
            self.owners.push(id);
        }
        self.statuses[id as usize] = status;
        (old, before)
    }

    /// Removes a record; the last one takes its index.
    fn take(&mut self, record_index: u32) -> Entity {
        let record = self.entities.swap_remove(record_index as usize);
        self.owners.swap_remove(record_index as usize);
        if let Some(&moved) = self.owners.get(record_index as usize) {
            self.statuses[moved as usize].record_index = record_index;
        }
        if self.entities.len() * 4 < self.entities.capacity() {
            self.entities.shrink_to(self.entities.len() * 2);
            self.owners.shrink_to(self.owners.len() * 2);
        }
        record
    }

    pub(crate) fn bytes(&self) -> usize {
        let fields = self
            .entities
            .iter()
            .map(|entity| size_of_val(&*entity.fields));
        self.statuses.len() * size_of::<EntityStatus>()
            + self.entities.len() * (size_of::<Entity>() + size_of::<u32>())
            + fields.sum::<usize>()
    }
}

impl EntityStatus {
    pub(crate) fn new(phase: Phase, class: u16, level: u8) -> Self {
        Self {
            phase,
            level,
            class,
            record_index: 0,
        }
    }
}
