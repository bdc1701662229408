//! What was decided in a packet, for the day on which both ends know that it was applied.

use alloc::vec::Vec;

use super::context_model::{Contexts, Forecast, MAX_INPUTS};
use crate::buffer;

/// The decisions of one packet, to be replayed when it is folded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    /// Page, set of weights and outcome, and the contexts' cells of each.
    words: Vec<u16>,
    count: usize,
}

/// A length of [`Decisions`] to come back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    words: usize,
    count: usize,
}

impl Decisions {
    /// Bytes that a decision takes at least if it is kept.
    pub(crate) const BYTES_EACH: usize = 4 * size_of::<u16>();

    /// Remembers how a decision went, unless it was next to certain: there is nothing to learn
    /// from what everybody knew.
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
        // Written first and taken back: who teaches is too hard to foresee for a branch.
        let start = self.words.len();
        let words = core::array::from_fn::<u16, WORDS, _>(word);
        self.words.extend_from_slice(&words);
        self.words.truncate(start + (N + 2) * usize::from(is_kept));
    }

    /// What there is to learn: contexts of decisions and how they went.
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

    /// How many decisions were taken.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// A length to come back to.
    pub(crate) fn len(&self) -> Length {
        Length {
            words: self.words.len(),
            count: self.count,
        }
    }

    /// Forgets what came after a length taken earlier.
    pub(crate) fn truncate(&mut self, len: Length) {
        self.words.truncate(len.words);
        self.count = len.count;
    }

    /// Bytes that they hold.
    pub(crate) fn bytes(&self) -> usize {
        buffer::bytes(&self.words)
    }

    /// Forgets everything and keeps the memory that it may need.
    pub(crate) fn clear(&mut self) {
        buffer::clear(&mut self.words);
        self.count = 0;
    }
}

/// Room for a decision with as many contexts as there may be.
const WORDS: usize = MAX_INPUTS + 2;
/// A decision that was expected with at least this probability, in 1/65536, teaches nothing.
const ALMOST_CERTAIN: u16 = 65536u32.wrapping_sub(256) as u16;
