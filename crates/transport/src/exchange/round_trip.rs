//! How long an answer takes, by the rules of RFC 9002.

use std::time::Duration;

use super::arrivals::DELAY;

/// Measured round trips of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// A moving average.
    pub smoothed: Duration,
    /// The shortest ever seen.
    pub smallest: Duration,
    /// How far single ones are from the average, on average.
    pub variation: Duration,
    /// The last one.
    pub latest: Duration,
}

impl RoundTrip {
    /// What the first answer tells.
    pub(crate) fn new(sample: Duration) -> Self {
        Self {
            smoothed: sample,
            smallest: sample,
            variation: sample / 2,
            latest: sample,
        }
    }

    /// One more answer. `delay` is how long the other end says that it waited with it, and is
    /// believed as far as it is plausible: answers are repeated, so one that arrives may be old.
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

    /// A packet is lost if one that was sent this much later has arrived.
    pub(crate) fn reordering(&self) -> Duration {
        (self.smoothed.max(self.latest) * 9 / 8).max(GRANULARITY)
    }

    /// How long to wait for any answer before asking again.
    pub(crate) fn patience(&self) -> Duration {
        self.smoothed + (self.variation * 4).max(GRANULARITY) + DELAY
    }
}

/// Clocks and timers are not finer than this.
const GRANULARITY: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a delay is believed that cannot be (`if sample >= …` left out): the round trip
    /// would fall below what light takes. Or if a long one is not (`delay.min(DELAY)`).
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
