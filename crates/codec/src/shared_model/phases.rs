//! Changes of an entity's phase: absent, active, at rest.

use alloc::{boxed::Box, vec::Vec};

use crate::buffer;
use crate::population::{Entity, EntityStatus, Phase};

use super::{EntityKey, ExpectedMotion, Head, Rows, SharedModel, Undo};

impl SharedModel {
    pub(super) fn appear(&mut self, id: u32, class: u16) {
        if self.entity_states.phase(id) != Phase::Absent {
            // The same spawn was sent twice before the first was confirmed.
            return;
        }
        let fold = self.entity_states.fold_count;
        let head = Head {
            class,
            level: 0,
            expected_motion: ExpectedMotion::NONE,
            covered: 1,
            covered_at: fold,
            surprised: 1,
            surprised_at: fold,
            moved_at: fold,
        };
        self.make_active(id, head);
    }

    /// Makes an entity at rest active.
    pub(super) fn wake(&mut self, id: u32) {
        let status = self.entity_states.population.status(id);
        if status.phase != Phase::Resting {
            return;
        }
        let fold = self.entity_states.fold_count;
        let full_folds = fold - self.entity_states.last_partial;
        // While it rested, only full packets covered it.
        let covered = u64::MAX
            .checked_shr(64u32.saturating_sub(full_folds))
            .unwrap_or(0)
            | 1;
        let head = Head {
            class: status.class,
            level: status.level,
            expected_motion: ExpectedMotion::NONE,
            covered,
            covered_at: fold,
            surprised: 0,
            surprised_at: fold,
            moved_at: fold,
        };
        self.make_active(id, head);
        self.drop_rest_row(id);
    }

    fn make_active(&mut self, id: u32, mut head: Head) {
        let fields = self.entity_states.fresh_fields(head.class);
        head.expected_motion = self.entity_states.expected_motion(head.class, &fields);
        let status = EntityStatus::new(Phase::Active, head.class, head.level);
        self.set_status(id, status, Some(Entity { head, fields }));
        self.activate(id);
    }

    fn set_status(&mut self, id: u32, status: EntityStatus, record: Option<Entity>) {
        let len = self.entity_states.population.len();
        let (old, before) = self.entity_states.population.put(id, status, record);
        if self.journal.enabled {
            let record = before.map(Box::new);
            self.journal.record(|| Undo::EntityStatus {
                id,
                len,
                old,
                record,
            });
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        match self.entity_states.phase(id) {
            Phase::Absent => return,
            Phase::Active => self.deactivate(id),
            Phase::Resting => self.drop_rest_row(id),
        }
        self.set_status(id, EntityStatus::default(), None);
    }

    /// Puts active entities to rest that have not changed for long.
    pub(super) fn sweep(&mut self, rows: &dyn Rows) {
        let fold = self.entity_states.fold_count;
        let is_still = |id: u32| {
            let entity = self.entity_states.population.active(id);
            entity.is_some_and(|Entity { head, .. }| {
                fold - head.moved_at >= REST_AFTER
                    && self.entity_states.folds_covered(head) >= REST_COVERED
            })
        };
        let active = self.entity_states.active.iter().copied();
        let still: Vec<u32> = active.filter(|&id| is_still(id)).collect();
        for id in still {
            self.deactivate(id);
            let level = self.entity_states.level(id);
            let class = self.entity_states.population.status(id).class;
            self.set_status(id, EntityStatus::new(Phase::Resting, class, level), None);
            // Covered by the newest fold (see `folds_covered`), so both ends have the row of this
            // tick.
            if let Some(&tick) = self.entity_states.folds.last()
                && rows.changed_after(id, tick)
            {
                let mut buffer = Vec::new();
                if let Some(row) = rows.row(EntityKey { id, class }, tick, level, &mut buffer) {
                    self.keep_rest_row(id, row, rows);
                }
            }
        }
        let used = self.entity_states.active.len();
        buffer::shrink(&mut self.entity_states.active, used);
    }

    fn activate(&mut self, id: u32) {
        if let Err(at) = self.entity_states.active.binary_search(&id) {
            self.entity_states.active.insert(at, id);
            self.journal.record(|| Undo::Activated { at });
        }
    }

    fn deactivate(&mut self, id: u32) {
        if let Ok(at) = self.entity_states.active.binary_search(&id) {
            self.entity_states.active.remove(at);
            self.journal.record(|| Undo::Deactivated { at, id });
        }
    }
}

/// Folds without a change after which an entity rests.
const REST_AFTER: u32 = 48;
/// The newest folds, all of which must have covered it.
const REST_COVERED: u32 = 4;
