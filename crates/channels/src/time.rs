//! Time, which callers pass in; nothing here reads a clock.

use std::time::Duration;

/// A point in time of the caller's monotonic clock, in microseconds since an arbitrary start. The
/// two ends need not agree on the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// The given number of microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This time plus a span; saturates.
    pub fn after(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// This time less a span; not before the start.
    pub fn before(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(micros))
    }

    /// The time since `earlier`; zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// The same instant on two clocks: attended time, which drives timers, and the caller's clock,
/// which is sent to the other end.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Attended time.
    pub now: Time,
    /// The caller's clock.
    pub clock: Time,
}

/// When a packet arrived, and when it is handled, which is later if the program was busy or asleep.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it arrived, as far as that is known. Round trips and the other end's clock are measured
    /// by it, and the difference is part of the delay that is reported to the other end.
    pub arrived: Now,
    /// When it is handled.
    pub handled: Now,
    /// Whether a router marked it instead of dropping it (ECN, congestion experienced).
    pub is_marked: bool,
}

/// What the socket says of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reception {
    /// How long it has waited since it arrived, as far as that is known.
    pub waited: Duration,
    /// Whether a router marked it instead of dropping it (ECN, congestion experienced).
    pub is_marked: bool,
}

impl From<Duration> for Reception {
    /// It has waited so long and is not marked.
    fn from(waited: Duration) -> Self {
        Self {
            waited,
            is_marked: false,
        }
    }
}

impl From<Now> for Arrival {
    /// It is handled when it arrives.
    fn from(now: Now) -> Self {
        Self {
            arrived: now,
            handled: now,
            is_marked: false,
        }
    }
}

/// Attended time: the time in which this process was able to receive.
///
/// Silence proves that a peer is gone only while we were able to receive. After a process was
/// suspended, or its clock jumped, datagrams may wait that it had no chance to read. A step of the
/// caller's clock therefore counts for at most `max_step`, and a step backwards for nothing.
#[derive(Clone, Debug)]
pub struct AttendedClock {
    seen: Time,
    attended: Time,
    max_step: Duration,
}

impl AttendedClock {
    /// Starts at `now` of the caller's clock.
    pub fn new(now: Time, max_step: Duration) -> Self {
        Self {
            seen: now,
            // Not zero, so that times before the start are representable.
            attended: Time(1 << 32),
            max_step,
        }
    }

    /// Advances to `now` of the caller's clock and returns the attended time.
    pub fn advance(&mut self, now: Time) -> Time {
        let step = now.since(self.seen).min(self.max_step);
        self.seen = now;
        self.attended = self.attended.after(step);
        self.attended
    }

    /// Like [`advance`](Self::advance), but returns both times.
    pub fn advance_both(&mut self, now: Time) -> Now {
        Now {
            now: self.advance(now),
            clock: now,
        }
    }

    /// Like [`advance_both`](Self::advance_both), for a packet that has waited since it arrived. Of
    /// a time in which this process could not receive, only one step counts.
    pub fn advance_waited(&mut self, now: Time, reception: Reception) -> Arrival {
        let handled = self.advance_both(now);
        let waited = reception.waited.min(self.max_step);
        let arrived = Now {
            now: handled.now.before(waited),
            clock: handled.clock.before(waited),
        };
        Arrival {
            arrived,
            handled,
            is_marked: reception.is_marked,
        }
    }

    /// The attended time after the last step.
    pub fn now(&self) -> Time {
        self.attended
    }

    /// Converts attended time to the caller's clock.
    pub fn on_callers_clock(&self, moment: Time) -> Time {
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
