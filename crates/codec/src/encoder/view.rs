//! Who the receiver shall see, how well, and what became of them since the last packet.

use alloc::vec::Vec;

use prescient_schema::Level;

use crate::{
    history::Archive,
    population::Phase,
    roster::{Doom, Sight},
    units::{ClientId, Sequence, Slot, Tick, Weight},
};

use super::Encoder;

impl Encoder {
    /// The receiver shall see this entity from now on.
    pub fn show(&mut self, slot: Slot, archive: &Archive) -> Option<ClientId> {
        archive.class(slot)?;
        let since = archive.newest()?;
        let known = self.id(slot).is_some();
        let id = self.roster.admit(slot, since, self.layout.has_references);
        if self.layout.has_references && !known {
            let from = self.next_tick();
            let entity = archive.reference(slot)?;
            self.roster.sightings.begin(entity, id, from);
        }
        Some(ClientId(id))
    }

    /// The receiver shall no longer see this entity. Entities that leave the archive are hidden
    /// without being asked for.
    pub fn hide(&mut self, slot: Slot) {
        let Some(id) = self.roster.dismiss(slot) else {
            return;
        };
        let to = self.next_tick();
        let active = &self.twin.book.active;
        let roster = &mut self.roster;
        roster.sightings.end(slot, to);
        roster.dirty.remove(&id);
        if roster.sent[id as usize] == Sequence(0) {
            roster.limbo.insert(id, self.newest);
            roster.release(self.layout.has_references, active);
        } else {
            roster.doomed.insert(
                id,
                Doom {
                    since: self.newest,
                    told: false,
                },
            );
        }
        roster.waiting.remove(id, roster.weights[id as usize]);
    }

    /// The precision at which the receiver shall see an entity. Without effect on a class whose
    /// fields know no coarser levels.
    pub fn set_level(&mut self, slot: Slot, level: Level, archive: &Archive) {
        let (Some(id), Some(class)) = (self.id(slot), archive.class(slot)) else {
            return;
        };
        if !self.layout.classes[usize::from(class)].has_levels {
            return;
        }
        self.follow(archive);
        let wanted = level.index() as u8;
        if core::mem::replace(&mut self.roster.levels[id as usize], wanted) != wanted {
            self.follow_level(id, archive);
        }
    }

    /// How much the time that an entity waits for its turn counts, where packets are too short for
    /// all. Nobody waits for ever.
    pub fn set_weight(&mut self, slot: Slot, weight: Weight) {
        if let Some(id) = self.id(slot) {
            self.roster.weigh(id, weight);
        }
    }

    /// Wakes an entity that rests at another precision than it shall have, and remembers one that
    /// may still come to rest like that.
    pub(super) fn follow_level(&mut self, id: u32, archive: &Archive) {
        let book = &self.twin.book;
        let phase = book.phase(id);
        let known = phase != Phase::Absent && book.level(id) == self.roster.levels[id as usize];
        if known || self.roster.slot(id).is_none() {
            return;
        }
        if phase != Phase::Resting {
            self.roster.releveled.insert(id);
            return;
        }
        let sight = Sight {
            archive,
            roster: &self.roster,
            layout: &self.layout,
        };
        let mut buffer = Vec::new();
        let row = book.rest_row(id, &sight, &mut buffer);
        if let Some(row) = row.map(<[i64]>::to_vec) {
            self.twin.keep_rest_row(id, &row, &sight);
            self.roster.dirty.entry(id).or_default();
        }
    }

    /// Keeps what an entity at rest has said since a tick, and says that it may no longer be so.
    fn stir(&mut self, id: u32, slot: Slot, since: Option<Tick>, archive: &Archive) {
        if self.twin.book.phase(id) != Phase::Resting {
            return;
        }
        let class = self.twin.book.population.seat(id).class;
        let row = since.and_then(|tick| archive.row_of(slot, class, tick));
        let sight = Sight {
            archive,
            roster: &self.roster,
            layout: &self.layout,
        };
        let level = self.twin.book.level(id);
        let told = self.encoded.unwrap_or_default();
        let mut buffer = Vec::new();
        if let Some(row) = row {
            let kept = sight.told(class, row, level, told, &mut buffer);
            self.twin.keep_rest_row(id, kept, &sight);
        }
        self.roster.dirty.entry(id).or_default();
    }

    /// Reads what changed in the archive since the last packet: only that is looked at.
    pub(super) fn follow(&mut self, archive: &Archive) {
        let before = self.followed;
        let lost = match (self.followed, archive.ticks().next()) {
            (Some(followed), Some(oldest)) => followed < oldest,
            _ => false,
        };
        let changes = || archive.changes_after(before);
        for changes in changes() {
            for &slot in &changes.despawned {
                self.hide(slot);
            }
        }
        // Whichever takes less: to search for those who changed, or to pass over those at rest.
        let known = self.twin.book.population.len();
        let changed: usize = changes().map(|changes| changes.changed.len()).sum();
        if known / 8 < changed {
            for id in 0..known as u32 {
                if self.twin.book.phase(id) == Phase::Resting
                    && let Some(slot) = self.roster.slot(id)
                    && archive.last_changed(slot) > before
                {
                    self.stir(id, slot, before, archive);
                }
            }
        } else {
            for changes in changes() {
                for &slot in &changes.changed {
                    if let Some(id) = self.id(slot) {
                        self.stir(id, slot, before, archive);
                    }
                }
            }
        }
        // Who refers to something that came into sight or left it says something else from now on.
        let since = self.next_tick();
        for slot in self.roster.sightings.take_turned() {
            for &holder in archive.holders(slot) {
                let Some(id) = self.id(holder) else { continue };
                self.roster.sightings.stir(id, since);
                self.stir(id, holder, before, archive);
            }
        }
        self.followed = archive.newest().max(before);
        if lost {
            self.resync();
        }
    }
}
