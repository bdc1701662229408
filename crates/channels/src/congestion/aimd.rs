//! Additive increase, multiplicative decrease: NewReno, as in RFC 9002.

use std::time::Duration;

use super::{
    AcknowledgedPacket, Congestion, FIRST_WINDOW, LostPacket, RateLimits, SentPacket, micros,
    rate_of,
};
use crate::MAX_DATAGRAM;
use crate::statistics::BytesPerSecond;
use crate::time::Time;

/// A policy that fills queues until packets are lost. It is what most connections on the internet
/// do, and here for comparison: it heeds no delay.
#[derive(Clone, Debug)]
pub struct Aimd {
    size: u64,
    /// Above this, it grows by about a datagram per round trip.
    threshold: u64,
    /// Most bytes in flight at once since the present round trip began.
    peak: u64,
    round_ends: Time,
    /// It has shrunk; until then it stays as it is.
    recovers_until: Time,
    round_trip: Duration,
    ceiling: BytesPerSecond,
}

impl Aimd {
    /// A window of sixteen datagrams at first.
    pub fn new(limits: RateLimits) -> Self {
        Self {
            size: FIRST_WINDOW,
            threshold: u64::MAX,
            peak: 0,
            round_ends: Time::default(),
            recovers_until: Time::default(),
            round_trip: FIRST_ROUND_TRIP,
            ceiling: limits.ceiling,
        }
    }

    /// Whether the program sends so much that it learns how much the path carries. A burst is
    /// acknowledged packet by packet, so what was in flight at once counts.
    fn is_limiting(&self) -> bool {
        self.peak >= self.size / 2
    }
}

impl Congestion for Aimd {
    fn on_sent(&mut self, sent: &SentPacket) {
        self.peak = self.peak.max(sent.in_flight as u64);
    }

    fn on_acknowledged(&mut self, acknowledged: &AcknowledgedPacket) {
        let AcknowledgedPacket { bytes, now, .. } = *acknowledged;
        self.round_trip = (self.round_trip * 7 + acknowledged.round_trip) / 8;
        if now >= self.round_ends {
            self.peak = (acknowledged.in_flight + bytes) as u64;
            self.round_ends = now.after(acknowledged.round_trip);
        }
        if self.is_limiting() && now >= self.recovers_until {
            let grows = match self.size < self.threshold {
                true => bytes as u64,
                false => (bytes as u64).saturating_mul(MAX_DATAGRAM as u64) / self.size.max(1),
            };
            self.size = self.size.saturating_add(grows).min(MAX_WINDOW);
        }
    }

    fn on_lost(&mut self, lost: &LostPacket) {
        if self.is_limiting() && lost.now >= self.recovers_until {
            self.size = (self.size / 2).max(MIN_WINDOW);
            self.threshold = self.size;
            self.recovers_until = lost.now.after(self.round_trip);
        }
    }

    /// A little more than the window per round trip, so that packets are spread but the window is
    /// what limits them.
    fn rate(&self) -> BytesPerSecond {
        let rate = rate_of(self.size.saturating_mul(5) / 4, micros(self.round_trip));
        BytesPerSecond(rate).min(self.ceiling)
    }

    fn window(&self) -> usize {
        usize::try_from(self.size).unwrap_or(usize::MAX)
    }
}

const MIN_WINDOW: u64 = 2 * MAX_DATAGRAM as u64;
const MAX_WINDOW: u64 = 1 << 40;
/// Before the first measurement.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> RateLimits {
        RateLimits {
            floor: BytesPerSecond(1000),
            ceiling: BytesPerSecond(100_000_000),
            now: Time::default(),
        }
    }

    /// Fails if a sender that sends little is held back because of losses (`is_limiting` left out).
    #[test]
    fn losses_of_a_sender_that_sends_little_cost_it_nothing() {
        let mut policy = Aimd::new(limits());
        let mut now = Time::default();
        for _ in 0..300 {
            now = now.after(Duration::from_millis(33));
            policy.on_sent(&SentPacket {
                bytes: 100,
                in_flight: 100,
                now,
            });
            policy.on_lost(&LostPacket {
                bytes: 100,
                sent: now,
                now,
                in_flight: 0,
            });
        }
        assert_eq!(policy.window() as u64, FIRST_WINDOW);
    }

    /// Fails if losses do not shrink the window, or more than once per round trip.
    #[test]
    fn the_window_halves_once_per_round_trip_with_losses() {
        let mut policy = Aimd::new(limits());
        let now = Time::from_micros(1_000_000);
        let in_flight = FIRST_WINDOW as usize;
        policy.on_sent(&SentPacket {
            bytes: 1200,
            in_flight,
            now,
        });
        for _ in 0..5 {
            policy.on_lost(&LostPacket {
                bytes: 1200,
                sent: now,
                now,
                in_flight,
            });
        }
        assert_eq!(policy.window() as u64, FIRST_WINDOW / 2);
    }
}
