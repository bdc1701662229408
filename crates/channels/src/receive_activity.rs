//! How long the other end has been active, as a measure of how much time it had to send something.

use std::time::Duration;

use crate::receiver::ActivityMark;
use crate::time::Time;

/// The activity of the other end up to a point in time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiveActivity {
    /// Packets that arrived, of all kinds.
    packets: u64,
    /// Packets that the other end sent, by the highest packet number received.
    numbers: u64,
    /// How long the other end was active; see [`GAP`].
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

    /// Whether the other end had enough time since `then` to retransmit whatever was lost. If more
    /// than half of its packets are lost, it also takes many packets.
    pub(crate) fn had_time_since(&self, then: &Self, now: Time) -> bool {
        let packets = self.packets - then.packets;
        let is_lossy = 2 * packets < self.numbers - then.numbers;
        self.active(now).saturating_sub(then.active) >= PATIENCE && (!is_lossy || packets >= MANY)
    }

    fn active(&self, now: Time) -> Duration {
        self.active + now.since(self.last).min(GAP)
    }
}

/// A longer silence counts only for this much, since nothing can arrive in it.
const GAP: Duration = Duration::from_secs(1);
/// Together with the time between two sweeps, less than 5 s.
const PATIENCE: Duration = Duration::from_millis(4500);
const MANY: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_micros(1000 * millis)
    }

    /// Fails if a silence counts in full (`min(GAP)` left out), or if loss is ignored (`is_lossy`
    /// always false).
    #[test]
    fn neither_silence_nor_loss_is_time_to_say_something() {
        let then = ReceiveActivity::new(at(0));
        let mut activity = then;
        assert!(
            !activity.had_time_since(&then, at(60_000)),
            "nothing was received"
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
