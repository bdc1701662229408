//! Residuals that recur.
//!
//! Much of what changes in a world changes by the same amount every time: a worker's load, a timer,
//! a price. Such a residual is coded as a position in a short list instead of bit by bit. The front
//! of the list is ordered by frequency; new residuals enter near its end.

/// Length of the list.
pub(crate) const REPEATS: usize = 8;
/// Position at which new residuals enter.
const ENTRANCE: usize = 5;

pub(crate) static NONE: Repeats = Repeats {
    values: [0; REPEATS],
    counts: [0; REPEATS],
};

/// The list of one field of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repeats {
    pub values: [i64; REPEATS],
    pub counts: [u8; REPEATS],
}

impl Repeats {
    /// The position of a residual other than zero.
    #[inline]
    fn find(&self, residual: i64) -> Option<usize> {
        self.values.iter().position(|&value| value == residual)
    }

    /// The residuals of this sign whose bit length is `exponent + 1`, in order.
    #[inline]
    pub(crate) fn alike(&self, exponent: u32, negative: bool) -> impl Iterator<Item = i64> + '_ {
        let alike = move |value: i64| {
            value != 0
                && (value < 0) == negative
                && value.unsigned_abs().leading_zeros() == 63 - exponent
        };
        self.values
            .iter()
            .copied()
            .filter(move |&value| alike(value))
    }

    /// Counts a residual.
    pub(crate) fn learn(&mut self, residual: i64) {
        let Some(mut at) = self.find(residual) else {
            for at in (ENTRANCE + 1..REPEATS).rev() {
                self.values[at] = self.values[at - 1];
                self.counts[at] = self.counts[at - 1];
            }
            self.values[ENTRANCE] = residual;
            self.counts[ENTRANCE] = 0;
            return;
        };
        if self.counts[at] == u8::MAX {
            self.counts = self.counts.map(|count| count / 2);
        }
        self.counts[at] += 1;
        while at > 0 && self.counts[at] > self.counts[at - 1] {
            self.values.swap(at, at - 1);
            self.counts.swap(at, at - 1);
            at -= 1;
        }
    }

    /// All values, for digests.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let counts = self.counts.iter().map(|&count| u64::from(count));
        self.values.iter().map(|&value| value as u64).chain(counts)
    }
}
