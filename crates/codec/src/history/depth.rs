//! How far a history reaches back.

use core::fmt;

use crate::shared_model::HISTORY;

/// How many ticks before the newest one an end keeps. Rows are predicted from the last
/// [`HISTORY`] ticks, so fewer are never kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryDepth(u32);

impl HistoryDepth {
    /// [`HISTORY`] ticks, the default.
    pub const MIN: Self = Self(HISTORY);

    /// Refuses fewer than [`HISTORY`] ticks. There is no upper limit but memory: with `u32::MAX`,
    /// nothing is ever dropped.
    pub const fn new(ticks: u32) -> Result<Self, HistoryTooShort> {
        if ticks < HISTORY {
            return Err(HistoryTooShort { ticks });
        }
        Ok(Self(ticks))
    }

    pub(crate) fn of(ticks: u32) -> Self {
        Self(ticks.max(HISTORY))
    }

    /// The number of ticks.
    pub const fn ticks(self) -> u32 {
        self.0
    }
}

impl Default for HistoryDepth {
    fn default() -> Self {
        Self::MIN
    }
}

/// A history of so few ticks is too short for predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryTooShort {
    /// The number of ticks that was refused.
    pub ticks: u32,
}

impl fmt::Display for HistoryTooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticks = self.ticks;
        write!(f, "a history has at least {HISTORY} ticks, not {ticks}")
    }
}

impl core::error::Error for HistoryTooShort {}
