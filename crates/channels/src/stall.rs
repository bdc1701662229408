//! Detection of a peer that is alive but acknowledges nothing.

use std::time::Duration;

use crate::receiver::ActivityMark;

/// The evidence of a stall.
pub(crate) struct Stall {
    /// When a packet was last acknowledged, or none was in flight.
    answered: ActivityMark,
    /// Packets sent since then.
    unanswered: u32,
    /// When reliable content was last acknowledged, or none was in flight.
    progress: ActivityMark,
    /// Packets with reliable content that were lost since then.
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

    /// The first packet in flight was sent.
    pub(crate) fn begin(&mut self, mark: ActivityMark) {
        self.answered = mark;
        self.unanswered = 0;
    }

    /// An ack-eliciting packet was sent.
    pub(crate) fn sent(&mut self) {
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// The first packet in flight with reliable content was sent.
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

    /// Whether packets of the other end arrived for that long while it acknowledged nothing. On a
    /// bad link that may be chance, so it takes many packets, too.
    pub(crate) fn acknowledges_nothing(&self, span: Duration, mark: ActivityMark) -> bool {
        mark.is_long_after(self.answered, span) && self.unanswered >= MANY_UNANSWERED
    }

    /// Whether packets of the other end arrived for that long while it acknowledged nothing
    /// reliable; it may have acknowledged other packets.
    pub(crate) fn acknowledges_nothing_reliable(&self, span: Duration, mark: ActivityMark) -> bool {
        mark.is_long_after(self.progress, span) && self.lost >= MANY_LOST
    }
}

impl ActivityMark {
    fn is_long_after(self, earlier: Self, span: Duration) -> bool {
        self.now.since(earlier.now) >= span && self.packets - earlier.packets >= MANY_PACKETS
    }
}

/// A blackout is no stall: this many packets must have arrived without an acknowledgement.
const MANY_PACKETS: u64 = 32;
/// At 90 % loss, one packet in forty is acknowledged. Only at the floor of the rate are so few
/// packets sent in that time; none of them is acknowledged in one of thirty cases.
const MANY_UNANSWERED: u32 = 128;
/// At 90 % loss, one packet in a thousand is followed by so many losses in a row.
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
