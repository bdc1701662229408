//! The visible set of the receiver, the precision and weight of its entities, and the changes since
//! the last packet.

use alloc::vec::Vec;

use prescient_schema::{Level, Priority};

use crate::{
    history::Archive,
    known_entities::{ReceiverView, Tombstone},
    population::Phase,
    quality::{Grade, Quality},
    units::{NetEntityId, Sequence, Slot, Tick, Weight},
};

use super::Encoder;

impl Encoder {
    /// Makes an entity visible to the receiver. `None` if it is not in the archive.
    pub fn show(&mut self, slot: Slot, archive: &Archive) -> Option<NetEntityId> {
        archive.class(slot)?;
        let since = archive.newest()?;
        let known = self.id(slot).is_some();
        let id = self
            .known_entities
            .add(slot, since, self.layout.has_references);
        if self.layout.has_references && !known {
            let from = self.next_tick();
            let entity = archive.reference(slot)?;
            self.known_entities
                .visibility_history
                .begin(entity, id, from);
        }
        Some(NetEntityId(id))
    }

    /// Makes an entity invisible to the receiver. Entities that are despawned from the archive are
    /// hidden automatically.
    pub fn hide(&mut self, slot: Slot) {
        let Some(id) = self.known_entities.remove(slot) else {
            return;
        };
        let to = self.next_tick();
        let active = &self.shared_model.entity_states.active;
        let known_entities = &mut self.known_entities;
        known_entities.visibility_history.end(slot, to);
        known_entities.dirty.remove(&id);
        if known_entities.sent[id as usize] == Sequence(0) {
            known_entities.retired_ids.insert(id, self.newest);
            known_entities.release(self.layout.has_references, active);
        } else {
            known_entities.tombstones.insert(
                id,
                Tombstone {
                    since: self.newest,
                    sent: false,
                },
            );
        }
        known_entities
            .waiting
            .remove(id, known_entities.weights[id as usize]);
    }

    /// Sets the precision at which the receiver gets an entity. Has no effect on a class whose
    /// fields declare no coarser levels.
    pub fn set_level(&mut self, slot: Slot, level: Level, archive: &Archive) {
        let (Some(id), Some(class)) = (self.id(slot), archive.class(slot)) else {
            return;
        };
        if !self.layout.classes[usize::from(class)].has_levels {
            return;
        }
        self.read_changes(archive);
        let wanted = level.index() as u8;
        if core::mem::replace(&mut self.known_entities.levels[id as usize], wanted) != wanted {
            self.update_level(id, archive);
        }
    }

    /// Sets how much the time an entity has waited counts when packets cannot cover all entities.
    /// Every entity is covered eventually, whatever the weights.
    pub fn set_weight(&mut self, slot: Slot, weight: Weight) {
        if let Some(id) = self.id(slot) {
            self.known_entities.set_weight(id, weight);
        }
    }

    /// Sets which part of the receiver's [quality](Self::set_quality) applies to an entity; 0, which
    /// is never degraded, unless this is called.
    pub fn set_priority(&mut self, slot: Slot, priority: Priority, archive: &Archive) {
        let (Some(id), Some(class)) = (self.id(slot), archive.class(slot)) else {
            return;
        };
        let has_levels = self.layout.classes[usize::from(class)].has_levels;
        let before = self.known_entities.level(id);
        let grade = &mut self.known_entities.grades[id as usize];
        let is_due = grade.is_due();
        *grade = Grade::new(priority, has_levels);
        grade.set_due(is_due);
        if self.known_entities.level(id) != before {
            self.read_changes(archive);
            self.update_level(id, archive);
        }
    }

    /// Sets how precisely and how often the receiver gets entities by their
    /// [priority](Self::set_priority). Costs what the entities cost whose level changes; may be
    /// called before every packet.
    pub fn set_quality(&mut self, quality: Quality, archive: &Archive) {
        let before = core::mem::replace(&mut self.known_entities.quality, quality);
        if !quality.has_other_levels(&before) {
            return;
        }
        self.read_changes(archive);
        for id in self.known_entities.releveled_by(&before) {
            self.update_level(id, archive);
        }
    }

    /// Marks an entity dirty that rests at another precision than the wanted one; an active one is
    /// kept in `releveled`, because it may come to rest like that.
    pub(super) fn update_level(&mut self, id: u32, archive: &Archive) {
        let entity_states = &self.shared_model.entity_states;
        let phase = entity_states.phase(id);
        let known =
            phase != Phase::Absent && entity_states.level(id) == self.known_entities.level(id);
        if known || self.known_entities.slot(id).is_none() {
            return;
        }
        if phase != Phase::Resting {
            self.known_entities.releveled.insert(id);
            return;
        }
        let receiver_view = ReceiverView {
            archive,
            known_entities: &self.known_entities,
            layout: &self.layout,
        };
        let mut buffer = Vec::new();
        let row = entity_states.rest_row(id, &receiver_view, &mut buffer);
        if let Some(row) = row.map(<[i64]>::to_vec) {
            self.shared_model.keep_rest_row(id, &row, &receiver_view);
            self.known_entities.dirty.entry(id).or_default();
        }
    }

    /// Saves the row that a resting entity had at a tick and marks the entity dirty.
    fn mark_dirty(&mut self, id: u32, slot: Slot, since: Option<Tick>, archive: &Archive) {
        if self.shared_model.entity_states.phase(id) != Phase::Resting {
            return;
        }
        let class = self.shared_model.entity_states.population.status(id).class;
        let row = since.and_then(|tick| archive.row_of(slot, class, tick));
        let receiver_view = ReceiverView {
            archive,
            known_entities: &self.known_entities,
            layout: &self.layout,
        };
        let level = self.shared_model.entity_states.level(id);
        let last_sent = self.encoded.unwrap_or_default();
        let mut buffer = Vec::new();
        if let Some(row) = row {
            let kept = receiver_view.as_sent(class, row, level, last_sent, &mut buffer);
            self.shared_model.keep_rest_row(id, kept, &receiver_view);
        }
        self.known_entities.dirty.entry(id).or_default();
    }

    /// Reads the changes of the archive since the last packet, and hides what was despawned.
    pub(super) fn read_changes(&mut self, archive: &Archive) {
        let before = self.read_until;
        let lost = match (self.read_until, archive.oldest()) {
            (Some(read_until), Some(oldest)) => read_until < oldest,
            _ => false,
        };
        let changes = || archive.changes_after(before);
        for changes in changes() {
            for &slot in &changes.despawned {
                self.hide(slot);
            }
        }
        // Whichever is cheaper: looking up the changed entities, or walking over the known ones.
        let known = self.shared_model.entity_states.population.len();
        let changed: usize = changes().map(|changes| changes.changed.len()).sum();
        if known / 8 < changed {
            for id in 0..known as u32 {
                if self.shared_model.entity_states.phase(id) == Phase::Resting
                    && let Some(slot) = self.known_entities.slot(id)
                    && archive.last_changed(slot) > before
                {
                    self.mark_dirty(id, slot, before, archive);
                }
            }
        } else {
            for changes in changes() {
                for &slot in &changes.changed {
                    if let Some(id) = self.id(slot) {
                        self.mark_dirty(id, slot, before, archive);
                    }
                }
            }
        }
        // A reference to an entity that became visible or invisible is sent as another value now.
        let since = self.next_tick();
        for slot in self.known_entities.visibility_history.take_changed() {
            for &referrer in archive.referrers(slot) {
                let Some(id) = self.id(referrer) else {
                    continue;
                };
                self.known_entities
                    .visibility_history
                    .set_references_changed(id, since);
                self.mark_dirty(id, referrer, before, archive);
            }
        }
        self.read_until = archive.newest().max(before);
        if lost {
            self.resync();
        }
    }
}
