//! Spreads packets over time.
//!
//! Allowance is earned at a rate and saved up to a bounded burst. A packet may exceed it; the debt is
//! paid off before anything else may be sent.

use std::time::Duration;

use super::micros;
use crate::statistics::BytesPerSecond;
use crate::time::Time;

/// The allowance of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// In millionths of a byte, so that every microsecond adds a whole number. Negative after more
    /// was sent than allowed.
    balance: i128,
    updated: Time,
}

impl Pacer {
    /// Starts with a full burst.
    pub(crate) fn new(burst: u64, now: Time) -> Self {
        Self {
            balance: i128::from(burst) * MILLION,
            updated: now,
        }
    }

    /// Earns what `rate` yields until now, and saves at most `burst` bytes of it.
    pub(crate) fn advance(&mut self, rate: BytesPerSecond, burst: u64, now: Time) {
        let passed = now.since(self.updated);
        self.updated = self.updated.max(now);
        let earned = i128::from(micros(passed)).saturating_mul(i128::from(rate.0));
        let sum = self.balance.saturating_add(earned);
        self.balance = sum.min(i128::from(burst) * MILLION);
    }

    pub(crate) fn spend(&mut self, bytes: usize) {
        self.balance = self.balance.saturating_sub(bytes as i128 * MILLION);
    }

    /// The bytes that may be sent, as of the last [`advance`](Self::advance).
    pub(crate) fn allowance(&self) -> usize {
        usize::try_from(self.balance / MILLION).unwrap_or(0)
    }

    /// The bytes that may be sent within a span at this rate, if nothing is sent before.
    pub(crate) fn allowance_within(&self, rate: BytesPerSecond, span: Duration) -> usize {
        let earned = i128::from(micros(span)) * i128::from(rate.0);
        usize::try_from(self.balance.saturating_add(earned) / MILLION).unwrap_or(0)
    }

    /// When so many bytes may be sent if nothing is sent before. A time in the past means now.
    pub(crate) fn next(&self, rate: BytesPerSecond, bytes: usize) -> Time {
        let missing = bytes as i128 * MILLION - self.balance;
        if missing <= 0 {
            return self.updated;
        }
        let rate = i128::from(rate.0.max(1));
        let wait = missing.saturating_add(rate - 1) / rate;
        let wait = u64::try_from(wait).unwrap_or(u64::MAX);
        self.updated.after(Duration::from_micros(wait))
    }
}

const MILLION: i128 = 1_000_000;
