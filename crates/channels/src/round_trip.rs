//! Estimation of the round trip time, after RFC 9002.

use std::time::Duration;

/// The round trip time of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoundTrip {
    /// The smoothed round trip time, a moving average.
    pub smoothed: Duration,
    /// The smallest sample.
    pub smallest: Duration,
    /// The mean deviation of samples from the average.
    pub variation: Duration,
    /// The latest sample.
    pub latest: Duration,
    /// About the longest delay that the other end reported recently.
    pub(crate) delay: Duration,
}

impl RoundTrip {
    /// Starts with the first sample.
    pub(crate) fn new(sample: Duration) -> Self {
        Self {
            smoothed: sample,
            smallest: sample,
            variation: sample / 2,
            latest: sample,
            delay: Duration::ZERO,
        }
    }

    /// Adds a sample. `delay` is the delay that the other end reports; it is subtracted only as far
    /// as it is plausible: acknowledgements are repeated, so one that arrives may be old.
    pub(crate) fn measure(&mut self, sample: Duration, delay: Duration) {
        self.delay = (self.delay * 7 / 8).max(delay.min(MAX_DELAY));
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

    /// The probe timeout, without backoff, if the other end may delay acknowledgements by `delay`.
    /// One that looks for packets only once per tick delays them by more.
    pub(crate) fn patience(&self, delay: Duration) -> Duration {
        self.smoothed + (self.variation * 4).max(GRANULARITY) + delay.max(self.delay)
    }
}

/// The granularity of clocks and timers.
const GRANULARITY: Duration = Duration::from_millis(1);
/// No honest end that is still there delays an acknowledgement by more.
const MAX_DELAY: Duration = Duration::from_millis(250);

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

    /// Fails if a probe is sent before an end that polls once per tick had a chance to answer
    /// (`max(self.delay)` left out of `patience`), or long after it has become faster.
    #[test]
    fn probes_wait_for_slow_ends() {
        let [trip, tick, soon] = [10, 50, 20].map(Duration::from_millis);
        let mut round_trip = RoundTrip::new(trip);
        for step in 0..20 {
            let delay = tick * (step % 4) / 3;
            round_trip.measure(trip + delay, delay);
        }
        assert!(round_trip.patience(soon) >= trip + tick * 6 / 10);
        for _ in 0..20 {
            round_trip.measure(trip, Duration::ZERO);
        }
        assert!(round_trip.patience(soon) < trip + soon + Duration::from_millis(2));
    }
}
