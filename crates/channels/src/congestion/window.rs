//! A fixed rate, and a window that follows round trips and losses.

use std::time::Duration;

use super::windowed::WindowedMin;
use super::{
    AcknowledgedPacket, Congestion, FIRST_WINDOW, LostPacket, RateLimits, SentPacket, micros,
    thousandths, yield_of,
};
use crate::MAX_DATAGRAM;
use crate::statistics::BytesPerSecond;
use crate::time::Time;

/// A policy that paces at the ceiling, and limits what can wait by a window: additive increase,
/// multiplicative decrease, and a decrease as soon as round trips become long. The window never
/// shrinks below what a server needs for a packet per tick, so state flows whatever the path does.
#[derive(Clone, Debug)]
pub struct RoundTripWindow {
    size: u64,
    threshold: u64,
    /// Most bytes in flight at once since the present round trip began.
    peak: u64,
    round_ends: Time,
    /// It has shrunk; until then it stays as it is.
    recovers_until: Time,
    /// In microseconds: that of the path without a queue.
    shortest: WindowedMin,
    newest: Duration,
    ceiling: BytesPerSecond,
}

impl RoundTripWindow {
    /// A window of sixteen datagrams at first.
    pub fn new(limits: RateLimits) -> Self {
        Self {
            size: FIRST_WINDOW,
            threshold: u64::MAX,
            peak: 0,
            round_ends: Time::default(),
            recovers_until: Time::default(),
            shortest: WindowedMin::new(SHORTEST_SPAN),
            newest: FIRST_ROUND_TRIP,
            ceiling: limits.ceiling,
        }
    }

    /// Whether the program sends so much that it learns how much the path carries. A burst is
    /// acknowledged packet by packet, so what was in flight at once counts.
    fn is_limiting(&self) -> bool {
        self.peak >= self.size / 2
    }

    /// So much that a server can send a packet per tick even if many are lost.
    fn min_size(&self) -> u64 {
        MIN_WINDOW.max(yield_of(MIN_RATE, self.shortest.get().unwrap_or_default()))
    }

    fn shrink_to(&mut self, size: u64, now: Time) {
        if now >= self.recovers_until {
            self.size = size.max(self.min_size());
            self.threshold = self.size;
            self.recovers_until = now.after(self.newest);
        }
    }
}

impl Congestion for RoundTripWindow {
    fn on_sent(&mut self, sent: &SentPacket) {
        self.peak = self.peak.max(sent.in_flight as u64);
    }

    fn on_acknowledged(&mut self, acknowledged: &AcknowledgedPacket) {
        let AcknowledgedPacket { bytes, now, .. } = *acknowledged;
        let round_trip = micros(acknowledged.round_trip);
        let shortest = self.shortest.note(round_trip, now);
        self.newest = acknowledged.round_trip;
        if now >= self.round_ends {
            self.peak = (acknowledged.in_flight + bytes) as u64;
            self.round_ends = now.after(self.newest);
        }
        if round_trip > shortest.saturating_mul(2).saturating_add(MAX_QUEUE) {
            let part = (shortest + MAX_QUEUE).saturating_mul(1000) / round_trip;
            self.shrink_to(thousandths(self.size, part), now);
        } else if acknowledged.is_marked && self.is_limiting() {
            self.shrink_to(thousandths(self.size, 800), now);
        } else if self.is_limiting() && now >= self.recovers_until {
            let grows = match self.size < self.threshold {
                true => bytes as u64,
                false => (bytes as u64).saturating_mul(MAX_DATAGRAM as u64) / self.size.max(1),
            };
            self.size = self.size.saturating_add(grows);
        }
    }

    fn on_lost(&mut self, lost: &LostPacket) {
        if self.is_limiting() {
            self.shrink_to(self.size / 2, lost.now);
        }
    }

    fn rate(&self) -> BytesPerSecond {
        self.ceiling
    }

    /// What a server sends per tick, about.
    fn burst(&self) -> Duration {
        Duration::from_micros(1_000_000 / 32)
    }

    fn window(&self) -> usize {
        usize::try_from(self.size.max(self.min_size())).unwrap_or(usize::MAX)
    }
}

const MIN_WINDOW: u64 = 4 * MAX_DATAGRAM as u64;
/// A datagram of 1200 bytes per thirtieth of a second.
const MIN_RATE: u64 = 36_000;
/// What round trips may exceed the shortest, in microseconds: a server sends what a tick needs at
/// once, and acknowledgements wait for polls.
const MAX_QUEUE: u64 = 60_000;
const SHORTEST_SPAN: Duration = Duration::from_secs(10);
/// Before the first measurement.
const FIRST_ROUND_TRIP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> RoundTripWindow {
        RoundTripWindow::new(RateLimits {
            floor: BytesPerSecond(1000),
            ceiling: BytesPerSecond(4_000_000),
            now: Time::default(),
        })
    }

    fn acknowledged(millis: u64, at: u64) -> AcknowledgedPacket {
        let round_trip = Duration::from_millis(millis);
        let now = Time::from_micros(at * 1000);
        AcknowledgedPacket {
            bytes: 1200,
            sent: now.before(round_trip),
            now,
            round_trip,
            one_way: None,
            is_marked: false,
            in_flight: FIRST_WINDOW as usize,
        }
    }

    /// Fails if a long round trip is ignored, or if the window shrinks below what a tick needs.
    #[test]
    fn long_round_trips_shrink_it_but_a_packet_per_tick_remains() {
        let mut window = window();
        window.on_acknowledged(&acknowledged(20, 1000));
        let before = window.window();
        window.on_acknowledged(&acknowledged(400, 2000));
        assert!(window.window() < before / 2, "{}", window.window());
        for at in 3..60 {
            window.on_acknowledged(&acknowledged(2000, at * 1000));
            window.on_lost(&LostPacket {
                bytes: 1200,
                sent: Time::default(),
                now: Time::from_micros(at * 1_000_500),
                in_flight: 9000,
            });
        }
        assert!(window.window() as u64 >= MIN_WINDOW);
        assert_eq!(window.rate(), BytesPerSecond(4_000_000));
    }

    /// Fails if bursts that fill the window do not let it grow.
    #[test]
    fn what_is_used_grows() {
        let mut window = window();
        for at in 1..50 {
            let in_flight = window.window();
            window.on_sent(&SentPacket {
                bytes: 1200,
                in_flight,
                now: Time::from_micros(at * 20_000),
            });
            window.on_acknowledged(&acknowledged(20, at * 20));
        }
        assert!(window.window() as u64 > 2 * FIRST_WINDOW);
    }
}
