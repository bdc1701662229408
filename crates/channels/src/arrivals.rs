//! Packets that arrived, and when to acknowledge them.

use std::time::Duration;

use crate::congestion::arrival_byte;
use crate::frame::{Body, MAX_RANGES, delay_units};
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
    /// Ack-eliciting packets since the last acknowledgement.
    untold: u32,
    /// In how many more packets to repeat the acknowledgement.
    left: u32,
    /// The lowest packet that was acknowledged at most 0, 1 and 2 times.
    lowest: [Option<u64>; TIMES as usize],
    /// The newest packet of whose acknowledgement the other end is known to know.
    confirmed: u64,
}

impl Arrivals {
    /// Records a packet. Its acknowledgement may be delayed by `patience` from now; `None` if it
    /// elicits none.
    pub(crate) fn note(
        &mut self,
        sequence: u64,
        patience: Option<Duration>,
        arrived: Time,
        now: Time,
    ) {
        let in_order = sequence == self.end;
        self.arrived.insert(sequence, sequence + 1);
        // Dropped ranges are old and were acknowledged several times.
        self.arrived.keep_highest(MAX_RANGES);
        if sequence >= self.end {
            self.end = sequence + 1;
            self.newest_at = arrived;
        }
        let Some(mut patience) = patience else {
            return;
        };
        for lowest in &mut self.lowest {
            *lowest = Some(lowest.map_or(sequence, |lowest| lowest.min(sequence)));
        }
        self.untold = self.untold.saturating_add(1);
        if patience == DELAY && !in_order {
            patience = Duration::ZERO;
        } else if self.untold >= MANY_UNTOLD {
            patience = DELAY.min(patience);
        }
        let due = now.after(patience);
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        self.left = TIMES;
    }

    /// When an acknowledgement has to be sent even without other content.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Writes an acknowledgement, if one is pending. [`told`](Self::told) counts it as sent.
    pub(crate) fn write(&self, body: &mut Body, now: Time) {
        let Some(newest) = self.end.checked_sub(1).filter(|_| self.left > 0) else {
            return;
        };
        let delay = now.since(self.newest_at);
        let arrival = arrival_byte(self.newest_at);
        match u8::try_from(delay_units(delay)) {
            Ok(delay) if self.is_recent(newest) => {
                body.received_recent(newest, &self.arrived, delay, arrival);
            }
            _ => body.received(&self.arrived, delay, arrival),
        }
    }

    /// Whether a short report has everything that was not acknowledged [`TIMES`] times yet, and the
    /// other end can tell which packets it names.
    fn is_recent(&self, newest: u64) -> bool {
        let [.., lowest] = self.lowest;
        let lowest = lowest.unwrap_or(newest);
        newest - lowest <= RECENT && newest - self.confirmed < NAMED
    }

    /// Counts an acknowledgement as sent; returns what to [`forget`](Self::forget) when that is
    /// acknowledged.
    pub(crate) fn told(&mut self) -> Option<u64> {
        self.due = None;
        self.untold = 0;
        self.left = self.left.checked_sub(1)?;
        self.lowest.rotate_right(1);
        self.lowest[0] = None;
        Some(self.end - 1)
    }

    /// Whether there are many ranges to repeat.
    pub(crate) fn is_long(&self) -> bool {
        self.arrived.len() > MANY_RANGES
    }

    /// The other end has received acknowledgements of everything before this packet; drop them.
    pub(crate) fn forget(&mut self, before: u64) {
        self.confirmed = self.confirmed.max(before);
        // A packet that was overtaken may have arrived since then.
        let before = self.lowest[0].map_or(before, |untold| before.min(untold));
        self.arrived.remove(0, before);
        for lowest in self.lowest.iter_mut().flatten() {
            *lowest = before.max(*lowest);
        }
    }
}

/// How often an acknowledgement is repeated, since packets may be lost.
const TIMES: u32 = 3;
const MANY_RANGES: usize = 8;
/// How long the acknowledgement of a packet with reliable content may be delayed.
pub(crate) const DELAY: Duration = Duration::from_millis(20);
/// How long that of any other packet may be delayed: longer than a tick, so that it travels in a
/// packet that is sent anyway.
pub(crate) const LAZY_DELAY: Duration = Duration::from_millis(100);
/// So many packets are not acknowledged late, since their sender may wait for it.
const MANY_UNTOLD: u32 = 16;
/// How many packets before the newest are in a short report.
const RECENT: u64 = 8;
/// How many packets the byte in a short report distinguishes.
const NAMED: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, frames};

    fn time(millis: u64) -> Time {
        Time::from_micros(millis * 1000)
    }

    impl Arrivals {
        fn came(&mut self, sequence: u64, patience: Option<Duration>, now: Time) {
            self.note(sequence, patience, now, now);
        }

        fn ranges(&self) -> Vec<(u64, u64)> {
            self.arrived.iter().collect()
        }

        /// Whether the acknowledgement that would be sent now is a short one.
        fn is_short(&self, now: Time) -> bool {
            let mut body = Body::new(1000, Vec::new());
            self.write(&mut body, now);
            let body = body.finish(&mut Vec::new());
            matches!(
                frames(&body).expect("sound")[..],
                [Frame::ReceivedRecent(_)]
            )
        }
    }

    /// Fails if a gap is not acknowledged at once (`in_order` always true), or if packets that are
    /// not ack-eliciting are acknowledged.
    #[test]
    fn gaps_are_told_at_once_and_the_rest_soon() {
        let mut arrivals = Arrivals::default();
        let prompt = Some(DELAY);
        arrivals.came(0, None, time(0));
        assert_eq!(arrivals.due(), None);
        arrivals.came(1, prompt, time(1));
        arrivals.came(2, prompt, time(5));
        assert_eq!(arrivals.due(), Some(time(21)));
        arrivals.came(4, prompt, time(6));
        assert_eq!(arrivals.due(), Some(time(6)));
        assert_eq!(arrivals.told(), Some(4));
        assert_eq!(arrivals.due(), None);
        arrivals.came(3, prompt, time(7));
        assert_eq!(arrivals.due(), Some(time(7)), "it came late");
    }

    /// Fails if unreliable messages are acknowledged as soon as others, if a gap before one is told
    /// at once, or if so many of them wait that their sender has to (`MANY_UNTOLD` of 1000).
    #[test]
    fn what_is_not_repeated_is_told_with_the_next_packet() {
        let mut arrivals = Arrivals::default();
        let lazy = Some(LAZY_DELAY);
        arrivals.came(0, lazy, time(0));
        arrivals.came(7, lazy, time(1));
        assert_eq!(arrivals.due(), Some(time(100)));
        arrivals.came(8, Some(DELAY), time(2));
        assert_eq!(arrivals.due(), Some(time(22)));
        arrivals.told();
        for sequence in 9..24 {
            arrivals.came(sequence, lazy, time(30));
        }
        assert_eq!(arrivals.due(), Some(time(130)));
        arrivals.came(24, lazy, time(31));
        assert_eq!(arrivals.due(), Some(time(51)));
    }

    /// Fails if the wait for the program is not part of the delay (`self.newest_at = now`).
    #[test]
    fn the_delay_counts_from_the_arrival() {
        let mut arrivals = Arrivals::default();
        arrivals.note(0, Some(DELAY), time(10), time(20));
        assert_eq!(arrivals.due(), Some(time(40)));
        let mut body = Body::new(1000, Vec::new());
        arrivals.write(&mut body, time(26));
        let units = delay_units(Duration::from_millis(16));
        assert_eq!(
            body.finish(&mut Vec::new()).last().copied().map(u64::from),
            Some(units)
        );
    }

    /// Fails if packets that arrived since the acknowledgement was sent are forgotten with it
    /// (`untold` left out of `forget`).
    #[test]
    fn what_was_never_told_is_not_forgotten() {
        let mut arrivals = Arrivals::default();
        for sequence in [0, 1, 2, 4] {
            arrivals.came(sequence, Some(DELAY), time(0));
        }
        let told = arrivals.told().expect("pending");
        arrivals.came(3, Some(DELAY), time(1));
        arrivals.forget(told);
        assert_eq!(arrivals.ranges(), [(3, 5)]);
        let told = arrivals.told().expect("pending");
        arrivals.forget(told);
        assert_eq!(arrivals.ranges(), [(4, 5)]);
    }

    /// Fails if a short acknowledgement is sent although something older was not told three times
    /// (`newest - lowest` left out of `is_recent`), although its byte means several packets
    /// (`self.confirmed` left out), or although the delay does not fit.
    #[test]
    fn short_acknowledgements_leave_nothing_out() {
        let mut arrivals = Arrivals::default();
        let (lazy, now) = (Some(LAZY_DELAY), time(0));
        for sequence in 0..9 {
            arrivals.came(sequence, lazy, now);
        }
        assert!(arrivals.is_short(now));
        assert!(!arrivals.is_short(time(66)), "a long delay");
        arrivals.came(9, lazy, now);
        for _ in 0..3 {
            assert!(!arrivals.is_short(now), "packet 0 is too old");
            arrivals.told();
        }
        arrivals.came(10, lazy, now);
        assert!(arrivals.is_short(now));
        // One packet a tick, none of our own is acknowledged.
        for sequence in 11..256 {
            arrivals.came(sequence, lazy, now);
            assert!(arrivals.is_short(now), "{sequence}");
            arrivals.told();
        }
        arrivals.came(256, lazy, now);
        assert!(!arrivals.is_short(now), "0 or 256");
        arrivals.forget(1);
        assert!(arrivals.is_short(now));
    }

    /// Fails if ranges are not dropped (`keep_highest` left out).
    #[test]
    fn what_is_remembered_is_bounded() {
        let mut arrivals = Arrivals::default();
        for sequence in 0..10_000 {
            arrivals.came(2 * sequence, Some(DELAY), Time::default());
        }
        assert_eq!(arrivals.arrived.len(), MAX_RANGES);
    }
}
