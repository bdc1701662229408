//! The learned probabilities of one connection.
//!
//! Every field has a page of cells. A context is hashed to a line of 16 cells within the page of
//! its field; the context itself is not stored. A page is created when it is first needed and grows
//! with the number of decisions it has seen; when it grows, every new cell starts from the cell
//! whose hashes it takes over. So memory follows use and not the size of the schema. A page that
//! does not exist is equal to a fresh one, or to the one that a [`Start`] has for it.

use alloc::{sync::Arc, vec::Vec};
use core::num::NonZeroU32;

use super::cells::{COUNT, FRESH_LINE, LINE, Lines, adapt};
use super::decisions::Decisions;
use super::logistic::{squash, stretch};
use super::start::{Start, TrainedPage};
use crate::buffer;

/// Hashes a context to the first cell of its line. A page uses the low bits of it.
#[inline]
pub(crate) fn line(context: u64) -> u16 {
    let mixed = (context ^ context >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (64 - HASH_BITS)) as u16 & !(LINE as u16 - 1)
}

/// What a decision is predicted from: `N` contexts, and the set of weights that mixes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contexts<const N: usize> {
    /// The page of all contexts; the second one may be in page 0, see `set`.
    pub page: u16,
    /// The set of weights. From [`FIRST_SHARED_SET`] on, the second context is in page 0.
    pub set: u8,
    /// For each context, a cell of its [`line()`].
    pub cells: [u16; N],
}

/// The prediction of a decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forecast {
    /// Probability of `true`, in 1/65536.
    pub probability: u16,
    /// Some context has seen too few decisions and is updated inside the packet.
    pub(super) young: bool,
}

/// A state to which a context model can return; see [`ContextModel::mark`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextMark {
    cells: usize,
    grown: usize,
}

/// Mixing weights of the contexts of a decision.
pub(crate) type Weights = [i32; MAX_INPUTS];

/// The pages and weights of one model.
#[derive(Clone, Debug)]
pub(crate) struct ContextModel {
    start: Option<Arc<Start>>,
    lines: Lines,
    /// For all pages, the lines that hold their cells. Each end places pages in it in its own
    /// order.
    line_table: Vec<u32>,
    pages: Vec<Page>,
    weights: Vec<Weights>,
    learning: Learning,
    /// A cell that has seen fewer decisions is updated inside a packet, too.
    young_below: u32,
    max_page_cells: u32,
    undo_log: UndoLog,
    /// Ranges of the line table that grown pages have left, by the binary logarithm of their
    /// length.
    free_ranges: [Vec<u32>; HASH_BITS as usize + 1],
}

/// When a context model learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learning {
    /// Never.
    Off,
    /// At folds, and inside a packet only cells that have seen few decisions.
    Folds,
    /// Inside a packet only; the updates are undone at its end.
    Inside,
}

/// The cells of one field; none before the first use.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// Its first entry in the line table.
    start: u32,
    /// The number of cells, a power of two, minus one; 0 without cells.
    mask: u32,
    /// Decisions learned in this connection. Wraps.
    updates: u32,
    /// The number of `updates` at which it grows; [`NEVER_GROWS`] once it has reached that number
    /// at its largest size.
    limit: u32,
}

impl Page {
    /// The entry of the line table for a cell, and the position in that line.
    #[inline(always)]
    fn entry(&self, hash: u16) -> (usize, u32) {
        let at = u32::from(hash) & self.mask;
        ((self.start + at / LINE as u32) as usize, at % LINE as u32)
    }

    fn entries(&self) -> core::ops::Range<usize> {
        let start = self.start as usize;
        start..start + (self.mask as usize + 1) / LINE
    }

    /// Whether nothing was learned in it. The count of updates wraps to 0 after 2^32, long after
    /// the page reached its largest size.
    fn is_untrained(&self) -> bool {
        self.updates == 0 && (self.mask == 0 || self.limit != NEVER_GROWS)
    }
}

/// The overwritten values since [`ContextModel::mark`].
#[derive(Clone, Debug, Default)]
struct UndoLog {
    enabled: bool,
    /// A cell, its old value, and one more than the page whose `updates` were incremented with it.
    cells: Vec<(u32, u32, Option<NonZeroU32>)>,
    /// The length of `cells`, the number of the page, and the page before it grew.
    grown: Vec<(usize, u32, Page)>,
    /// The weights before the first fold since the mark, and the length of `cells` at that time.
    weights: Vec<Weights>,
    weights_at: Option<usize>,
}

impl ContextModel {
    /// A fresh context model that mixes `inputs` contexts; no page grows beyond 2^`largest_bits`
    /// cells.
    pub(crate) fn new(
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
            line_table: Vec::new(),
            pages: alloc::vec![Page::default(); pages.clamp(1, MAX_PAGES) as usize],
            weights,
            learning,
            young_below: match learning {
                Learning::Off => 0,
                Learning::Folds => YOUNG,
                Learning::Inside => COUNT,
            },
            max_page_cells: 1 << largest_bits.min(HASH_BITS),
            undo_log: UndoLog::default(),
            free_ranges: Default::default(),
        }
    }

    /// Predicts a decision.
    #[inline(always)]
    pub(crate) fn forecast<const N: usize>(&mut self, contexts: &Contexts<N>) -> Forecast {
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
            young: youngest < self.young_below,
        }
    }

    #[inline(always)]
    fn locate<const N: usize>(&mut self, contexts: &Contexts<N>) -> [u32; N] {
        let page = self.page(usize::from(contexts.page));
        let mut cells = contexts.cells.map(|cell| self.find(&page, cell));
        if contexts.set >= FIRST_SHARED_SET && N > 1 {
            let page = self.page(0);
            cells[1] = self.find(&page, contexts.cells[1]);
        }
        cells
    }

    /// As [`locate`](Self::locate), for cells that are about to change: their lines are not shared.
    #[inline(always)]
    fn locate_mut<const N: usize>(&mut self, contexts: &Contexts<N>) -> [u32; N] {
        let page = self.page(usize::from(contexts.page));
        let shared = match contexts.set >= FIRST_SHARED_SET && N > 1 {
            true => self.page(0),
            false => page,
        };
        let mut cells = [0; N];
        for (i, cell) in cells.iter_mut().enumerate() {
            let page = if i == 1 { &shared } else { &page };
            *cell = self.find_mut(page, contexts.cells[i]);
        }
        cells
    }

    #[inline(always)]
    fn find(&self, page: &Page, hash: u16) -> u32 {
        let (entry, at) = page.entry(hash);
        self.line_table[entry] + at
    }

    #[inline(always)]
    fn find_mut(&mut self, page: &Page, hash: u16) -> u32 {
        let (entry, at) = page.entry(hash);
        let line = &mut self.line_table[entry];
        if self.lines.is_shared(*line) {
            *line = self.lines.make_unique(*line);
        }
        *line + at
    }

    #[inline(always)]
    fn page(&mut self, at: usize) -> Page {
        let page = self.pages[at];
        if page.mask == 0 {
            return self.create_page(at);
        }
        page
    }

    /// Updates inside a packet, if the forecast says that this is due.
    #[inline(always)]
    pub(crate) fn learn<const N: usize>(
        &mut self,
        contexts: &Contexts<N>,
        forecast: Forecast,
        bit: bool,
    ) {
        if forecast.young {
            self.learn_young(contexts, bit);
        }
    }

    #[cold]
    fn learn_young<const N: usize>(&mut self, contexts: &Contexts<N>, bit: bool) {
        for at in self.locate_mut(contexts) {
            let cell = self.lines.cell_mut(at);
            if *cell & COUNT < self.young_below {
                self.undo_log.cells.push((at, *cell, None));
                *cell = adapt(*cell, bit);
            }
        }
    }

    /// Learns the decisions of a packet that both ends know to be applied.
    pub(crate) fn replay<const N: usize>(&mut self, decisions: &Decisions) {
        if self.learning != Learning::Folds {
            return;
        }
        if self.undo_log.enabled && self.undo_log.weights_at.is_none() {
            self.undo_log.weights.clone_from(&self.weights);
            self.undo_log.weights_at = Some(self.undo_log.cells.len());
        }
        for (contexts, bit) in decisions.iter::<N>() {
            let cells = self.locate_mut(&contexts);
            let page = &mut self.pages[usize::from(contexts.page)];
            let updates = page.updates;
            // A busy page passes 2^32 within a day.
            page.updates = page.updates.wrapping_add(1);
            let is_full = page.updates == page.limit;
            if updates < WEIGHT_WARM_UP || updates.is_multiple_of(WEIGHT_INTERVAL) {
                self.train_weights(&contexts, &cells, bit);
            }
            if self.undo_log.enabled {
                let mut counted = NonZeroU32::new(u32::from(contexts.page) + 1);
                for at in cells {
                    let cell = self.lines.cell(at);
                    self.undo_log.cells.push((at, cell, counted.take()));
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

    #[inline]
    fn train_weights<const N: usize>(
        &mut self,
        contexts: &Contexts<N>,
        cells: &[u32; N],
        bit: bool,
    ) {
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
    fn create_page(&mut self, at: usize) -> Page {
        let known = self.start.clone();
        let known = known.as_ref().and_then(|start| start.page(at));
        let size = known.map_or(MIN_PAGE_CELLS, |trained| trained.cells.len() as u32);
        let before = known.map_or(0, |trained| trained.updates);
        let page = Page {
            start: self.allocate(size),
            mask: size - 1,
            updates: 0,
            limit: (size * UPDATES_PER_CELL).saturating_sub(before).max(1),
        };
        let trained = known.map_or(&[][..], |trained| &trained.cells);
        let lines = trained.as_chunks().0.iter().map(Some);
        for (entry, line) in page.entries().zip(lines.chain(core::iter::repeat(None))) {
            self.line_table[entry] = line.map_or(FRESH_LINE, |&line| self.lines.add(line));
        }
        self.pages[at] = page;
        page
    }

    /// Multiplies the size of a page. Every new cell starts from the old one with the same low bits
    /// of the hash.
    #[cold]
    fn grow(&mut self, at: usize) {
        let old = self.pages[at];
        let size = old.mask + 1;
        if size >= self.max_page_cells {
            self.pages[at].limit = NEVER_GROWS;
            return;
        }
        let new = Page {
            start: self.allocate(size * GROWTH),
            mask: size * GROWTH - 1,
            limit: old.limit + size * (GROWTH - 1) * UPDATES_PER_CELL,
            ..old
        };
        for (from, to) in old.entries().zip(new.entries()) {
            let line = self.inherit(self.line_table[from]);
            self.line_table[to] = line;
            for copy in 1..GROWTH as usize {
                self.line_table[to + copy * old.entries().len()] = self.lines.share(line);
            }
        }
        self.pages[at] = new;
        if self.undo_log.enabled {
            let noted = self.undo_log.cells.len();
            self.undo_log.grown.push((noted, at as u32, old));
        } else {
            self.free_page(old);
        }
    }

    /// A line for a page that grew, with counts of at most [`INHERITED_COUNT`].
    fn inherit(&mut self, line: u32) -> u32 {
        let cells = self.lines.cells(line);
        if cells.iter().all(|cell| cell & COUNT <= INHERITED_COUNT) {
            return self.lines.share(line);
        }
        let inherits = |i: usize| cells[i] & !COUNT | (cells[i] & COUNT).min(INHERITED_COUNT);
        let cells = core::array::from_fn(inherits);
        self.lines.add(cells)
    }

    /// A range of the line table for `size` cells.
    fn allocate(&mut self, size: u32) -> u32 {
        let entries = size / LINE as u32;
        self.free_ranges[entries.ilog2() as usize]
            .pop()
            .unwrap_or_else(|| {
                let start = self.line_table.len();
                self.line_table.resize(start + entries as usize, FRESH_LINE);
                start as u32
            })
    }

    fn free_page(&mut self, page: Page) {
        if page.mask == 0 {
            return;
        }
        for entry in page.entries() {
            self.lines.release(self.line_table[entry]);
        }
        self.free_ranges[page.entries().len().ilog2() as usize].push(page.start);
    }

    /// Starts recording changes, so that [`rewind`](Self::rewind) can undo them.
    pub(crate) fn mark(&mut self) -> ContextMark {
        self.undo_log.enabled = true;
        ContextMark {
            cells: self.undo_log.cells.len(),
            grown: self.undo_log.grown.len(),
        }
    }

    /// Undoes all changes since a mark.
    pub(crate) fn rewind(&mut self, to: ContextMark) {
        while self.undo_log.grown.len() > to.grown
            && let Some((noted, at, old)) = self.undo_log.grown.pop()
        {
            self.undo(noted);
            let grown = core::mem::replace(&mut self.pages[at as usize], old);
            self.free_page(grown);
        }
        self.undo(to.cells);
        if self
            .undo_log
            .weights_at
            .is_some_and(|noted| noted >= to.cells)
        {
            self.weights.clone_from(&self.undo_log.weights);
            self.undo_log.weights_at = None;
        }
    }

    fn undo(&mut self, len: usize) {
        let used = self.undo_log.cells.len();
        for (at, old, counted) in self.undo_log.cells.drain(len..).rev() {
            *self.lines.cell_mut(at) = old;
            if let Some(page) = counted {
                let updates = &mut self.pages[page.get() as usize - 1].updates;
                *updates = updates.wrapping_sub(1);
            }
        }
        buffer::shrink(&mut self.undo_log.cells, used);
    }

    /// Makes all changes final and stops recording until the next mark.
    pub(crate) fn commit(&mut self) {
        self.undo_log.enabled = false;
        buffer::clear(&mut self.undo_log.cells);
        self.undo_log.weights_at = None;
        while let Some((.., old)) = self.undo_log.grown.pop() {
            self.free_page(old);
        }
    }

    /// Frees the pages in which nothing was learned.
    pub(crate) fn free_untrained_pages(&mut self) {
        for at in 0..self.pages.len() {
            if self.pages[at].is_untrained() {
                let page = core::mem::take(&mut self.pages[at]);
                self.free_page(page);
            }
        }
    }

    /// A page with all that was learned in it, in this connection or before.
    pub(crate) fn trained_page(&self, at: u32) -> Option<TrainedPage> {
        let page = self.pages.get(at as usize)?;
        let known = self
            .start
            .as_ref()
            .and_then(|start| start.page(at as usize));
        if page.is_untrained() {
            return known.cloned();
        }
        let before = known.map_or(0, |trained| trained.updates);
        Some(TrainedPage {
            cells: self.cells(page).collect(),
            updates: page.updates.saturating_add(before),
        })
    }

    fn cells(&self, page: &Page) -> impl Iterator<Item = u32> {
        let entries = &self.line_table[page.entries()];
        entries
            .iter()
            .flat_map(|&line| self.lines.cells(line))
            .copied()
    }

    pub(crate) fn weights(&self) -> &[Weights] {
        &self.weights
    }

    /// A digest of one of the [`SLICES`] parts of the context model.
    pub(crate) fn digest(&self, slice: u32) -> u64 {
        let slice = (slice % SLICES) as usize;
        let weights = self.weights.iter().skip(slice).step_by(SLICES as usize);
        let weights = weights.flatten().map(|&weight| weight as u32 as u64);
        let mut sum = weights.fold(0u64, |sum, weight| mix(sum ^ weight));
        for page in self.pages.iter().skip(slice).step_by(SLICES as usize) {
            sum = sum.rotate_left(7) ^ self.page_digest(page);
        }
        sum
    }

    /// Zero for a page that is as it was at the start.
    fn page_digest(&self, page: &Page) -> u64 {
        if page.updates == 0 {
            return 0;
        }
        let mut lanes = [u64::from(page.updates); 4];
        for &line in &self.line_table[page.entries()] {
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

    pub(crate) fn bytes(&self) -> usize {
        let start = self.start.as_ref();
        self.lines.bytes()
            + size_of_val(&self.line_table[..])
            + size_of_val(&self.pages[..])
            + size_of_val(&self.weights[..])
            + start.map_or(0, |start| size_of_val(&start.pages[..]))
    }
}

/// The weights before anything is learned.
pub(crate) fn fresh_weights(inputs: usize) -> Vec<Weights> {
    alloc::vec![[WEIGHT_SUM / inputs.max(1) as i32; MAX_INPUTS]; WEIGHT_SETS]
}

#[inline]
fn mix(value: u64) -> u64 {
    value.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

/// Parts of the context model that digests cover in turn, one per packet.
pub(crate) const SLICES: u32 = 64;
/// Inputs that a set of weights has room for.
pub(crate) const MAX_INPUTS: usize = 6;
pub(super) const HASH_BITS: u32 = 16;
const MAX_PAGES: u32 = 1 << (32 - HASH_BITS);
pub(super) const MIN_PAGE_CELLS: u32 = 1024;
/// Factor by which a page grows.
pub(crate) const GROWTH: u32 = 4;
/// Largest count of a cell after its page grew: part of what it has seen belongs to other cells
/// now.
const INHERITED_COUNT: u32 = 4;
/// A page grows once it has learned this many decisions per cell.
const UPDATES_PER_CELL: u32 = 1;
/// [`Page::limit`] of a page that has its largest size. Only a wrapped count reaches it again.
const NEVER_GROWS: u32 = 0;
/// The weights learn from the first decisions of a page, and then from one in [`WEIGHT_INTERVAL`].
const WEIGHT_WARM_UP: u32 = 1024;
const WEIGHT_INTERVAL: u32 = 4;
const WEIGHT_SETS: usize = 256;
/// First of the sets of weights whose second context is shared by all pages.
pub(crate) const FIRST_SHARED_SET: u8 = 128;
/// Sum of the weights of a fresh set, in 1/65536.
const WEIGHT_SUM: i32 = 84000;
/// Bound on the magnitude of a weight.
pub(crate) const WEIGHT_LIMIT: i32 = 1 << 18;
/// A cell that has seen fewer decisions is updated inside a packet, too.
const YOUNG: u32 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails with a panic if updates are counted with `+= 1`, and with another digest if undoing
    /// does not wrap as well.
    #[test]
    fn the_count_of_updates_may_wrap() {
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
        context_model.pages[0].updates = u32::MAX - 1;
        let before = context_model.digest(0);
        let mark = context_model.mark();
        context_model.replay::<2>(&decisions);
        assert_eq!(context_model.pages[0].updates, 1);
        context_model.rewind(mark);
        assert_eq!(context_model.digest(0), before);
    }

    /// A page whose count of updates wrapped to 0 is kept, with all that was learned in it and what
    /// a rewind restores. Fails if `free_untrained_pages` frees every page with `updates == 0`: the
    /// rewind then writes cells over the list of free lines, and the next line that is added
    /// panics.
    #[test]
    fn a_page_is_kept_when_its_count_wraps() {
        for seed in 0..20u16 {
            let contexts = |nth: u16| Contexts::<2> {
                page: 0,
                set: 0,
                cells: [nth.wrapping_mul(16 + seed), nth.wrapping_mul(48)],
            };
            let mut context_model = ContextModel::new(2, Learning::Folds, 2, 10, None);
            let updates = |context_model: &mut ContextModel, count: u16| {
                let mut decisions = Decisions::default();
                for nth in 0..count {
                    let forecast = context_model.forecast(&contexts(nth));
                    decisions.push(&contexts(nth), forecast, nth % 3 == 0);
                }
                decisions
            };
            // More than the largest page has cells, as 2^32 updates are.
            let early = updates(&mut context_model, 1100);
            context_model.replay::<2>(&early);
            let last = updates(&mut context_model, 5);
            context_model.pages[0].updates = 5u32.wrapping_neg();
            context_model.commit();
            let before = context_model.digest(0);
            let mark = context_model.mark();
            context_model.replay::<2>(&last);
            assert_eq!(context_model.pages[0].updates, 0);
            let trained = context_model.trained_page(0).expect("it was trained");
            context_model.free_untrained_pages();
            assert_eq!(context_model.trained_page(0), Some(trained), "seed {seed}");
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
