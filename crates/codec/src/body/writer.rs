//! Writes the entities of a body.

use super::{
    PRESENCE, Partial, Scratch, SenderRows, Spawn,
    coded_entity::{coded_entity, past, rest_past, resting_entity},
    min_len,
    quiet::QuietList,
};
use crate::{
    budget::PacketCosts,
    history::Window,
    ledger::Cause,
    packet_coder::{List, PacketCoder},
    past::{CachedPlan, Motion, follows_relations, plain_motion, straight_motion},
    range::RangeEncoder,
    shared_model::{EntityKey, Head},
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
        let mut order = core::mem::take(&mut self.scratch.order);
        let entity_states = self.packet_coder.entity_states;
        order.fill(entity_states, &self.packet_coder.log.despawns);
        let mut naming = Naming::Flag { neighbour: false };
        for &id in &order.flagged {
            let differs = self.counted(id, &mut naming, packet_costs);
            naming = Naming::Flag { neighbour: differs };
        }
        for (class, at) in &order.classes {
            let mut naming = Naming::Distance {
                list: QuietList::new(*class, at.len()),
                passed: 0,
            };
            for &id in &order.quiet[at.clone()] {
                self.counted(id, &mut naming, packet_costs);
            }
            if let Naming::Distance { list, .. } = naming {
                self.packet_coder.another_quiet(&list, false);
            }
        }
        self.scratch.order = order;
    }

    /// Writes an active entity, notes its cost, and returns whether it differs from its prediction.
    fn counted(&mut self, id: u32, naming: &mut Naming, packet_costs: &mut PacketCosts) -> bool {
        let before = self.packet_coder.cost;
        let differs = self.active(id, naming);
        if differs {
            let cost = self.packet_coder.cost - before;
            packet_costs.active.push((id, cost));
        } else {
            packet_costs.as_predicted.push(id);
        }
        differs
    }

    /// Says whether an active entity differs from its prediction.
    fn name(&mut self, naming: &mut Naming, head: &Head, differs: bool) {
        match naming {
            Naming::Flag { neighbour } => {
                self.packet_coder.entity_flag(head, *neighbour, differs);
            }
            Naming::Distance { list, passed } => {
                *passed += 1;
                if differs {
                    self.packet_coder.another_quiet(list, true);
                    self.packet_coder.quiet_distance(list, *passed);
                    list.advance(*passed);
                    *passed = 0;
                }
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
                neighbour = w.active(id, &mut Naming::Flag { neighbour });
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
    fn active(&mut self, id: u32, naming: &mut Naming) -> bool {
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
            self.name(naming, head, false);
            return false;
        }
        if samples.count == 0 {
            if let Naming::Distance { .. } = naming {
                self.name(naming, head, true);
            }
            return self.resend(id, head.class);
        }
        if level == 0
            && head.level == 0
            && let class = &entity_states.layout.classes[usize::from(head.class)]
            && let relations = &entity_states.classes[usize::from(head.class)].relations
            && let Some(line) = self.source.line(key)
            && let Some(motion) = straight_motion(
                (class, relations.related()),
                (samples, plan),
                &head.expected_motion,
                &line,
            )
            && (relations.adopted().is_empty()
                || (self.source.recent_rows(key, samples, &mut self.window))
                    .is_some_and(|rows| follows_relations(class, plan, relations.adopted(), rows)))
        {
            if motion == Motion::Moves {
                self.packet_coder.log.moved.push(id);
            }
            self.name(naming, head, false);
            return false;
        }
        // An entity that has just differed is likely to differ again; the shortcut would be wasted
        // on it.
        if level == 0
            && head.level == 0
            && entity_states.folds_since_surprise(head) > 0
            && let Some(rows) = self.source.recent_rows(key, samples, &mut self.window)
            && let class = &entity_states.layout.classes[usize::from(head.class)]
            && let relations = &entity_states.classes[usize::from(head.class)].relations
            && let Some(motion) =
                plain_motion((class, relations.adopted()), plan, &entity.fields, rows)
        {
            if motion == Motion::Moves {
                self.packet_coder.log.moved.push(id);
            }
            self.name(naming, head, false);
            return false;
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
        self.name(naming, head, differs);
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

/// How a packet says which entities differ from their prediction.
enum Naming {
    /// A flag for each. `neighbour` is that of the entity before.
    Flag { neighbour: bool },
    /// The distances between those that do; `passed` entities have been checked since the last one.
    Distance { list: QuietList, passed: u32 },
}

/// Longest header without exclusions, in bytes.
const HEADER: usize = 18;
/// Bytes reserved for the ends of the lists.
const RESERVE: usize = 6;
