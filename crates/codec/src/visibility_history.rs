//! Which number a receiver knew an entity by, and when.
//!
//! A reference names a slot of the archive; a receiver is told its own number of the entity, or
//! nothing if it does not see it. A row that both ends predict from must say the same in a minute
//! as it said when it was sent, so what was visible at past ticks is remembered as long as rows of
//! these ticks may be asked for.

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};

use prescient_schema::EntityRef;

use crate::{
    shared_model::HISTORY,
    slot_map::SlotMap,
    units::{Slot, Tick},
};

/// What one receiver sees and saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct VisibilityHistory {
    /// The newest of each slot, and those before it.
    newest: SlotMap<VisibleSpan>,
    older: BTreeMap<Slot, Vec<VisibleSpan>>,
    /// Those that are over, in the order in which they ended, until nobody asks for them.
    ended: VecDeque<(Tick, Slot)>,
    /// Slots that came into sight or left it since the last packet.
    changed: Vec<Slot>,
    /// For each of the receiver's numbers, the tick since which its references are other ones
    /// although its row is not.
    references_changed: Vec<Tick>,
}

/// One time of being visible.
#[derive(Clone, Copy, Debug)]
struct VisibleSpan {
    id: u32,
    generation: u32,
    from: Tick,
    /// The first tick at which it no longer was.
    to: Option<Tick>,
}

impl VisibleSpan {
    fn covers(&self, tick: Tick) -> bool {
        self.from <= tick && self.to.is_none_or(|to| tick < to)
    }
}

impl VisibilityHistory {
    /// An entity is visible from tick `from` on.
    pub(crate) fn begin(&mut self, entity: EntityRef, id: u32, from: Tick) {
        let Some(slot) = entity.index().map(Slot) else {
            return;
        };
        self.forget(from);
        let span = VisibleSpan {
            id,
            generation: entity.generation(),
            from,
            to: None,
        };
        if let Some(before) = self.newest.insert(slot, span) {
            self.older.entry(slot).or_default().push(before);
        }
        self.changed.push(slot);
        if let Some(references_changed) = self.references_changed.get_mut(id as usize) {
            *references_changed = Tick(0);
        }
    }

    /// What is in a slot is no longer visible from tick `to` on.
    pub(crate) fn end(&mut self, slot: Slot, to: Tick) {
        let Some(last) = self.newest.get(slot).filter(|last| last.to.is_none()) else {
            return;
        };
        self.changed.push(slot);
        if last.from < to {
            let over = VisibleSpan {
                to: Some(to),
                ..last
            };
            self.newest.insert(slot, over);
            self.ended.push_back((to, slot));
            return;
        }
        // It never was seen: no packet told of it.
        let older = self.older.get_mut(&slot);
        match older.and_then(Vec::pop) {
            Some(before) => self.newest.insert(slot, before),
            None => self.newest.remove(slot),
        };
        if self.older.get(&slot).is_some_and(Vec::is_empty) {
            self.older.remove(&slot);
        }
    }

    /// Forgets what ended so long before `now` that nobody asks for rows of then.
    fn forget(&mut self, now: Tick) {
        while let Some((to, slot)) = self.ended.pop_front_if(|(to, _)| now.since(*to) > HISTORY) {
            if self
                .newest
                .get(slot)
                .is_some_and(|last| last.to == Some(to))
            {
                self.newest.remove(slot);
            }
            if let Some(older) = self.older.get_mut(&slot) {
                older.retain(|old| old.to.is_none_or(|end| end > to));
                if older.is_empty() {
                    self.older.remove(&slot);
                }
            }
        }
    }

    /// The cell that the receiver was told at a tick for one of the archive.
    pub(crate) fn translate(&self, cell: i64, tick: Tick) -> i64 {
        let span = || {
            let entity = EntityRef::from_cell(cell)?;
            let slot = Slot(entity.index()?);
            let is_it =
                |span: &VisibleSpan| span.generation == entity.generation() && span.covers(tick);
            let span = self.newest.get(slot).filter(is_it).or_else(|| {
                let mut older = self.older.get(&slot)?.iter().rev();
                older.find(|span| is_it(span)).copied()
            });
            Some(EntityRef::new(span?.id, 0))
        };
        span().unwrap_or(EntityRef::NONE).cell()
    }

    /// Slots that came into sight or left it since this was last asked.
    pub(crate) fn take_changed(&mut self) -> Vec<Slot> {
        core::mem::take(&mut self.changed)
    }

    /// An entity refers to something that turned.
    pub(crate) fn set_references_changed(&mut self, id: u32, since: Tick) {
        if self.references_changed.len() <= id as usize {
            self.references_changed.resize(id as usize + 1, Tick(0));
        }
        self.references_changed[id as usize] = since;
    }

    /// Whether references of an entity became other ones after a tick.
    pub(crate) fn references_changed_after(&self, id: u32, tick: Tick) -> bool {
        self.references_changed
            .get(id as usize)
            .is_some_and(|&references_changed| references_changed > tick)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Fails if `begin` drops the sighting before (does not keep `older`), or if `forget` does not
        /// wait for [`HISTORY`].
        #[test]
        fn past_ids_are_known_for_the_whole_history(
            acts in prop::collection::vec((0u32..6, 0u32..60), 1..200),
        ) {
            let mut visibility_history = VisibilityHistory::default();
            let mut all: Vec<(Slot, VisibleSpan)> = Vec::new();
            let mut now = Tick(0);
            for (number, (slot, pause)) in (0..).zip(acts) {
                now.0 += pause;
                let slot = Slot(slot);
                let open = all.iter_mut().find(|(at, span)| *at == slot && span.to.is_none());
                if let Some((_, span)) = open {
                    span.to = Some(now);
                    visibility_history.end(slot, now);
                } else {
                    let span = VisibleSpan { id: number, generation: 1, from: now, to: None };
                    all.push((slot, span));
                    visibility_history.begin(EntityRef::new(slot.0, 1), number, now);
                }
                for tick in (now.0.saturating_sub(HISTORY)..=now.0).map(Tick) {
                    for slot in (0..6).map(Slot) {
                        let span = all.iter().rev().find(|(at, span)| *at == slot && span.covers(tick));
                        let sent = span.map_or(EntityRef::NONE, |(_, span)| EntityRef::new(span.id, 0));
                        let cell = EntityRef::new(slot.0, 1).cell();
                        prop_assert_eq!(visibility_history.translate(cell, tick), sent.cell());
                    }
                }
            }
            // In the end nothing is held but what is still seen.
            visibility_history.forget(Tick(now.0 + HISTORY + 1));
            prop_assert!(visibility_history.older.is_empty() && visibility_history.ended.is_empty());
            for slot in (0..6).map(Slot) {
                let open = all.iter().any(|(at, span)| *at == slot && span.to.is_none());
                prop_assert_eq!(visibility_history.newest.get(slot).is_some(), open);
            }
        }
    }
}
