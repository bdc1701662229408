//! Whether the other end takes anything in.

use std::time::Duration;

use super::receiver::ActivityMark;

/// What speaks for and against it.
pub(crate) struct Stall {
    /// When anything was acknowledged last, or nothing was in flight.
    answered: ActivityMark,
    /// Packets that were sent since then.
    unanswered: u32,
    /// The same for anything reliable.
    progress: ActivityMark,
    /// Packets with something reliable in them that were lost since then.
    lost: u32,
}

impl Stall {
    pub(crate) fn new(mark: ActivityMark) -> Self {
        Self {
            answered: mark,
            unanswered: 0,
            progress: mark,
            lost: 0,
        }
    }

    /// The first packet in flight is sent.
    pub(crate) fn begin(&mut self, mark: ActivityMark) {
        self.answered = mark;
        self.unanswered = 0;
    }

    /// A packet is sent that wants to be acknowledged.
    pub(crate) fn sent(&mut self) {
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// The first packet with anything reliable in it is sent.
    pub(crate) fn begin_reliable(&mut self, mark: ActivityMark) {
        self.progress = mark;
        self.lost = 0;
    }

    pub(crate) fn acknowledged(&mut self, reliable: bool, mark: ActivityMark) {
        self.begin(mark);
        if reliable {
            self.begin_reliable(mark);
        }
    }

    pub(crate) fn lost(&mut self, reliable: bool) {
        self.lost = self.lost.saturating_add(reliable.into());
    }

    /// Whether the other end was heard of for that long and acknowledged nothing at all of what is
    /// in flight. On a bad link that may be bad luck, so it takes many packets, too.
    pub(crate) fn acknowledges_nothing(&self, span: Duration, mark: ActivityMark) -> bool {
        mark.is_long_after(self.answered, span) && self.unanswered >= MANY_UNANSWERED
    }

    /// The same for what is reliable, while other packets may be acknowledged.
    pub(crate) fn acknowledges_nothing_reliable(&self, span: Duration, mark: ActivityMark) -> bool {
        mark.is_long_after(self.progress, span) && self.lost >= MANY_LOST
    }
}

impl ActivityMark {
    fn is_long_after(self, earlier: Self, span: Duration) -> bool {
        self.now.since(earlier.now) >= span && self.packets - earlier.packets >= MANY_PACKETS
    }
}

/// A blackout is no stall: this many packets must have come without an acknowledgement.
const MANY_PACKETS: u64 = 32;
/// At 90 % of loss one packet in forty is answered. So few are sent in that time only at the floor of
/// the rate, and have no answer once in thirty times.
const MANY_UNANSWERED: u32 = 128;
/// At 90 % of loss, one packet in a thousand is followed by that many losses in a row.
const MANY_LOST: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    fn mark(seconds: u64, packets: u64) -> ActivityMark {
        ActivityMark {
            now: Time::from_micros(seconds * 1_000_000),
            packets,
        }
    }

    /// Fails if packets are not counted (`is_long_after` without its second half), or losses not
    /// (`self.lost >= …` left out).
    #[test]
    fn it_takes_time_and_packets_and_losses() {
        let span = Duration::from_secs(20);
        let mut stall = Stall::new(mark(0, 0));
        (0..127).for_each(|_| stall.sent());
        assert!(!stall.acknowledges_nothing(span, mark(20, 32)));
        stall.sent();
        assert!(!stall.acknowledges_nothing(span, mark(1000, 31)));
        assert!(!stall.acknowledges_nothing(span, mark(19, 1000)));
        assert!(stall.acknowledges_nothing(span, mark(20, 32)));
        stall.acknowledged(false, mark(20, 32));
        (0..128).for_each(|_| stall.sent());
        assert!(!stall.acknowledges_nothing(span, mark(39, 100)));
        assert!(!stall.acknowledges_nothing_reliable(span, mark(39, 100)));
        (0..64).for_each(|_| stall.lost(true));
        assert!(stall.acknowledges_nothing_reliable(span, mark(39, 100)));
        stall.acknowledged(true, mark(39, 100));
        assert!(!stall.acknowledges_nothing_reliable(span, mark(100, 200)));
    }
}
