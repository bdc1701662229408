//! Reading what [`Writer`](super::writer::Writer) wrote.

use super::{
    Malformed, PRESENCE, Readout, Scratch,
    subject::{past, rest_past, sleeper, subject},
};
use crate::{
    history::Window,
    kept::Labelled,
    ledger::Cause,
    past::{Motion, Outlook},
    population::Phase,
    range::RangeDecoder,
    session::{List, Session},
    twin::Rows,
    units::Tick,
};

pub(super) struct Reader<'r, 's, 'i, R, const N: usize> {
    pub(super) session: &'r mut Session<'s, RangeDecoder<'i>, N>,
    pub(super) side: &'r R,
    pub(super) now: Tick,
    pub(super) scratch: &'r mut Scratch,
    pub(super) window: Window<'r>,
    pub(super) out: &'r mut Readout,
}

impl<R: Rows, const N: usize> Reader<'_, '_, '_, R, N> {
    pub(super) fn wake(&mut self, id: u32) -> Result<(), Malformed> {
        let book = self.session.book;
        let leaves = self.session.log.despawns.binary_search(&id).is_ok();
        if book.phase(id) != Phase::Resting || leaves {
            return Err(Malformed);
        }
        let class = book.population.seat(id).class;
        let Scratch { pasts, row, .. } = self.scratch;
        let past = rest_past(book, id, self.side, pasts).ok_or(Malformed)?;
        let subject = sleeper(book, id);
        self.session.fields(&subject, &past, 0, None, row);
        self.session.log.covered.push(id);
        self.out.wakes.push(id);
        self.out.push(id, class, row);
        if let Some(rest) = book.rest_rows.get(&id) {
            self.hold(class, rest.contents());
        }
        self.session.verify()
    }

    pub(super) fn all_active(&mut self) -> Result<(), Malformed> {
        let book = self.session.book;
        let mut neighbour = false;
        let leaves = !self.session.log.despawns.is_empty();
        for &id in &book.active {
            if !leaves || self.session.log.despawns.binary_search(&id).is_err() {
                neighbour = self.active(id, neighbour)?;
            }
        }
        Ok(())
    }

    pub(super) fn some_active(&mut self) -> Result<(), Malformed> {
        let mut order = self.session.book.stalest_first();
        order.retain(|id| self.session.log.despawns.binary_search(id).is_err());
        let mut at = 0usize;
        let mut neighbour = false;
        loop {
            self.session.account = PRESENCE;
            if !self.session.more(List::Covered, false) {
                return Ok(());
            }
            at = at.saturating_add(self.session.gap(List::Covered, 1) as usize);
            let id = *order.get(at - 1).ok_or(Malformed)?;
            self.session.vouch(List::Covered, id);
            neighbour = self.active(id, neighbour)?;
            self.session.log.covered.push(id);
        }
    }

    fn active(&mut self, id: u32, neighbour: bool) -> Result<bool, Malformed> {
        let book = self.session.book;
        let entity = book.population.active(id).ok_or(Malformed)?;
        let head = &entity.head;
        let Scratch {
            pasts, plans, row, ..
        } = self.scratch;
        let Outlook { samples, plan, .. } = plans.find(book, head, self.now, self.side);
        if samples.count == 0 {
            return self.resend(id, head.class);
        }
        let differs = self.session.entity_flag(head, neighbour, false);
        if !differs && !head.expects_motion && !self.side.changed_after(id, samples.ticks[0]) {
            return Ok(false);
        }
        let window = &mut self.window;
        let found = past(book, (id, head), self.side, (samples, plan), pasts, window);
        let (past, _) = found.ok_or(Malformed)?;
        if !differs && past.is_plain() && entity.fields.len() == past.newest().len() {
            let row = self.out.push(id, head.class, past.newest());
            if past.expect_plainly(&entity.fields, row) == Motion::Moves {
                self.session.log.moved.push(id);
            }
            self.session.verify()?;
            return Ok(false);
        }
        if differs {
            self.session
                .fields(&subject(book, id, entity), &past, 0, None, row);
        } else {
            past.expect(&entity.fields, None, row);
            if row != past.newest() {
                self.session.log.moved.push(id);
            }
        }
        self.out.push(id, head.class, row);
        self.session.verify()?;
        Ok(differs)
    }

    /// An active entity of which no row is known to both ends any more.
    #[cold]
    fn resend(&mut self, id: u32, class: u16) -> Result<bool, Malformed> {
        let Scratch { row, .. } = self.scratch;
        let class_state = &self.session.book.classes[usize::from(class)];
        let reference = class_state.reference.as_deref();
        self.session
            .spawn(id, class, Cause::Resend, reference, None, row);
        self.session.sum.add(u64::from(id));
        self.session.log.levels.push((id, 0));
        self.session.log.moved.push(id);
        self.out.push(id, class, row);
        if let Some(reference) = reference {
            self.hold(class, reference.contents());
        }
        self.session.verify()?;
        Ok(true)
    }

    pub(super) fn spawn(&mut self, id: u32) -> Result<(), Malformed> {
        // An encoder reuses an id only after its despawn was folded.
        if self.session.book.phase(id) != Phase::Absent {
            return Err(Malformed);
        }
        let class = self.session.class(0);
        self.session.verify()?;
        let Scratch { row, .. } = self.scratch;
        let reference = self.session.appear(id, class, Cause::Spawn, None, row);
        self.out.push(id, class, row);
        if let Some(reference) = reference {
            self.hold(class, reference.contents());
        }
        self.session.verify()
    }

    /// The row that was just read may name contents that only a kept row has.
    fn hold(&mut self, class: u16, kept: &[Labelled]) {
        for &field in &self.session.book.layout.classes[usize::from(class)].contents {
            let cell = self.scratch.row[usize::from(field)];
            let found = kept.iter().find(|labelled| labelled.cell == cell);
            if let Some(labelled) = found
                && self.side.content(cell).is_none()
            {
                self.out.contents.push(labelled.clone());
            }
        }
    }
}
