//! The body of a packet: who leaves, who wakes, who differs, who appears.
//!
//! This is the one file that shows the whole pipeline. `write_body` and `read_body` walk the same
//! lists in the same order; what an entity's values look like is in `entity.rs`.

use alloc::{sync::Arc, vec::Vec};

use prescient_schema::Content;

use crate::{
    entity::Subject,
    history::Window,
    kept::KeptRow,
    ledger::{Account, Cause},
    model::bank::{Length, Moment},
    past::{Outlook, Past, PlanCache, follow_contract},
    population::{Entity, Phase},
    predict::{Plan, ROWS, Samples},
    range::{Checkpoint, RangeDecoder, RangeEncoder},
    session::{Coder, List, Session, Topic},
    twin::{Book, Head, Rows},
    units::Tick,
};

/// What a packet shall say, each list ascending by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    pub despawns: Vec<u32>,
    /// Entities at rest that no longer hold their value.
    pub wakes: Vec<u32>,
    pub spawns: Vec<Spawn>,
    /// `None` for a full packet; else the active entities to cover and the bytes not to exceed.
    pub partial: Option<Partial>,
    /// There is more to say than this, so that it is not to be sent as it is.
    pub is_draft: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Spawn {
    pub id: u32,
    pub class: u16,
    /// Was in an earlier packet, too.
    pub again: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Partial {
    /// Sorted by id.
    pub active: Vec<u32>,
    pub limit: usize,
}

/// What each entity cost, for choosing what to leave out; ids are unique across the lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bill {
    /// What naming those who leave cost.
    pub despawns: u64,
    pub wakes: Vec<(u32, u64)>,
    /// Active entities that differed from what was expected of them.
    pub active: Vec<(u32, u64)>,
    pub silent: Vec<u32>,
    /// How many active entities a part named only to say that they are as expected, and at what
    /// cost.
    pub quiet: (u64, u64),
    pub spawns: Vec<(u32, u64)>,
}

impl Bill {
    /// Entities that have values in it.
    pub fn len(&self) -> usize {
        self.wakes.len() + self.active.len() + self.silent.len() + self.spawns.len()
    }

    pub fn clear(&mut self) {
        self.despawns = 0;
        self.wakes.clear();
        self.active.clear();
        self.silent.clear();
        self.quiet = (0, 0);
        self.spawns.clear();
    }
}

/// Buffers that live from packet to packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    plans: PlanCache,
    pasts: PastBuffers,
    truth: Vec<i64>,
    row: Vec<i64>,
}

/// Room for the rows of a past that have to be worked out.
#[derive(Clone, Debug, Default)]
struct PastBuffers {
    rows: [Vec<i64>; ROWS],
    contract: Vec<i64>,
}

/// The sender's side: its archive, and what it wants.
pub(crate) trait Truth: Rows {
    /// The precision that an entity shall have from now on.
    fn level(&self, id: u32) -> u8;
}

/// Writes a packet; `log` says afterwards what it held.
pub(crate) fn write_body<const N: usize>(
    session: &mut Session<'_, RangeEncoder, N>,
    contents: &Contents,
    side: &dyn Truth,
    now: Tick,
    scratch: &mut Scratch,
    bill: &mut Bill,
) {
    let limit = contents
        .partial
        .as_ref()
        .map_or(usize::MAX, |partial| partial.limit);
    scratch.plans.begin();
    let mut writer = Writer {
        session,
        side,
        now,
        scratch,
        window: Window::default(),
        limit,
        empty: true,
    };
    let mut previous = None;
    for &id in &contents.despawns {
        let done = writer.item(|w| {
            w.session.list_item(List::Despawns, &mut previous, id);
            w.session.log.despawns.push(id);
        });
        if done.is_none() {
            break;
        }
    }
    writer.session.end(List::Despawns);
    bill.despawns = writer.session.cost;
    previous = None;
    for &id in &contents.wakes {
        match writer.item(|w| w.wake(id, &mut previous)) {
            Some(cost) => bill.wakes.push((id, cost)),
            None => break,
        }
    }
    writer.session.end(List::Wakes);
    match &contents.partial {
        None => writer.all_active(bill),
        Some(partial) => writer.some_active(partial, bill),
    }
    previous = None;
    for &spawn in &contents.spawns {
        match writer.item(|w| w.spawn(spawn, &mut previous)) {
            Some(cost) => bill.spawns.push((spawn.id, cost)),
            None => break,
        }
    }
    writer.session.end(List::Spawns);
    session.log.covered.sort_unstable();
}

struct Writer<'w, 's, const N: usize> {
    session: &'w mut Session<'s, RangeEncoder, N>,
    side: &'w dyn Truth,
    now: Tick,
    scratch: &'w mut Scratch,
    window: Window<'w>,
    limit: usize,
    /// Nothing was written yet: the first item goes out even if it breaks the limit, because an
    /// update is never cut in two.
    empty: bool,
}

impl<const N: usize> Writer<'_, '_, N> {
    /// Writes one item and returns its cost, or takes it back and returns `None` if the packet
    /// would grow beyond its limit.
    fn item(&mut self, write: impl FnOnce(&mut Self)) -> Option<u64> {
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

    fn wake(&mut self, id: u32, previous: &mut Option<u32>) {
        let book = self.session.book;
        self.session.list_item(List::Wakes, previous, id);
        let Scratch {
            pasts, truth, row, ..
        } = self.scratch;
        let level = self.side.level(id);
        let (Some(past), Some(truth)) = (
            rest_past(book, id, self.side, pasts),
            self.side.latest(id, level, truth),
        ) else {
            self.session.invalid = true;
            return;
        };
        let subject = sleeper(book, id);
        self.session
            .fields(&subject, &past, level, Some(truth), row);
        self.session.log.covered.push(id);
    }

    fn all_active(&mut self, bill: &mut Bill) {
        let book = self.session.book;
        let mut neighbour = false;
        for &id in &book.active {
            if self.session.log.despawns.binary_search(&id).is_ok() {
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

    fn some_active(&mut self, partial: &Partial, bill: &mut Bill) {
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
            let Some(truth) = self.side.latest(id, 0, truth) else {
                self.session.invalid = true;
                return false;
            };
            let reference = book.classes[usize::from(head.class)].reference.as_deref();
            self.session
                .spawn(id, head.class, Cause::Resend, reference, Some(truth), row);
            self.session.sum.add(u64::from(id));
            self.session.log.levels.push((id, 0));
            self.session.log.moved.push(id);
            return true;
        }
        let window = &mut self.window;
        let found = past(book, (id, head), self.side, (samples, plan), pasts, window);
        let Some((past, present)) = found else {
            self.session.invalid = true;
            return false;
        };
        let present = present.filter(|_| level == 0);
        let Some(truth) = present.or_else(|| self.side.latest(id, level, truth)) else {
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

    fn spawn(&mut self, spawn: Spawn, previous: &mut Option<u32>) {
        self.session.list_item(List::Spawns, previous, spawn.id);
        self.session.class(spawn.class);
        let Scratch { truth, row, .. } = self.scratch;
        let Some(truth) = self.side.latest(spawn.id, 0, truth) else {
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

/// What a packet said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readout {
    /// Entities with new values (appeared, woke, differed, or moved as expected).
    pub rows: Vec<ReadRow>,
    pub values: Vec<i64>,
    /// Ids of entities that were at rest, ascending.
    pub wakes: Vec<u32>,
    /// What containers of the rows hold, where the archive may not have it.
    pub contents: Vec<Arc<Content>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadRow {
    pub id: u32,
    pub class: u16,
    pub start: usize,
    pub len: usize,
}

impl Readout {
    pub fn clear(&mut self) {
        self.rows.clear();
        self.values.clear();
        self.wakes.clear();
        self.contents.clear();
    }

    fn push(&mut self, id: u32, class: u16, row: &[i64]) {
        self.rows.push(ReadRow {
            id,
            class,
            start: self.values.len(),
            len: row.len(),
        });
        self.values.extend_from_slice(row);
    }

    pub fn row(&self, row: &ReadRow) -> &[i64] {
        &self.values[row.start..][..row.len]
    }
}

/// Reads what [`write_body`] wrote.
pub(crate) fn read_body<const N: usize>(
    session: &mut Session<'_, RangeDecoder<'_>, N>,
    full: bool,
    side: &dyn Rows,
    now: Tick,
    scratch: &mut Scratch,
    limits: &ReadLimits,
    out: &mut Readout,
) -> Result<(), Malformed> {
    session.allowance = limits.decisions;
    scratch.plans.begin();
    let mut reader = Reader {
        session,
        side,
        now,
        scratch,
        window: Window::default(),
        out,
    };
    let mut previous = None;
    while let Some(id) = reader.session.next_item(List::Despawns, &mut previous)? {
        reader.session.log.despawns.push(id);
    }
    previous = None;
    while let Some(id) = reader.session.next_item(List::Wakes, &mut previous)? {
        reader.wake(id)?;
    }
    if full {
        reader.all_active()?;
    } else {
        reader.some_active()?;
    }
    previous = None;
    while let Some(id) = reader.session.next_item(List::Spawns, &mut previous)? {
        let nearby = may_appear(id, reader.session.log.spawns.len(), reader.session.book);
        if id as usize >= limits.entities || !nearby {
            return Err(Malformed);
        }
        reader.spawn(id)?;
    }
    session.log.covered.sort_unstable();
    session.verify()
}

/// The packet says what no encoder writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Malformed;

/// What a packet may make a reader hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadLimits {
    pub entities: usize,
    pub decisions: usize,
}

/// How many decisions a body may unfold into. What is well predicted costs almost nothing, so
/// without this a few bytes could fill a receiver's memory; a sender pads what says even more
/// with zeros, which mean nothing behind the end of the stream.
pub(crate) fn allowance(body: usize, book: &Book) -> usize {
    DECISIONS_PER_BYTE * (body + FREE_BYTES) + 10 * book.active.len()
}

/// How long a body has to be for this many decisions.
pub(crate) fn least_len(decisions: usize, book: &Book) -> usize {
    decisions
        .saturating_sub(allowance(0, book))
        .div_ceil(DECISIONS_PER_BYTE)
}

/// Leaves out what [`may_appear`] does not let through.
pub(crate) fn retain_nearby(spawns: &mut Vec<Spawn>, book: &Book) {
    let mut nth = 0;
    spawns.retain(|spawn| {
        let nearby = may_appear(spawn.id, nth, book);
        nth += usize::from(nearby);
        nearby
    });
}

/// Whether an id is near enough to those in use to be given to the `nth` entity that appears in a
/// packet: tables grow with the highest id, so a single far one must not make them huge.
pub(crate) fn may_appear(id: u32, nth: usize, book: &Book) -> bool {
    (id as usize) < NEARBY + 2 * book.population.len() + 64 * nth
}

struct Reader<'r, 's, 'i, const N: usize> {
    session: &'r mut Session<'s, RangeDecoder<'i>, N>,
    side: &'r dyn Rows,
    now: Tick,
    scratch: &'r mut Scratch,
    window: Window<'r>,
    out: &'r mut Readout,
}

impl<const N: usize> Reader<'_, '_, '_, N> {
    fn wake(&mut self, id: u32) -> Result<(), Malformed> {
        let book = self.session.book;
        if book.phase(id) != Phase::Resting {
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

    fn all_active(&mut self) -> Result<(), Malformed> {
        let book = self.session.book;
        let mut neighbour = false;
        for &id in &book.active {
            if self.session.log.despawns.binary_search(&id).is_err() {
                neighbour = self.active(id, neighbour)?;
            }
        }
        Ok(())
    }

    fn some_active(&mut self) -> Result<(), Malformed> {
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
            let reference = book.classes[usize::from(head.class)].reference.as_deref();
            self.session
                .spawn(id, head.class, Cause::Resend, reference, None, row);
            self.session.sum.add(u64::from(id));
            self.session.log.levels.push((id, 0));
            self.session.log.moved.push(id);
            self.out.push(id, head.class, row);
            if let Some(reference) = reference {
                self.hold(head.class, reference.contents());
            }
            self.session.verify()?;
            return Ok(true);
        }
        let differs = self.session.entity_flag(head, neighbour, false);
        if !differs && !head.expects_motion && !self.side.changed_after(id, samples.ticks[0]) {
            return Ok(false);
        }
        let window = &mut self.window;
        let found = past(book, (id, head), self.side, (samples, plan), pasts, window);
        let (past, _) = found.ok_or(Malformed)?;
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

    fn spawn(&mut self, id: u32) -> Result<(), Malformed> {
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
    fn hold(&mut self, class: u16, kept: &[Arc<Content>]) {
        for &field in &self.session.book.layout.classes[usize::from(class)].contents {
            let cell = self.scratch.row[usize::from(field)];
            let found = kept.iter().find(|content| content.cell() == cell);
            if let Some(content) = found
                && self.side.content(cell).is_none()
            {
                self.out.contents.push(content.clone());
            }
        }
    }
}

impl<C: Coder, const N: usize> Session<'_, C, N> {
    pub fn list_item(&mut self, list: List, previous: &mut Option<u32>, id: u32) -> u32 {
        self.account = PRESENCE;
        self.more(list, true);
        let base = previous.map_or(0, |p| p + 1);
        let id = base.wrapping_add(self.gap(list, id.wrapping_sub(base) + 1) - 1);
        self.vouch(list, id);
        *previous = Some(id);
        id
    }

    /// Values alone do not say whose they are: the check covers every id that a list names, too.
    fn vouch(&mut self, list: List, id: u32) {
        self.sum.add((list as u64) << 32 | u64::from(id));
    }

    pub fn end(&mut self, list: List) {
        self.account = PRESENCE;
        self.more(list, false);
    }

    /// The class of an entity that appears, given the one before.
    pub fn class(&mut self, class: u16) -> u16 {
        let count = self.book.layout.schema.classes.len() as u32;
        let before = self
            .log
            .spawns
            .last()
            .map_or(0, |&(_, class)| u32::from(class) + 1);
        let contexts = [before, 0, before, 0, 0];
        self.symbol(Topic::Class, 0, &contexts, count, i64::from(class)) as u16
    }

    pub fn appear(
        &mut self,
        id: u32,
        class: u16,
        cause: Cause,
        truth: Option<&[i64]>,
        row: &mut Vec<i64>,
    ) -> Option<Arc<KeptRow>> {
        let earlier = self.log.references.iter().rev().find(|(c, _)| *c == class);
        let reference = match earlier {
            Some((_, row)) => Some(row.clone()),
            None => self.book.classes[usize::from(class)].reference.clone(),
        };
        self.sum.add(u64::from(id) << 16 | u64::from(class));
        self.spawn(id, class, cause, reference.as_deref(), truth, row);
        let kept = reference.as_deref().map_or(&[][..], KeptRow::contents);
        let find = |cell| self.find(cell, kept);
        let made = Arc::new(KeptRow::with(&self.book.layout, class, row, find));
        match self.log.references.iter_mut().find(|(c, _)| *c == class) {
            Some((_, row)) => *row = made,
            None => self.log.references.push((class, made)),
        }
        self.log.spawns.push((id, class));
        self.log.moved.push(id);
        self.log.covered.push(id);
        reference
    }
}

impl<const N: usize> Session<'_, RangeDecoder<'_>, N> {
    fn next_item(
        &mut self,
        list: List,
        previous: &mut Option<u32>,
    ) -> Result<Option<u32>, Malformed> {
        self.account = PRESENCE;
        if !self.more(list, false) {
            return Ok(None);
        }
        let base = previous
            .map_or(Some(0), |p: u32| p.checked_add(1))
            .ok_or(Malformed)?;
        let id = base.checked_add(self.gap(list, 1) - 1).ok_or(Malformed)?;
        self.verify()?;
        self.vouch(list, id);
        *previous = Some(id);
        Ok(Some(id))
    }

    fn verify(&self) -> Result<(), Malformed> {
        if self.invalid || self.coder.overrun() || self.is_exhausted() {
            Err(Malformed)
        } else {
            Ok(())
        }
    }
}

/// Where a session was; see [`Session::rewind`].
pub(crate) struct Mark {
    coder: Checkpoint,
    bank: Moment,
    decisions: Length,
    surprises: usize,
    moved: usize,
    spawns: usize,
    despawns: usize,
    covered: usize,
    levels: usize,
    references: Vec<(u16, Arc<KeptRow>)>,
    charged: usize,
    made: usize,
    sum: crate::check::Checksum,
    cost: u64,
}

impl<const N: usize> Session<'_, RangeEncoder, N> {
    fn mark(&mut self) -> Mark {
        Mark {
            coder: self.coder.checkpoint(),
            bank: self.bank.mark(),
            decisions: self.log.decisions.len(),
            surprises: self.log.surprises.len(),
            moved: self.log.moved.len(),
            spawns: self.log.spawns.len(),
            despawns: self.log.despawns.len(),
            covered: self.log.covered.len(),
            levels: self.log.levels.len(),
            references: self.log.references.clone(),
            charged: self.charged,
            made: self.made.len(),
            sum: self.sum,
            cost: self.cost,
        }
    }

    fn rewind(&mut self, to: Mark) {
        self.coder.rewind(to.coder);
        self.bank.rewind(to.bank);
        self.log.decisions.truncate(to.decisions);
        self.log.surprises.truncate(to.surprises);
        self.log.moved.truncate(to.moved);
        self.log.spawns.truncate(to.spawns);
        self.log.despawns.truncate(to.despawns);
        self.log.covered.truncate(to.covered);
        self.log.levels.truncate(to.levels);
        self.log.references = to.references;
        self.charged = to.charged;
        self.made.truncate(to.made);
        self.sum = to.sum;
        self.cost = to.cost;
    }
}

fn subject<'a>(book: &Book, id: u32, entity: &'a Entity) -> Subject<'a> {
    let Head { class, level, .. } = entity.head;
    Subject {
        id,
        class,
        level,
        woken: false,
        behind: book.folds_since_surprise(&entity.head),
        states: &entity.fields,
    }
}

/// An entity that was at rest.
fn sleeper(book: &Book, id: u32) -> Subject<'static> {
    let seat = book.population.seat(id);
    Subject {
        id,
        class: seat.class,
        level: seat.level,
        woken: true,
        behind: 0,
        states: &[],
    }
}

/// What an active entity is predicted from, and its newest row if that was at hand.
#[inline]
fn past<'a, 's: 'a>(
    book: &'a Book,
    (id, head): (u32, &Head),
    side: &'s (impl Rows + ?Sized),
    (samples, plan): (&Samples, &'a Plan),
    buffers: &'a mut PastBuffers,
    window: &mut Window<'s>,
) -> Option<(Past<'a>, Option<&'a [i64]>)> {
    let class = &book.layout.classes[usize::from(head.class)];
    let views = side.rows(id, samples, head.level, &mut buffers.rows, window)?;
    let mut past = Past {
        class,
        plan,
        rows: views.rows,
        contract: &[],
        kept: &[],
    };
    if class.has_contract
        && let Some(contract) = &book.layout.schema.classes[usize::from(head.class)].contract
    {
        let newest = past.newest();
        follow_contract(contract, class, newest, plan.ahead, &mut buffers.contract);
        past.contract = &buffers.contract;
    }
    Some((past, views.present))
}

/// The past of an entity at rest: it held one row.
fn rest_past<'a>(
    book: &'a Book,
    id: u32,
    side: &'a dyn Rows,
    buffers: &'a mut PastBuffers,
) -> Option<Past<'a>> {
    let class = book.population.seat(id).class;
    let class = &book.layout.classes[usize::from(class)];
    let row = book.rest_row(id, side, &mut buffers.rows[0])?;
    let mut past = Past::resting(class, row);
    if let Some(rest) = book.rest_rows.get(&id) {
        past.kept = rest.contents();
    }
    Some(past)
}

const PRESENCE: Account = Account {
    class: None,
    field: None,
    cause: Cause::Presence,
};

const DECISIONS_PER_BYTE: usize = 128;
const FREE_BYTES: usize = 64;
const NEARBY: usize = 1 << 13;

/// Bytes that a header usually has at most.
const HEADER: usize = 17;
/// Bytes kept free for the ends of the lists.
const RESERVE: usize = 6;
