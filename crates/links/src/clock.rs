//! The clock of an endpoint.
//!
//! The clocks of two machines differ in time and in speed, and either may be set while it runs.
//! Protocols must tolerate that, so simulated endpoints have such clocks.

use crate::Time;

/// Maps true time to the reading of an endpoint's clock: offset, skew, jumps.
///
/// Only readings are rounded, so a clock whose skew changes a thousand times is still exact.
/// Changes must be made in order of true time.
///
/// ```
/// use prescient_links::{Clock, Time};
///
/// let mut clock = Clock::with_offset(500);
/// clock.set_skew(Time::ZERO, 1000); // gains a thousandth
/// assert_eq!(clock.read(Time::from_secs(1)).as_micros(), 1_001_500);
/// clock.jump(Time::from_secs(1), -1_000_000);
/// assert_eq!(clock.read(Time::from_secs(1)).as_micros(), 1_500);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// True time of the last change.
    since: Time,
    /// Its reading then, in millionths of a microsecond; may be negative.
    shown: i128,
    /// Millionths of a microsecond that it advances per microsecond.
    pace: i128,
}

impl Clock {
    /// A clock that shows true time.
    pub fn new() -> Self {
        Self::with_offset(0)
    }

    /// A clock that is ahead by this many microseconds, or behind if negative.
    pub fn with_offset(micros: i64) -> Self {
        Self {
            since: Time::ZERO,
            shown: i128::from(micros) * UNIT,
            pace: UNIT,
        }
    }

    /// From `now` on it gains this many microseconds per second of true time, or loses them if
    /// negative. At minus a million it stops, like the clock of a suspended machine; it never runs
    /// backwards.
    pub fn set_skew(&mut self, now: Time, parts_per_million: i32) {
        self.shown = self.exact(now);
        self.since = self.since.max(now);
        self.pace = (UNIT + i128::from(parts_per_million)).max(0);
    }

    /// Sets it forward by this many microseconds at `now`, or back if negative.
    pub fn jump(&mut self, now: Time, micros: i64) {
        self.shown = self.exact(now) + i128::from(micros) * UNIT;
        self.since = self.since.max(now);
    }

    /// Its reading at `now`, rounded down; zero if it would be negative.
    pub fn read(&self, now: Time) -> Time {
        let micros = self.exact(now).div_euclid(UNIT).max(0);
        Time::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// The first true time, not before its last change, at which it shows `reading` or more; `None`
    /// if it never does. An endpoint's timer fires then.
    pub fn when(&self, reading: Time) -> Option<Time> {
        let missing = i128::from(reading.as_micros()) * UNIT - self.shown;
        if missing <= 0 || reading == Time::ZERO {
            return Some(self.since);
        }
        if self.pace == 0 {
            return None;
        }
        let wait = (missing + self.pace - 1) / self.pace;
        let micros = i128::from(self.since.as_micros()) + wait;
        Some(Time::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
    }

    fn exact(&self, now: Time) -> i128 {
        let passed = now.as_micros().saturating_sub(self.since.as_micros());
        self.shown + i128::from(passed) * self.pace
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

const UNIT: i128 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn a_thousand_parts_per_million_are_a_millisecond_per_second() {
        let mut fast = Clock::new();
        fast.set_skew(Time::ZERO, 1000);
        let mut slow = Clock::new();
        slow.set_skew(Time::ZERO, -1000);
        for seconds in [1, 60, 3600, 86_400] {
            let now = Time::from_secs(seconds);
            assert_eq!(fast.read(now).as_micros(), seconds * 1_001_000);
            assert_eq!(slow.read(now).as_micros(), seconds * 999_000);
        }
    }

    #[test]
    fn changing_the_skew_often_loses_nothing() {
        let mut clock = Clock::new();
        for step in 0..1_000_000 {
            clock.set_skew(Time::from_micros(step * 7), 333);
        }
        let mut once = Clock::new();
        once.set_skew(Time::ZERO, 333);
        let now = Time::from_secs(10);
        assert_eq!(clock.read(now), once.read(now));
        assert_eq!(clock.read(now).as_micros(), 10_003_330);
    }

    #[test]
    fn an_hour_forward_and_back_is_where_it_was() {
        let mut clock = Clock::with_offset(HOUR);
        let now = Time::from_secs(5);
        clock.jump(now, HOUR);
        assert_eq!(clock.read(now).as_micros(), 5_000_000 + 2 * HOUR as u64);
        clock.jump(now, -2 * HOUR);
        assert_eq!(clock.read(now), now);
        clock.jump(now, -HOUR);
        assert_eq!(clock.read(now), Time::ZERO, "there is nothing before zero");
        clock.jump(now, HOUR);
        assert_eq!(clock.read(now), now, "but nothing is lost by going there");
    }

    #[test]
    fn a_suspended_clock_stands_still_and_goes_on() {
        let mut clock = Clock::new();
        clock.set_skew(Time::from_secs(10), -1_000_000);
        assert_eq!(clock.read(Time::from_secs(610)), Time::from_secs(10));
        assert_eq!(clock.when(Time::from_secs(11)), None);
        clock.set_skew(Time::from_secs(610), 0);
        assert_eq!(clock.read(Time::from_secs(611)), Time::from_secs(11));
        assert_eq!(clock.when(Time::from_secs(11)), Some(Time::from_secs(611)));
    }

    #[test]
    fn a_timer_fires_at_the_first_moment_that_shows_its_time() {
        for skew in [-999_999, -1000, -1, 0, 1, 1000, 5_000_000] {
            let mut clock = Clock::with_offset(-123);
            clock.set_skew(Time::from_micros(77), skew);
            for reading in [0, 1, 123, 5000, 1_000_003] {
                let reading = Time::from_micros(reading);
                let when = clock.when(reading).expect("the clock runs");
                assert!(clock.read(when) >= reading, "skew {skew}");
                let before = when.as_micros() - 1;
                if before >= 77 {
                    assert!(
                        clock.read(Time::from_micros(before)) < reading,
                        "skew {skew}"
                    );
                }
            }
        }
    }
}
