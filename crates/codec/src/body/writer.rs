//! Writes the entities of a body.

use super::{
    PRESENCE, Partial, Scratch, SenderRows, Spawn,
    coded_entity::{coded_entity, past, rest_past, resting_entity},
    min_len,
};
use crate::{
    budget::PacketCosts,
    history::Window,
    ledger::Cause,
    packet_coder::{List, PacketCoder},
    past::{CachedPlan, Motion, plain_motion},
    range::RangeEncoder,
    shared_model::EntityKey,
    units::Tick,
};

pub(super) struct Writer<'w, 's, S, const N: usize> {
    pub(super) packet_coder: &'w mut PacketCoder<'s, RangeEncoder, N>,
    pub(super) source: &'w S,
    pub(super) now: Tick,
    pub(super) scratch: &'w mut Scratch,
    pub(super) window: Window<'w>,
    pub(super) limit: usize,
    /// Whether nothing was written yet. The first item is written even if it exceeds the limit,
    /// because an item is never split.
    pub(super) empty: bool,
}

impl<S: SenderRows, const N: usize> Writer<'_, '_, S, N> {
    /// Writes one item and returns its cost, or `None`, with the item undone, if it exceeds the
    /// limit.
    pub(super) fn item(&mut self, write: impl FnOnce(&mut Self)) -> Option<u64> {
        let mark = (self.limit != usize::MAX).then(|| self.packet_coder.mark());
        let before = self.packet_coder.cost;
        write(self);
        let padded = min_len(self.packet_coder.work(), self.packet_coder.entity_states) + HEADER;
        if let Some(mark) = mark
            && self.packet_coder.coder.len_bound().max(padded) + RESERVE > self.limit
            && !self.empty
        {
            self.packet_coder.rewind(mark);
            return None;
        }
        self.empty = false;
        Some(self.packet_coder.cost - before)
    }

    pub(super) fn wake(&mut self, id: u32, previous: &mut Option<u32>) {
        let entity_states = self.packet_coder.entity_states;
        self.packet_coder.list_item(List::Wakes, previous, id);
        let Scratch {
            pasts, truth, row, ..
        } = self.scratch;
        let level = self.source.level(id);
        let class = entity_states.population.status(id).class;
        let (Some(past), Some(truth)) = (
            rest_past(entity_states, id, self.source, pasts),
            self.source.latest(EntityKey { id, class }, level, truth),
        ) else {
            self.packet_coder.invalid = true;
            return;
        };
        let coded_entity = resting_entity(entity_states, id);
        self.packet_coder
            .fields(&coded_entity, &past, level, Some(truth), row);
        self.packet_coder.log.covered.push(id);
    }

    pub(super) fn all_active(&mut self, packet_costs: &mut PacketCosts) {
        let entity_states = self.packet_coder.entity_states;
        let mut neighbour = false;
        let despawned = !self.packet_coder.log.despawns.is_empty();
        for &id in &entity_states.active {
            if despawned && self.packet_coder.log.despawns.binary_search(&id).is_ok() {
                continue;
            }
            let before = self.packet_coder.cost;
            neighbour = self.active(id, neighbour);
            if neighbour {
                packet_costs
                    .active
                    .push((id, self.packet_coder.cost - before));
            } else {
                packet_costs.as_predicted.push(id);
            }
        }
    }

    pub(super) fn some_active(&mut self, partial: &Partial, packet_costs: &mut PacketCosts) {
        let order = self.packet_coder.entity_states.stalest_first();
        let mut gap = 0;
        let mut neighbour = false;
        for id in order {
            if self.packet_coder.log.despawns.binary_search(&id).is_ok() {
                continue;
            }
            gap += 1;
            if partial.active.binary_search(&id).is_err() {
                continue;
            }
            let written = self.item(|w| {
                w.packet_coder.account = PRESENCE;
                w.packet_coder.more(List::Covered, true);
                w.packet_coder.gap(List::Covered, gap);
                w.packet_coder.add_to_check(List::Covered, id);
                neighbour = w.active(id, neighbour);
                w.packet_coder.log.covered.push(id);
            });
            let Some(cost) = written else { break };
            packet_costs.active.push((id, cost));
            if !neighbour {
                packet_costs.covered_as_predicted.0 += 1;
                packet_costs.covered_as_predicted.1 += cost;
            }
            gap = 0;
        }
        self.packet_coder.end(List::Covered);
    }

    /// Writes an active entity and returns whether it differs from its prediction.
    fn active(&mut self, id: u32, neighbour: bool) -> bool {
        let entity_states = self.packet_coder.entity_states;
        let Some(entity) = entity_states.population.active(id) else {
            return false;
        };
        let head = &entity.head;
        let class = head.class;
        let key = EntityKey { id, class };
        let level = self.source.level(id);
        let Scratch {
            pasts,
            plans,
            truth,
            row,
        } = self.scratch;
        let CachedPlan { samples, plan, .. } =
            plans.find(entity_states, head, self.now, self.source);
        if samples.count > 0
            && level == head.level
            && !entity_states.expects_to_move(head)
            && !self.source.changed_after(id, samples.ticks[0])
        {
            return self.packet_coder.entity_flag(head, neighbour, false);
        }
        if samples.count == 0 {
            return self.resend(id, head.class);
        }
        // An entity that has just differed is likely to differ again; the shortcut would be wasted
        // on it.
        if level == 0
            && head.level == 0
            && entity_states.folds_since_surprise(head) > 0
            && let Some(rows) = self.source.recent_rows(key, samples, &mut self.window)
            && let class = &entity_states.layout.classes[usize::from(head.class)]
            && entity_states.classes[usize::from(head.class)]
                .relations
                .adopted()
                .is_empty()
            && let Some(motion) = plain_motion(class, plan, &entity.fields, rows)
        {
            if motion == Motion::Moves {
                self.packet_coder.log.moved.push(id);
            }
            return self.packet_coder.entity_flag(head, neighbour, false);
        }
        let window = &mut self.window;
        let found = past(
            entity_states,
            (id, head),
            self.source,
            (samples, plan),
            pasts,
            window,
        );
        let Some((past, present)) = found else {
            self.packet_coder.invalid = true;
            return false;
        };
        let present = present.filter(|_| level == 0);
        let Some(truth) = present.or_else(|| self.source.latest(key, level, truth)) else {
            self.packet_coder.invalid = true;
            return false;
        };
        past.predict(&entity.fields, Some(truth), row);
        let differs = row != truth || level != head.level;
        self.packet_coder.entity_flag(head, neighbour, differs);
        if differs {
            self.packet_coder.fields(
                &coded_entity(entity_states, id, entity),
                &past,
                level,
                Some(truth),
                row,
            );
        } else if row != past.newest() {
            self.packet_coder.log.moved.push(id);
        }
        differs
    }

    /// An active entity without a row that both ends know.
    #[cold]
    fn resend(&mut self, id: u32, class: u16) -> bool {
        let Scratch { truth, row, .. } = self.scratch;
        let Some(truth) = self.source.latest(EntityKey { id, class }, 0, truth) else {
            self.packet_coder.invalid = true;
            return false;
        };
        let class_state = &self.packet_coder.entity_states.classes[usize::from(class)];
        let reference = class_state.reference.as_deref();
        self.packet_coder
            .spawn(id, class, Cause::Resend, reference, Some(truth), row);
        self.packet_coder.sum.add(u64::from(id));
        self.packet_coder.log.levels.push((id, 0));
        self.packet_coder.log.moved.push(id);
        true
    }

    pub(super) fn spawn(&mut self, spawn: Spawn, previous: &mut Option<u32>) {
        self.packet_coder
            .list_item(List::Spawns, previous, spawn.id);
        self.packet_coder.class(spawn.class);
        let Scratch { truth, row, .. } = self.scratch;
        let Spawn { id, class, .. } = spawn;
        let Some(truth) = self.source.latest(EntityKey { id, class }, 0, truth) else {
            self.packet_coder.invalid = true;
            return;
        };
        let cause = if spawn.again {
            Cause::Resend
        } else {
            Cause::Spawn
        };
        self.packet_coder
            .appear(spawn.id, spawn.class, cause, Some(truth), row);
    }
}

/// Longest header without exclusions, in bytes.
const HEADER: usize = 18;
/// Bytes reserved for the ends of the lists.
const RESERVE: usize = 6;
