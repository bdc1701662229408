//! The state from which a context model starts, if a prior was trained on earlier matches.

use alloc::{sync::Arc, vec::Vec};

use super::cells::{COUNT, FRESH, MAX_COUNT};
use super::context_model::{GROWTH, HASH_BITS, MIN_PAGE_CELLS, Weights};

/// The cells of one page and the number of decisions they have learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrainedPage {
    /// One of four sizes; see [`is_page_size`].
    pub(super) cells: Arc<[u32]>,
    pub(super) updates: u32,
}

/// The state from which context models start. They share its pages, and copy a page when they first
/// use it.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub trained: Arc<[TrainedPage]>,
    /// For each page of the context model, one more than its index in `trained`; 0 for none.
    pub pages: Vec<u32>,
    pub weights: Arc<[Weights]>,
}

impl Start {
    pub(super) fn page(&self, at: usize) -> Option<&TrainedPage> {
        let index = self.pages.get(at)?.checked_sub(1)?;
        self.trained.get(index as usize)
    }
}

impl TrainedPage {
    /// `None` if no page has this size, or a count is too high.
    pub(crate) fn new(cells: Vec<u32>, updates: u32) -> Option<Self> {
        let valid =
            is_page_size(cells.len()) && cells.iter().all(|&cell| cell & COUNT <= MAX_COUNT);
        valid.then(|| Self {
            cells: cells.into(),
            updates,
        })
    }

    pub(crate) fn cells(&self) -> &[u32] {
        &self.cells
    }

    pub(crate) fn updates(&self) -> u32 {
        self.updates
    }

    /// The page with every cell packed and unpacked: its counts are so low that another match can
    /// change the probabilities soon.
    pub(crate) fn with_low_counts(&self) -> Self {
        let lower = |&cell: &u32| Self::unpack(Self::pack(cell));
        Self {
            cells: self.cells.iter().map(lower).collect(),
            updates: self.updates,
        }
    }

    /// A cell in 16 bits: the probability in the upper 13, and the count, limited to
    /// [`MAX_PACKED_COUNT`], in the lower 3.
    pub(crate) fn pack(cell: u32) -> u16 {
        let count = (cell & COUNT).min(MAX_PACKED_COUNT);
        ((cell >> 19) << 3 | count) as u16
    }

    pub(crate) fn unpack(packed: u16) -> u32 {
        match u32::from(packed & 7) {
            0 => FRESH,
            count => u32::from(packed >> 3) << 19 | 1 << 18 | count,
        }
    }
}

/// Whether a page can have this number of cells.
pub(crate) fn is_page_size(cells: usize) -> bool {
    let max = 1 << HASH_BITS;
    let sizes = core::iter::successors(Some(MIN_PAGE_CELLS), |size| size.checked_mul(GROWTH));
    let mut sizes = sizes.take_while(|&size| size <= max);
    sizes.any(|size| size as usize == cells)
}

const MAX_PACKED_COUNT: u32 = 4;
