//! One number per tick, and its statistics.

/// The values of all counted ticks.
#[derive(Clone, Debug, Default)]
pub struct Series(Vec<f64>);

impl Series {
    /// Adds the value of the next tick.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Number of counted ticks.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no tick was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values in order.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// Mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }

    /// Standard deviation; `None` without values.
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares = self
            .0
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>();
        Some((squares / self.0.len() as f64).sqrt())
    }

    /// The smallest value that at least `percent` of all values do not exceed; `None` without
    /// values.
    pub fn percentile(&self, percent: u32) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let rank = (sorted.len() * percent as usize).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied()
    }

    /// Largest; `None` without values.
    pub fn max(&self) -> Option<f64> {
        self.0.iter().copied().max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let mut series = Series::default();
        assert_eq!(series.percentile(50), None);
        (1..=200).for_each(|value| series.push(f64::from(value)));
        assert_eq!(series.percentile(50), Some(100.0));
        assert_eq!(series.percentile(99), Some(198.0));
        assert_eq!(series.percentile(100), Some(200.0));
        assert_eq!(series.max(), Some(200.0));
        assert_eq!(series.mean(), Some(100.5));
    }
}
