//! How long packets take to the other end, without knowing its clock.
//!
//! An acknowledgement names the time at which the newest packet arrived, in milliseconds of the other
//! end's clock and modulo 256. The time from there to us is that of the way back plus an unknown
//! constant. Its least value in the last seconds stands for a way back without delay; what exceeds it
//! is subtracted from the round trip, so that a queue on the way back, or an acknowledgement that
//! waits, does not look like one on the way there.

use std::time::Duration;

use super::micros;
use super::windowed::WindowedMin;
use crate::time::Time;

/// Follows the way back of one connection.
#[derive(Clone, Debug)]
pub(crate) struct OneWay {
    /// The way back of the first acknowledgement, in milliseconds modulo 256, to which others are
    /// compared.
    first: Option<u8>,
    /// The last way back relative to the first, unwrapped.
    last: i64,
    least: WindowedMin,
}

impl Default for OneWay {
    fn default() -> Self {
        Self {
            first: None,
            last: 0,
            least: WindowedMin::new(SPAN),
        }
    }
}

impl OneWay {
    /// The time to the other end, plus a constant, of a packet with this round trip, whose
    /// acknowledgement named `arrival` and arrived at `now`.
    pub(crate) fn measure(&mut self, arrival: u8, round_trip: Duration, now: Time) -> Duration {
        let back = ((now.as_micros() / 1000) as u8).wrapping_sub(arrival);
        let first = *self.first.get_or_insert(back);
        let relative = back.wrapping_sub(first);
        // The nearest of the values that this byte stands for; a way back changes by less than an
        // eighth of a second between two acknowledgements, or else looks as if it had.
        let step = relative.wrapping_sub(self.last as u8) as i8;
        self.last += i64::from(step);
        let shifted = (self.last + MIDDLE).clamp(0, 2 * MIDDLE) as u64;
        let excess = shifted - self.least.note(shifted, now);
        let excess = Duration::from_millis(excess);
        round_trip.saturating_sub(excess.min(round_trip))
    }
}

/// The value of the first acknowledgement, so that none is negative.
const MIDDLE: i64 = 1 << 40;
const SPAN: Duration = Duration::from_secs(10);

/// The byte that names when a packet arrived.
pub(crate) fn arrival_byte(at: Time) -> u8 {
    (micros(at.since(Time::default())) / 1000) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way there takes 20 to 40 ms, the way back 15 to 215 ms; the other clock is far off. Fails
    /// if the way back counts (`excess` of zero), or if its byte is not unwrapped (`step` cast to
    /// `u8`).
    #[test]
    fn delays_of_the_way_back_do_not_count() {
        let mut one_way = OneWay::default();
        let mut base = None;
        for packet in 0..300u64 {
            let there = 20 + (packet * 7) % 21;
            let back = 15 + (packet * 5) % 201 / 2 * u64::from(packet > 0);
            let sent = packet * 33;
            let arrival = arrival_byte(Time::from_micros((sent + there + 987_654) * 1000));
            let now = Time::from_micros((sent + there + back) * 1000);
            let trip = Duration::from_millis(there + back);
            let found = one_way.measure(arrival, trip, now).as_millis() as i64 - there as i64;
            assert_eq!(*base.get_or_insert(found), found, "packet {packet}");
        }
    }
}
