//! Packets that arrived, and when to acknowledge them.

use std::time::Duration;

use crate::congestion::arrival_byte;
use crate::frame::{Body, MAX_RANGES, delay_units};
use crate::ranges::Ranges;
use crate::time::Time;

/// How soon the acknowledgement of a packet is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// None of its content is repeated. One acknowledgement for several such packets will do, as
    /// long as they are small.
    Lazy,
    /// Its content is repeated in every packet until it is acknowledged.
    NextPacket,
    /// Its sender waits for the acknowledgement.
    Prompt,
}

impl Urgency {
    /// How long the acknowledgement may be delayed if no packet is sent meanwhile.
    pub(crate) fn delay(self) -> Duration {
        match self {
            Self::Lazy | Self::NextPacket => LAZY_DELAY,
            Self::Prompt => DELAY,
        }
    }
}

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
    /// Ack-eliciting packets since the last acknowledgement, and their bytes.
    untold: u32,
    untold_bytes: usize,
    /// One more than the newest packet when the last acknowledgement was sent.
    told_end: u64,
    /// In how many more packets to repeat the acknowledgement, whether something new arrives or
    /// not.
    left: u32,
    /// The lowest packet that was acknowledged at most 0, 1 and 2 times.
    lowest: [Option<u64>; TIMES as usize],
    /// The newest packet whose acknowledgement has arrived at the other end.
    confirmed: u64,
}

impl Arrivals {
    /// Records a packet with a body of `size` bytes; `urgency` is `None` if it elicits no
    /// acknowledgement. Delays count from now.
    pub(crate) fn note(
        &mut self,
        sequence: u64,
        size: usize,
        urgency: Option<Urgency>,
        arrived: Time,
        now: Time,
    ) {
        let in_order = sequence == self.end;
        let missing = sequence.saturating_sub(self.end);
        self.arrived.insert(sequence, sequence + 1);
        // Dropped ranges are old and were acknowledged several times.
        self.arrived.keep_highest(MAX_RANGES);
        if sequence >= self.end {
            self.end = sequence + 1;
            self.newest_at = arrived;
        }
        let Some(urgency) = urgency else {
            return;
        };
        for lowest in &mut self.lowest {
            *lowest = Some(lowest.map_or(sequence, |lowest| lowest.min(sequence)));
        }
        self.untold = self.untold.saturating_add(1);
        self.untold_bytes = self.untold_bytes.saturating_add(size);
        let delay = match urgency {
            Urgency::Prompt if !in_order => Duration::ZERO,
            _ if self.untold >= MANY_UNTOLD => DELAY,
            urgency => urgency.delay(),
        };
        let due = now.after(delay);
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        // Where so many are lost, acknowledgements are, too.
        if urgency > Urgency::Lazy || missing >= MANY_NUMBERS - 1 {
            self.left = TIMES;
        }
    }

    /// Something else has to be told soon, with an acknowledgement.
    pub(crate) fn hurry(&mut self, now: Time) {
        let due = now.after(DELAY);
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        self.left = TIMES;
    }

    /// When an acknowledgement has to be sent even without other content.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Writes an acknowledgement if this packet should have one; `next` is when another packet is
    /// likely to be sent. Returns whether it did; [`told`](Self::told) counts it as sent.
    pub(crate) fn write(&self, body: &mut Body, now: Time, next: Time) -> bool {
        let Some(newest) = self.end.checked_sub(1).filter(|_| self.is_worth_it(next)) else {
            return false;
        };
        let delay = now.since(self.newest_at);
        let arrival = arrival_byte(self.newest_at);
        match u8::try_from(delay_units(delay)) {
            Ok(delay) if self.is_recent(newest) => {
                body.received_recent(newest, &self.arrived, delay, arrival);
            }
            _ => body.received(&self.arrived, delay, arrival),
        }
        true
    }

    /// Whether to acknowledge now: the other end waits for it, or the next packet comes too late,
    /// or there is more to tell than should depend on one packet.
    fn is_worth_it(&self, next: Time) -> bool {
        let is_much =
            || self.untold_bytes >= MANY_BYTES || self.end - self.told_end >= MANY_NUMBERS;
        let is_new = self.due.is_some_and(|due| due <= next || is_much());
        self.left > 0 || is_new
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
        self.untold_bytes = 0;
        self.told_end = self.end;
        self.left = self.left.saturating_sub(1);
        self.lowest.rotate_right(1);
        self.lowest[0] = None;
        self.end.checked_sub(1)
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

/// How often a packet is acknowledged, since packets may be lost.
const TIMES: u32 = 3;
const MANY_RANGES: usize = 8;
/// How long the acknowledgement of a packet with reliable content may be delayed.
const DELAY: Duration = Duration::from_millis(20);
/// How long that of any other packet may be delayed: longer than a tick, so that it travels in a
/// packet that is sent anyway.
pub(crate) const LAZY_DELAY: Duration = Duration::from_millis(100);
/// So many packets are not acknowledged late, since their sender may wait for it.
const MANY_UNTOLD: u32 = 16;
/// So many bytes are acknowledged in every packet, since congestion control depends on it.
const MANY_BYTES: usize = 128;
/// How far numbers advance from one acknowledgement to the next. [`TIMES`] of them fit a short
/// report, even if some packets are lost.
const MANY_NUMBERS: u64 = 4;
/// How many packets before the newest are in a short report.
pub(crate) const RECENT: u64 = 16;
/// How many packets the byte in a short report distinguishes.
const NAMED: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, frames};

    const SMALL: usize = 40;
    const LAZY: Option<Urgency> = Some(Urgency::Lazy);
    const NEXT: Option<Urgency> = Some(Urgency::NextPacket);
    const PROMPT: Option<Urgency> = Some(Urgency::Prompt);

    fn time(millis: u64) -> Time {
        Time::from_micros(millis * 1000)
    }

    impl Arrivals {
        fn came(&mut self, sequence: u64, urgency: Option<Urgency>, now: Time) {
            self.note(sequence, SMALL, urgency, now, now);
        }

        fn ranges(&self) -> Vec<(u64, u64)> {
            self.arrived.iter().collect()
        }

        /// Whether the acknowledgement that would be sent now is a short one.
        fn is_short(&self, now: Time) -> bool {
            let mut body = Body::new(1000, Vec::new());
            assert!(self.write(&mut body, now, now.after(LAZY_DELAY)));
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
        arrivals.came(0, None, time(0));
        assert_eq!(arrivals.due(), None);
        arrivals.came(1, PROMPT, time(1));
        arrivals.came(2, PROMPT, time(5));
        assert_eq!(arrivals.due(), Some(time(21)));
        arrivals.came(4, PROMPT, time(6));
        assert_eq!(arrivals.due(), Some(time(6)));
        assert_eq!(arrivals.told(), Some(4));
        assert_eq!(arrivals.due(), None);
        arrivals.came(3, PROMPT, time(7));
        assert_eq!(arrivals.due(), Some(time(7)), "it came late");
    }

    /// Fails if unreliable messages are acknowledged as soon as others, if a gap before one is told
    /// at once, or if so many of them wait that their sender has to (`MANY_UNTOLD` of 1000).
    #[test]
    fn what_is_not_repeated_is_told_with_the_next_packet() {
        let mut arrivals = Arrivals::default();
        arrivals.came(0, LAZY, time(0));
        arrivals.came(7, LAZY, time(1));
        assert_eq!(arrivals.due(), Some(time(100)));
        arrivals.came(8, PROMPT, time(2));
        assert_eq!(arrivals.due(), Some(time(22)));
        arrivals.told();
        for sequence in 9..24 {
            arrivals.came(sequence, LAZY, time(30));
        }
        assert_eq!(arrivals.due(), Some(time(130)));
        arrivals.came(24, LAZY, time(31));
        assert_eq!(arrivals.due(), Some(time(51)));
    }

    /// How many of 30 packets, one after each that arrives, have an acknowledgement.
    fn acknowledged(size: usize, urgency: Urgency, step: u64, pause: u64) -> usize {
        let mut arrivals = Arrivals::default();
        (0..30)
            .filter(|round| {
                let (now, next) = (time(round * pause), time((round + 1) * pause));
                arrivals.note(round * step, size, Some(urgency), now, now);
                let mut body = Body::new(1000, Vec::new());
                let has = arrivals.write(&mut body, now, next);
                if has {
                    arrivals.told();
                    let body = body.finish(&mut Vec::new());
                    assert!(step > 2 || body.len() == 6, "a short one has all");
                }
                has
            })
            .count()
    }

    /// Fails if every packet has an acknowledgement (`is_worth_it` always true), if too few have one
    /// (without `MANY_NUMBERS`, `MANY_BYTES`, `NextPacket` or `missing`), or if it would then need a
    /// packet of its own (`due <= next` left out).
    #[test]
    fn small_packets_share_an_acknowledgement() {
        assert_eq!(acknowledged(SMALL, Urgency::Lazy, 1, 33), 30 / 4);
        assert_eq!(
            acknowledged(SMALL, Urgency::Lazy, 1, 5),
            30 / 4,
            "at 200 Hz"
        );
        assert_eq!(
            acknowledged(SMALL, Urgency::Lazy, 1, 50),
            30 / 2,
            "at 20 Hz"
        );
        assert_eq!(acknowledged(SMALL, Urgency::Lazy, 1, 100), 30, "at 10 Hz");
        assert_eq!(
            acknowledged(SMALL, Urgency::Lazy, 2, 33),
            14,
            "half is lost"
        );
        assert_eq!(acknowledged(64, Urgency::Lazy, 1, 33), 30 / 2);
        assert_eq!(acknowledged(200, Urgency::Lazy, 1, 33), 30);
        assert_eq!(acknowledged(1200, Urgency::Lazy, 1, 33), 30);
        assert_eq!(
            acknowledged(SMALL, Urgency::Lazy, 4, 33),
            29,
            "much is lost"
        );
        assert_eq!(acknowledged(SMALL, Urgency::NextPacket, 1, 33), 30);
        assert_eq!(acknowledged(SMALL, Urgency::Prompt, 1, 33), 30);
    }

    /// Fails if the wait for the program is not part of the delay (`self.newest_at = now`).
    #[test]
    fn the_delay_counts_from_the_arrival() {
        let mut arrivals = Arrivals::default();
        arrivals.note(0, SMALL, PROMPT, time(10), time(20));
        assert_eq!(arrivals.due(), Some(time(40)));
        let mut body = Body::new(1000, Vec::new());
        assert!(arrivals.write(&mut body, time(26), time(26)));
        let units = delay_units(Duration::from_millis(16));
        assert_eq!(
            body.finish(&mut Vec::new())
                .iter()
                .nth_back(1)
                .copied()
                .map(u64::from),
            Some(units)
        );
    }

    /// Fails if packets that arrived since the acknowledgement was sent are forgotten with it
    /// (`untold` left out of `forget`).
    #[test]
    fn what_was_never_told_is_not_forgotten() {
        let mut arrivals = Arrivals::default();
        for sequence in [0, 1, 2, 4] {
            arrivals.came(sequence, PROMPT, time(0));
        }
        let told = arrivals.told().expect("pending");
        arrivals.came(3, PROMPT, time(1));
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
        let now = time(0);
        for sequence in 0..17 {
            arrivals.came(sequence, NEXT, now);
        }
        assert!(arrivals.is_short(now));
        assert!(!arrivals.is_short(time(66)), "a long delay");
        arrivals.came(17, NEXT, now);
        for _ in 0..3 {
            assert!(!arrivals.is_short(now), "packet 0 is too old");
            arrivals.told();
        }
        arrivals.came(18, NEXT, now);
        assert!(arrivals.is_short(now));
        // One packet a tick, none of our own is acknowledged.
        for sequence in 19..256 {
            arrivals.came(sequence, NEXT, now);
            assert!(arrivals.is_short(now), "{sequence}");
            arrivals.told();
        }
        arrivals.came(256, NEXT, now);
        assert!(!arrivals.is_short(now), "0 or 256");
        arrivals.forget(1);
        assert!(arrivals.is_short(now));
    }

    /// Fails if ranges are not dropped (`keep_highest` left out).
    #[test]
    fn what_is_remembered_is_bounded() {
        let mut arrivals = Arrivals::default();
        for sequence in 0..10_000 {
            arrivals.came(2 * sequence, PROMPT, Time::default());
        }
        assert_eq!(arrivals.arrived.len(), MAX_RANGES);
    }
}
