//! Times and spans. They are integers, because both ends must agree on them exactly.

use std::fmt;
use std::ops::{Add, Neg, Sub};

/// A time in microseconds since an epoch that both ends agree on.
///
/// Keyframes lie between [`Time::MIN`] and [`Time::MAX`]; look-ups accept any time. In a game with ticks,
/// the time of a tick is its begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// The earliest time of a keyframe: 285 years before zero.
    pub const MIN: Self = Self(-LIMIT);
    /// Microsecond 0.
    pub const ZERO: Self = Self(0);
    /// The latest time of a keyframe: 285 years after zero. Every microsecond up to here is exact in
    /// an `f64`.
    pub const MAX: Self = Self(LIMIT);

    /// From microseconds.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// From milliseconds, saturating.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// In microseconds.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The span from `earlier` to this time, negative if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    pub(crate) fn is_valid(self) -> bool {
        Self::MIN <= self && self <= Self::MAX
    }
}

impl Add<Span> for Time {
    type Output = Self;

    /// Saturates, so that an overflow is refused as out of range.
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Self;

    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{} µs", self.0)
    }
}

/// A signed length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Span {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(i64::MAX);

    /// From microseconds.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// From milliseconds, saturating.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// From seconds, saturating.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// In microseconds.
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}

impl Neg for Span {
    type Output = Self;

    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{} µs", self.0)
    }
}

const LIMIT: i64 = 1 << 53;
