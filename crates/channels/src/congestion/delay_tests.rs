//! Tests of the delay-based policy on a simulated queue.

use std::collections::VecDeque;

use super::super::{AcknowledgedPacket, LostPacket, RateLimits, SentPacket};
use super::*;

/// A sender on a link with a queue, in steps of a millisecond.
struct Link {
    policy: DelayBased,
    now: Time,
    /// In bytes per second.
    rate: u64,
    /// In bytes.
    buffer: u64,
    /// Each way.
    latency: Duration,
    free_at: Time,
    in_flight: VecDeque<(Time, Time, usize, bool)>,
    bytes_in_flight: usize,
    credit: u64,
    /// One in so many packets is lost by chance.
    loses: u64,
    packets: u64,
    /// The application sends at most so many bytes per second.
    wants: u64,
    packet: usize,
    longest_queue: Duration,
    carried: u64,
}

impl Link {
    fn new(rate: u64, buffer: u64) -> Self {
        let limits = RateLimits {
            floor: BytesPerSecond(1000),
            ceiling: BytesPerSecond(100_000_000),
            now: Time::default(),
        };
        Self {
            policy: DelayBased::new(limits),
            now: Time::from_micros(1_000_000),
            rate,
            buffer,
            latency: Duration::from_millis(20),
            free_at: Time::default(),
            in_flight: VecDeque::new(),
            bytes_in_flight: 0,
            credit: 0,
            loses: 0,
            packets: 0,
            wants: u64::MAX,
            packet: 1200,
            longest_queue: Duration::ZERO,
            carried: 0,
        }
    }

    /// Runs for some seconds; then `longest_queue` and `carried` are those of this time.
    fn run(&mut self, seconds: u64) {
        self.longest_queue = Duration::ZERO;
        self.carried = 0;
        let end = self.now.after(Duration::from_secs(seconds));
        while self.now < end {
            self.now = self.now.after(Duration::from_millis(1));
            while let Some((due, sent, bytes, came)) =
                self.in_flight.pop_front_if(|it| it.0 <= self.now)
            {
                self.bytes_in_flight -= bytes;
                let (now, in_flight) = (self.now, self.bytes_in_flight);
                let round_trip = due.since(sent);
                match came {
                    true => {
                        self.carried += bytes as u64;
                        self.policy.on_acknowledged(&AcknowledgedPacket {
                            bytes,
                            sent,
                            now,
                            round_trip,
                            one_way: Some(round_trip - self.latency),
                            is_marked: false,
                            in_flight,
                        });
                    }
                    false => self.policy.on_lost(&LostPacket {
                        bytes,
                        sent,
                        now,
                        in_flight,
                    }),
                }
            }
            let rate = self.policy.rate().0.min(self.wants);
            self.credit = (self.credit + rate / 1000).min(2 * self.packet as u64);
            while self.credit >= self.packet as u64 && self.policy.window() > self.bytes_in_flight {
                self.credit -= self.packet as u64;
                self.send();
            }
        }
    }

    fn send(&mut self) {
        let bytes = self.packet;
        self.bytes_in_flight += bytes;
        self.packets += 1;
        let (now, in_flight) = (self.now, self.bytes_in_flight);
        self.policy.on_sent(&SentPacket {
            bytes,
            in_flight,
            now,
        });
        let queue = self.free_at.since(now);
        let fits = yield_of(self.rate, micros(queue)) <= self.buffer;
        let by_chance = self.loses > 0 && self.packets.is_multiple_of(self.loses);
        let came = fits && !by_chance;
        if fits {
            self.longest_queue = self.longest_queue.max(queue);
            let takes = Duration::from_micros(bytes as u64 * 1_000_000 / self.rate);
            self.free_at = self.free_at.max(now).after(takes);
        }
        let due = self.free_at.max(now).after(self.latency * 2);
        self.in_flight.push_back((due, now, bytes, came));
    }
}

/// Fails if the delay is ignored (`standing > target` never true): the queue then fills half a
/// second.
#[test]
fn a_link_is_used_without_a_long_queue() {
    for rate in [50_000, 500_000, 2_000_000] {
        let mut link = Link::new(rate, rate / 2);
        link.run(5);
        link.run(20);
        let share = link.carried as f64 / (20 * rate) as f64;
        assert!(share > 0.8, "{share} of {rate} B/s");
        assert!(
            link.longest_queue < Duration::from_micros(60_000 + 5 * 1200 * 1_000_000 / rate),
            "{:?} at {rate}",
            link.longest_queue
        );
    }
}

/// Fails if a loss of one in twenty halves the rate, as it does for NewReno.
#[test]
fn losses_that_are_not_congestion_cost_little() {
    let mut link = Link::new(500_000, 250_000);
    link.loses = 20;
    link.run(5);
    link.run(20);
    let share = link.carried as f64 / (20 * 500_000) as f64;
    assert!(share > 0.8, "{share}");
}

/// A quarter of all packets is lost whatever is sent. Fails if a lower rate that does not help is
/// kept (`trial` never compared).
#[test]
fn a_lower_rate_that_does_not_help_is_undone() {
    let mut link = Link::new(500_000, 250_000);
    link.loses = 4;
    link.run(10);
    link.run(20);
    let share = link.carried as f64 / (20 * 500_000) as f64;
    assert!(share > 0.45, "{share}");
}

/// Fails if a sender that uses little of its rate is taken for one that found room (`is_used` always
/// true), or if it is slowed down.
#[test]
fn a_sender_that_sends_little_neither_gains_nor_loses() {
    let mut link = Link::new(500_000, 250_000);
    link.wants = 20_000;
    link.packet = 200;
    link.run(30);
    let rate = link.policy.rate().0;
    assert!((20_000..=1_000_000).contains(&rate), "{rate}");
    assert!(link.longest_queue < Duration::from_millis(5));
}

/// The link halves, and returns. Fails if the rate does not follow what arrives (`slow_down` without
/// `self.capacity`), or returns too slowly.
#[test]
fn a_change_of_the_link_is_followed() {
    let mut link = Link::new(1_000_000, 500_000);
    link.run(10);
    link.rate = 500_000;
    link.run(2);
    link.run(5);
    assert!(
        link.longest_queue < Duration::from_millis(60),
        "{:?}",
        link.longest_queue
    );
    link.rate = 1_000_000;
    link.run(5);
    link.run(1);
    assert!(link.carried > 800_000, "{}", link.carried);
}

/// Thirty seconds in which nothing arrives, then a link as before. Fails if the rate collapses for
/// good.
#[test]
fn a_link_that_carries_nothing_for_half_a_minute_is_used_again() {
    let mut link = Link::new(500_000, 250_000);
    link.run(5);
    link.loses = 1;
    link.run(30);
    assert!(link.policy.rate().0 >= 1000);
    link.loses = 0;
    link.run(5);
    link.run(5);
    assert!(link.carried > 5 * 350_000, "{}", link.carried);
}
