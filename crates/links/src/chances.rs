//! The random decisions of a link.

use std::time::Duration;

use crate::Random;
use crate::{Bursts, time::micros};

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

/// The state of the Gilbert-Elliott model.
#[derive(Clone, Debug, Default)]
pub(super) struct BurstState {
    /// `None` before the first datagram, for which the state is drawn from the stationary
    /// distribution.
    bad: Option<bool>,
}

impl BurstState {
    /// Whether the next datagram is lost.
    ///
    /// With loss p and burst length L, a bad link turns good with probability 1/L, and a good one
    /// bad with p/(1 − p) of that, so that p of all datagrams meet a bad link. The second
    /// probability cannot exceed 1, which limits the first. Both are exact fractions, so no
    /// rounding shifts the averages.
    pub(super) fn loses(&mut self, bursts: &Bursts, random: &mut Random) -> bool {
        let lost = u64::from(bursts.loss.min(MILLION));
        let kept = u64::from(MILLION) - lost;
        let length = u64::from(bursts.length.max(1));
        let bad = match self.bad {
            None => odds(random, lost, lost + kept),
            Some(true) if length * kept < lost => !odds(random, kept, lost),
            Some(true) => !odds(random, 1, length),
            Some(false) => odds(random, lost, length * kept),
        };
        self.bad = Some(bad);
        bad
    }
}

/// True with probability `part / whole`, at most 1.
fn odds(random: &mut Random, part: u64, whole: u64) -> bool {
    random.range(0, whole as i64) < part as i64
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

const MILLION: u32 = 1_000_000;
