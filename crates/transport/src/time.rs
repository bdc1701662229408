//! Time as the machines see it: an argument, never a clock that is read.

use std::time::Duration;

/// A moment of the caller's monotonic clock, in microseconds since any start that the caller
/// likes. Two machines need not agree on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// The moment that many microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This moment and a span later; the end of time rather than an overflow.
    pub fn after(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// How long ago `earlier` was; zero if it is still to come.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Seconds since 1970, the only thing that a backend and a server share. Used for the expiry of
/// tokens and for nothing else, so a wall clock that jumps cannot end a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixTime(pub u64);

/// A moment of attended time, by which a machine waits, and of the caller's clock, which it tells the
/// other end about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) now: Time,
    pub(crate) clock: Time,
}

/// The time that passed while somebody was looking.
///
/// Silence is evidence of a dead peer only while we listened. A process that was suspended, or
/// whose clock leapt, finds datagrams waiting that it had no chance to read; so a step of the
/// caller's clock counts for at most `max_step`, and a step backwards for nothing.
#[derive(Clone, Debug)]
pub(crate) struct AttendedClock {
    seen: Time,
    attended: Time,
    max_step: Duration,
}

impl AttendedClock {
    pub(crate) fn new(now: Time, max_step: Duration) -> Self {
        Self {
            seen: now,
            // Not zero, so that a moment before the start can be told from the start.
            attended: Time(1 << 32),
            max_step,
        }
    }

    /// Moves on to `now` of the caller's clock and says which moment of attended time that is.
    pub(crate) fn advance(&mut self, now: Time) -> Time {
        let step = now.since(self.seen).min(self.max_step);
        self.seen = now;
        self.attended = self.attended.after(step);
        self.attended
    }

    /// The same with what the caller's clock shows.
    pub(crate) fn advance_both(&mut self, now: Time) -> Now {
        Now {
            now: self.advance(now),
            clock: now,
        }
    }

    /// The moment of attended time that was reached last.
    pub(crate) fn now(&self) -> Time {
        self.attended
    }

    /// When the caller's clock will show a moment of attended time.
    pub(crate) fn on_callers_clock(&self, moment: Time) -> Time {
        self.seen.after(moment.since(self.attended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaps_count_for_one_step_and_steps_back_for_nothing() {
        let second = Duration::from_secs(1);
        let mut clock = AttendedClock::new(Time(5_000_000), second);
        let start = clock.now();
        assert_eq!(clock.advance(Time(5_400_000)).since(start).as_millis(), 400);
        assert_eq!(clock.advance(Time(u64::MAX)).since(start).as_millis(), 1400);
        assert_eq!(clock.advance(Time(0)).since(start).as_millis(), 1400);
        assert_eq!(clock.advance(Time(100_000)).since(start).as_millis(), 1500);
        let deadline = clock.now().after(second);
        assert_eq!(clock.on_callers_clock(deadline), Time(1_100_000));
        assert_eq!(clock.on_callers_clock(start), Time(100_000));
    }
}
