//! Which id an entity had at a receiver, and when.
//!
//! A reference in the archive names a slot. The receiver gets its own id of that entity, or none if
//! the entity is not visible to it. Both ends predict from past rows, so a row of a past tick has
//! to be translated as it was when it was sent; therefore the visibility of past ticks is kept for
//! as long as their rows may be needed.

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

/// The present and past visibility of entities for one receiver.
#[derive(Clone, Debug, Default)]
pub(crate) struct VisibilityHistory {
    /// The newest span of each slot, and the ones before it.
    newest: SlotMap<VisibleSpan>,
    older: BTreeMap<Slot, Vec<VisibleSpan>>,
    /// Spans that have ended, in that order, until they are too old.
    ended: VecDeque<(Tick, Slot)>,
    /// Slots that became visible or invisible since the last packet.
    changed: Vec<Slot>,
    /// For each id, the tick since which its references translate to other values although its row
    /// is unchanged.
    references_changed: Vec<Tick>,
    /// Ticks after which a row is no longer used, if more than [`HISTORY`].
    pub depth: u32,
}

/// Ticks during which an entity was visible.
#[derive(Clone, Copy, Debug)]
struct VisibleSpan {
    id: u32,
    generation: u32,
    from: Tick,
    /// The first tick at which it was not visible any more.
    to: Option<Tick>,
}

impl VisibleSpan {
    fn covers(&self, tick: Tick) -> bool {
        self.from <= tick && self.to.is_none_or(|to| tick < to)
    }
}

impl VisibilityHistory {
    /// Makes an entity visible from tick `from` on.
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

    /// Makes the entity in a slot invisible from tick `to` on.
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
        // No packet was written while it was visible.
        let older = self.older.get_mut(&slot);
        match older.and_then(Vec::pop) {
            Some(before) => self.newest.insert(slot, before),
            None => self.newest.remove(slot),
        };
        if self.older.get(&slot).is_some_and(Vec::is_empty) {
            self.older.remove(&slot);
        }
    }

    /// Drops spans that ended before the history of `now`.
    fn forget(&mut self, now: Tick) {
        let depth = self.depth.max(HISTORY);
        while let Some((to, slot)) = self
            .ended
            .pop_front_if(|(to, _)| now.shortly_since(*to) > depth)
        {
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

    /// Translates a reference of the archive into the one that was sent at a tick.
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

    /// Returns the slots whose visibility changed since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<Slot> {
        core::mem::take(&mut self.changed)
    }

    /// Records that a reference of an entity translates to another value since a tick.
    pub(crate) fn set_references_changed(&mut self, id: u32, since: Tick) {
        if self.references_changed.len() <= id as usize {
            self.references_changed.resize(id as usize + 1, Tick(0));
        }
        self.references_changed[id as usize] = since;
    }

    /// Whether a reference of an entity translates to another value than at a tick.
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
        /// Fails if `begin` drops the span before (does not keep `older`), or if `forget` does not
        /// wait for [`HISTORY`].
        #[test]
        fn past_ids_are_known_for_the_whole_history(
            acts in prop::collection::vec((0u32..6, 0u32..60), 1..200),
        ) {
            let mut visibility_history = VisibilityHistory::default();
            let mut all: Vec<(Slot, VisibleSpan)> = Vec::new();
            let mut now = Tick(0);
            for (number, (slot, pause)) in (0..).zip(acts) {
                now.0 += u64::from(pause);
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
                for tick in (now.0.saturating_sub(HISTORY.into())..=now.0).map(Tick) {
                    for slot in (0..6).map(Slot) {
                        let span = all.iter().rev().find(|(at, span)| *at == slot && span.covers(tick));
                        let sent = span.map_or(EntityRef::NONE, |(_, span)| EntityRef::new(span.id, 0));
                        let cell = EntityRef::new(slot.0, 1).cell();
                        prop_assert_eq!(visibility_history.translate(cell, tick), sent.cell());
                    }
                }
            }
            // In the end only the open spans are kept.
            visibility_history.forget(Tick(now.0 + u64::from(HISTORY) + 1));
            prop_assert!(visibility_history.older.is_empty() && visibility_history.ended.is_empty());
            for slot in (0..6).map(Slot) {
                let open = all.iter().any(|(at, span)| *at == slot && span.to.is_none());
                prop_assert_eq!(visibility_history.newest.get(slot).is_some(), open);
            }
        }
    }
}
