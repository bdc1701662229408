//! The learned probabilities of one connection.
//!
//! Cells live in groups of 16 (a cache line) that come into being when a context is first met, so memory follows
//! what was seen and not the size of the schema. A group that does not exist equals a fresh one;
//! where a group lies is private to each end, what it holds is not.

use alloc::vec::Vec;

use super::logistic::{squash, stretch};

/// The decisions of one context: 16 cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group(u32);

impl Group {
    /// One cell of the group.
    #[inline]
    pub fn cell(self, index: usize) -> CellId {
        CellId(self.0 + (index & (GROUP - 1)) as u32)
    }
}

/// One adaptive probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellId(u32);

/// What a decision is predicted from: `N` contexts and the weights that mix them.
#[derive(Clone, Copy, Debug)]
pub struct Contexts<const N: usize> {
    /// The contexts.
    pub cells: [CellId; N],
    /// The first of `N` consecutive weights.
    pub weights: CellId,
}

/// How a decision is expected to go.
#[derive(Clone, Copy, Debug)]
pub struct Forecast<const N: usize> {
    inputs: [i32; N],
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
        self.words.push(contexts.weights.0 << 1 | u32::from(bit));
        self.words.extend(contexts.cells.iter().map(|cell| cell.0));
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
pub struct Moment(usize);

/// All groups of one model.
#[derive(Clone, Debug)]
pub struct Bank {
    cells: Vec<u32>,
    keys: Vec<u64>,
    /// Open addressing over `keys`.
    table: Vec<Entry>,
    /// Groups by the part of the bank they belong to.
    slices: Vec<Vec<u32>>,
    /// What groups held when they were first changed after a moment, oldest first.
    saved: Vec<(u32, [u32; GROUP])>,
    /// For each group, the moment at which it was saved last.
    stamps: Vec<u32>,
    moment: u32,
    saving: bool,
    frozen: bool,
}

/// A place of the table. The key stands next to the number, so that finding a group touches one
/// cache line before its own.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    /// Number of the group, plus 1; 0 where the place is free.
    group: u32,
}

const FREE: Entry = Entry { key: 0, group: 0 };

impl Bank {
    /// A bank that has seen nothing. A `frozen` one never learns.
    pub fn new(frozen: bool) -> Self {
        let mut bank = Self {
            cells: Vec::new(),
            keys: Vec::new(),
            table: alloc::vec![FREE; 512],
            slices: alloc::vec![Vec::new(); SLICES as usize],
            saved: Vec::new(),
            stamps: Vec::new(),
            moment: 1,
            saving: true,
            frozen,
        };
        for group in 0..WEIGHT_SETS * 8 / GROUP {
            bank.insert(WEIGHTS | group as u64);
        }
        bank
    }

    /// The first weight of a set.
    #[inline]
    pub fn weights(set: usize) -> CellId {
        CellId((set % WEIGHT_SETS * 8) as u32)
    }

    /// The group of a context; made when first asked for.
    #[inline]
    pub fn group(&mut self, key: u64) -> Group {
        let mask = self.table.len() - 1;
        let mut at = spread(key) as usize & mask;
        loop {
            let entry = self.table[at];
            if entry.group == 0 {
                return self.insert(key);
            }
            if entry.key == key {
                return Group((entry.group - 1) * GROUP as u32);
            }
            at = (at + 1) & mask;
        }
    }

    /// What the contexts say about a decision.
    #[inline]
    pub fn forecast<const N: usize>(&self, contexts: &Contexts<N>) -> Forecast<N> {
        let mut inputs = [0; N];
        let mut sum = 0i64;
        let weights = &self.cells[contexts.weights.0 as usize..][..N];
        for i in 0..N {
            inputs[i] = stretch((self.cells[contexts.cells[i].0 as usize] >> 20) as u16);
            sum += i64::from(inputs[i]) * i64::from(weights[i] as i32);
        }
        Forecast {
            inputs,
            probability: squash((sum >> 16) as i32),
        }
    }

    /// Learns that a decision went `bit`.
    #[inline]
    pub fn learn<const N: usize>(
        &mut self,
        contexts: &Contexts<N>,
        forecast: &Forecast<N>,
        bit: bool,
    ) {
        if self.frozen {
            return;
        }
        self.save(contexts.weights);
        let error = (i32::from(bit) << 16) - i32::from(forecast.probability);
        for i in 0..N {
            let cell = CellId(contexts.weights.0 + i as u32);
            let weight = self.cells[cell.0 as usize] as i32;
            let moved = weight.saturating_add((forecast.inputs[i] * error + (1 << 17)) >> 18);
            self.cells[cell.0 as usize] = moved.clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT) as u32;
        }
        for cell in contexts.cells {
            self.save(cell);
            let cell = &mut self.cells[cell.0 as usize];
            *cell = adapt(*cell, bit);
        }
    }

    /// Learns the decisions of an earlier packet.
    pub fn replay<const N: usize>(&mut self, decisions: &Decisions) {
        for words in decisions.words.chunks_exact(N + 1) {
            let contexts = Contexts::<N> {
                cells: core::array::from_fn(|i| CellId(words[i + 1])),
                weights: CellId(words[0] >> 1),
            };
            let forecast = self.forecast(&contexts);
            self.learn(&contexts, &forecast, words[0] & 1 == 1);
        }
    }

    /// Remembers this moment.
    pub fn mark(&mut self) -> Moment {
        self.pass();
        self.saving = true;
        Moment(self.saved.len())
    }

    /// Forgets everything learned since a moment.
    pub fn rewind(&mut self, to: Moment) {
        for (group, cells) in self.saved.drain(to.0..).rev() {
            self.cells[group as usize * GROUP..][..GROUP].copy_from_slice(&cells);
        }
        self.pass();
    }

    /// Every group may be saved again from here on.
    fn pass(&mut self) {
        if self.moment == u32::MAX {
            self.stamps.fill(0);
            self.moment = 0;
        }
        self.moment += 1;
    }

    /// Makes everything learned so far final; there is no way back before the next mark.
    pub fn settle(&mut self) {
        self.saved.clear();
        self.saving = false;
    }

    /// A group is copied before it changes for the first time after a moment: much less than
    /// every change of a cell, of which there are several per decision.
    #[inline]
    fn save(&mut self, cell: CellId) {
        let group = cell.0 as usize / GROUP;
        if self.saving && self.stamps[group] != self.moment {
            self.stamps[group] = self.moment;
            let mut cells = [0; GROUP];
            cells.copy_from_slice(&self.cells[group * GROUP..][..GROUP]);
            self.saved.push((group as u32, cells));
        }
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.keys.len()
    }

    /// Forgets the groups that came into being since there were `keep`; nothing may refer to them.
    pub fn truncate(&mut self, keep: usize) {
        let mask = self.table.len() - 1;
        while self.keys.len() > keep {
            // The newest key is the last of its probe sequence, so its place can be emptied.
            let index = self.keys.len() as u32;
            let key = self.keys.pop().unwrap_or_default();
            self.slices[(spread(key) % SLICES) as usize].pop();
            let mut at = spread(key) as usize & mask;
            while self.table[at].group != index {
                at = (at + 1) & mask;
            }
            self.table[at] = FREE;
        }
        self.cells.truncate(keep * GROUP);
        self.stamps.truncate(keep);
    }

    /// A digest of one of the [`SLICES`] parts of the bank that does not depend on the order in
    /// which groups came into being.
    pub fn digest(&self, slice: u32) -> u64 {
        let groups = &self.slices[(slice % SLICES) as usize];
        groups.iter().fold(0, |sum: u64, &group| {
            sum.wrapping_add(self.group_digest(group as usize))
        })
    }

    /// Zero for a group that equals a fresh one.
    fn group_digest(&self, group: usize) -> u64 {
        let key = self.keys[group];
        let fresh = fresh_cell(key);
        let cells = &self.cells[group * GROUP..][..GROUP];
        let mut changed = 0;
        let mut lanes = [key; 4];
        for quad in cells.chunks_exact(4) {
            for (lane, &cell) in lanes.iter_mut().zip(quad) {
                changed |= cell ^ fresh;
                *lane = (*lane ^ u64::from(cell))
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    .rotate_left(29);
            }
        }
        if changed == 0 {
            return 0;
        }
        let [a, b, c, d] = lanes;
        let mixed = a ^ b.rotate_left(17) ^ c.rotate_left(31) ^ d.rotate_left(47);
        mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        4 * self.cells.len() + 16 * self.keys.len() + size_of::<Entry>() * self.table.len()
    }

    #[cold]
    fn insert(&mut self, key: u64) -> Group {
        let group = Group(self.cells.len() as u32);
        let slice = spread(key) % SLICES;
        self.slices[slice as usize].push(self.keys.len() as u32);
        self.keys.push(key);
        self.stamps.push(0);
        self.cells.extend([fresh_cell(key); GROUP]);
        if self.keys.len() * 2 > self.table.len() {
            self.table = alloc::vec![FREE; self.table.len() * 2];
            for index in 0..self.keys.len() {
                self.place(index);
            }
        } else {
            self.place(self.keys.len() - 1);
        }
        group
    }

    fn place(&mut self, index: usize) {
        let mask = self.table.len() - 1;
        let key = self.keys[index];
        let mut at = spread(key) as usize & mask;
        while self.table[at].group != 0 {
            at = (at + 1) & mask;
        }
        self.table[at] = Entry {
            key,
            group: index as u32 + 1,
        };
    }
}

/// Parts in which a bank is checked, one a packet.
pub const SLICES: u32 = 64;
/// Cells in a group.
pub const GROUP: usize = 16;
/// Keys with this bit name groups of weights, the others groups of probabilities.
const WEIGHTS: u64 = 1 << 63;
/// Sets of weights; each has room for eight.
const WEIGHT_SETS: usize = 128;

fn fresh_cell(key: u64) -> u32 {
    if key & WEIGHTS != 0 {
        WEIGHT_FRESH
    } else {
        0x8000_0000
    }
}

const WEIGHT_FRESH: u32 = 28000;
const WEIGHT_LIMIT: i32 = 1 << 20;

/// A cell is a probability in the upper 22 bits and a count in the lower 10: it moves fast while
/// it has seen little.
#[inline]
fn adapt(cell: u32, bit: bool) -> u32 {
    let count = cell & 0x3FF;
    let probability = cell >> 10;
    let target = if bit { 0x3F_FFFF } else { 0 };
    let step = (target as i64 - i64::from(probability)) * i64::from(RATE[count as usize & 0xFF]);
    let moved = (i64::from(probability) + (step >> 16)) as u32;
    moved << 10 | if count < LIMIT { count + 1 } else { count }
}

const LIMIT: u32 = 250;
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

#[inline]
fn spread(key: u64) -> u32 {
    let mixed = (key ^ key >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as u32
}
