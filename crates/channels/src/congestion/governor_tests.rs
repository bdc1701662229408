//! Tests of the governor with a policy that allows one rate.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::super::{FixedRate, RateLimits};
use super::*;

const RATE: BytesPerSecond = BytesPerSecond(100_000);
const SILENT: BytesPerSecond = BytesPerSecond(2_000);
const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn fixed(rate: BytesPerSecond, silent: BytesPerSecond) -> Governor {
    let limits = RateLimits {
        floor: BytesPerSecond(1),
        ceiling: rate,
        now: Time::default(),
    };
    let policy = Box::new(FixedRate::new(limits));
    Governor::new(policy, (limits.floor, silent, rate), 0, limits.now)
}

fn acknowledge(governor: &mut Governor, bytes: usize, round_trip: Duration, now: Time) {
    governor.on_acknowledged(AcknowledgedPacket {
        bytes,
        sent: now.before(round_trip),
        now,
        round_trip,
        one_way: None,
        is_marked: false,
        in_flight: 0,
    });
}

/// A sender with unlimited data, and a path with this round trip time.
struct Path {
    governor: Governor,
    now: Time,
    round_trip: Duration,
    /// When each packet was sent, and its size.
    in_flight: VecDeque<(Time, usize)>,
    /// Whether acknowledgements arrive.
    answers: bool,
    seed: u64,
}

impl Path {
    fn new(round_trip: Duration, seed: u64) -> Self {
        Self {
            governor: fixed(RATE, SILENT),
            now: Time::default(),
            round_trip,
            in_flight: VecDeque::new(),
            answers: true,
            seed,
        }
    }

    /// Runs for a span and returns how many bytes were sent. Without acknowledgements, a packet is
    /// declared lost a little after two round trips.
    fn run(&mut self, span: Duration) -> usize {
        let (end, mut sent) = (self.now.after(span), 0);
        while self.now < end {
            self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            let size = 200 + (self.seed >> 33) as usize % 1200;
            while let Some(&(at, size)) = self.in_flight.front() {
                let age = self.now.since(at);
                if self.answers && age >= self.round_trip {
                    acknowledge(&mut self.governor, size, age, self.now);
                } else if age >= self.round_trip * 2 {
                    self.governor.on_lost(size, at, self.now);
                } else {
                    break;
                }
                self.in_flight.pop_front();
            }
            if self.governor.allowance(self.now) >= size {
                self.governor.on_sent(size, self.now);
                self.in_flight.push_back((self.now, size));
                sent += size;
            }
            self.now = self.now.after(MILLISECOND);
        }
        sent
    }
}

/// Case 11: acknowledgements are lost for ten seconds. Fails if a loss counts as an acknowledgement
/// (`self.unanswered = Duration::ZERO` in `on_lost`), or if nothing restores the rate (without that
/// line in `on_acknowledged`).
#[test]
fn without_answers_the_rate_falls_and_comes_back_at_once() {
    for seed in 0..20 {
        let round_trip = Duration::from_millis(20 + seed * 20);
        let mut path = Path::new(round_trip, seed);
        let before = path.run(5 * SECOND);
        assert!(
            (495_000..=506_000).contains(&before),
            "seed {seed}: {before}"
        );
        assert!(!path.governor.is_starved());
        path.answers = false;
        let patience = (round_trip * 4).max(MIN_PATIENCE);
        path.run(patience + round_trip + 10 * MILLISECOND);
        assert!(path.governor.is_starved(), "seed {seed}");
        let starved = path.run(7 * SECOND);
        assert!(
            (14_000 - MAX_DATAGRAM..=14_000 + 2 * MAX_DATAGRAM).contains(&starved),
            "seed {seed}: {starved}"
        );
        path.answers = true;
        // Packets at the low rate are acknowledged within a round trip.
        path.run(round_trip + SECOND);
        let after = path.run(SECOND);
        assert!((98_000..=102_000).contains(&after), "seed {seed}: {after}");
    }
}

/// Fails if time counts although nothing is in flight (`self.in_flight > 0` in `advance`).
#[test]
fn a_sender_with_nothing_to_say_is_not_starved() {
    let mut governor = fixed(RATE, SILENT);
    governor.on_sent(1000, Time::default());
    acknowledge(
        &mut governor,
        1000,
        50 * MILLISECOND,
        Time::from_micros(50_000),
    );
    let later = Time::from_micros(3_600_000_000);
    assert_eq!(governor.allowance(later), MIN_BURST as usize);
    assert!(!governor.is_starved());
}

/// Fails if debts are dropped (`self.balance.max(0)` in `Pacer::spend`).
#[test]
fn what_could_not_wait_is_paid_back() {
    let mut governor = fixed(RATE, SILENT);
    let now = Time::default();
    governor.on_unanswered(MIN_BURST as usize + 10_000, now);
    assert_eq!(governor.allowance(now), 0);
    let due = governor.next_allowance();
    assert_eq!(due.as_micros(), (10_000 + MAX_DATAGRAM as u64) * 10);
    assert!(governor.allowance(due) >= MAX_DATAGRAM);
}

/// Caps of nothing, a bit per second and everything. Fails if a rate of zero is possible, or if
/// products overflow (`*` for `saturating_mul` in `Pacer::advance`).
#[test]
fn nonsense_is_made_to_work() {
    for rate in [0, 1, u64::MAX] {
        let rate = BytesPerSecond(rate);
        let mut governor = fixed(rate, rate);
        governor.on_sent(usize::MAX, Time::default());
        acknowledge(
            &mut governor,
            usize::MAX,
            Duration::MAX,
            Time::from_micros(5),
        );
        governor.on_lost(usize::MAX, Time::default(), Time::default());
        governor.allowance(Time::from_micros(u64::MAX));
        governor.capacity(Time::from_micros(u64::MAX));
        assert!(governor.next_allowance() > Time::default());
        assert!(governor.rate().0 > 0);
    }
}

proptest! {
    /// In no span of time is more allowed than the rate and one burst, however calls are spaced; and
    /// `next_allowance` is never too early. Fails if the saved burst is unbounded (`.min` in
    /// `Pacer::advance`), or if `Pacer::next` rounds down.
    #[test]
    fn no_span_gets_more_than_its_share(
        steps in prop::collection::vec((0u64..200_000, 0usize..20_000), 1..200),
    ) {
        let mut governor = fixed(RATE, RATE);
        let mut now = Time::default();
        let mut sends: Vec<(Time, usize)> = Vec::new();
        for (wait, size) in steps {
            let due = governor.next_allowance().max(now);
            let waited = now.after(Duration::from_micros(wait));
            if due <= waited && due > now {
                let early = Time::from_micros(due.as_micros() - 1);
                prop_assert!(governor.allowance(early) < MAX_DATAGRAM);
                prop_assert!(governor.allowance(due) >= MAX_DATAGRAM);
            }
            now = waited;
            let size = size.min(governor.allowance(now));
            governor.on_unanswered(size, now);
            sends.push((now, size));
        }
        for (first, &(start, _)) in sends.iter().enumerate() {
            let mut sum = 0u64;
            for &(end, size) in &sends[first..] {
                sum += size as u64;
                let share = end.since(start).as_micros() as u64 * RATE.0 / 1_000_000;
                prop_assert!(sum <= share + MIN_BURST + 1);
            }
        }
    }
}
