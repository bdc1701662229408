//! A token bucket, which limits what a peer may cause per second.

use crate::time::Time;

/// A token bucket of `rate` tokens per second, which holds at most `burst`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    rate: u64,
    /// The content and the capacity, in millionths of a token, so that every microsecond adds a
    /// whole number.
    left: u64,
    full: u64,
    refilled: Time,
}

impl Allowance {
    /// A full bucket.
    pub(crate) fn new(rate: u32, burst: u32, now: Time) -> Self {
        let full = u64::from(burst) * MILLION;
        Self {
            rate: rate.into(),
            left: full,
            full,
            refilled: now,
        }
    }

    /// How many tokens are left.
    pub(crate) fn left(&mut self, now: Time) -> usize {
        let micros = now.as_micros().saturating_sub(self.refilled.as_micros());
        let back = micros.saturating_mul(self.rate);
        self.left = self.left.saturating_add(back).min(self.full);
        self.refilled = now;
        usize::try_from(self.left / MILLION).unwrap_or(usize::MAX)
    }

    /// Takes tokens, as far as there are any.
    pub(crate) fn take(&mut self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(count.saturating_mul(MILLION));
    }
}

const MILLION: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the capacity is exceeded (`min(self.full)` left out), or nothing is refilled.
    #[test]
    fn what_is_used_comes_back_at_the_rate_and_no_faster() {
        let at = |millis: u64| Time::from_micros(1000 * millis);
        let mut allowance = Allowance::new(100, 50, at(0));
        assert_eq!(allowance.left(at(0)), 50);
        assert_eq!(allowance.left(at(1_000_000)), 50);
        allowance.take(70);
        assert_eq!(allowance.left(at(1_000_009)), 0);
        assert_eq!(allowance.left(at(1_000_010)), 1);
        allowance.take(1);
        let mut used = 0;
        for milli in 0..10_000 {
            let left = allowance.left(at(1_000_010 + milli));
            allowance.take(left);
            used += left;
        }
        assert_eq!(used, 999);
    }
}
