//! A small random generator of our own, so that a seed always yields the same world.

/// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit word of state, passes BigCrush.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `low..high`, which must not be empty.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        let span = high.wrapping_sub(low) as u64;
        let product = u128::from(self.bits()) * u128::from(span);
        low.wrapping_add((product >> 64) as i64)
    }

    /// True with a probability of `parts` in a million.
    pub fn chance(&mut self, parts: u32) -> bool {
        self.range(0, 1_000_000) < i64::from(parts)
    }
}
