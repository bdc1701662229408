//! How entities come and go: absent, active, at rest.

use alloc::{boxed::Box, vec::Vec};

use crate::buffer;
use crate::population::{Entity, Phase, Seat};

use super::{EntityKey, Head, Rows, Twin, Undo};

impl Twin {
    pub(super) fn appear(&mut self, id: u32, class: u16) {
        if self.book.phase(id) != Phase::Absent {
            // Sent again before the first sending was confirmed: one more covering.
            return;
        }
        let fold = self.book.fold_count;
        let head = Head {
            class,
            level: 0,
            expects_motion: false,
            covered: 1,
            covered_at: fold,
            surprised: 1,
            surprised_at: fold,
            moved_at: fold,
        };
        self.start(id, head);
    }

    /// An entity at rest moves again.
    pub(super) fn wake(&mut self, id: u32) {
        let seat = self.book.population.seat(id);
        if seat.phase != Phase::Resting {
            return;
        }
        let fold = self.book.fold_count;
        let whole = fold - self.book.last_partial;
        // While it rested, only whole packets vouch for it.
        let vouched = u64::MAX
            .checked_shr(64u32.saturating_sub(whole))
            .unwrap_or(0)
            | 1;
        let head = Head {
            class: seat.class,
            level: seat.level,
            expects_motion: false,
            covered: vouched,
            covered_at: fold,
            surprised: 0,
            surprised_at: fold,
            moved_at: fold,
        };
        self.start(id, head);
        self.drop_rest_row(id);
    }

    /// Makes an entity active.
    fn start(&mut self, id: u32, mut head: Head) {
        let fields = self.book.fresh_fields(head.class);
        head.expects_motion = self.book.expects_motion(head.class, &fields);
        let seat = Seat::new(Phase::Active, head.class, head.level);
        self.put(id, seat, Some(Entity { head, fields }));
        self.activate(id);
    }

    fn put(&mut self, id: u32, seat: Seat, record: Option<Entity>) {
        let len = self.book.population.len();
        let (old, before) = self.book.population.put(id, seat, record);
        if self.journal.kept {
            let record = before.map(Box::new);
            self.journal.note(|| Undo::Seat {
                id,
                len,
                old,
                record,
            });
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        match self.book.phase(id) {
            Phase::Absent => return,
            Phase::Active => self.deactivate(id),
            Phase::Resting => self.drop_rest_row(id),
        }
        self.put(id, Seat::default(), None);
    }

    /// Active entities that held still for long go to rest.
    pub(super) fn sweep(&mut self, rows: &dyn Rows) {
        let fold = self.book.fold_count;
        let is_still = |id: u32| {
            let entity = self.book.population.active(id);
            entity.is_some_and(|Entity { head, .. }| {
                fold - head.moved_at >= REST_AFTER && self.book.folds_covered(head) >= REST_COVERED
            })
        };
        let active = self.book.active.iter().copied();
        let still: Vec<u32> = active.filter(|&id| is_still(id)).collect();
        for id in still {
            self.deactivate(id);
            let level = self.book.level(id);
            let class = self.book.population.seat(id).class;
            self.put(id, Seat::new(Phase::Resting, class, level), None);
            // Covered in the newest fold (see folds_covered), so this tick is known to both.
            if let Some(&tick) = self.book.folds.last()
                && rows.changed_after(id, tick)
            {
                let mut buffer = Vec::new();
                if let Some(row) = rows.row(EntityKey { id, class }, tick, level, &mut buffer) {
                    self.keep_rest_row(id, row, rows);
                }
            }
        }
        let used = self.book.active.len();
        buffer::ease(&mut self.book.active, used);
    }

    fn activate(&mut self, id: u32) {
        if let Err(at) = self.book.active.binary_search(&id) {
            self.book.active.insert(at, id);
            self.journal.note(|| Undo::Activated { at });
        }
    }

    fn deactivate(&mut self, id: u32) {
        if let Ok(at) = self.book.active.binary_search(&id) {
            self.book.active.remove(at);
            self.journal.note(|| Undo::Deactivated { at, id });
        }
    }
}

/// An entity rests after this many folds without a change.
const REST_AFTER: u32 = 48;
/// … the newest of which must all have covered it.
const REST_COVERED: u32 = 4;
