//! Estimation of the round trip time, after RFC 9002.

use std::time::Duration;

use crate::arrivals::DELAY;

/// The round trip time of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The smoothed round trip time, a moving average.
    pub smoothed: Duration,
    /// The smallest sample.
    pub smallest: Duration,
    /// The mean deviation of samples from the average.
    pub variation: Duration,
    /// The latest sample.
    pub latest: Duration,
}

impl RoundTrip {
    /// Starts with the first sample.
    pub(crate) fn new(sample: Duration) -> Self {
        Self {
            smoothed: sample,
            smallest: sample,
            variation: sample / 2,
            latest: sample,
        }
    }

    /// Adds a sample. `delay` is the delay that the other end reports; it is subtracted only as far
    /// as it is plausible: acknowledgements are repeated, so one that arrives may be old.
    pub(crate) fn measure(&mut self, sample: Duration, delay: Duration) {
        self.smallest = self.smallest.min(sample);
        self.latest = sample;
        if sample >= self.smallest.saturating_add(delay) {
            self.latest = sample - delay;
        }
        let apart = self.smoothed.abs_diff(self.latest);
        self.variation = (self.variation * 3 + apart) / 4;
        self.smoothed = (self.smoothed * 7 + self.latest) / 8;
    }

    /// A packet is lost if one that was sent this much later was acknowledged.
    pub(crate) fn reordering(&self) -> Duration {
        (self.smoothed.max(self.latest) * 9 / 8).max(GRANULARITY)
    }

    /// The probe timeout, without backoff.
    pub(crate) fn patience(&self) -> Duration {
        self.smoothed + (self.variation * 4).max(GRANULARITY) + DELAY
    }
}

/// The granularity of clocks and timers.
const GRANULARITY: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if an implausible delay is subtracted (`if sample >= …` left out): the round trip time
    /// would fall below the physical one. Or if a long delay is not (`delay.min(DELAY)`).
    #[test]
    fn averages_settle_and_lies_about_delays_do_not_help() {
        let [trip, wait] = [50, 15].map(Duration::from_millis);
        let mut honest = RoundTrip::new(trip);
        for _ in 0..50 {
            honest.measure(trip + wait, wait);
            honest.measure(trip + 20 * wait, 20 * wait);
        }
        assert_eq!(honest.latest, trip);
        assert!(honest.smoothed.abs_diff(trip) < Duration::from_micros(10));
        assert!(honest.variation < Duration::from_micros(10));
        let mut liar = RoundTrip::new(trip);
        for _ in 0..100 {
            liar.measure(trip, Duration::MAX);
        }
        assert_eq!(liar.latest, trip);
        assert_eq!(liar.smallest, trip);
    }
}
