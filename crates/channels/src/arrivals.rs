//! Packets that arrived, and when to acknowledge them.

use std::time::Duration;

use crate::frame::{Body, MAX_RANGES};
use crate::ranges::Ranges;
use crate::time::Time;

/// The packets of the other end that arrived, as far as they still have to be acknowledged.
#[derive(Default)]
pub(crate) struct Arrivals {
    arrived: Ranges,
    /// One more than the highest packet number.
    end: u64,
    newest_at: Time,
    /// When to send an acknowledgement at the latest; `None` if there is nothing new to
    /// acknowledge.
    due: Option<Time>,
    /// In how many more packets to repeat the acknowledgement.
    left: u32,
}

impl Arrivals {
    /// Records a packet; `asks` if it is ack-eliciting.
    pub(crate) fn note(&mut self, sequence: u64, asks: bool, now: Time) {
        let in_order = sequence == self.end;
        self.arrived.insert(sequence, sequence + 1);
        // Dropped ranges are old and were acknowledged several times.
        self.arrived.keep_highest(MAX_RANGES);
        if sequence >= self.end {
            self.end = sequence + 1;
            self.newest_at = now;
        }
        if asks {
            let patience = if in_order { DELAY } else { Duration::ZERO };
            let due = now.after(patience);
            self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
            self.left = TIMES;
        }
    }

    /// When an acknowledgement has to be sent even without other content.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Writes an acknowledgement, if one is pending. [`told`](Self::told) counts it as sent.
    pub(crate) fn write(&self, body: &mut Body, now: Time) {
        if self.left > 0 {
            body.received(&self.arrived, now.since(self.newest_at));
        }
    }

    /// Counts an acknowledgement as sent; returns what to [`forget`](Self::forget) when that is
    /// acknowledged.
    pub(crate) fn told(&mut self) -> Option<u64> {
        self.due = None;
        self.left = self.left.checked_sub(1)?;
        Some(self.end - 1)
    }

    /// Whether there are many ranges to repeat.
    pub(crate) fn is_long(&self) -> bool {
        self.arrived.len() > MANY_RANGES
    }

    /// The other end has received acknowledgements of everything before this packet; drop them.
    pub(crate) fn forget(&mut self, before: u64) {
        self.arrived.remove(0, before);
    }
}

/// How often an acknowledgement is repeated, since packets may be lost.
const TIMES: u32 = 3;
const MANY_RANGES: usize = 8;
/// How long the acknowledgement of a packet may be delayed.
pub(crate) const DELAY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a gap is not acknowledged at once (`in_order` always true), or if packets that are
    /// not ack-eliciting are acknowledged.
    #[test]
    fn gaps_are_told_at_once_and_the_rest_soon() {
        let mut arrivals = Arrivals::default();
        let time = |millis: u64| Time::from_micros(millis * 1000);
        arrivals.note(0, false, time(0));
        assert_eq!(arrivals.due(), None);
        arrivals.note(1, true, time(1));
        arrivals.note(2, true, time(5));
        assert_eq!(arrivals.due(), Some(time(21)));
        arrivals.note(4, true, time(6));
        assert_eq!(arrivals.due(), Some(time(6)));
        assert_eq!(arrivals.told(), Some(4));
        assert_eq!(arrivals.due(), None);
        arrivals.note(3, true, time(7));
        assert_eq!(arrivals.due(), Some(time(7)), "it came late");
        arrivals.forget(4);
        assert_eq!(arrivals.arrived.iter().collect::<Vec<_>>(), [(4, 5)]);
    }

    /// Fails if ranges are not dropped (`keep_highest` left out).
    #[test]
    fn what_is_remembered_is_bounded() {
        let mut arrivals = Arrivals::default();
        for sequence in 0..10_000 {
            arrivals.note(2 * sequence, true, Time::default());
        }
        assert_eq!(arrivals.arrived.len(), MAX_RANGES);
    }
}
