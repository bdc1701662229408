//! What a context model knows before it has seen anything, of other matches.

use alloc::{sync::Arc, vec::Vec};

use super::cells::{COUNT, FRESH, LIMIT};
use super::context_model::{GROWTH, HASH_BITS, SMALLEST, Weights};

/// What one page was taught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taught {
    /// The cells; one of four sizes.
    pub(super) cells: Arc<[u32]>,
    /// How many decisions it was taught.
    pub(super) lessons: u32,
}

/// What a context model knows before it has seen anything. Pages are shared by all context models that start from
/// them; a context model copies one when it first touches it.
#[derive(Clone, Debug)]
pub struct Start {
    /// Everything there is to start from.
    pub taught: Arc<[Taught]>,
    /// For each page of the context model, one more than its place in there; 0 for none.
    pub pages: Vec<u32>,
    /// Sets of weights.
    pub weights: Arc<[Weights]>,
}

impl Start {
    pub(super) fn page(&self, at: usize) -> Option<&Taught> {
        let place = self.pages.get(at)?.checked_sub(1)?;
        self.taught.get(place as usize)
    }
}

impl Taught {
    /// A page of these cells, if there can be one.
    pub fn new(cells: Vec<u32>, lessons: u32) -> Option<Self> {
        let valid = is_size(cells.len()) && cells.iter().all(|&cell| cell & COUNT <= LIMIT);
        valid.then(|| Self {
            cells: cells.into(),
            lessons,
        })
    }

    /// The cells.
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// How many decisions it was taught.
    pub fn lessons(&self) -> u32 {
        self.lessons
    }

    /// The same with less confidence, so that what comes next can change it soon: each cell as
    /// little as [`Taught::cell`] makes of it.
    pub fn humbled(&self) -> Self {
        let humble = |&cell: &u32| Self::cell(Self::brief(cell));
        Self {
            cells: self.cells.iter().map(humble).collect(),
            lessons: self.lessons,
        }
    }

    /// A cell in 16 bits: its probability in the upper 13, and below that how often it was taught,
    /// as far as that counts.
    pub fn brief(cell: u32) -> u16 {
        let count = (cell & COUNT).min(CONFIDENCE);
        ((cell >> 19) << 3 | count) as u16
    }

    /// The cell that a brief one stands for.
    pub fn cell(brief: u16) -> u32 {
        match u32::from(brief & 7) {
            0 => FRESH,
            count => u32::from(brief >> 3) << 19 | 1 << 18 | count,
        }
    }
}

/// Whether a page can have so many cells.
pub fn is_size(cells: usize) -> bool {
    let max = 1 << HASH_BITS;
    let sizes = core::iter::successors(Some(SMALLEST), |size| size.checked_mul(GROWTH));
    let mut sizes = sizes.take_while(|&size| size <= max);
    sizes.any(|size| size as usize == cells)
}

/// Decisions that a cell stands for at most where another match begins.
const CONFIDENCE: u32 = 4;
