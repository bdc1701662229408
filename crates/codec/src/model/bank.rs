//! The learned probabilities of one connection.
//!
//! Every field has a page of cells; a context is hashed to a line of 16 of them within its page,
//! and nobody keeps the context itself. A page is made when it is first needed, starts small and
//! grows with what it has learned, each cell handing its knowledge to those that take its place: memory
//! follows use and not the size of the schema. A page that does not exist equals a fresh one.

use alloc::vec::Vec;

use super::logistic::{squash, stretch};

/// One adaptive probability: a page and a hash within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// The line of a context in a page.
    #[inline]
    pub fn line(page: u32, context: u64) -> Self {
        let mixed = (context ^ context >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = (mixed >> (64 - HASH_BITS)) as u32 & !(LINE - 1);
        Self((page % MAX_PAGES) << HASH_BITS | hash)
    }

    /// One of the 16 cells of a line.
    #[inline]
    pub fn cell(self, index: usize) -> Self {
        Self(self.0 | index as u32 & (LINE - 1))
    }

    #[inline]
    fn page(self) -> usize {
        (self.0 >> HASH_BITS) as usize
    }
}

/// What a decision is predicted from: `N` contexts and the set of weights that mixes them.
#[derive(Clone, Copy, Debug)]
pub struct Contexts<const N: usize> {
    /// The contexts.
    pub places: [Place; N],
    /// The set of weights.
    pub weights: usize,
}

/// How a decision is expected to go.
#[derive(Clone, Copy, Debug)]
pub struct Forecast<const N: usize> {
    inputs: [i32; N],
    /// Some context has seen little and learns at once.
    young: bool,
    /// Probability of `true`, in 1/65536.
    pub probability: u16,
}

/// The decisions of one packet, to be replayed when it is folded.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    words: Vec<u32>,
}

impl Decisions {
    /// Remembers how a decision went.
    #[inline]
    pub fn push<const N: usize>(&mut self, contexts: &Contexts<N>, bit: bool) {
        self.words
            .push((contexts.weights as u32) << 1 | u32::from(bit));
        self.words
            .extend(contexts.places.iter().map(|place| place.0));
    }

    /// How many decisions were remembered.
    pub fn count<const N: usize>(&self) -> usize {
        self.words.len() / (N + 1)
    }

    /// A length to come back to.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether nothing was decided.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Forgets what came after a length taken earlier.
    pub fn truncate(&mut self, len: usize) {
        self.words.truncate(len);
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.words.clear();
    }
}

/// A moment to which a bank can go back; see [`Bank::mark`].
#[derive(Clone, Copy, Debug)]
pub struct Moment(usize, usize);

/// All pages of one model.
#[derive(Clone, Debug)]
pub struct Bank {
    pages: Vec<Page>,
    weights: Vec<[i32; MAX_INPUTS]>,
    learning: Learning,
    notes: Notes,
}

/// When a bank learns.
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
#[derive(Clone, Debug, Default)]
struct Page {
    cells: Vec<u32>,
    /// How many cells were taught, counting repetitions.
    lessons: u32,
}

/// What it takes to go back.
#[derive(Clone, Debug, Default)]
struct Notes {
    /// Whether notes are taken.
    taken: bool,
    /// A cell, where it lies in its page, and what it held.
    cells: Vec<(Place, u32, u32)>,
    /// Pages as they were before they grew, with the number of noted cells at that time.
    grown: Vec<(usize, u32, Page)>,
    /// Weights as they were, with the number of noted cells at that time.
    weights: Vec<[i32; MAX_INPUTS]>,
    weights_at: Option<usize>,
}

impl Bank {
    /// A bank that has seen nothing.
    pub fn new(pages: u32, learning: Learning) -> Self {
        Self {
            pages: alloc::vec![Page::default(); pages.clamp(1, MAX_PAGES) as usize],
            weights: alloc::vec![[WEIGHT_FRESH; MAX_INPUTS]; WEIGHT_SETS],
            learning,
            notes: Notes::default(),
        }
    }

    /// What the contexts say about a decision.
    #[inline(always)]
    pub fn forecast<const N: usize>(&mut self, contexts: &Contexts<N>) -> Forecast<N> {
        let mut inputs = [0; N];
        let mut sum = 0i32;
        let mut young = false;
        let weights = &self.weights[contexts.weights % WEIGHT_SETS];
        for i in 0..N {
            let place = contexts.places[i];
            let page = &mut self.pages[place.page()];
            let cell = match page.cells.get(page.index(place)) {
                Some(&cell) => cell,
                None => page.open(place),
            };
            young |= cell & COUNT < YOUNG;
            inputs[i] = stretch((cell >> 20) as u16);
            sum += inputs[i] * weights[i] >> 8;
        }
        Forecast {
            inputs,
            young: young & (self.learning != Learning::Off),
            probability: squash(sum >> 8),
        }
    }

    /// Learns, inside a packet, that a decision went `bit`.
    #[inline]
    pub fn learn<const N: usize>(
        &mut self,
        contexts: &Contexts<N>,
        forecast: &Forecast<N>,
        bit: bool,
    ) {
        if forecast.young || self.learning == Learning::Inside {
            self.learn_young(contexts, bit);
        }
    }

    #[cold]
    fn learn_young<const N: usize>(&mut self, contexts: &Contexts<N>, bit: bool) {
        for place in contexts.places {
            let page = &mut self.pages[place.page()];
            let at = page.index(place);
            let old = page.cells[at];
            if old & COUNT < YOUNG || self.learning == Learning::Inside {
                self.notes.cells.push((place, at as u32, old));
                page.cells[at] = adapt(old, bit);
                page.lessons += 1;
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
        for words in decisions.words.chunks_exact(N + 1) {
            let contexts = Contexts::<N> {
                places: core::array::from_fn(|i| Place(words[i + 1])),
                weights: (words[0] >> 1) as usize,
            };
            let bit = words[0] & 1 == 1;
            let forecast = self.forecast(&contexts);
            let error = (i32::from(bit) << 16) - i32::from(forecast.probability);
            let weights = &mut self.weights[contexts.weights % WEIGHT_SETS];
            for (weight, input) in weights.iter_mut().zip(forecast.inputs) {
                let moved = *weight + ((input * error + (1 << 17)) >> 18);
                *weight = moved.clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT);
            }
            for place in contexts.places {
                self.teach(place, bit);
            }
        }
    }

    #[inline]
    fn teach(&mut self, place: Place, bit: bool) {
        let page = &mut self.pages[place.page()];
        let at = page.index(place);
        let old = match page.cells.get(at) {
            Some(&cell) => cell,
            None => page.open(place),
        };
        let at = page.index(place);
        if self.notes.taken {
            self.notes.cells.push((place, at as u32, old));
        }
        page.cells[at] = adapt(old, bit);
        page.lessons += 1;
        if page.is_crowded() {
            self.grow(place.page());
        }
    }

    #[cold]
    fn grow(&mut self, page: usize) {
        if self.notes.taken {
            let old = self.pages[page].clone();
            self.notes
                .grown
                .push((self.notes.cells.len(), page as u32, old));
        }
        let cells = &mut self.pages[page].cells;
        let len = cells.len();
        for _ in 1..GROWTH {
            cells.extend_from_within(..len);
        }
    }

    /// Remembers this moment.
    pub fn mark(&mut self) -> Moment {
        self.notes.taken = true;
        Moment(self.notes.cells.len(), self.notes.grown.len())
    }

    /// Forgets everything learned since a moment.
    pub fn rewind(&mut self, to: Moment) {
        while self.notes.grown.len() > to.1
            && let Some((at, page, old)) = self.notes.grown.pop()
        {
            self.take_back(at);
            self.pages[page as usize] = old;
        }
        self.take_back(to.0);
        if self.notes.weights_at.is_some_and(|at| at >= to.0) {
            self.weights.clone_from(&self.notes.weights);
            self.notes.weights_at = None;
        }
    }

    fn take_back(&mut self, len: usize) {
        for (place, at, old) in self.notes.cells.drain(len..).rev() {
            let page = &mut self.pages[place.page()];
            page.cells[at as usize] = old;
            page.lessons -= 1;
        }
    }

    /// Makes everything learned so far final; there is no way back before the next mark.
    pub fn settle(&mut self) {
        self.notes.taken = false;
        self.notes.cells.clear();
        self.notes.grown.clear();
        self.notes.weights_at = None;
    }

    /// Gives up the pages that nothing was learned in.
    pub fn tidy(&mut self) {
        for page in self.pages.iter_mut().filter(|page| page.lessons == 0) {
            page.cells = Vec::new();
        }
    }

    /// A digest of one of the [`SLICES`] parts of the bank.
    pub fn digest(&self, slice: u32) -> u64 {
        let slice = (slice % SLICES) as usize;
        let weights = self.weights.iter().skip(slice).step_by(SLICES as usize);
        let weights = weights.flatten().map(|&weight| weight as u32 as u64);
        let mut sum = weights.fold(0u64, |sum, weight| {
            (sum ^ weight)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(29)
        });
        for page in self.pages.iter().skip(slice).step_by(SLICES as usize) {
            sum = sum.rotate_left(7) ^ page.digest();
        }
        sum
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let cells: usize = self.pages.iter().map(|page| page.cells.capacity()).sum();
        4 * cells + size_of::<Page>() * self.pages.len() + size_of_val(&self.weights[..])
    }
}

impl Page {
    #[inline]
    fn index(&self, place: Place) -> usize {
        (place.0 as usize & ((1 << HASH_BITS) - 1)) & self.cells.len().wrapping_sub(1)
    }

    #[cold]
    fn open(&mut self, place: Place) -> u32 {
        self.cells.resize(SMALLEST, FRESH);
        self.cells[self.index(place)]
    }

    #[inline]
    fn is_crowded(&self) -> bool {
        self.lessons as usize >= LESSONS_PER_CELL * self.cells.len() && self.cells.len() < LARGEST
    }

    /// Zero for a page that equals a fresh one.
    fn digest(&self) -> u64 {
        if self.lessons == 0 {
            return 0;
        }
        let mut lanes = [u64::from(self.lessons); 4];
        for quad in self.cells.chunks_exact(4) {
            for (lane, &cell) in lanes.iter_mut().zip(quad) {
                *lane = (*lane ^ u64::from(cell))
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    .rotate_left(29);
            }
        }
        let [a, b, c, d] = lanes;
        let mixed = a ^ b.rotate_left(17) ^ c.rotate_left(31) ^ d.rotate_left(47);
        mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }
}

/// Parts in which a bank is checked, one a packet.
pub const SLICES: u32 = 64;
/// Inputs that a set of weights has room for.
pub const MAX_INPUTS: usize = 6;
/// Cells in a line.
pub const LINE: u32 = 16;
const HASH_BITS: u32 = 14;
const MAX_PAGES: u32 = 1 << (32 - HASH_BITS);
/// Cells of a page at first, and at most.
const SMALLEST: usize = 256;
const LARGEST: usize = 16384;
const GROWTH: usize = 4;
/// A page grows when it was taught this often for each of its cells.
const LESSONS_PER_CELL: usize = 2;
const WEIGHT_SETS: usize = 256;
const WEIGHT_FRESH: i32 = 28000;
const WEIGHT_LIMIT: i32 = 1 << 18;

/// A cell is a probability in the upper 22 bits and a count in the lower 10: it moves fast while
/// it has seen little.
#[inline]
fn adapt(cell: u32, bit: bool) -> u32 {
    let count = cell & COUNT;
    let probability = cell >> 10;
    let target = if bit { 0x3F_FFFF } else { 0 };
    let step = (target as i64 - i64::from(probability)) * i64::from(RATE[count as usize & 0xFF]);
    let moved = (i64::from(probability) + (step >> 16)) as u32;
    moved << 10 | (count + 1).min(LIMIT)
}

const FRESH: u32 = 1 << 31;
const COUNT: u32 = 0x3FF;
const LIMIT: u32 = 250;
/// A context that was met less often learns inside a packet, too.
const YOUNG: u32 = 30;
static RATE: [u16; 256] = rates();

const fn rates() -> [u16; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = (65536 * 2 / (2 * i + 3)) as u16;
        i += 1;
    }
    table
}
