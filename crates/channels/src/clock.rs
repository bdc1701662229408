//! An estimate of the other end's clock.
//!
//! The clocks of the two ends have different starts and drift apart. Every [`Echo`] bounds their
//! difference from both sides: the other end received the ping after we sent it, and answered
//! before we received the answer. The tightest lower and the tightest upper bound are kept, even if
//! they are of different echoes: an echo that was fast in one direction is useful even if it was
//! slow in the other. The estimate is the middle between the two.
//!
//! A bound loosens with age, by as much as clocks may drift. The true difference therefore stays
//! between the bounds, also after a blackout, and a newer bound soon replaces an old one. If a new
//! echo contradicts the bounds, a clock has jumped, and they start over. A jump that is shorter
//! than a round trip may contradict nothing; it is forgotten with the bounds that are older than
//! half a minute.
//!
//! The asymmetry of the path cannot be measured: half the difference between the times there and
//! back is an error that no exchange of time stamps can detect.
#![allow(
    unreachable_pub,
    reason = "tests and fuzzers reach it through the feature `__test_hooks`"
)]

use std::time::Duration;

use crate::ping::Echo;
use crate::time::Time;

/// An estimate of the other end's clock.
#[derive(Clone, Debug, Default)]
pub struct RemoteClock {
    /// The bounds of the echoes in the present period, and those of the period before.
    recent: Option<Bounds>,
    before: Option<Bounds>,
    /// When the present period began, by our clock.
    began: Time,
    shown: Option<Shown>,
    leaps: u64,
}

/// How far the other clock is ahead of ours, in nanoseconds, so that loosening by parts per million
/// loses nothing to rounding.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    min: i128,
    max: i128,
    /// When these bounds were observed, by our clock.
    since: Time,
}

/// The last reading.
#[derive(Clone, Copy, Debug)]
struct Shown {
    ahead: i128,
    at: Time,
    reading: Time,
}

impl RemoteClock {
    /// A clock without observations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tightens the bounds by an echo.
    pub fn observe(&mut self, echo: &Echo) {
        let nanos = |time: Time| i128::from(time.as_micros()) * 1000;
        // Clocks show whole microseconds, so a reading may be up to one too low.
        let bounds = Bounds {
            min: nanos(echo.answered) - nanos(echo.returned) - 1000,
            max: nanos(echo.received) - nanos(echo.sent) + 1000,
            since: echo.returned,
        };
        if self.recent.is_none() || bounds.since.since(self.began) >= WHILE {
            self.before = self.recent.take();
            self.began = bounds.since;
        }
        let recent = self
            .recent
            .and_then(|old| old.loosened(bounds.since).and(bounds));
        self.recent = Some(recent.unwrap_or(bounds));
    }

    /// The other end's clock; `None` before the first echo.
    ///
    /// It never runs backwards, and it runs at most a tenth faster or slower than ours. If it is
    /// wrong by more than a quarter of a second, it jumps instead and [`leaps`](Self::leaps) counts
    /// that.
    pub fn read(&mut self, now: Time) -> Option<Time> {
        let target = self.bounds(now)?.middle();
        let nanos = i128::from(now.as_micros()) * 1000;
        let shown = match self.shown {
            Some(last) if (target - last.ahead).abs() <= LEAP => {
                let passed = now.since(last.at).as_nanos() as i128;
                let step = (target - last.ahead).clamp(-passed / SLEW, passed / SLEW);
                let ahead = last.ahead + step;
                let reading = whole_micros(nanos + ahead).max(last.reading);
                Shown {
                    ahead,
                    at: now,
                    reading,
                }
            }
            last => {
                self.leaps += u64::from(last.is_some());
                let reading = whole_micros(nanos + target);
                Shown {
                    ahead: target,
                    at: now,
                    reading,
                }
            }
        };
        self.shown = Some(shown);
        Some(shown.reading)
    }

    /// A bound on the error, if the two clocks drift apart by at most 0.1 % and neither jumps. It
    /// includes the error of an asymmetric path.
    pub fn uncertainty(&self, now: Time) -> Option<Duration> {
        let bounds = self.bounds(now)?;
        let nanos = u64::try_from((bounds.max - bounds.min) / 2).unwrap_or(u64::MAX);
        Some(Duration::from_nanos(nanos))
    }

    /// How often the reading jumped. Schedules that depend on it must be restarted when this
    /// changes.
    pub fn leaps(&self) -> u64 {
        self.leaps
    }

    /// The bounds of both periods together, at this time.
    fn bounds(&self, now: Time) -> Option<Bounds> {
        let recent = self.recent?.loosened(now);
        let both = self
            .before
            .and_then(|before| before.loosened(now).and(recent));
        Some(both.unwrap_or(recent))
    }
}

impl Bounds {
    /// The bounds at a later time.
    fn loosened(self, now: Time) -> Self {
        let age = now.since(self.since).as_micros() as i128;
        let drift = age * DRIFT / 1000;
        Self {
            min: self.min - drift,
            max: self.max + drift,
            since: now,
        }
    }

    /// The intersection; `None` if the two contradict each other.
    fn and(self, other: Self) -> Option<Self> {
        let (min, max) = (self.min.max(other.min), self.max.min(other.max));
        (min <= max).then_some(Self { min, max, ..self })
    }

    fn middle(&self) -> i128 {
        (self.min + self.max) / 2
    }
}

fn whole_micros(nanos: i128) -> Time {
    let micros = nanos.div_euclid(1000).max(0);
    Time::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// The highest assumed drift, in parts per million: 1000, and a little more so that a drift of
/// exactly that never contradicts.
const DRIFT: i128 = 1100;
/// The length of a period; bounds are forgotten after two.
const WHILE: Duration = Duration::from_secs(15);
/// A correction takes at least this many times its length.
const SLEW: i128 = 10;
/// In nanoseconds. A larger error is corrected by a jump.
const LEAP: i128 = 250_000_000;
