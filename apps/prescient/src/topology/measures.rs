//! Distributions, by their quantiles.

/// Counts of values in steps of a hundredth, from 0 to 1000 and above.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    max: f64,
}

/// Steps in a unit.
const STEPS: f64 = 100.0;
/// The last bucket has everything from here on.
const LAST: usize = 100_000;

impl Histogram {
    pub(crate) fn add(&mut self, value: f64) {
        let bucket = ((value * STEPS) as usize).min(LAST);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.max = self.max.max(value);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// The value that a share of all does not exceed, up to the size of a step; `None` without values.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let bucket = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        let upper = (bucket + 1) as f64 / STEPS;
        Some(match bucket == LAST {
            true => self.max,
            false => upper.min(self.max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the rank is off by one, or values beyond the last bucket are lost.
    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut all = Histogram::default();
        assert_eq!(all.quantile(0.5), None);
        for value in 1..=50 {
            all.add(f64::from(value));
        }
        let mut others = Histogram::default();
        (51..=100).for_each(|value| others.add(f64::from(value)));
        all.merge(&others);
        let near = |share, value: f64| (all.quantile(share).expect("values") - value).abs() < 0.02;
        assert!(near(0.5, 50.0) && near(0.99, 99.0) && near(1.0, 100.0));
        all.add(5000.0);
        assert_eq!(all.quantile(1.0), Some(5000.0));
    }
}
