//! The hash behind the check bytes of a packet and the digests of a model.

/// An order-sensitive hash of integers. Not cryptographic: it finds accidents, not attackers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksum(u64);

impl Checksum {
    /// Starts from a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    /// Adds one number.
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.0 = (self.0 ^ value)
            .wrapping_mul(0xD6E8_FEB8_6659_FD93)
            .rotate_left(32);
    }

    /// Adds a row of values.
    pub(crate) fn add_row(&mut self, row: &[i64]) {
        for &value in row {
            self.add(value as u64);
        }
    }

    /// All 64 bits.
    pub(crate) fn value(self) -> u64 {
        let mut x = self.0;
        x ^= x >> 29;
        x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^ x >> 32
    }

    /// The 16 bits that travel.
    pub(crate) fn short(self) -> u16 {
        (self.value() >> 24) as u16
    }
}
