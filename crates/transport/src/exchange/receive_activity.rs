//! What was heard of the other end, as a measure of how long it had time to say something.

use std::time::Duration;

use super::receiver::ActivityMark;
use crate::time::Time;

/// What was heard so far, or until something happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiveActivity {
    /// Packets that arrived, of all kinds.
    packets: u64,
    /// Packets that were sent, as far as their numbers tell.
    numbers: u64,
    /// How long the other end was heard of; see [`GAP`].
    active: Duration,
    last: Time,
}

impl ReceiveActivity {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            last: now,
            ..Self::default()
        }
    }

    /// A packet arrived.
    pub(crate) fn note(&mut self, sequence: u64, now: Time) {
        self.active = self.active(now);
        self.last = now;
        self.packets += 1;
        self.numbers = self.numbers.max(sequence.saturating_add(1));
    }

    pub(crate) fn mark(&self, now: Time) -> ActivityMark {
        ActivityMark {
            now,
            packets: self.packets,
        }
    }

    /// Whether the other end had enough time since then to repeat whatever was lost. Where more than
    /// half of its packets are lost, it takes many of them.
    pub(crate) fn had_time_since(&self, then: &Self, now: Time) -> bool {
        let packets = self.packets - then.packets;
        let is_lossy = 2 * packets < self.numbers - then.numbers;
        self.active(now).saturating_sub(then.active) >= PATIENCE && (!is_lossy || packets >= MANY)
    }

    fn active(&self, now: Time) -> Duration {
        self.active + now.since(self.last).min(GAP)
    }
}

/// In a longer silence nothing can be said: no more than this counts of it.
const GAP: Duration = Duration::from_secs(1);
/// With the time between two sweeps, less than 5 s.
const PATIENCE: Duration = Duration::from_millis(4500);
const MANY: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_micros(1000 * millis)
    }

    /// Fails if a silence counts in full (`min(GAP)` left out), or if loss is not looked at
    /// (`is_lossy` always false).
    #[test]
    fn neither_silence_nor_loss_is_time_to_say_something() {
        let then = ReceiveActivity::new(at(0));
        let mut activity = then;
        assert!(
            !activity.had_time_since(&then, at(60_000)),
            "nothing was heard"
        );
        for second in 1..=4 {
            activity.note(second, at(1000 * second));
        }
        assert!(!activity.had_time_since(&then, at(4499)));
        assert!(activity.had_time_since(&then, at(4500)));

        let mut lossy = then;
        for packet in 1..=255 {
            lossy.note(10 * packet, at(50 * packet));
            assert!(!lossy.had_time_since(&then, at(50 * packet)));
        }
        lossy.note(2560, at(50 * 256));
        assert!(lossy.had_time_since(&then, at(50 * 256)));
    }
}
