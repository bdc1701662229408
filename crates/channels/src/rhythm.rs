//! When this end is likely to send its next packet: most programs send once per tick.

use std::time::Duration;

use crate::arrivals::LAZY_DELAY;
use crate::time::Time;

/// The recent pauses between packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rhythm {
    sent: Option<Time>,
    /// The last two pauses.
    pauses: [Duration; 2],
}

impl Default for Rhythm {
    fn default() -> Self {
        Self {
            sent: None,
            pauses: [LAZY_DELAY; 2],
        }
    }
}

impl Rhythm {
    /// A packet is sent now. Packets of one turn count as one.
    pub(crate) fn note(&mut self, now: Time) {
        let since = self.sent.map_or(LAZY_DELAY, |sent| now.since(sent));
        if since >= TURN {
            self.pauses = [since.min(LAZY_DELAY), self.pauses[0]];
            self.sent = Some(now);
        }
    }

    /// When another packet is likely to have been sent, if one is sent now.
    pub(crate) fn next(&self, now: Time) -> Time {
        let [last, before] = self.pauses;
        let pause = last.max(before);
        now.after(pause + pause / 8)
    }
}

/// Packets that are sent within such a time belong together.
const TURN: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn time(millis: u64) -> Time {
        Time::from_micros(millis * 1000)
    }

    /// Fails if the packets of one tick count as pauses (`TURN` of zero), or if a program with two
    /// clocks is expected to send at the pace of the faster one (`last.min(before)`).
    #[test]
    fn the_next_packet_is_expected_after_the_longer_pause() {
        let mut rhythm = Rhythm::default();
        assert_eq!(
            rhythm.next(time(0)),
            Time::from_micros(112_500),
            "nothing is known"
        );
        for at in [0, 32, 33, 64, 65] {
            rhythm.note(time(at));
        }
        assert_eq!(rhythm.next(time(65)), time(65 + 36));
        for at in [72, 96, 104] {
            rhythm.note(time(at));
        }
        assert_eq!(rhythm.next(time(104)), time(104 + 27));
        rhythm.note(time(5000));
        assert_eq!(rhythm.next(time(5000)), Time::from_micros(5_112_500));
    }
}
