//! Writing the entities of a body.

use super::{
    Bill, PRESENCE, Partial, Scratch, Spawn, Truth, least_len,
    subject::{past, rest_past, sleeper, subject},
};
use crate::{
    history::Window,
    ledger::Cause,
    past::{Motion, Outlook, plain_motion},
    range::RangeEncoder,
    session::{List, Session},
    twin::EntityKey,
    units::Tick,
};

pub(super) struct Writer<'w, 's, S, const N: usize> {
    pub(super) session: &'w mut Session<'s, RangeEncoder, N>,
    pub(super) side: &'w S,
    pub(super) now: Tick,
    pub(super) scratch: &'w mut Scratch,
    pub(super) window: Window<'w>,
    pub(super) limit: usize,
    /// Nothing was written yet: the first item goes out even if it breaks the limit, because an
    /// update is never cut in two.
    pub(super) empty: bool,
}

impl<S: Truth, const N: usize> Writer<'_, '_, S, N> {
    /// Writes one item and returns its cost, or takes it back and returns `None` if the packet
    /// would grow beyond its limit.
    pub(super) fn item(&mut self, write: impl FnOnce(&mut Self)) -> Option<u64> {
        let mark = (self.limit != usize::MAX).then(|| self.session.mark());
        let before = self.session.cost;
        write(self);
        let padded = least_len(self.session.unfolded(), self.session.book) + HEADER;
        if let Some(mark) = mark
            && self.session.coder.len_bound().max(padded) + RESERVE > self.limit
            && !self.empty
        {
            self.session.rewind(mark);
            return None;
        }
        self.empty = false;
        Some(self.session.cost - before)
    }

    pub(super) fn wake(&mut self, id: u32, previous: &mut Option<u32>) {
        let book = self.session.book;
        self.session.list_item(List::Wakes, previous, id);
        let Scratch {
            pasts, truth, row, ..
        } = self.scratch;
        let level = self.side.level(id);
        let class = book.population.seat(id).class;
        let (Some(past), Some(truth)) = (
            rest_past(book, id, self.side, pasts),
            self.side.latest(EntityKey { id, class }, level, truth),
        ) else {
            self.session.invalid = true;
            return;
        };
        let subject = sleeper(book, id);
        self.session
            .fields(&subject, &past, level, Some(truth), row);
        self.session.log.covered.push(id);
    }

    pub(super) fn all_active(&mut self, bill: &mut Bill) {
        let book = self.session.book;
        let mut neighbour = false;
        let leaves = !self.session.log.despawns.is_empty();
        for &id in &book.active {
            if leaves && self.session.log.despawns.binary_search(&id).is_ok() {
                continue;
            }
            let before = self.session.cost;
            neighbour = self.active(id, neighbour);
            if neighbour {
                bill.active.push((id, self.session.cost - before));
            } else {
                bill.silent.push(id);
            }
        }
    }

    pub(super) fn some_active(&mut self, partial: &Partial, bill: &mut Bill) {
        let order = self.session.book.stalest_first();
        let mut gap = 0;
        let mut neighbour = false;
        for id in order {
            if self.session.log.despawns.binary_search(&id).is_ok() {
                continue;
            }
            gap += 1;
            if partial.active.binary_search(&id).is_err() {
                continue;
            }
            let written = self.item(|w| {
                w.session.account = PRESENCE;
                w.session.more(List::Covered, true);
                w.session.gap(List::Covered, gap);
                w.session.vouch(List::Covered, id);
                neighbour = w.active(id, neighbour);
                w.session.log.covered.push(id);
            });
            let Some(cost) = written else { break };
            bill.active.push((id, cost));
            if !neighbour {
                bill.quiet.0 += 1;
                bill.quiet.1 += cost;
            }
            gap = 0;
        }
        self.session.end(List::Covered);
    }

    /// One active entity. Returns whether it differed from what was expected.
    fn active(&mut self, id: u32, neighbour: bool) -> bool {
        let book = self.session.book;
        let Some(entity) = book.population.active(id) else {
            return false;
        };
        let head = &entity.head;
        let class = head.class;
        let key = EntityKey { id, class };
        let level = self.side.level(id);
        let Scratch {
            pasts,
            plans,
            truth,
            row,
        } = self.scratch;
        let Outlook { samples, plan, .. } = plans.find(book, head, self.now, self.side);
        if samples.count > 0
            && level == head.level
            && !head.expects_motion
            && !self.side.changed_after(id, samples.ticks[0])
        {
            return self.session.entity_flag(head, neighbour, false);
        }
        if samples.count == 0 {
            return self.resend(id, head.class);
        }
        // Who surprised just now may well do so again, and is looked at closely at once.
        if level == 0
            && head.level == 0
            && book.folds_since_surprise(head) > 0
            && let Some(rows) = self.side.glance(key, samples, &mut self.window)
            && let class = &book.layout.classes[usize::from(head.class)]
            && let Some(motion) = plain_motion(class, plan, &entity.fields, rows)
        {
            if motion == Motion::Moves {
                self.session.log.moved.push(id);
            }
            return self.session.entity_flag(head, neighbour, false);
        }
        let window = &mut self.window;
        let found = past(book, (id, head), self.side, (samples, plan), pasts, window);
        let Some((past, present)) = found else {
            self.session.invalid = true;
            return false;
        };
        let present = present.filter(|_| level == 0);
        let Some(truth) = present.or_else(|| self.side.latest(key, level, truth)) else {
            self.session.invalid = true;
            return false;
        };
        past.expect(&entity.fields, Some(truth), row);
        let differs = row != truth || level != head.level;
        self.session.entity_flag(head, neighbour, differs);
        if differs {
            self.session
                .fields(&subject(book, id, entity), &past, level, Some(truth), row);
        } else if row != past.newest() {
            self.session.log.moved.push(id);
        }
        differs
    }

    /// An active entity of which no row is known to both ends any more.
    #[cold]
    fn resend(&mut self, id: u32, class: u16) -> bool {
        let Scratch { truth, row, .. } = self.scratch;
        let Some(truth) = self.side.latest(EntityKey { id, class }, 0, truth) else {
            self.session.invalid = true;
            return false;
        };
        let class_state = &self.session.book.classes[usize::from(class)];
        let reference = class_state.reference.as_deref();
        self.session
            .spawn(id, class, Cause::Resend, reference, Some(truth), row);
        self.session.sum.add(u64::from(id));
        self.session.log.levels.push((id, 0));
        self.session.log.moved.push(id);
        true
    }

    pub(super) fn spawn(&mut self, spawn: Spawn, previous: &mut Option<u32>) {
        self.session.list_item(List::Spawns, previous, spawn.id);
        self.session.class(spawn.class);
        let Scratch { truth, row, .. } = self.scratch;
        let Spawn { id, class, .. } = spawn;
        let Some(truth) = self.side.latest(EntityKey { id, class }, 0, truth) else {
            self.session.invalid = true;
            return;
        };
        let cause = if spawn.again {
            Cause::Resend
        } else {
            Cause::Spawn
        };
        self.session
            .appear(spawn.id, spawn.class, cause, Some(truth), row);
    }
}

/// Bytes that a header usually has at most.
const HEADER: usize = 17;
/// Bytes kept free for the ends of the lists.
const RESERVE: usize = 6;
