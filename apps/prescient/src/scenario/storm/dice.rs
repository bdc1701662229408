//! Random decisions from a seed.

use prescient_sim::world::Random;
use prescient_transport::Entropy;

/// A sequence of random decisions. Each part of a storm has its own, so that one part does not
/// change the decisions of another.
#[derive(Clone, Debug)]
pub(super) struct Dice(Random);

impl Dice {
    /// The decisions of one part.
    pub(super) fn of(seed: u64, part: u64) -> Self {
        Self(Random::new(mix(seed, part)))
    }

    /// Random 64 bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Uniform in `0..limit`, which must not be empty.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0.range(0, limit as i64) as usize
    }

    /// Uniform in `low..=high`.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.range(low, high + 1)
    }

    /// True with a probability of `parts` per thousand.
    pub(super) fn of_thousand(&mut self, parts: u32) -> bool {
        self.0.chance(parts * 1000)
    }

    /// A random element.
    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        (!all.is_empty()).then(|| &all[self.below(all.len())])
    }
}

impl Entropy for Dice {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.bits() as u8);
    }
}

/// A hash of both numbers.
pub(super) fn mix(one: u64, other: u64) -> u64 {
    let other = Random::new(other).bits();
    Random::new(one ^ other.rotate_left(17)).bits()
}
