//! The bytes of the next packet, from the rate of the connection.
//!
//! What is not used is saved for about two ticks only: on a slow link, a long packet is a queue of
//! its own.

use super::LinkEstimate;
use crate::server::Room;

/// What a peer may be sent at its present rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowance {
    /// In millionths of a byte; negative after more was sent.
    balance: i128,
    estimate: LinkEstimate,
    has_begun: bool,
    /// Smoothed time between two ticks, in microseconds.
    interval: u64,
    /// The least packet that is worth its headers.
    least: usize,
    /// What a packet may hold that is sent as often as the rate lets it.
    typical: usize,
}

impl Allowance {
    /// Notes the estimate, and earns what it yields since the last.
    pub(crate) fn note(&mut self, estimate: LinkEstimate) {
        let passed = estimate.micros.saturating_sub(self.estimate.micros);
        let passed = passed.min(MAX_PASSED);
        if std::mem::replace(&mut self.has_begun, true) {
            self.interval = match self.interval {
                0 => passed,
                old => (old * 7 + passed) / 8,
            };
        }
        let rate = i128::from(estimate.bytes_per_second);
        let earned = rate * i128::from(passed);
        // A tick and a half, or a packet that is worth its headers.
        let saved = (rate * i128::from(self.interval) * 3 / 2)
            .max((self.least.max(MIN_SAVED) as i128) * 5 / 4 * MILLION);
        self.balance = (self.balance + earned).min(saved);
        self.estimate = estimate;
    }

    pub(crate) fn estimate(&self) -> LinkEstimate {
        self.estimate
    }

    /// The room for state now, of what the connection has; none if it is better to wait for the next
    /// tick because headers would take most of the packet.
    pub(crate) fn room(&mut self, room: Room, min_message: usize, demand: usize) -> Room {
        let bytes = usize::try_from(self.balance / MILLION).unwrap_or(0);
        let overhead = self.estimate.overhead;
        let per_tick = super::plan::yield_of(self.estimate.bytes_per_second, self.interval);
        // One packet that holds what two ticks need costs less than two that hold a half.
        let waits = per_tick.saturating_mul(MAX_WAIT).saturating_sub(overhead);
        let worth = demand.saturating_add(SLACK).min(waits);
        let least = worth.max(min_message).max(overhead);
        let least = least.saturating_add(overhead);
        self.least = least;
        self.typical = match self.interval {
            // Nothing is known about ticks yet.
            0 => 0,
            _ => per_tick.max(least).saturating_sub(overhead).max(waits),
        };
        let left = bytes.saturating_sub(overhead);
        if bytes < least || room.message == 0 {
            return Room { total: 0, ..room };
        }
        let message = room.message.min(left).min(room.total);
        if message < least - overhead {
            return Room { total: 0, ..room };
        }
        let packets = (bytes / (message + overhead).max(1)).max(1);
        let total = message.saturating_mul(packets);
        Room {
            message,
            total: total.min(room.total),
            ..room
        }
    }

    /// Counts a message as sent.
    pub(crate) fn spend(&mut self, message: usize) {
        self.balance -= (message + self.estimate.overhead) as i128 * MILLION;
    }

    /// What a message may have if one is sent whenever it is worth its headers.
    pub(crate) fn typical_message(&self) -> usize {
        self.typical
    }
}

const MILLION: i128 = 1_000_000;
/// After a longer pause nothing more is earned.
const MAX_PASSED: u64 = 1_000_000;
const MIN_SAVED: usize = 100;
/// For how many ticks of earnings a packet may wait that holds all there is.
const MAX_WAIT: usize = 2;
/// Packets of a demand vary.
const SLACK: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(rate: u64, micros: u64) -> LinkEstimate {
        LinkEstimate {
            bytes_per_second: rate,
            overhead: 25,
            micros,
        }
    }

    /// Fails if the saved bytes are unbounded (`.min(saved)` left out), if headers are free
    /// (`self.estimate.overhead` left out of `spend`), or if tiny packets are sent.
    #[test]
    fn no_rate_is_exceeded_and_none_overflows() {
        for rate in [0, 1, 500, 5_000, 1_000_000, u64::MAX] {
            let mut allowance = Allowance::default();
            let (mut sent, mut least) = (0u128, usize::MAX);
            for tick in 0..3000u64 {
                allowance.note(estimate(rate, 7 + tick * 33_333));
                let room = allowance.room(Room::one(1200), 64, 300);
                if room.total >= room.message && room.message > 0 {
                    allowance.spend(room.message);
                    sent += (room.message + 25) as u128;
                    least = least.min(room.message);
                }
            }
            let most = u128::from(rate) * 100 + 1300;
            assert!(sent <= most, "{sent} at {rate}");
            assert!(least >= 64, "{least} at {rate}");
            if (500..=5_000).contains(&rate) {
                assert!(sent * 10 >= u128::from(rate) * 95 * 9, "{sent} at {rate}");
            }
        }
    }
}
