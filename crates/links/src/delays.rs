//! A histogram of queue delays, in constant memory.

use std::time::Duration;

use crate::time::micros;

/// A histogram of durations: percentiles are at most 1/32 too high.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    count: u64,
    max: u64,
    /// Counts per range. There are 32 ranges between a power of two and the next.
    counts: Vec<u64>,
}

impl Delays {
    /// Adds a duration.
    pub fn push(&mut self, delay: Duration) {
        let value = micros(delay);
        let range = range_of(value);
        if self.counts.len() <= range {
            self.counts.resize(range + 1, 0);
        }
        self.counts[range] += 1;
        self.count += 1;
        self.max = self.max.max(value);
    }

    /// Adds all durations of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (own, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *own += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// Number of durations.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A duration that at least `percent` of all do not exceed; `None` if empty.
    pub fn percentile(&self, percent: u32) -> Option<Duration> {
        let rank = (u128::from(self.count) * u128::from(percent.min(100))).div_ceil(100);
        let mut seen = 0;
        for (range, count) in self.counts.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank.max(1) {
                return Some(Duration::from_micros(last_of(range).min(self.max)));
            }
        }
        None
    }

    /// The median; `None` if empty.
    pub fn p50(&self) -> Option<Duration> {
        self.percentile(50)
    }

    /// The 95th percentile; `None` if empty.
    pub fn p95(&self) -> Option<Duration> {
        self.percentile(95)
    }

    /// The maximum, exact; `None` if empty.
    pub fn max(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_micros(self.max))
    }
}

/// Values below 64 have a range each; above, the five bits after the leading one select the range.
fn range_of(value: u64) -> usize {
    let doublings = (u64::BITS - value.leading_zeros()).saturating_sub(6);
    ((u64::from(doublings) << 5) + (value >> doublings)) as usize
}

/// The largest value of a range.
fn last_of(range: usize) -> u64 {
    let doublings = (range >> 5).saturating_sub(1) as u32;
    let leading = (range - ((doublings as usize) << 5)) as u64;
    ((leading + 1) << doublings).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_each_other_and_are_narrow() {
        let mut first = 0_u64;
        for range in 0..1920 {
            let last = last_of(range);
            assert_eq!(range_of(first), range);
            assert_eq!(range_of(last), range);
            assert!(last - first <= first / 32, "{first}..={last}");
            first = last.wrapping_add(1);
        }
        assert_eq!(first, 0, "the last range ends with the largest value");
    }

    #[test]
    fn percentiles_are_close_and_the_largest_is_exact() {
        let mut delays = Delays::default();
        assert_eq!((delays.p50(), delays.max()), (None, None));
        (1..=100_000).for_each(|value| delays.push(Duration::from_micros(value)));
        for percent in [1, 50, 95, 100] {
            let exact = u64::from(percent) * 1000;
            let told = micros(delays.percentile(percent).expect("there are some"));
            assert!(told >= exact && told <= exact + exact / 32, "{told}");
        }
        assert_eq!(delays.max(), Some(Duration::from_micros(100_000)));
        let mut twice = delays.clone();
        twice.merge(&delays);
        assert_eq!(twice.p50(), delays.p50());
        assert_eq!(twice.len(), 200_000);
    }

    #[test]
    fn the_longest_duration_is_counted() {
        let mut delays = Delays::default();
        delays.push(Duration::MAX);
        assert_eq!(delays.p50(), Some(Duration::from_micros(u64::MAX)));
    }
}
