//! Statistics of a symbol of sixteen values in 32 bytes.
//!
//! The probabilities are kept as sums, so that learning moves every sum by the same share of its
//! way to 0 or to the total: sixteen lanes, the same operation in each, without a branch. Compilers
//! make two vector instructions of it. One lane is no sum: it holds how much of the start is left,
//! and so how fast to learn.

use super::coder::TOTAL;

/// Adaptive probabilities of the values 0 to 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(32))]
pub struct Distribution {
    /// Lane `i` from 1 on: the learned part of the probability of values below `i`. Lane 0: the
    /// share of the start that is left.
    lanes: [i16; 16],
}

impl Distribution {
    /// All of the first `values` values are equally likely.
    pub fn uniform(values: usize) -> Self {
        let values = values.clamp(1, 16);
        let mut lanes =
            core::array::from_fn(|at| (LEARNED * at.min(values) as i32 / values as i32) as i16);
        lanes[0] = i16::MAX;
        Self { lanes }
    }

    /// Learns a value: early ones much, later ones [`SLOWEST`].
    #[inline]
    pub fn learn(&mut self, value: usize) {
        let rate = i32::from(self.lanes[0].max(SLOWEST));
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            let target = if at > value { LEARNED as i16 } else { 0 };
            let way = i32::from(target - *lane);
            *lane += ((way * rate) >> 16) as i16;
        }
    }

    /// Joins two distributions.
    #[inline]
    pub fn mix(&self, other: &Self, weight: MixingWeight) -> Mixture {
        let weight = i32::from(weight.0);
        Mixture(core::array::from_fn(|at| {
            let (one, two) = (i32::from(self.lanes[at]), i32::from(other.lanes[at]));
            let learned = two + (((one - two) * weight) >> 15);
            if at == 0 {
                0
            } else {
                (learned + FLOOR * at as i32) as u16
            }
        }))
    }

    /// Shares of a value, of [`LEARNED`], without the floor.
    #[inline]
    fn learned(&self, value: usize) -> i32 {
        let value = value & 15;
        let from = if value == 0 { 0 } else { self.lanes[value] };
        let to = self.lanes.get(value + 1).map_or(LEARNED, |&to| to.into());
        to - i32::from(from)
    }
}

/// How much of a [`Mixture`] is of its first distribution, in 2^15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixingWeight(i16);

impl MixingWeight {
    /// Half of each.
    pub const EVEN: Self = Self(1 << 14);

    /// Moves towards the distribution that gave the value the higher probability, by the more, the
    /// more they differ.
    #[inline]
    pub fn learn(&mut self, first: &Distribution, second: &Distribution, value: usize) {
        let (one, two) = (first.learned(value) + FLOOR, second.learned(value) + FLOOR);
        let way = if one > two { i32::from(i16::MAX) } else { 0 } - i32::from(self.0);
        // Between 0 for equal ones and 255 for far different ones.
        let sureness = ((one - two).abs() << 8) / (one + two);
        self.0 += ((way * sureness) >> 13) as i16;
    }
}

/// The probabilities of one symbol, for the coder.
#[derive(Clone, Copy, Debug)]
pub struct Mixture([u16; 16]);

impl Mixture {
    /// The first share of a value, and the number of its shares.
    #[inline]
    pub fn shares(&self, value: usize) -> (u32, u32) {
        let value = value & 15;
        let from = u32::from(self.0[value]);
        let to = self.0.get(value + 1).map_or(TOTAL, |&to| to.into());
        (from, to - from)
    }

    /// The value that has a share.
    #[inline]
    pub fn value(&self, share: u32) -> usize {
        let upto = |&from: &u16| usize::from(u32::from(from) <= share);
        self.0.iter().map(upto).sum::<usize>().saturating_sub(1)
    }
}

/// Shares that every value has for certain.
const FLOOR: i32 = 4;
/// Shares that are learned.
const LEARNED: i32 = TOTAL as i32 - 16 * FLOOR;
/// The least that is learned from a value, in 2^16.
const SLOWEST: i16 = 1 << 10;

#[cfg(test)]
mod tests {
    use super::super::{SymbolDecoder, SymbolEncoder, tests::Random};
    use super::*;
    use alloc::vec::Vec;

    /// Values of which each is half as likely as the one before.
    fn geometric(random: &mut Random) -> usize {
        (random.next().trailing_zeros() as usize).min(15)
    }

    fn bits(mixture: &Mixture, value: usize) -> f64 {
        -(f64::from(mixture.shares(value).1) / f64::from(TOTAL)).log2()
    }

    /// Whatever is learned, every value keeps a share, and shares and values are each other's
    /// inverse. Fails without the floor, or if rounding could reverse two lanes (`>>` for `/` with a
    /// rate above one).
    #[test]
    fn every_value_keeps_a_share() {
        let mut random = Random(3);
        for case in 0..200 {
            let mut pair = [16, 1 + random.below(16) as usize].map(Distribution::uniform);
            let mut weight = MixingWeight::EVEN;
            for _ in 0..random.below(400) {
                let value = match case % 3 {
                    0 => random.below(16) as usize,
                    1 => 15,
                    _ => geometric(&mut random),
                };
                let [one, two] = &mut pair;
                weight.learn(one, two, value);
                one.learn(value);
                if random.below(3) == 0 {
                    two.learn(random.below(16) as usize);
                }
                let mixture = one.mix(two, weight);
                let mut next = 0;
                for value in 0..16 {
                    let (from, count) = mixture.shares(value);
                    assert_eq!(from, next, "{pair:?}");
                    assert!(count >= FLOOR as u32, "{value} of {mixture:?}");
                    assert_eq!(mixture.value(from), value);
                    assert_eq!(mixture.value(from + count - 1), value);
                    next = from + count;
                }
                assert_eq!(next, TOTAL);
            }
        }
    }

    /// A distribution reaches the entropy of what it sees within some hundred symbols. Fails if the
    /// rate does not fall (`rate` a constant of 2^14).
    #[test]
    fn what_repeats_becomes_cheap() {
        let mut random = Random(8);
        let mut one = Distribution::uniform(16);
        let mut spent = [0.0; 2];
        for number in 0..4000 {
            let value = geometric(&mut random);
            let mixture = one.mix(&one, MixingWeight::EVEN);
            spent[usize::from(number >= 500)] += bits(&mixture, value);
            one.learn(value);
        }
        // The entropy is two bits.
        let [early, late] = [spent[0] / 500.0, spent[1] / 3500.0];
        assert!(early < 2.2 && late < 2.06, "{early} then {late} bits");
    }

    /// The weight finds the context that knows more. Fails if `MixingWeight::learn` moves the other
    /// way.
    #[test]
    fn the_better_context_gets_the_weight() {
        let mut random = Random(21);
        let mut good = [Distribution::uniform(16); 16];
        let mut blind = Distribution::uniform(16);
        let mut weight = MixingWeight::EVEN;
        let (mut before, mut spent) = (0, 0.0);
        for number in 0..3000 {
            let value = (before + 3 + geometric(&mut random)) % 16;
            if number >= 1000 {
                spent += bits(&good[before].mix(&blind, weight), value);
            }
            weight.learn(&good[before], &blind, value);
            good[before].learn(value);
            blind.learn(value);
            before = value;
        }
        assert!(weight.0 > 3 << 13, "{weight:?}");
        assert!(spent / 2000.0 < 2.25, "{} bits", spent / 2000.0);
    }

    /// Both ends learn the same from the same symbols. Fails if anything is learned before the
    /// shares are read.
    #[test]
    fn symbols_come_back_through_statistics() {
        let mut random = Random(34);
        let values: Vec<usize> = (0..5000).map(|_| geometric(&mut random)).collect();
        let mut encoder = SymbolEncoder::new(Vec::new());
        let fresh = ([Distribution::uniform(16); 2], MixingWeight::EVEN);
        let ([mut one, mut two], mut weight) = fresh;
        let mut estimate = 0.0;
        for &value in &values {
            let mixture = one.mix(&two, weight);
            let (from, count) = mixture.shares(value);
            encoder.symbol(from, count);
            estimate += bits(&mixture, value);
            weight.learn(&one, &two, value);
            one.learn(value);
            two.learn(value & 1);
        }
        let bytes = encoder.finish();
        assert!((bytes.len() as f64 * 8.0 - estimate).abs() < 16.0);
        let mut decoder = SymbolDecoder::new(&bytes);
        let ([mut one, mut two], mut weight) = fresh;
        for &expected in &values {
            let mixture = one.mix(&two, weight);
            let value = mixture.value(decoder.share());
            assert_eq!(value, expected);
            let (from, count) = mixture.shares(value);
            decoder.accept(from, count);
            weight.learn(&one, &two, value);
            one.learn(value);
            two.learn(value & 1);
        }
        assert!(!decoder.overrun());
    }
}
