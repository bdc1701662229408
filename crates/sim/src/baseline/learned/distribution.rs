//! Learned frequencies of buckets, and the expected cost of a value.
//!
//! Frequencies are fixed point with eight fractional bits: one observation adds 256. When the sum
//! reaches a limit, all frequencies are halved, so that older observations count less; the
//! probabilities do not change at that moment. No frequency falls below the floor, so every value
//! can be coded.

use std::sync::OnceLock;

use super::buckets::{BUCKETS, position_bits};

/// One observation.
pub(super) const INCREMENT: u32 = 256;
/// All frequencies are halved when the sum reaches this.
pub(super) const LIMIT: u32 = 1 << 22;
/// Minimum frequency of a bucket.
pub(super) const FLOOR: u32 = 4;

/// Frequencies of the errors of one predictor on one field.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    frequencies: [u32; BUCKETS],
    total: u32,
    /// Buckets from this one on have not been observed.
    seen: usize,
}

impl Distribution {
    pub(super) fn new() -> Self {
        Self {
            frequencies: [FLOOR; BUCKETS],
            total: FLOOR * BUCKETS as u32,
            seen: 0,
        }
    }

    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// Start and size of a bucket's interval.
    pub(super) fn interval(&self, bucket: usize) -> (u32, u32) {
        (
            self.frequencies[..bucket].iter().sum(),
            self.frequencies[bucket],
        )
    }

    /// The bucket whose interval contains `at`, and that interval.
    pub(super) fn find(&self, at: u32) -> (usize, u32, u32) {
        let mut start = 0;
        for (bucket, &size) in self.frequencies.iter().enumerate() {
            if at - start < size {
                return (bucket, start, size);
            }
            start += size;
        }
        unreachable!("a position lies below the total, which is the sum of all sizes")
    }

    pub(super) fn record(&mut self, bucket: usize) {
        self.frequencies[bucket] += INCREMENT;
        self.total += INCREMENT;
        self.seen = self.seen.max(bucket + 1);
        if self.total >= LIMIT {
            let mut total = 0;
            for frequency in &mut self.frequencies {
                *frequency = (*frequency / 2).max(FLOOR);
                total += *frequency;
            }
            self.total = total;
        }
    }

    /// Expected bits of a value in units of 1/65536 (equation 6.26 of the document). A predictor
    /// that was never used costs nothing, so that it is tried as soon as possible.
    pub(super) fn expected_cost(&self) -> u64 {
        if self.seen == 0 {
            return 0;
        }
        let whole = log2(self.total);
        let bits = |bucket, frequency: u32| {
            let position = u64::from(position_bits(bucket)) << 16;
            u64::from(frequency) * (position + whole - log2(frequency))
        };
        let seen = self.frequencies[..self.seen].iter().enumerate();
        let sum: u64 = seen
            .map(|(bucket, &frequency)| bits(bucket, frequency))
            .sum();
        let unseen: u64 = (self.seen..BUCKETS).map(|bucket| bits(bucket, FLOOR)).sum();
        (sum + unseen) / u64::from(self.total)
    }
}

/// Binary logarithm in units of 1/65536, from a table that is computed in integers and is therefore
/// the same on every platform.
fn log2(value: u32) -> u64 {
    const INDEX_BITS: u32 = 11;
    static TABLE: OnceLock<Vec<u32>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let fraction = |index: u64| {
            let mut mantissa = (1 << 31) + (index << (31 - INDEX_BITS));
            let mut bits = 0;
            for _ in 0..16 {
                mantissa = (mantissa * mantissa) >> 31;
                let above = mantissa >> 32;
                bits = bits << 1 | above as u32;
                mantissa >>= above;
            }
            bits
        };
        (0..1 << INDEX_BITS).map(fraction).collect()
    });
    let whole = value.max(1).ilog2();
    let mantissa = (u64::from(value) << (32 - whole)) as u32;
    u64::from(whole) << 16 | u64::from(table[(mantissa >> (32 - INDEX_BITS)) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integer_logarithm_is_close() {
        for value in [1u32, 2, 3, 5, 255, 256, 1000, 65535, 1 << 22, u32::MAX] {
            let exact = f64::from(value).log2();
            assert!(
                (log2(value) as f64 / 65536.0 - exact).abs() < 0.001,
                "{value}"
            );
        }
    }

    #[test]
    fn a_certain_field_is_expected_to_cost_almost_nothing() {
        let mut certain = Distribution::new();
        let mut wild = Distribution::new();
        for step in 0..20_000 {
            certain.record(0);
            wild.record(step % 20);
        }
        assert!(certain.expected_cost() < 65536 / 50);
        assert!(wild.expected_cost() > 65536 * 7);
        let sum: u32 = wild.frequencies.iter().sum();
        assert_eq!(sum, wild.total());
        for bucket in 0..BUCKETS {
            let (start, size) = wild.interval(bucket);
            assert_eq!(wild.find(start), (bucket, start, size));
            assert_eq!(wild.find(start + size - 1), (bucket, start, size));
        }
    }
}
