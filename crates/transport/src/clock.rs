//! What the other end's clock shows.
//!
//! Both ends count microseconds from a start of their own and at a pace of their own. Every
//! [`Echo`] bounds the difference of their clocks from both sides: the other end received the
//! ping after we sent it, and answered before we received the answer. Bounds of different echoes
//! are good together, so the tightest of either side are kept, whichever echo they came from:
//! one that was quick in one direction helps although it was slow in the other. The estimate is the
//! middle between the two.
//!
//! A bound loosens with age, by as much as clocks may drift. So an old one gives way to a newer one
//! that is not much worse, the truth stays between the two, and after a blackout it is still there.
//! If a new echo contradicts the bounds, a clock has jumped, and they begin anew. A jump that
//! is shorter than a round trip may contradict nothing; it is forgotten with what is older than half
//! a minute.
//!
//! What cannot be known is how the smallest round trip divides into there and back: half of the
//! difference of the two is an error that no exchange of time stamps can find.

use std::time::Duration;

use crate::ping::Echo;
use crate::time::Time;

/// An estimate of the other end's clock.
#[derive(Clone, Debug, Default)]
pub struct RemoteClock {
    /// What the echoes of the last while say, and what those of the while before that do.
    recent: Option<Bounds>,
    before: Option<Bounds>,
    /// When the last while began, by our clock.
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
    /// When they were as tight as that, by our clock.
    since: Time,
}

/// What was read last.
#[derive(Clone, Copy, Debug)]
struct Shown {
    ahead: i128,
    at: Time,
    reading: Time,
}

impl RemoteClock {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Learns from an echo.
    pub fn observe(&mut self, echo: &Echo) {
        let nanos = |time: Time| i128::from(time.as_micros()) * 1000;
        // Clocks show whole microseconds, so what they show may be one too little.
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

    /// What the other end's clock shows; `None` before the first echo.
    ///
    /// It never runs backwards and is at most a tenth faster or slower than ours, except when it is
    /// wrong by more than a quarter of a second: then it leaps, and [`leaps`](Self::leaps) counts.
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

    /// How wrong the estimate can be at most, as long as the two clocks drift apart by no more than
    /// 0.1 % and neither jumps. What a path hides by being slower in one direction is in it.
    pub fn uncertainty(&self, now: Time) -> Option<Duration> {
        let bounds = self.bounds(now)?;
        let nanos = u64::try_from((bounds.max - bounds.min) / 2).unwrap_or(u64::MAX);
        Some(Duration::from_nanos(nanos))
    }

    /// How often it leapt. Whoever schedules by it starts over when this changes.
    pub fn leaps(&self) -> u64 {
        self.leaps
    }

    /// All that is known, at this time.
    fn bounds(&self, now: Time) -> Option<Bounds> {
        let recent = self.recent?.loosened(now);
        let both = self
            .before
            .and_then(|before| before.loosened(now).and(recent));
        Some(both.unwrap_or(recent))
    }
}

impl Bounds {
    /// What is left of them at a later time.
    fn loosened(self, now: Time) -> Self {
        let age = now.since(self.since).as_micros() as i128;
        let drift = age * DRIFT / 1000;
        Self {
            min: self.min - drift,
            max: self.max + drift,
            since: now,
        }
    }

    /// What both say; `None` if they contradict each other.
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

/// By how many parts per million the two clocks may differ in pace: 1000, and a little more so
/// that a drift of exactly that is never a contradiction.
const DRIFT: i128 = 1100;
/// After two of these what was known is forgotten.
const WHILE: Duration = Duration::from_secs(15);
/// A correction takes at least this many times its length.
const SLEW: i128 = 10;
/// In nanoseconds. What is further off than this is not slewed to.
const LEAP: i128 = 250_000_000;
