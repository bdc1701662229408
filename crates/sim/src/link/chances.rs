//! The random generators of a link.

use std::time::Duration;

use super::time::micros;
use crate::world::Random;

/// One generator per condition, so that conditions do not affect each other's random numbers.
#[derive(Clone, Debug)]
pub(super) struct Chances {
    pub loss: Random,
    pub bursts: Random,
    pub jitter: Random,
    pub reordering: Random,
    pub duplication: Random,
    pub corruption: Random,
}

impl Chances {
    pub(super) fn new(seed: u64) -> Self {
        let mut seeds = Random::new(seed);
        let mut next = || Random::new(seeds.bits());
        Self {
            loss: next(),
            bursts: next(),
            jitter: next(),
            reordering: next(),
            duplication: next(),
            corruption: next(),
        }
    }
}

/// A random duration from zero to `max`, inclusive.
pub(super) fn up_to(random: &mut Random, max: Duration) -> Duration {
    let max = micros(max).min(i64::MAX as u64 - 1);
    Duration::from_micros(random.range(0, max as i64 + 1) as u64)
}

/// Flips one to eight different bits.
pub(super) fn flip_bits(bytes: &mut [u8], random: &mut Random) {
    let bits = bytes.len() as i64 * 8;
    let mut flipped = Vec::new();
    for _ in 0..random.range(1, 9) {
        let bit = random.range(0, bits) as usize;
        if !flipped.contains(&bit) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            flipped.push(bit);
        }
    }
}
