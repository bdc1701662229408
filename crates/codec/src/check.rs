//! The hash of packet checks and model digests.

/// An order-sensitive hash of integers. Not cryptographic: it detects accidents, not attacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksum(u64);

impl Checksum {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.0 = (self.0 ^ value)
            .wrapping_mul(0xD6E8_FEB8_6659_FD93)
            .rotate_left(32);
    }

    pub(crate) fn add_row(&mut self, row: &[i64]) {
        for &value in row {
            self.add(value as u64);
        }
    }

    pub(crate) fn value(self) -> u64 {
        let mut x = self.0;
        x ^= x >> 29;
        x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^ x >> 32
    }

    /// The 16 bits that are sent.
    pub(crate) fn short(self) -> u16 {
        (self.value() >> 24) as u16
    }
}
