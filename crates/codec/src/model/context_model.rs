//! The learned probabilities of one connection.
//!
//! Every field has a page of cells; a context is hashed to a line of 16 of them within its page,
//! and nobody keeps the context itself. A page is made when it is first needed, starts small and
//! grows with what it has learned, each cell handing its knowledge to those that take its place: memory
//! follows use and not the size of the schema. Lines that nobody has touched since are shared by the
//! pages they were handed to. A page that does not exist equals a fresh one, or
//! the one that a [`Start`] has for it.

use alloc::{sync::Arc, vec::Vec};
use core::num::NonZeroU32;

use super::cells::{COUNT, Lines, UNTAUGHT, adapt};
use super::decisions::Decisions;
use super::logistic::{squash, stretch};
use super::start::{Start, Taught};
use crate::buffer;

/// The line of a context within a page.
#[inline]
pub fn line(context: u64) -> u16 {
    let mixed = (context ^ context >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (64 - HASH_BITS)) as u16 & !(LINE as u16 - 1)
}

/// What a decision is predicted from: `N` contexts and the set of weights that mixes them.
#[derive(Clone, Copy, Debug)]
pub struct Contexts<const N: usize> {
    /// The page of all contexts, but the second if the set shares it.
    pub page: u16,
    /// The set of weights. From [`SHARING`] on, the second context lies in page 0.
    pub set: u8,
    /// A cell of a [`line()`] for each context.
    pub cells: [u16; N],
}

/// How a decision is expected to go.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    /// Probability of `true`, in 1/65536.
    pub probability: u16,
    /// Some context has seen little and learns at once.
    pub(super) young: bool,
}

/// A moment to which a context model can go back; see [`ContextModel::mark`].
#[derive(Clone, Copy, Debug)]
pub struct ContextMark {
    cells: usize,
    grown: usize,
}

/// What the contexts of a decision are worth.
pub type Weights = [i32; MAX_INPUTS];

/// All pages of one model.
#[derive(Clone, Debug)]
pub struct ContextModel {
    start: Option<Arc<Start>>,
    lines: Lines,
    /// The lines of all pages; where a page lies is private to each end.
    places: Vec<u32>,
    pages: Vec<Page>,
    weights: Vec<Weights>,
    learning: Learning,
    /// A cell that was taught less often learns inside a packet, too.
    youth: u32,
    /// Cells that a page may have at most.
    largest: u32,
    notes: Notes,
    /// Places that pages left behind, by the binary logarithm of how many.
    vacant: [Vec<u32>; HASH_BITS as usize + 1],
}

/// When a context model learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learning {
    /// Never.
    Off,
    /// At folds, and inside a packet only where little is known.
    Folds,
    /// Inside a packet; nothing outlives it.
    Inside,
}

/// The cells of one field; none until they are needed.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// Where its places are.
    start: u32,
    /// One less than the number of cells, which is a power of two; 0 without any.
    mask: u32,
    /// How many decisions it was taught here.
    lessons: u32,
    /// At how many it grows; [`FINAL`] once it was taught so many at its largest size.
    limit: u32,
}

impl Page {
    /// Which place a cell is in, and where in its line.
    #[inline(always)]
    fn place(&self, hash: u16) -> (usize, u32) {
        let at = u32::from(hash) & self.mask;
        ((self.start + at / LINE as u32) as usize, at % LINE as u32)
    }

    fn places(&self) -> core::ops::Range<usize> {
        let start = self.start as usize;
        start..start + (self.mask as usize + 1) / LINE
    }

    /// Whether nothing was learned in it. The count of lessons wraps to 0 after 2^32, long after the
    /// page reached its final size.
    fn is_untaught(&self) -> bool {
        self.lessons == 0 && (self.mask == 0 || self.limit != FINAL)
    }
}

/// What it takes to go back.
#[derive(Clone, Debug, Default)]
struct Notes {
    /// Whether notes are taken.
    taken: bool,
    /// A cell, what it held, and the page that counts the lesson.
    cells: Vec<(u32, u32, Option<NonZeroU32>)>,
    /// Pages as they were before they grew, with the number of noted cells at that time.
    grown: Vec<(usize, u32, Page)>,
    /// Weights as they were, with the number of noted cells at that time.
    weights: Vec<Weights>,
    weights_at: Option<usize>,
}

impl ContextModel {
    /// A context model that has seen nothing and mixes `inputs` contexts; no page grows beyond
    /// 2^`largest_bits` cells.
    pub fn new(
        pages: u32,
        learning: Learning,
        inputs: usize,
        largest_bits: u32,
        start: Option<Arc<Start>>,
    ) -> Self {
        let weights = match &start {
            Some(start) => start.weights.to_vec(),
            None => fresh_weights(inputs),
        };
        Self {
            start,
            lines: Lines::new(),
            places: Vec::new(),
            pages: alloc::vec![Page::default(); pages.clamp(1, MAX_PAGES) as usize],
            weights,
            learning,
            youth: match learning {
                Learning::Off => 0,
                Learning::Folds => YOUNG,
                Learning::Inside => COUNT,
            },
            largest: 1 << largest_bits.min(HASH_BITS),
            notes: Notes::default(),
            vacant: Default::default(),
        }
    }

    /// What the contexts say about a decision.
    #[inline(always)]
    pub fn forecast<const N: usize>(&mut self, contexts: &Contexts<N>) -> Forecast {
        let cells = self.locate(contexts);
        let weights = &self.weights[usize::from(contexts.set)];
        let mut sum = 0i32;
        let mut youngest = COUNT;
        for i in 0..N {
            let cell = self.lines.cell(cells[i]);
            youngest = youngest.min(cell & COUNT);
            sum += (stretch((cell >> 20) as u16) * weights[i]) >> 8;
        }
        Forecast {
            probability: squash(sum >> 8),
            young: youngest < self.youth,
        }
    }

    /// Where the cells of a decision lie.
    #[inline(always)]
    fn locate<const N: usize>(&mut self, contexts: &Contexts<N>) -> [u32; N] {
        let page = self.page(usize::from(contexts.page));
        let mut cells = contexts.cells.map(|cell| self.find(&page, cell));
        if contexts.set >= SHARING && N > 1 {
            let page = self.page(0);
            cells[1] = self.find(&page, contexts.cells[1]);
        }
        cells
    }

    /// Where the cells of a decision lie that are about to change.
    #[inline(always)]
    fn claim<const N: usize>(&mut self, contexts: &Contexts<N>) -> [u32; N] {
        let page = self.page(usize::from(contexts.page));
        let shared = match contexts.set >= SHARING && N > 1 {
            true => self.page(0),
            false => page,
        };
        let mut cells = [0; N];
        for (i, cell) in cells.iter_mut().enumerate() {
            let page = if i == 1 { &shared } else { &page };
            *cell = self.own(page, contexts.cells[i]);
        }
        cells
    }

    #[inline(always)]
    fn find(&self, page: &Page, hash: u16) -> u32 {
        let (place, at) = page.place(hash);
        self.places[place] + at
    }

    /// The same in a line that no other place holds.
    #[inline(always)]
    fn own(&mut self, page: &Page, hash: u16) -> u32 {
        let (place, at) = page.place(hash);
        let line = &mut self.places[place];
        if self.lines.is_shared(*line) {
            *line = self.lines.own(*line);
        }
        *line + at
    }

    /// A page, which is opened if it was not.
    #[inline(always)]
    fn page(&mut self, at: usize) -> Page {
        let page = self.pages[at];
        if page.mask == 0 {
            return self.open(at);
        }
        page
    }

    /// Learns, inside a packet, that a decision went `bit`.
    #[inline(always)]
    pub fn learn<const N: usize>(&mut self, contexts: &Contexts<N>, forecast: Forecast, bit: bool) {
        if forecast.young {
            self.learn_young(contexts, bit);
        }
    }

    #[cold]
    fn learn_young<const N: usize>(&mut self, contexts: &Contexts<N>, bit: bool) {
        for at in self.claim(contexts) {
            let cell = self.lines.cell_mut(at);
            if *cell & COUNT < self.youth {
                self.notes.cells.push((at, *cell, None));
                *cell = adapt(*cell, bit);
            }
        }
    }

    /// Learns the decisions of an earlier packet.
    pub fn replay<const N: usize>(&mut self, decisions: &Decisions) {
        if self.learning != Learning::Folds {
            return;
        }
        if self.notes.taken && self.notes.weights_at.is_none() {
            self.notes.weights.clone_from(&self.weights);
            self.notes.weights_at = Some(self.notes.cells.len());
        }
        for (contexts, bit) in decisions.lessons::<N>() {
            let cells = self.claim(&contexts);
            let page = &mut self.pages[usize::from(contexts.page)];
            let lessons = page.lessons;
            // A busy page passes 32 bits within a day.
            page.lessons = page.lessons.wrapping_add(1);
            let is_full = page.lessons == page.limit;
            if lessons < EARLY || lessons.is_multiple_of(WEIGHTY) {
                self.weigh(&contexts, &cells, bit);
            }
            if self.notes.taken {
                let mut counted = NonZeroU32::new(u32::from(contexts.page) + 1);
                for at in cells {
                    let cell = self.lines.cell(at);
                    self.notes.cells.push((at, cell, counted.take()));
                }
            }
            for at in cells {
                let cell = self.lines.cell_mut(at);
                *cell = adapt(*cell, bit);
            }
            if is_full {
                self.grow(usize::from(contexts.page));
            }
        }
    }

    /// Learns what the contexts of a decision are worth.
    #[inline]
    fn weigh<const N: usize>(&mut self, contexts: &Contexts<N>, cells: &[u32; N], bit: bool) {
        let weights = &mut self.weights[usize::from(contexts.set)];
        let inputs = cells.map(|at| stretch((self.lines.cell(at) >> 20) as u16));
        let mut sum = 0i32;
        for i in 0..N {
            sum += (inputs[i] * weights[i]) >> 8;
        }
        let error = (i32::from(bit) << 16) - i32::from(squash(sum >> 8));
        for (weight, input) in weights.iter_mut().zip(inputs) {
            let moved = *weight + ((input * error + (1 << 17)) >> 18);
            *weight = moved.clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT);
        }
    }

    #[cold]
    fn open(&mut self, at: usize) -> Page {
        let known = self.start.clone();
        let known = known.as_ref().and_then(|start| start.page(at));
        let size = known.map_or(SMALLEST, |taught| taught.cells.len() as u32);
        let before = known.map_or(0, |taught| taught.lessons);
        let page = Page {
            start: self.room(size),
            mask: size - 1,
            lessons: 0,
            limit: (size * LESSONS_PER_CELL).saturating_sub(before).max(1),
        };
        let taught = known.map_or(&[][..], |taught| &taught.cells);
        let lines = taught.as_chunks().0.iter().map(Some);
        for (place, line) in page.places().zip(lines.chain(core::iter::repeat(None))) {
            self.places[place] = line.map_or(UNTAUGHT, |&line| self.lines.add(line));
        }
        self.pages[at] = page;
        page
    }

    /// Gives a page more room; every cell hands its knowledge to all that take its place.
    #[cold]
    fn grow(&mut self, at: usize) {
        let old = self.pages[at];
        let size = old.mask + 1;
        if size >= self.largest {
            self.pages[at].limit = FINAL;
            return;
        }
        let new = Page {
            start: self.room(size * GROWTH),
            mask: size * GROWTH - 1,
            limit: old.limit + size * (GROWTH - 1) * LESSONS_PER_CELL,
            ..old
        };
        for (from, to) in old.places().zip(new.places()) {
            let line = self.heir(self.places[from]);
            self.places[to] = line;
            for copy in 1..GROWTH as usize {
                self.places[to + copy * old.places().len()] = self.lines.share(line);
            }
        }
        self.pages[at] = new;
        if self.notes.taken {
            let noted = self.notes.cells.len();
            self.notes.grown.push((noted, at as u32, old));
        } else {
            self.vacate(old);
        }
    }

    /// What becomes of a line in a page that grew.
    fn heir(&mut self, line: u32) -> u32 {
        let cells = self.lines.cells(line);
        if cells.iter().all(|cell| cell & COUNT <= INHERITED) {
            return self.lines.share(line);
        }
        let inherits = |i: usize| cells[i] & !COUNT | (cells[i] & COUNT).min(INHERITED);
        let cells = core::array::from_fn(inherits);
        self.lines.add(cells)
    }

    /// Places for so many cells, which hold nothing.
    fn room(&mut self, size: u32) -> u32 {
        let places = size / LINE as u32;
        self.vacant[places.ilog2() as usize]
            .pop()
            .unwrap_or_else(|| {
                let start = self.places.len();
                self.places.resize(start + places as usize, UNTAUGHT);
                start as u32
            })
    }

    fn vacate(&mut self, page: Page) {
        if page.mask == 0 {
            return;
        }
        for place in page.places() {
            self.lines.leave(self.places[place]);
        }
        self.vacant[page.places().len().ilog2() as usize].push(page.start);
    }

    /// Remembers this moment.
    pub fn mark(&mut self) -> ContextMark {
        self.notes.taken = true;
        ContextMark {
            cells: self.notes.cells.len(),
            grown: self.notes.grown.len(),
        }
    }

    /// Forgets everything learned since a moment.
    pub fn rewind(&mut self, to: ContextMark) {
        while self.notes.grown.len() > to.grown
            && let Some((noted, at, old)) = self.notes.grown.pop()
        {
            self.take_back(noted);
            let grown = core::mem::replace(&mut self.pages[at as usize], old);
            self.vacate(grown);
        }
        self.take_back(to.cells);
        if self.notes.weights_at.is_some_and(|noted| noted >= to.cells) {
            self.weights.clone_from(&self.notes.weights);
            self.notes.weights_at = None;
        }
    }

    fn take_back(&mut self, len: usize) {
        let used = self.notes.cells.len();
        for (at, old, counted) in self.notes.cells.drain(len..).rev() {
            *self.lines.cell_mut(at) = old;
            if let Some(page) = counted {
                let lessons = &mut self.pages[page.get() as usize - 1].lessons;
                *lessons = lessons.wrapping_sub(1);
            }
        }
        buffer::ease(&mut self.notes.cells, used);
    }

    /// Makes everything learned so far final; there is no way back before the next mark.
    pub fn settle(&mut self) {
        self.notes.taken = false;
        buffer::empty(&mut self.notes.cells);
        self.notes.weights_at = None;
        while let Some((.., old)) = self.notes.grown.pop() {
            self.vacate(old);
        }
    }

    /// Gives up the pages that nothing was learned in.
    pub fn tidy(&mut self) {
        for at in 0..self.pages.len() {
            if self.pages[at].is_untaught() {
                let page = core::mem::take(&mut self.pages[at]);
                self.vacate(page);
            }
        }
    }

    /// What a page was taught, here or before.
    pub fn taught(&self, at: u32) -> Option<Taught> {
        let page = self.pages.get(at as usize)?;
        let known = self
            .start
            .as_ref()
            .and_then(|start| start.page(at as usize));
        if page.is_untaught() {
            return known.cloned();
        }
        let before = known.map_or(0, |taught| taught.lessons);
        Some(Taught {
            cells: self.cells(page).collect(),
            lessons: page.lessons.saturating_add(before),
        })
    }

    fn cells(&self, page: &Page) -> impl Iterator<Item = u32> {
        let places = &self.places[page.places()];
        places
            .iter()
            .flat_map(|&line| self.lines.cells(line))
            .copied()
    }

    /// What the contexts of decisions are worth by now.
    pub fn weights(&self) -> &[Weights] {
        &self.weights
    }

    /// A digest of one of the [`SLICES`] parts of the context model.
    pub fn digest(&self, slice: u32) -> u64 {
        let slice = (slice % SLICES) as usize;
        let weights = self.weights.iter().skip(slice).step_by(SLICES as usize);
        let weights = weights.flatten().map(|&weight| weight as u32 as u64);
        let mut sum = weights.fold(0u64, |sum, weight| mix(sum ^ weight));
        for page in self.pages.iter().skip(slice).step_by(SLICES as usize) {
            sum = sum.rotate_left(7) ^ self.page_digest(page);
        }
        sum
    }

    /// Zero for a page that is what it was at the start.
    fn page_digest(&self, page: &Page) -> u64 {
        if page.lessons == 0 {
            return 0;
        }
        let mut lanes = [u64::from(page.lessons); 4];
        for &line in &self.places[page.places()] {
            for quad in self.lines.cells(line).chunks_exact(4) {
                for (lane, &cell) in lanes.iter_mut().zip(quad) {
                    *lane = mix(*lane ^ u64::from(cell));
                }
            }
        }
        let [a, b, c, d] = lanes;
        let mixed = a ^ b.rotate_left(17) ^ c.rotate_left(31) ^ d.rotate_left(47);
        mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let start = self.start.as_ref();
        self.lines.bytes()
            + size_of_val(&self.places[..])
            + size_of_val(&self.pages[..])
            + size_of_val(&self.weights[..])
            + start.map_or(0, |start| size_of_val(&start.pages[..]))
    }
}

/// What contexts are worth before anything is learned.
pub fn fresh_weights(inputs: usize) -> Vec<Weights> {
    alloc::vec![[WEIGHT_SUM / inputs.max(1) as i32; MAX_INPUTS]; WEIGHT_SETS]
}

#[inline]
fn mix(value: u64) -> u64 {
    value.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

/// Parts in which a context model is checked, one a packet.
pub const SLICES: u32 = 64;
/// Inputs that a set of weights has room for.
pub const MAX_INPUTS: usize = 6;
/// Cells in a line.
pub const LINE: usize = 16;
pub(super) const HASH_BITS: u32 = 16;
const MAX_PAGES: u32 = 1 << (32 - HASH_BITS);
/// Cells of a page at first.
pub(super) const SMALLEST: u32 = 1024;
/// How many times larger a page is after it grew.
pub const GROWTH: u32 = 4;
/// How much of their experience cells keep when their page grows: part of it was that of others.
const INHERITED: u32 = 4;
/// A page grows when it was taught this many decisions for each of its cells.
const LESSONS_PER_CELL: u32 = 1;
/// [`Page::limit`] of a page that does not grow any more. Only a count that wrapped reaches it again.
const FINAL: u32 = 0;
/// The first decisions that a page is taught teach the weights, too; then one of so many does.
const EARLY: u32 = 1024;
const WEIGHTY: u32 = 4;
const WEIGHT_SETS: usize = 256;
/// The first of the sets of weights whose second context is common to all pages.
pub const SHARING: u8 = 128;
/// What the weights of a set come to before anything is learned, in 1/65536.
const WEIGHT_SUM: i32 = 84000;
/// No weight is larger.
pub const WEIGHT_LIMIT: i32 = 1 << 18;
/// A context that was met less often learns inside a packet, too.
const YOUNG: u32 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails with a panic if lessons are counted with `+= 1`, and with another digest if undoing does
    /// not wrap as well.
    #[test]
    fn lessons_may_be_more_than_can_be_counted() {
        let contexts = Contexts::<2> {
            page: 0,
            set: 0,
            cells: [3, 40],
        };
        let mut context_model = ContextModel::new(1, Learning::Folds, 2, 14, None);
        let mut decisions = Decisions::default();
        for bit in [true, false, true] {
            let forecast = context_model.forecast(&contexts);
            decisions.push(&contexts, forecast, bit);
        }
        context_model.replay::<2>(&decisions);
        context_model.pages[0].lessons = u32::MAX - 1;
        let before = context_model.digest(0);
        let mark = context_model.mark();
        context_model.replay::<2>(&decisions);
        assert_eq!(context_model.pages[0].lessons, 1);
        context_model.rewind(mark);
        assert_eq!(context_model.digest(0), before);
    }

    /// A page whose count of lessons wrapped to 0 is kept, with what was learned in it and what a
    /// rewind writes back. Fails if `tidy` frees every page with `lessons == 0`: the rewind then writes
    /// cells over the list of free lines, and the next line that is added panics.
    #[test]
    fn a_page_is_kept_when_its_count_wraps() {
        for seed in 0..20u16 {
            let contexts = |nth: u16| Contexts::<2> {
                page: 0,
                set: 0,
                cells: [nth.wrapping_mul(16 + seed), nth.wrapping_mul(48)],
            };
            let mut context_model = ContextModel::new(2, Learning::Folds, 2, 10, None);
            let lessons = |context_model: &mut ContextModel, count: u16| {
                let mut decisions = Decisions::default();
                for nth in 0..count {
                    let forecast = context_model.forecast(&contexts(nth));
                    decisions.push(&contexts(nth), forecast, nth % 3 == 0);
                }
                decisions
            };
            // More than the largest page has cells, as 2^32 lessons are.
            let early = lessons(&mut context_model, 1100);
            context_model.replay::<2>(&early);
            let last = lessons(&mut context_model, 5);
            context_model.pages[0].lessons = 5u32.wrapping_neg();
            context_model.settle();
            let before = context_model.digest(0);
            let mark = context_model.mark();
            context_model.replay::<2>(&last);
            assert_eq!(context_model.pages[0].lessons, 0);
            let taught = context_model.taught(0).expect("it was taught");
            context_model.tidy();
            assert_eq!(context_model.taught(0), Some(taught), "seed {seed}");
            context_model.rewind(mark);
            assert_eq!(context_model.digest(0), before, "seed {seed}");
            let other = |nth: u16| Contexts::<2> {
                page: 1,
                ..contexts(nth)
            };
            for nth in 0..200 {
                let forecast = context_model.forecast(&other(nth));
                context_model.learn(&other(nth), forecast, true);
            }
        }
    }
}
