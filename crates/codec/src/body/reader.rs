//! Reads what [`Writer`](super::writer::Writer) wrote.

use super::{
    Malformed, PRESENCE, Readout, Scratch,
    coded_entity::{coded_entity, past, rest_past, resting_entity},
    quiet::{ActiveOrder, QuietList},
};
use crate::{
    history::Window,
    kept::HashedContent,
    ledger::Cause,
    packet_coder::{List, PacketCoder},
    past::{CachedPlan, Motion},
    population::Phase,
    range::RangeDecoder,
    shared_model::Rows,
    units::Tick,
};

pub(super) struct Reader<'r, 's, 'i, R, const N: usize> {
    pub(super) packet_coder: &'r mut PacketCoder<'s, RangeDecoder<'i>, N>,
    pub(super) source: &'r R,
    pub(super) now: Tick,
    pub(super) scratch: &'r mut Scratch,
    pub(super) window: Window<'r>,
    pub(super) out: &'r mut Readout,
}

impl<R: Rows, const N: usize> Reader<'_, '_, '_, R, N> {
    pub(super) fn wake(&mut self, id: u32) -> Result<(), Malformed> {
        let entity_states = self.packet_coder.entity_states;
        let despawned = self.packet_coder.log.despawns.binary_search(&id).is_ok();
        if entity_states.phase(id) != Phase::Resting || despawned {
            return Err(Malformed);
        }
        let class = entity_states.population.status(id).class;
        let Scratch { pasts, row, .. } = self.scratch;
        let past = rest_past(entity_states, id, self.source, pasts).ok_or(Malformed)?;
        let coded_entity = resting_entity(entity_states, id);
        self.packet_coder.fields(&coded_entity, &past, 0, None, row);
        self.packet_coder.log.covered.push(id);
        self.out.wakes.push(id);
        self.out.push(id, class, row);
        if let Some(rest) = entity_states.rest_rows.get(&id) {
            self.keep_contents(class, rest.contents());
        }
        self.packet_coder.verify()
    }

    pub(super) fn all_active(&mut self) -> Result<(), Malformed> {
        let mut order = core::mem::take(&mut self.scratch.order);
        let entity_states = self.packet_coder.entity_states;
        order.fill(entity_states, &self.packet_coder.log.despawns);
        let read = self.ordered(&order);
        self.scratch.order = order;
        read
    }

    fn ordered(&mut self, order: &ActiveOrder) -> Result<(), Malformed> {
        let mut neighbour = false;
        for &id in &order.flagged {
            neighbour = self.active(id, Named::ByFlag { neighbour })?;
        }
        for (class, at) in &order.classes {
            let mut list = QuietList::new(*class, at.len());
            let mut left = &order.quiet[at.clone()];
            while self.packet_coder.another_quiet(&list, false) {
                let distance = self.packet_coder.quiet_distance(&list, 1);
                let (passed, rest) = left
                    .split_at_checked(distance as usize)
                    .ok_or(Malformed)?;
                left = rest;
                list.advance(distance);
                let (&named, passed) = passed.split_last().ok_or(Malformed)?;
                for &id in passed {
                    self.active(id, Named::Not)?;
                }
                self.active(named, Named::ByDistance)?;
            }
            for &id in left {
                self.active(id, Named::Not)?;
            }
        }
        Ok(())
    }

    pub(super) fn some_active(&mut self) -> Result<(), Malformed> {
        let mut order = self.packet_coder.entity_states.stalest_first();
        order.retain(|id| self.packet_coder.log.despawns.binary_search(id).is_err());
        let mut at = 0usize;
        let mut neighbour = false;
        loop {
            self.packet_coder.account = PRESENCE;
            if !self.packet_coder.more(List::Covered, false) {
                return Ok(());
            }
            at = at.saturating_add(self.packet_coder.gap(List::Covered, 1) as usize);
            let id = *order.get(at - 1).ok_or(Malformed)?;
            self.packet_coder.add_to_check(List::Covered, id);
            neighbour = self.active(id, Named::ByFlag { neighbour })?;
            self.packet_coder.log.covered.push(id);
        }
    }

    fn active(&mut self, id: u32, named: Named) -> Result<bool, Malformed> {
        let entity_states = self.packet_coder.entity_states;
        let entity = entity_states.population.active(id).ok_or(Malformed)?;
        let head = &entity.head;
        let Scratch {
            pasts, plans, row, ..
        } = self.scratch;
        let CachedPlan { samples, plan, .. } =
            plans.find(entity_states, head, self.now, self.source);
        if samples.count == 0 {
            return match named {
                Named::Not => Err(Malformed),
                _ => self.resend(id, head.class),
            };
        }
        let differs = match named {
            Named::ByFlag { neighbour } => self.packet_coder.entity_flag(head, neighbour, false),
            Named::ByDistance => true,
            Named::Not => false,
        };
        if !differs
            && !entity_states.expects_to_move(head)
            && !self.source.changed_after(id, samples.ticks[0])
        {
            return Ok(false);
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
        let (past, _) = found.ok_or(Malformed)?;
        if !differs && past.is_plain() && entity.fields.len() == past.newest().len() {
            let row = self.out.push(id, head.class, past.newest());
            if past.predict_plain(&entity.fields, row) == Motion::Moves {
                self.packet_coder.log.moved.push(id);
            }
            self.packet_coder.verify()?;
            return Ok(false);
        }
        if differs {
            self.packet_coder.fields(
                &coded_entity(entity_states, id, entity),
                &past,
                0,
                None,
                row,
            );
        } else {
            past.predict(&entity.fields, None, row);
            if row != past.newest() {
                self.packet_coder.log.moved.push(id);
            }
        }
        self.out.push(id, head.class, row);
        self.packet_coder.verify()?;
        Ok(differs)
    }

    /// An active entity without a row that both ends know.
    #[cold]
    fn resend(&mut self, id: u32, class: u16) -> Result<bool, Malformed> {
        let Scratch { row, .. } = self.scratch;
        let class_state = &self.packet_coder.entity_states.classes[usize::from(class)];
        let reference = class_state.reference.as_deref();
        self.packet_coder
            .spawn(id, class, Cause::Resend, reference, None, row);
        self.packet_coder.sum.add(u64::from(id));
        self.packet_coder.log.levels.push((id, 0));
        self.packet_coder.log.moved.push(id);
        self.out.push(id, class, row);
        if let Some(reference) = reference {
            self.keep_contents(class, reference.contents());
        }
        self.packet_coder.verify()?;
        Ok(true)
    }

    pub(super) fn spawn(&mut self, id: u32) -> Result<(), Malformed> {
        // An encoder reuses an id only after its despawn was folded.
        if self.packet_coder.entity_states.phase(id) != Phase::Absent {
            return Err(Malformed);
        }
        let class = self.packet_coder.class(0);
        self.packet_coder.verify()?;
        let Scratch { row, .. } = self.scratch;
        let reference = self.packet_coder.appear(id, class, Cause::Spawn, None, row);
        self.out.push(id, class, row);
        if let Some(reference) = reference {
            self.keep_contents(class, reference.contents());
        }
        self.packet_coder.verify()
    }

    /// Keeps the contents that the row just read names, where only a kept row has them.
    fn keep_contents(&mut self, class: u16, kept: &[HashedContent]) {
        for &field in &self.packet_coder.entity_states.layout.classes[usize::from(class)].contents {
            let cell = self.scratch.row[usize::from(field)];
            let found = kept.iter().find(|hashed| hashed.cell == cell);
            if let Some(hashed) = found
                && self.source.content(cell).is_none()
            {
                self.out.contents.push(hashed.clone());
            }
        }
    }
}

/// How a packet says whether an entity differs from its prediction.
enum Named {
    /// By a flag; `neighbour` is that of the entity before.
    ByFlag { neighbour: bool },
    /// It does: its distance from the one before is stated.
    ByDistance,
    /// It does not: it was passed over.
    Not,
}
