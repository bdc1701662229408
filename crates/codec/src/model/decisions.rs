//! The decisions of a packet, kept until both ends know that the packet was applied and learn from
//! it.

use alloc::vec::Vec;

use super::context_model::{Contexts, Forecast, MAX_INPUTS};
use crate::buffer;

/// The decisions of one packet, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    /// For each decision: the page, the set of weights with the outcome, and one cell per context.
    words: Vec<u16>,
    count: usize,
}

/// A length to [truncate](Decisions::truncate) to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    words: usize,
    count: usize,
}

impl Decisions {
    /// Least number of bytes that a kept decision takes.
    pub(crate) const BYTES_EACH: usize = 4 * size_of::<u16>();

    /// Counts a decision, and keeps it unless its outcome was almost certain: the model learns
    /// nothing from those.
    #[inline(always)]
    pub(crate) fn push<const N: usize>(
        &mut self,
        contexts: &Contexts<N>,
        forecast: Forecast,
        bit: bool,
    ) {
        self.count += 1;
        let expected = if bit {
            forecast.probability
        } else {
            !forecast.probability
        };
        let is_kept = expected < ALMOST_CERTAIN || forecast.young;
        let outcome = u16::from(contexts.set) << 1 | u16::from(bit);
        let word = |i: usize| match i {
            0 => contexts.page,
            1 => outcome,
            _ => contexts.cells.get(i - 2).copied().unwrap_or(0),
        };
        // Written first and truncated then: whether it is kept is too hard to predict for a branch.
        let start = self.words.len();
        let words = core::array::from_fn::<u16, WORDS, _>(word);
        self.words.extend_from_slice(&words);
        self.words.truncate(start + (N + 2) * usize::from(is_kept));
    }

    /// The kept decisions: their contexts and their outcomes.
    #[inline(always)]
    pub(crate) fn iter<const N: usize>(&self) -> impl Iterator<Item = (Contexts<N>, bool)> {
        self.words.chunks_exact(N + 2).map(|words| {
            let contexts = Contexts {
                page: words[0],
                set: (words[1] >> 1) as u8,
                cells: core::array::from_fn(|i| words[i + 2]),
            };
            (contexts, words[1] & 1 == 1)
        })
    }

    /// All decisions, including those that were not kept.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn len(&self) -> Length {
        Length {
            words: self.words.len(),
            count: self.count,
        }
    }

    pub(crate) fn truncate(&mut self, len: Length) {
        self.words.truncate(len.words);
        self.count = len.count;
    }

    pub(crate) fn bytes(&self) -> usize {
        buffer::bytes(&self.words)
    }

    pub(crate) fn shrink(&mut self) {
        buffer::shrink_to_use(&mut self.words);
    }

    /// Removes everything and keeps the memory that is in use.
    pub(crate) fn clear(&mut self) {
        buffer::clear(&mut self.words);
        self.count = 0;
    }
}

/// Words of a decision with [`MAX_INPUTS`] contexts.
const WORDS: usize = MAX_INPUTS + 2;
/// A decision whose outcome had at least this probability, in 1/65536, is not kept.
const ALMOST_CERTAIN: u16 = 65536u32.wrapping_sub(256) as u16;
