//! Symbols of sixteen values instead of binary decisions: the coder and the statistics of the next
//! wire version.
//!
//! No packet uses them yet, so they are compiled for tests and for the feature `__symbols` only. A
//! binary decision costs a context, a probability, an update and a step of the coder; a residual of
//! a game takes four to nine of them, a symbol or two would do.

mod coder;
mod distribution;

pub use coder::{SymbolDecoder, SymbolEncoder};
pub use distribution::{Distribution, MixingWeight, Mixture};

#[cfg(test)]
mod tests {
    /// Splitmix.
    pub(super) struct Random(pub u64);

    impl Random {
        pub(super) fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        }

        pub(super) fn below(&mut self, end: u64) -> u64 {
            self.next() % end.max(1)
        }
    }
}
