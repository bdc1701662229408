//! What both ends hold identically: the model as of the fold point.
//!
//! A [`Twin`] changes only when a packet is folded, and both ends fold the same packets in the
//! same order. Everything that affects how a packet is parsed is in here: probabilities, which
//! entities are active, what each was last seen to do, and at which ticks both ends know it.
//! Values are not: each end reads them from its own archive, at ticks the twin names.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
    vec::Vec,
};

use prescient_schema::Content;

use crate::{
    check::Checksum,
    config::Config,
    history::Window,
    kept::KeptRow,
    layout::{ClassLayout, Layout},
    log::{Log, Surprise},
    model::{
        bank::{Bank, Learning, Moment, SLICES},
        repeats::Repeats,
    },
    population::{Entity, Phase, Population, Seat},
    predict::{ALL, Costs, DEPTH, Predictor, ROWS, Samples, bit_length},
    ranking::Ranking,
    units::{Sequence, Tick},
};

/// The shared model of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Twin {
    pub bank: Bank,
    pub book: Book,
    learning: bool,
    journal: Journal,
}

/// Everything about a model but its probabilities.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    pub layout: Arc<Layout>,
    pub population: Population,
    /// Ids of active entities, ascending.
    pub active: Vec<u32>,
    /// What is known about the fields of a class before an entity has a record of its own.
    pub classes: Vec<ClassState>,
    /// Ticks of the newest folded packets, newest last.
    folds: Vec<Tick>,
    pub fold_count: u32,
    last_partial: u32,
    /// Entities whose precision changed, and by which packet, while older ones may follow.
    releveled: Vec<(u32, Sequence)>,
    /// Rows of resting entities that one end has meanwhile seen change.
    pub rest_rows: BTreeMap<u32, KeptRow>,
}

/// The fixed part of an [`Entity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub class: u16,
    pub level: u8,
    /// Whether anything but holding still is expected of it.
    pub expects_motion: bool,
    /// Bit `k` says whether the fold `covered_at - k` covered this entity; later folds did.
    covered: u64,
    covered_at: u32,
    /// Bit `k` says whether the fold `surprised_at - k` held a surprise; later ones did not.
    surprised: u32,
    surprised_at: u32,
    moved_at: u32,
}

impl Head {
    /// Notes whether the newest fold covered this entity; folds since the last note did.
    fn cover(&mut self, fold: u32, covered: bool) {
        let behind = fold - self.covered_at;
        let filled = if behind > 64 {
            u64::MAX
        } else {
            self.covered.checked_shl(behind).unwrap_or(0)
                | u64::MAX.checked_shr(64 - behind).unwrap_or(0)
        };
        self.covered = filled & !1 | u64::from(covered);
        self.covered_at = fold;
    }
}

/// What one field of one entity was last seen to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldState {
    /// Bit `k` says whether it surprised at the entity's `k`-th last surprise.
    pub surprised: u8,
    /// Bit `k` says whether it surprised at the fold `k` before the entity's last surprise.
    pub history: u32,
    /// After how many folds its history repeats itself, as far as it does, and above that its
    /// favourite predictor.
    habits: u8,
    /// Bit length of the last residual, and its sign in bit 7.
    pub last: u8,
    /// The residuals of the entity's last two surprises, roughly: the newest in the upper half,
    /// the one before in the lower, each 0 for none, then ±1, ±2 and beyond.
    pub recent: u8,
    pub costs: Costs,
}

impl FieldState {
    /// A field of which nothing was seen.
    pub const NEW: Self = Self {
        surprised: 0,
        history: 0,
        habits: 0,
        last: 0,
        recent: 0,
        costs: Costs([0; 4]),
    };

    /// The entity surprised, `passed` folds after the last time.
    #[inline]
    fn pass(&mut self, passed: u32) {
        self.surprised <<= 1;
        self.history = self.history.checked_shl(passed).unwrap_or(0);
        self.recent >>= 4;
    }

    /// This field had a part in it.
    #[inline]
    fn surprise(&mut self, surprise: &Surprise) {
        self.surprised |= 1;
        self.history |= 1;
        self.last = surprise.last;
        self.recent |= rough(surprise.last) << 4;
        if let Some(costs) = &surprise.costs {
            self.costs.learn(costs);
            self.habits = self.habits & PERIOD | (self.costs.best(ALL) as u8) << PERIOD_BITS;
        }
    }

    /// Looks for the period anew if the history no longer repeats itself.
    #[inline]
    fn follow_rhythm(&mut self) {
        let history = self.history;
        let old = self.habits & PERIOD;
        if old == 0 || (history ^ history >> old) & 1 == 1 {
            self.habits = self.habits & !PERIOD | period(history);
        }
    }

    /// Whether anything but holding is ever chosen.
    #[inline]
    fn expects_motion(&self) -> bool {
        self.habits >> PERIOD_BITS != Predictor::Hold as u8
    }

    /// The predictor that was cheapest of all that ever had a say.
    #[inline]
    pub fn favourite(&self) -> Predictor {
        Predictor::from_number(self.habits >> PERIOD_BITS)
    }

    /// Whether it surprises if its history, now `behind` folds old, goes on repeating itself, and
    /// for how long it has.
    #[inline]
    pub fn echo(&self, behind: u32) -> (bool, u32) {
        let history = self.history.checked_shl(behind).unwrap_or(0);
        let period = u32::from(self.habits & PERIOD).max(1);
        let run = (history ^ history >> period).trailing_zeros();
        (history >> (period - 1) & 1 == 1, run)
    }
}

/// A residual, of which bit length and sign are given, as a number below 7.
#[inline]
fn rough(residual: u8) -> u8 {
    let size = (residual & 0x7F).min(3);
    2 * size - u8::from(residual < 0x80 && size > 0)
}

/// The distance at which a history repeats itself for longest.
#[cold]
fn period(history: u32) -> u8 {
    let run = |period: u32| {
        (history ^ history >> period)
            .trailing_zeros()
            .min(32 - period)
    };
    let longest = (1..=LONGEST_PERIOD).rev().max_by_key(|&period| run(period));
    longest.unwrap_or(1) as u8
}

const LONGEST_PERIOD: u32 = 20;
/// The part of [`FieldState::habits`] that is the period.
const PERIOD: u8 = (1 << PERIOD_BITS) - 1;
const PERIOD_BITS: u32 = 5;

/// What is known about a field of all entities of a class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassField {
    pub costs: Costs,
    pub repeats: Repeats,
}

impl ClassField {
    fn add_to(&self, sum: &mut Checksum) {
        sum.add(self.costs.bits());
        for word in self.repeats.words() {
            sum.add(word);
        }
    }
}

/// What is known about a class.
#[derive(Clone, Debug)]
pub(crate) struct ClassState {
    pub fields: Box<[ClassField]>,
    pub ranking: Ranking,
    /// The newest entity that appeared: the best guess for the next one.
    pub reference: Option<Arc<KeptRow>>,
}

impl Twin {
    /// Only an `undoable` twin can roll back; the other end is spared the copies that this takes.
    pub fn new(layout: Arc<Layout>, config: &Config, undoable: bool) -> Self {
        let learning = config.bank_learning();
        let fresh = |class: &ClassLayout| ClassState {
            fields: alloc::vec![ClassField::default(); class.shapes.len()].into(),
            ranking: Ranking::new(class),
            reference: None,
        };
        let (classes, start) = match &layout.beginning {
            Some(beginning) => (beginning.classes.clone(), Some(beginning.start.clone())),
            None => (layout.classes.iter().map(fresh).collect(), None),
        };
        let book = Book {
            layout,
            population: Population::default(),
            active: Vec::new(),
            classes,
            folds: Vec::new(),
            fold_count: 0,
            last_partial: 0,
            releveled: Vec::new(),
            rest_rows: BTreeMap::new(),
        };
        let journal = Journal {
            kept: undoable,
            ..Journal::default()
        };
        Self {
            bank: Bank::new(
                book.layout.pages,
                learning,
                config.profile.contexts(),
                config.profile.page_bits(),
                start,
            ),
            book,
            learning: learning != Learning::Off,
            journal,
        }
    }

    /// Learns from a packet that both ends know to be applied.
    pub fn fold<const N: usize>(&mut self, log: &Log, rows: &dyn Rows) {
        if !self.journal.kept {
            self.bank.settle();
        } else if self.journal.start.is_none() {
            self.journal.start = Some(self.bank.mark());
        }
        self.journal.note(Undo::Fold {
            oldest: (self.book.folds.len() == FOLDS).then(|| self.book.folds[0]),
            last_partial: self.book.last_partial,
        });
        if self.book.folds.len() == FOLDS {
            self.book.folds.remove(0);
        }
        self.book.folds.push(log.tick);
        self.book.fold_count += 1;
        if self.learning {
            self.bank.replay::<N>(&log.decisions);
        }
        for &id in &log.despawns {
            self.remove(id);
        }
        for &(id, class) in &log.spawns {
            self.appear(id, class);
        }
        for &id in &log.moved {
            let fold = self.book.fold_count;
            match self.change(id) {
                Some(entity) => entity.head.moved_at = fold,
                None => self.wake(id),
            }
        }
        if !log.full {
            self.book.last_partial = self.book.fold_count;
            self.note_coverage(&log.covered);
        }
        self.note_levels(log);
        if self.learning {
            self.note_surprises(log);
            for (class, row) in &log.references {
                let state = &mut self.book.classes[usize::from(*class)];
                let old = state.reference.replace(row.clone());
                self.journal.note(Undo::Reference { class: *class, old });
            }
        }
        if self.book.fold_count.is_multiple_of(SWEEP) {
            self.sweep(rows);
        }
    }

    /// Makes everything since the last commit final.
    pub fn commit(&mut self) {
        self.bank.settle();
        self.journal.start = None;
        self.journal.steps.clear();
        self.journal.fields.clear();
        self.journal.repeats.clear();
        self.journal.heads.clear();
        self.journal.rankings.clear();
    }

    /// Takes back everything since the last [`commit`](Self::commit).
    pub fn roll_back(&mut self) {
        if let Some(start) = self.journal.start.take() {
            self.bank.rewind(start);
        }
        while let Some(step) = self.journal.steps.pop() {
            self.take_back(step);
        }
    }

    /// A digest of a part of the model and of the values it rests on: the whole passes within
    /// [`SLICES`] rounds, entities at rest more slowly. Values are read only where `vouched` says
    /// that both ends have them.
    pub fn digest(
        &self,
        round: u32,
        now: Tick,
        rows: &dyn Rows,
        vouched: &dyn Fn(u32) -> bool,
    ) -> u64 {
        let slice = round % SLICES;
        let book = &self.book;
        let mut sum = Checksum::new(self.bank.digest(slice));
        sum.add(u64::from(book.fold_count));
        for (class, state) in book.classes.iter().enumerate() {
            let first = book.layout.classes[class].first_page;
            let start = (slice + SLICES - first % SLICES) % SLICES;
            for field in state
                .fields
                .iter()
                .skip(start as usize)
                .step_by(SLICES as usize)
            {
                field.add_to(&mut sum);
            }
        }
        let mut buffer = Vec::new();
        for &id in book.active.iter().filter(|&&id| id % SLICES == slice) {
            let Some(entity) = book.population.active(id) else {
                continue;
            };
            book.add_entity(&mut sum, id);
            let samples = book.samples(book.folds_known(&entity.head), now);
            if vouched(id) && samples.count > 0 {
                let row = rows.row(id, samples.ticks[0], entity.head.level, &mut buffer);
                sum.add_row(row.unwrap_or_default());
            }
        }
        let count = book.population.len() as u32;
        for step in 0..count.min(RESTING_PER_ROUND) {
            let id = round.wrapping_mul(RESTING_PER_ROUND).wrapping_add(step) % count;
            if book.phase(id) == Phase::Resting {
                book.add_entity(&mut sum, id);
                if vouched(id) {
                    let row = book.rest_row(id, rows, &mut buffer);
                    sum.add_row(row.unwrap_or_default());
                }
            }
        }
        sum.value()
    }

    /// A digest of everything, for tests and for locating a divergence.
    pub fn full_digest(&self) -> u64 {
        let mut sum = Checksum::new(0);
        for slice in 0..SLICES {
            sum.add(self.bank.digest(slice));
        }
        sum.add(u64::from(self.book.fold_count));
        sum.add(u64::from(self.book.last_partial));
        for tick in &self.book.folds {
            sum.add(u64::from(tick.0));
        }
        for &(id, sequence) in &self.book.releveled {
            sum.add(u64::from(id) << 32 | u64::from(sequence.0));
        }
        for &id in &self.book.active {
            sum.add(u64::from(id));
        }
        for id in 0..self.book.population.len() as u32 {
            self.book.add_entity(&mut sum, id);
        }
        for class in &self.book.classes {
            for field in &class.fields {
                field.add_to(&mut sum);
            }
            for word in class.ranking.words() {
                sum.add(word);
            }
            if let Some(row) = &class.reference {
                sum.add_row(row);
            }
        }
        sum.value()
    }

    /// Keeps the row of a resting entity whose archive is about to say something else.
    pub fn keep_rest_row(&mut self, id: u32, row: &[i64], rows: &dyn Rows) {
        if let Entry::Vacant(entry) = self.book.rest_rows.entry(id) {
            let class = self.book.population.seat(id).class;
            entry.insert(KeptRow::new(&self.book.layout, class, row, rows));
            self.journal.note(Undo::RestRow { id, old: None });
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let classes: usize = self
            .book
            .classes
            .iter()
            .map(|class| class.fields.len() * size_of::<ClassField>())
            .sum();
        self.bank.bytes() + self.book.population.bytes() + self.book.active.capacity() * 4 + classes
    }

    fn appear(&mut self, id: u32, class: u16) {
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
    fn wake(&mut self, id: u32) {
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
            self.journal.note(Undo::Seat {
                id,
                len,
                old,
                record,
            });
        }
    }

    fn remove(&mut self, id: u32) {
        match self.book.phase(id) {
            Phase::Absent => return,
            Phase::Active => self.deactivate(id),
            Phase::Resting => self.drop_rest_row(id),
        }
        self.put(id, Seat::default(), None);
    }

    /// Active entities that held still for long go to rest.
    fn sweep(&mut self, rows: &dyn Rows) {
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
                if let Some(row) = rows.row(id, tick, level, &mut buffer) {
                    self.keep_rest_row(id, row, rows);
                }
            }
        }
    }

    fn note_coverage(&mut self, covered: &[u32]) {
        let fold = self.book.fold_count;
        let mut next = covered.iter().copied().peekable();
        for at in 0..self.book.active.len() {
            let id = self.book.active[at];
            while next.peek().is_some_and(|&c| c < id) {
                next.next();
            }
            let is_covered = next.peek() == Some(&id);
            let known = |entity: &Entity| entity.head.covered_at == fold;
            if self.book.population.active(id).is_none_or(known) {
                continue;
            }
            if let Some(entity) = self.change(id) {
                entity.head.cover(fold, is_covered);
            }
        }
    }

    /// A change of precision makes older samples useless, and also those of later packets that
    /// were coded before it was known and do not say it themselves.
    fn note_levels(&mut self, log: &Log) {
        if log.levels.is_empty() && self.book.releveled.is_empty() {
            return;
        }
        let fold = self.book.fold_count;
        self.journal.note(Undo::Releveled {
            old: self.book.releveled.clone(),
        });
        self.book
            .releveled
            .retain(|&(_, changed_by)| changed_by > log.cursor);
        for at in 0..self.book.releveled.len() {
            let (id, _) = self.book.releveled[at];
            if log.levels.iter().any(|&(said, _)| said == id) {
                continue;
            }
            if let Some(entity) = self.change(id) {
                entity.head.cover(fold, false);
            }
        }
        for &(id, level) in &log.levels {
            if self.book.phase(id) == Phase::Absent {
                continue;
            }
            let old = self.book.level(id);
            if old != level {
                if let Some(Entity { head, .. }) = self.change(id) {
                    head.level = level;
                    head.covered = 1;
                    head.covered_at = fold;
                }
                let old = self.book.population.set_level(id, level);
                self.journal.note(Undo::Level { id, old });
                self.book.releveled.retain(|&(other, _)| other != id);
                self.book.releveled.push((id, log.sequence));
            }
        }
    }

    fn note_surprises(&mut self, log: &Log) {
        let fold = self.book.fold_count;
        for group in log.surprises.chunk_by(|a, b| a.id == b.id) {
            let id = group[0].id;
            let Some(Entity { head, .. }) = self.change(id) else {
                continue;
            };
            let passed = fold - head.surprised_at;
            head.surprised = head.surprised.checked_shl(passed).unwrap_or(0) | 1;
            head.surprised_at = fold;
            let class = usize::from(head.class);
            let ranking = &mut self.book.classes[class].ranking;
            if ranking.begins(fold) && self.journal.kept {
                ranking.save(&mut self.journal.rankings);
                self.journal.note(Undo::Ranking {
                    class: class as u16,
                });
            }
            ranking.note(group.iter().map(|surprise| surprise.field));
            let Some(entity) = self.book.population.active_mut(id) else {
                continue;
            };
            let states = &mut entity.fields;
            if self.journal.kept {
                self.journal.fields.extend_from_slice(states);
                self.journal.note(Undo::FieldStates { id });
            }
            for state in states.iter_mut() {
                state.pass(passed);
            }
            for surprise in group {
                let at = usize::from(surprise.field);
                let Some(state) = states.get_mut(at) else {
                    continue;
                };
                state.surprise(surprise);
                let repeats = bit_length(surprise.residual) > 5;
                if !repeats && surprise.costs.is_none() {
                    continue;
                }
                let shared = &mut self.book.classes[class].fields[at];
                let place = (class as u16, at as u16);
                if let Some(costs) = &surprise.costs {
                    let old = shared.costs;
                    self.journal.note(Undo::ClassCosts { place, old });
                    shared.costs.learn(costs);
                }
                if repeats {
                    if self.journal.kept {
                        self.journal.repeats.push(shared.repeats);
                        self.journal.note(Undo::Repeats { place });
                    }
                    shared.repeats.learn(surprise.residual);
                }
            }
            for state in states.iter_mut() {
                state.follow_rhythm();
            }
            entity.head.expects_motion = self.book.layout.classes[class].has_contract
                || states.iter().any(FieldState::expects_motion);
        }
        for (state, class) in self.book.classes.iter_mut().zip(&self.book.layout.classes) {
            if state.ranking.is_touched(fold) {
                state.ranking.sort(class);
            }
        }
    }

    /// An active entity whose head is about to change.
    #[inline]
    fn change(&mut self, id: u32) -> Option<&mut Entity> {
        let entity = self.book.population.active_mut(id)?;
        if self.journal.kept {
            self.journal.heads.push(entity.head);
            self.journal.steps.push(Undo::Head { id });
        }
        Some(entity)
    }

    fn activate(&mut self, id: u32) {
        if let Err(at) = self.book.active.binary_search(&id) {
            self.book.active.insert(at, id);
            self.journal.note(Undo::Activated { at });
        }
    }

    fn deactivate(&mut self, id: u32) {
        if let Ok(at) = self.book.active.binary_search(&id) {
            self.book.active.remove(at);
            self.journal.note(Undo::Deactivated { at, id });
        }
    }

    /// Forgets the row kept for an entity at rest: it moves again, is gone, or the archive says
    /// the same.
    pub fn drop_rest_row(&mut self, id: u32) {
        if let Some(old) = self.book.rest_rows.remove(&id) {
            self.journal.note(Undo::RestRow { id, old: Some(old) });
        }
    }

    fn take_back(&mut self, step: Undo) {
        match step {
            Undo::Fold {
                oldest,
                last_partial,
            } => {
                self.book.folds.pop();
                if let Some(tick) = oldest {
                    self.book.folds.insert(0, tick);
                }
                self.book.fold_count -= 1;
                self.book.last_partial = last_partial;
            }
            Undo::Head { id } => {
                let old = self.journal.heads.pop();
                if let (Some(entity), Some(old)) = (self.book.population.active_mut(id), old) {
                    entity.head = old;
                }
            }
            Undo::Level { id, old } => {
                self.book.population.set_level(id, old);
            }
            Undo::Seat {
                id,
                len,
                old,
                record,
            } => {
                self.book
                    .population
                    .put(id, old, record.map(|record| *record));
                self.book.population.truncate(len);
            }
            Undo::FieldStates { id } => {
                let Some(entity) = self.book.population.active_mut(id) else {
                    return;
                };
                let states = &mut entity.fields;
                let start = self.journal.fields.len() - states.len();
                states.copy_from_slice(&self.journal.fields[start..]);
                self.journal.fields.truncate(start);
            }
            Undo::Activated { at } => {
                self.book.active.remove(at);
            }
            Undo::Deactivated { at, id } => self.book.active.insert(at, id),
            Undo::Releveled { old } => self.book.releveled = old,
            Undo::RestRow { id, old } => {
                match old {
                    Some(row) => self.book.rest_rows.insert(id, row),
                    None => self.book.rest_rows.remove(&id),
                };
            }
            Undo::Ranking { class } => {
                let layout = &self.book.layout.classes[usize::from(class)];
                let ranking = &mut self.book.classes[usize::from(class)].ranking;
                ranking.restore(layout, &mut self.journal.rankings);
            }
            Undo::ClassCosts {
                place: (class, field),
                old,
            } => self.book.classes[usize::from(class)].fields[usize::from(field)].costs = old,
            Undo::Repeats {
                place: (class, field),
            } => {
                if let Some(old) = self.journal.repeats.pop() {
                    self.book.classes[usize::from(class)].fields[usize::from(field)].repeats = old;
                }
            }
            Undo::Reference { class, old } => self.book.classes[usize::from(class)].reference = old,
        }
    }
}

impl Book {
    #[inline]
    pub fn phase(&self, id: u32) -> Phase {
        self.population.phase(id)
    }

    /// The precision at which both ends know an entity.
    pub fn level(&self, id: u32) -> u8 {
        let active = self.population.active(id).map(|entity| entity.head.level);
        active.unwrap_or_else(|| self.population.seat(id).level)
    }

    /// Which of the last 64 folds covered an entity, newest in bit 0.
    #[inline]
    pub fn folds_known(&self, head: &Head) -> u64 {
        let behind = self.fold_count - head.covered_at;
        if behind > 63 {
            return u64::MAX;
        }
        head.covered << behind | ((1 << behind) - 1)
    }

    /// Ticks from which an entity that these folds covered can be predicted at `now`.
    pub fn samples(&self, known: u64, now: Tick) -> Samples {
        let mut ticks = [Tick(0); DEPTH];
        let mut count = 0;
        for (back, &tick) in self.folds.iter().rev().enumerate() {
            if now.since(tick) > HISTORY || count == DEPTH {
                break;
            }
            if known >> back.min(63) & 1 == 1 {
                ticks[count] = tick;
                count += 1;
            }
        }
        Samples::pick(now, &ticks[..count])
    }

    /// Which of the last 32 folds held a surprise of this entity, newest in bit 0.
    #[inline]
    pub fn surprise_history(&self, head: &Head) -> u32 {
        head.surprised
            .checked_shl(self.fold_count - head.surprised_at)
            .unwrap_or(0)
    }

    /// How many folds held no surprise of this entity since one did.
    #[inline]
    pub fn folds_since_surprise(&self, head: &Head) -> u32 {
        self.fold_count - head.surprised_at
    }

    /// The row at which an entity rests.
    pub fn rest_row<'a>(
        &'a self,
        id: u32,
        rows: &'a dyn Rows,
        buffer: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]> {
        match self.rest_rows.get(&id) {
            Some(row) => Some(row),
            None => rows.latest(id, self.population.seat(id).level, buffer),
        }
    }

    /// Active entities, those that were not covered for longest first.
    pub fn stalest_first(&self) -> Vec<u32> {
        let staleness = |id: u32| {
            let active = self.population.active(id).map(|entity| &entity.head);
            let noted = active.filter(|head| head.covered_at == self.fold_count);
            noted.map_or(0, |head| head.covered.trailing_zeros())
        };
        let mut order = self.active.clone();
        order.sort_by_key(|&id| core::cmp::Reverse(staleness(id)));
        order
    }

    fn fresh_fields(&self, class: u16) -> Box<[FieldState]> {
        let state = &self.classes[usize::from(class)];
        state
            .fields
            .iter()
            .map(|field| FieldState {
                costs: field.costs,
                habits: (field.costs.best(ALL) as u8) << PERIOD_BITS,
                ..FieldState::NEW
            })
            .collect()
    }

    fn expects_motion(&self, class: u16, fields: &[FieldState]) -> bool {
        self.layout.classes[usize::from(class)].has_contract
            || fields
                .iter()
                .any(|field| field.favourite() != Predictor::Hold)
    }

    /// How many of the newest folds all covered this entity.
    fn folds_covered(&self, head: &Head) -> u32 {
        let behind = self.fold_count - head.covered_at;
        behind + (!(head.covered)).trailing_zeros()
    }

    fn add_entity(&self, sum: &mut Checksum, id: u32) {
        let seat = self.population.seat(id);
        if seat.phase == Phase::Absent {
            return;
        }
        sum.add(u64::from(id) << 32 | u64::from(seat.class) << 8 | seat.phase as u64);
        sum.add(u64::from(self.level(id)));
        let Some(entity) = self.population.active(id) else {
            return;
        };
        let head = &entity.head;
        sum.add(head.covered);
        sum.add(u64::from(head.covered_at) << 32 | u64::from(head.moved_at));
        sum.add(u64::from(head.surprised) << 32 | u64::from(head.surprised_at));
        for field in &entity.fields {
            let small = u64::from(field.surprised) << 16
                | u64::from(field.habits) << 8
                | u64::from(field.last)
                | u64::from(field.recent) << 24;
            sum.add(u64::from(field.history) << 32 | small);
            sum.add(field.costs.bits());
        }
    }
}

/// One end's values.
pub(crate) trait Rows {
    /// The row of an entity at a tick both ends know it at; `buffer` is there for those that have
    /// to be worked out. `None` if this end lost it, which means that the two ends no longer agree.
    fn row<'a>(
        &'a self,
        id: u32,
        tick: Tick,
        level: u8,
        buffer: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]>;
    /// The rows of an entity at the ticks it is predicted from.
    fn rows<'a, 's: 'a>(
        &'s self,
        id: u32,
        samples: &Samples,
        level: u8,
        buffers: &'a mut [Vec<i64>; ROWS],
        window: &mut Window<'s>,
    ) -> Option<Views<'a>>;
    /// What [`rows`](Self::rows) finds a tick by, for as long as a packet takes.
    fn frame(&self, tick: Tick) -> u32;
    /// The newest row of an entity.
    fn latest<'a>(&'a self, id: u32, level: u8, buffer: &'a mut Vec<i64>) -> Option<&'a [i64]>;
    /// Whether the values of an entity changed after a tick.
    fn changed_after(&self, id: u32, tick: Tick) -> bool;
    /// What a container with this cell holds in any of its rows.
    fn content(&self, cell: i64) -> Option<&Arc<Content>>;
}

/// Rows of one entity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Views<'a> {
    /// In the order of [`Samples::ticks`].
    pub rows: [&'a [i64]; ROWS],
    /// The newest one, if it was at hand.
    pub present: Option<&'a [i64]>,
}

/// Changes since the last commit, so that a packet that turns out to be bad leaves no trace.
#[derive(Clone, Debug, Default)]
struct Journal {
    /// Whether there may be a way back.
    kept: bool,
    /// Where the bank was at the last commit, once something was folded after it.
    start: Option<Moment>,
    steps: Vec<Undo>,
    /// What [`Undo::Head`] goes back to.
    heads: Vec<Head>,
    /// What [`Undo::FieldStates`] goes back to, one entity after the other.
    fields: Vec<FieldState>,
    /// What [`Undo::Repeats`] goes back to.
    repeats: Vec<Repeats>,
    /// What [`Undo::Ranking`] goes back to.
    rankings: Vec<u32>,
}

impl Journal {
    #[inline]
    fn note(&mut self, step: Undo) {
        if self.kept {
            self.steps.push(step);
        }
    }
}

#[derive(Clone, Debug)]
enum Undo {
    Fold {
        oldest: Option<Tick>,
        last_partial: u32,
    },
    Head {
        id: u32,
    },
    Level {
        id: u32,
        old: u8,
    },
    Seat {
        id: u32,
        len: usize,
        old: Seat,
        record: Option<Box<Entity>>,
    },
    FieldStates {
        id: u32,
    },
    Activated {
        at: usize,
    },
    Deactivated {
        at: usize,
        id: u32,
    },
    Releveled {
        old: Vec<(u32, Sequence)>,
    },
    RestRow {
        id: u32,
        old: Option<KeptRow>,
    },
    Ranking {
        class: u16,
    },
    ClassCosts {
        place: (u16, u16),
        old: Costs,
    },
    Repeats {
        place: (u16, u16),
    },
    Reference {
        class: u16,
        old: Option<Arc<KeptRow>>,
    },
}

/// A baseline older than this many ticks is no baseline; archives must reach this far back.
pub const HISTORY: u32 = 128;
/// Folds whose ticks are remembered.
const FOLDS: usize = 64;
/// An entity rests after this many folds without a change.
const REST_AFTER: u32 = 48;
/// … the newest of which must all have covered it.
const REST_COVERED: u32 = 4;
/// How often the active list is searched for entities to put to rest, in folds.
const SWEEP: u32 = 8;
const RESTING_PER_ROUND: u32 = 8;
