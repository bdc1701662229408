//! Congestion control: how much may be sent now.
//!
//! There may be several policies, so this is a small trait. A policy is told of every packet and
//! asked before each is built. It knows only the bytes of packets, so its size does not depend on
//! what is in flight.

use std::time::Duration;

use crate::MAX_DATAGRAM;
use crate::statistics::BytesPerSecond;
use crate::time::Time;

/// A congestion control policy.
///
/// The caller calls [`on_sent`](Self::on_sent) for every ack-eliciting packet, and later exactly
/// once for each of them either [`on_acknowledged`](Self::on_acknowledged) or
/// [`on_lost`](Self::on_lost). For all other packets it calls
/// [`on_unanswered`](Self::on_unanswered).
pub(crate) trait Congestion: Send {
    /// A packet was sent. It may exceed the allowance; the debt is paid off before anything else
    /// may be sent.
    fn on_sent(&mut self, bytes: usize, now: Time);

    /// A packet was sent that is not acknowledged, or whose loss is no sign of congestion: a close
    /// packet, a bare acknowledgement, an MTU probe. These need not wait for the allowance.
    fn on_unanswered(&mut self, bytes: usize, now: Time);

    /// A packet was acknowledged.
    fn on_acknowledged(&mut self, bytes: usize, round_trip: Duration, now: Time);

    /// A packet was declared lost.
    fn on_lost(&mut self, bytes: usize, now: Time);

    /// How many bytes may be sent now.
    fn allowance(&mut self, now: Time) -> usize;

    /// When the allowance will suffice for a full datagram if nothing happens until then. A time in
    /// the past means that it does now.
    fn next_allowance(&self) -> Time;

    /// The present sending rate.
    fn rate(&self) -> BytesPerSecond;
}

/// How many bytes may be in flight before packets that can wait have to wait (NewReno, as in RFC
/// 9002, which also heeds the delay).
///
/// The window grows by what is acknowledged, and more slowly once it has shrunk. It shrinks at most
/// once per round trip: to half if packets are lost, and in proportion if round trips show that they
/// wait in a long queue, which a player would notice before any loss.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    size: usize,
    /// Above this, it grows by about a datagram per round trip.
    threshold: usize,
    in_flight: usize,
    /// Most bytes in flight at once since the present round trip began.
    peak: usize,
    round_ends: Time,
    /// It has shrunk; until then it stays as it is.
    recovers_until: Time,
    shortest: ShortestRoundTrip,
    newest: Duration,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            size: FIRST_WINDOW,
            threshold: usize::MAX,
            in_flight: 0,
            peak: 0,
            round_ends: Time::default(),
            recovers_until: Time::default(),
            shortest: ShortestRoundTrip::default(),
            newest: FIRST_PATIENCE,
        }
    }
}

impl Window {
    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.in_flight = self.in_flight.saturating_add(bytes);
        self.peak = self.peak.max(self.in_flight);
    }

    pub(crate) fn on_acknowledged(&mut self, bytes: usize, round_trip: Duration, now: Time) {
        let shortest = self.shortest.note(round_trip, now);
        self.newest = round_trip.min(MAX_ROUND_TRIP);
        if now >= self.round_ends {
            self.peak = self.in_flight;
            self.round_ends = now.after(self.newest);
        }
        let is_limiting = self.is_limiting();
        self.in_flight = self.in_flight.saturating_sub(bytes);
        if round_trip > shortest * 2 + MAX_QUEUE {
            let micros = |span: Duration| span.as_micros().max(1);
            let fits = self.size as u128 * micros(shortest + MAX_QUEUE) / micros(round_trip);
            self.shrink_to(usize::try_from(fits).unwrap_or(usize::MAX), now);
        } else if is_limiting && now >= self.recovers_until {
            let grows = match self.size < self.threshold {
                true => bytes,
                false => bytes * MAX_DATAGRAM / self.size.max(1),
            };
            self.size = self.size.saturating_add(grows);
        }
    }

    /// Whether the program sends so much that it learns how much the path carries. A burst is
    /// acknowledged packet by packet, so what was in flight at once counts.
    fn is_limiting(&self) -> bool {
        self.peak >= self.size / 2
    }

    pub(crate) fn on_lost(&mut self, bytes: usize, now: Time) {
        let is_limiting = self.is_limiting();
        self.in_flight = self.in_flight.saturating_sub(bytes);
        if is_limiting {
            self.shrink_to(self.size / 2, now);
        }
    }

    /// How many more bytes may be in flight.
    pub(crate) fn left(&self) -> usize {
        self.size
            .max(self.min_size())
            .saturating_sub(self.in_flight)
    }

    /// So much that a server can send a packet per tick even if many are lost.
    fn min_size(&self) -> usize {
        let shortest = self.shortest.get().unwrap_or_default().as_micros();
        let bytes = shortest * u128::from(MIN_RATE.0) / MILLION as u128;
        MIN_WINDOW.max(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    fn shrink_to(&mut self, size: usize, now: Time) {
        if now >= self.recovers_until {
            self.size = size.max(self.min_size());
            self.threshold = self.size;
            self.recovers_until = now.after(self.newest);
        }
    }
}

const FIRST_WINDOW: usize = 16 * MAX_DATAGRAM;
const MIN_WINDOW: usize = 4 * MAX_DATAGRAM;
/// A datagram of 1200 bytes per thirtieth of a second.
const MIN_RATE: BytesPerSecond = BytesPerSecond(36_000);
/// What round trips may exceed the shortest: a server sends what a tick needs at once, and
/// acknowledgements wait for polls.
const MAX_QUEUE: Duration = Duration::from_millis(60);

/// The shortest round trip of the last ten to twenty seconds: that of the path without a queue.
#[derive(Clone, Copy, Debug, Default)]
struct ShortestRoundTrip {
    /// Of the present ten seconds, which began then, and of the ten before.
    recent: Option<(Time, Duration)>,
    before: Option<Duration>,
}

impl ShortestRoundTrip {
    fn note(&mut self, round_trip: Duration, now: Time) -> Duration {
        let recent = match self.recent {
            Some((since, shortest)) if now.since(since) < SHORTEST_SPAN => {
                (since, shortest.min(round_trip))
            }
            old => {
                self.before = old.map(|(_, shortest)| shortest);
                (now, round_trip)
            }
        };
        self.recent = Some(recent);
        self.before.map_or(recent.1, |before| before.min(recent.1))
    }

    fn get(&self) -> Option<Duration> {
        let recent = self.recent.map(|(_, shortest)| shortest);
        self.before.into_iter().chain(recent).min()
    }
}

const SHORTEST_SPAN: Duration = Duration::from_secs(10);

/// Sends at a fixed rate, and at a lower one while nothing is acknowledged.
///
/// Unused allowance is saved up to a bounded burst. After four round trips without any
/// acknowledgement while packets were in flight, the rate drops to the floor: enough to notice that
/// the path has recovered, too little to harm it. The first acknowledgement restores the rate.
#[derive(Clone, Debug)]
pub(crate) struct FixedRate {
    rate: BytesPerSecond,
    floor: BytesPerSecond,
    /// The largest allowance that is saved, in bytes.
    burst: u64,
    /// The allowance, in millionths of a byte, so that every microsecond adds a whole number.
    /// Negative after more was sent than allowed.
    balance: i128,
    updated: Time,
    in_flight: usize,
    /// How long packets have been in flight since the last acknowledgement.
    unanswered: Duration,
    round_trip: Option<Duration>,
}

impl FixedRate {
    /// The burst is raised to at least two datagrams and rates to at least a byte per second; the
    /// floor is at most the rate.
    pub(crate) fn new(
        rate: BytesPerSecond,
        floor: BytesPerSecond,
        burst: usize,
        now: Time,
    ) -> Self {
        let rate = rate.max(BytesPerSecond(1));
        let burst = (burst as u64).max(MIN_BURST);
        Self {
            rate,
            floor: floor.clamp(BytesPerSecond(1), rate),
            burst,
            balance: i128::from(burst) * MILLION,
            updated: now,
            in_flight: 0,
            unanswered: Duration::ZERO,
            round_trip: None,
        }
    }

    /// Whether it sends at the floor, because nothing is acknowledged.
    fn is_starved(&self) -> bool {
        self.unanswered >= self.patience()
    }

    /// Updates the balance: at the full rate up to the time at which patience ends, at the floor
    /// after it, however long the last call is ago.
    fn advance(&mut self, now: Time) {
        let passed = now.since(self.updated);
        self.updated = self.updated.max(now);
        let patient = match self.in_flight {
            0 if !self.is_starved() => passed,
            _ => passed.min(self.patience().saturating_sub(self.unanswered)),
        };
        let earned = earned(self.rate, patient) + earned(self.floor, passed - patient);
        if self.in_flight > 0 {
            self.unanswered = self.unanswered.saturating_add(passed);
        }
        // An allowance that was saved at the full rate is not spent on a path that may be down.
        let max = if self.is_starved() {
            MIN_BURST
        } else {
            self.burst
        };
        self.balance = (self.balance + earned).min(i128::from(max) * MILLION);
    }

    fn patience(&self) -> Duration {
        let patience = self.round_trip.map(|time| time * PATIENT_ROUND_TRIPS);
        patience.map_or(FIRST_PATIENCE, |time| time.max(MIN_PATIENCE))
    }
}

impl Congestion for FixedRate {
    fn on_sent(&mut self, bytes: usize, now: Time) {
        self.on_unanswered(bytes, now);
        self.in_flight = self.in_flight.saturating_add(bytes);
    }

    fn on_unanswered(&mut self, bytes: usize, now: Time) {
        self.advance(now);
        self.balance -= bytes as i128 * MILLION;
    }

    fn on_acknowledged(&mut self, bytes: usize, round_trip: Duration, now: Time) {
        self.advance(now);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.unanswered = Duration::ZERO;
        let sample = round_trip.min(MAX_ROUND_TRIP);
        let smoothed = self.round_trip.map_or(sample, |old| (old * 7 + sample) / 8);
        self.round_trip = Some(smoothed);
    }

    fn on_lost(&mut self, bytes: usize, now: Time) {
        self.advance(now);
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    fn allowance(&mut self, now: Time) -> usize {
        self.advance(now);
        usize::try_from(self.balance / MILLION).unwrap_or(0)
    }

    fn next_allowance(&self) -> Time {
        let missing = MAX_DATAGRAM as i128 * MILLION - self.balance;
        if missing <= 0 {
            return self.updated;
        }
        let patient = match self.in_flight {
            0 if !self.is_starved() => Duration::MAX,
            _ => self.patience().saturating_sub(self.unanswered),
        };
        let at_rate = time_for(missing, self.rate);
        if at_rate <= patient {
            return self.updated.after(at_rate);
        }
        let left = missing - earned(self.rate, patient);
        self.updated
            .after(patient.saturating_add(time_for(left, self.floor)))
    }

    fn rate(&self) -> BytesPerSecond {
        if self.is_starved() {
            self.floor
        } else {
            self.rate
        }
    }
}

/// What a rate yields in a span, in millionths of a byte.
fn earned(rate: BytesPerSecond, span: Duration) -> i128 {
    let micros = i128::try_from(span.as_micros()).unwrap_or(i128::MAX);
    micros.saturating_mul(i128::from(rate.0)).min(MAX_EARNED)
}

/// How long a rate takes for an amount in millionths of a byte.
fn time_for(amount: i128, rate: BytesPerSecond) -> Duration {
    let rate = i128::from(rate.0);
    let micros = (amount.max(0) + rate - 1) / rate;
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

const MILLION: i128 = 1_000_000;
/// More than any burst, and small enough that sums cannot overflow.
const MAX_EARNED: i128 = 1 << 100;
const MIN_BURST: u64 = 2 * MAX_DATAGRAM as u64;
const PATIENT_ROUND_TRIPS: u32 = 4;
/// Before the first round trip measurement.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);
/// With 90 % loss in both directions, acknowledgements arrive twice a second.
const MIN_PATIENCE: Duration = Duration::from_secs(1);
const MAX_ROUND_TRIP: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    const RATE: BytesPerSecond = BytesPerSecond(100_000);
    const FLOOR: BytesPerSecond = BytesPerSecond(2_000);
    const BURST: usize = 6_000;
    const MILLISECOND: Duration = Duration::from_millis(1);
    const SECOND: Duration = Duration::from_secs(1);

    fn policy() -> FixedRate {
        FixedRate::new(RATE, FLOOR, BURST, Time::from_micros(0))
    }

    /// A sender with unlimited data on a link with a queue. Returns the share of the link that was
    /// used in the second half, and the longest round trip there.
    fn fill_link(link: u64, delay: Duration, buffer: usize) -> (f64, Duration) {
        let mut window = Window::default();
        let (mut now, mut free_at) = (Time::from_micros(0), Time::from_micros(0));
        let end = Time::from_micros(20_000_000);
        let half = Time::from_micros(10_000_000);
        // When each packet is acknowledged or found to be lost, when it was sent, whether it came.
        let mut in_flight: VecDeque<(Time, Time, bool)> = VecDeque::new();
        let (mut carried, mut longest) = (0u64, Duration::ZERO);
        while now < end {
            while let Some(&(due, sent, came)) = in_flight.front()
                && due <= now
            {
                in_flight.pop_front();
                match came {
                    true => window.on_acknowledged(1200, due.since(sent), now),
                    false => window.on_lost(1200, now),
                }
                if came && now > half {
                    carried += 1200;
                    longest = longest.max(due.since(sent));
                }
            }
            while window.left() >= MAX_DATAGRAM {
                window.on_sent(1200);
                free_at = free_at.max(now);
                let queued = free_at.since(now).as_micros() as u64 * link / 1_000_000;
                let came = queued as usize <= buffer;
                if came {
                    free_at = free_at.after(Duration::from_micros(1200 * 1_000_000 / link));
                }
                in_flight.push_back((free_at.after(delay), now, came));
            }
            now = now.after(MILLISECOND);
        }
        (carried as f64 / (link * 10) as f64, longest)
    }

    /// Fails if losses do not shrink the window, or if a queue does not (its delay ignored): the
    /// second buffer holds four seconds.
    #[test]
    fn a_link_is_used_without_a_long_queue() {
        let delay = Duration::from_millis(60);
        for link in [32_000, 600_000, 2_000_000] {
            for buffer in [link as usize / 10, link as usize * 4] {
                let (used, longest) = fill_link(link, delay, buffer);
                assert!(used > 0.7, "{used} of {link} B/s, buffer {buffer}");
                assert!(
                    longest < Duration::from_millis(700),
                    "{longest:?} at {link}"
                );
            }
        }
    }

    /// Fails if a sender that sends little is held back because of losses (`is_limiting` left out).
    #[test]
    fn losses_of_a_sender_that_sends_little_cost_it_nothing() {
        let mut window = Window::default();
        let mut now = Time::from_micros(0);
        for packet in 0..300 {
            now = now.after(33 * MILLISECOND);
            window.on_sent(100);
            match packet % 5 {
                0 => window.on_lost(100, now),
                _ => window.on_acknowledged(100, 30 * MILLISECOND, now),
            }
        }
        assert_eq!(window.left(), FIRST_WINDOW);
    }

    /// A server sends its window once per tick, and all of it is acknowledged before the next. Fails
    /// if `is_limiting` compares what is still in flight: the window then grows by a third.
    #[test]
    fn bursts_double_the_window() {
        let mut window = Window::default();
        let mut now = Time::from_micros(0);
        for _ in 0..4 {
            let packets = window.left() / MAX_DATAGRAM;
            let sent = (0..packets)
                .inspect(|_| window.on_sent(MAX_DATAGRAM))
                .count();
            now = now.after(20 * MILLISECOND);
            for _ in 0..sent {
                window.on_acknowledged(MAX_DATAGRAM, 20 * MILLISECOND, now);
            }
            now = now.after(13 * MILLISECOND);
        }
        assert_eq!(window.left(), 16 * FIRST_WINDOW);
    }

    /// A sender with unlimited data, and a path with this round trip time.
    struct Path {
        policy: FixedRate,
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
                policy: policy(),
                now: Time::from_micros(0),
                round_trip,
                in_flight: VecDeque::new(),
                answers: true,
                seed,
            }
        }

        /// Runs for a span and returns how many bytes were sent. Without acknowledgements, a packet
        /// is declared lost a little after two round trips.
        fn run(&mut self, span: Duration) -> usize {
            let (end, mut sent) = (self.now.after(span), 0);
            while self.now < end {
                self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1);
                let size = 200 + (self.seed >> 33) as usize % 1200;
                while let Some(&(at, size)) = self.in_flight.front() {
                    let age = self.now.since(at);
                    if self.answers && age >= self.round_trip {
                        self.policy.on_acknowledged(size, age, self.now);
                    } else if age >= self.round_trip * 2 {
                        self.policy.on_lost(size, self.now);
                    } else {
                        break;
                    }
                    self.in_flight.pop_front();
                }
                if self.policy.allowance(self.now) >= size {
                    self.policy.on_sent(size, self.now);
                    self.in_flight.push_back((self.now, size));
                    sent += size;
                }
                self.now = self.now.after(MILLISECOND);
            }
            sent
        }
    }

    /// Case 11: acknowledgements are lost for ten seconds. Fails if a loss counts as an
    /// acknowledgement (`self.unanswered = Duration::ZERO` in `on_lost`), or if nothing restores
    /// the rate (without that line in `on_acknowledged`).
    #[test]
    fn without_answers_the_rate_falls_to_its_floor_and_comes_back_at_once() {
        for seed in 0..20 {
            let round_trip = Duration::from_millis(20 + seed * 20);
            let mut path = Path::new(round_trip, seed);
            let before = path.run(5 * SECOND);
            assert!(
                (495_000..=506_000).contains(&before),
                "seed {seed}: {before}"
            );
            assert!(!path.policy.is_starved());
            path.answers = false;
            let patience = (round_trip * 4).max(MIN_PATIENCE);
            path.run(patience + round_trip + 10 * MILLISECOND);
            assert!(path.policy.is_starved(), "seed {seed}");
            let starved = path.run(7 * SECOND);
            assert!(
                (14_000 - MAX_DATAGRAM..=14_000 + BURST).contains(&starved),
                "seed {seed}: {starved}"
            );
            path.answers = true;
            // Packets at the floor are acknowledged within a round trip.
            path.run(round_trip + SECOND);
            let after = path.run(SECOND);
            assert!((98_500..=101_500).contains(&after), "seed {seed}: {after}");
        }
    }

    /// Fails if an allowance that was saved at the full rate may be spent while nothing is
    /// acknowledged (`self.burst` for `MIN_BURST` in `advance`).
    #[test]
    fn who_saved_much_may_not_spend_it_on_a_path_that_is_gone() {
        let mut policy = FixedRate::new(RATE, FLOOR, 100_000, Time::from_micros(0));
        policy.on_sent(100, Time::from_micros(0));
        assert_eq!(policy.allowance(Time::from_micros(900_000)), 100_000);
        assert_eq!(
            policy.allowance(Time::from_micros(1_100_000)),
            MIN_BURST as usize
        );
    }

    /// Fails if time counts although nothing is in flight (`if self.in_flight > 0` in `advance`).
    #[test]
    fn a_sender_with_nothing_to_say_is_not_starved() {
        let mut policy = policy();
        policy.on_sent(1000, Time::from_micros(0));
        policy.on_acknowledged(1000, 50 * MILLISECOND, Time::from_micros(50_000));
        let later = Time::from_micros(3_600_000_000);
        assert_eq!(policy.allowance(later), BURST);
        assert!(!policy.is_starved());
        policy.on_sent(BURST, later);
        let second = later.after(10 * MILLISECOND);
        assert_eq!(policy.allowance(second), 1000);
    }

    /// Fails if debts are dropped (`self.balance.max(0)` in `on_sent`).
    #[test]
    fn what_could_not_wait_is_paid_back() {
        let mut policy = policy();
        let now = Time::from_micros(0);
        policy.on_sent(BURST + 10_000, now);
        assert_eq!(policy.allowance(now), 0);
        let due = policy.next_allowance();
        assert_eq!(due.as_micros(), (10_000 + MAX_DATAGRAM as u64) * 10);
        assert!(policy.allowance(due) >= MAX_DATAGRAM);
    }

    /// Fails if a rate of zero is possible (`rate.max(…)` in `new`).
    #[test]
    fn nonsense_is_made_to_work() {
        let nothing = BytesPerSecond(0);
        let mut policy = FixedRate::new(nothing, BytesPerSecond(u64::MAX), 0, Time::default());
        policy.on_sent(usize::MAX, Time::default());
        policy.on_acknowledged(usize::MAX, Duration::MAX, Time::from_micros(5));
        policy.on_lost(usize::MAX, Time::default());
        assert_eq!(policy.allowance(Time::from_micros(u64::MAX)), 0);
        assert!(policy.next_allowance() > Time::from_micros(0));
        let max = BytesPerSecond(u64::MAX);
        let mut policy = FixedRate::new(max, max, usize::MAX, Time::default());
        policy.on_sent(usize::MAX, Time::default());
        assert!(policy.allowance(Time::from_micros(u64::MAX)) > 0);
    }

    proptest! {
        /// In no span of time is more allowed than the rate and one burst, however calls are
        /// spaced; and `next_allowance` is never too early. Fails if the saved burst is unbounded
        /// (`.min(max)` in `advance`), or if `next_allowance` rounds down.
        #[test]
        fn no_span_gets_more_than_its_share(
            steps in prop::collection::vec((0u64..200_000, 0usize..20_000, any::<bool>()), 1..200),
        ) {
            let mut policy = policy();
            let mut now = Time::from_micros(0);
            let mut sends: Vec<(Time, usize)> = Vec::new();
            for (wait, size, answered) in steps {
                let due = policy.next_allowance().max(now);
                let waited = now.after(Duration::from_micros(wait));
                if due <= waited {
                    prop_assert!(policy.clone().allowance(due) >= MAX_DATAGRAM);
                }
                if due > now {
                    let early = Time::from_micros(due.as_micros() - 1);
                    prop_assert!(policy.clone().allowance(early) < MAX_DATAGRAM);
                }
                now = waited;
                let size = size.min(policy.allowance(now));
                policy.on_sent(size, now);
                sends.push((now, size));
                if answered {
                    policy.on_acknowledged(size, 30 * MILLISECOND, now);
                }
            }
            for (first, &(start, _)) in sends.iter().enumerate() {
                let mut sum = 0u64;
                for &(end, size) in &sends[first..] {
                    sum += size as u64;
                    let share = end.since(start).as_micros() as u64 * RATE.0 / 1_000_000;
                    prop_assert!(sum <= share + BURST as u64 + 1);
                }
            }
        }
    }
}
