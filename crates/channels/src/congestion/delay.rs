//! Keeps queues short: a rate that follows the delay (of the family of Copa, Swift and GCC).
//!
//! **Delay.** A packet waits if it reaches the bottleneck before the packet before it has left it:
//! that shows even on links so slow that a packet takes longer than a tick. What exceeds the least
//! delay of the last seconds by more than the packet itself takes counts, too. The least of the last
//! samples is the standing queue; a burst of our own is none.
//!
//! **Rate.** While the standing queue is short and the application uses the rate, it grows: gently
//! near the capacity that was met last, faster the longer nothing is in its way. When the queue is
//! too long, the rate becomes what arrives at the other end, less a part that drains the queue.
//!
//! **Loss** counts where it says something: above a tenth, or when the queue is long, too. If a lower
//! rate does not reduce it, it is not congestion, and the rate is restored.
//!
//! **Competition.** A queue that stays although we send less and less is somebody else's. Against
//! those who only heed losses it does as they do, and tries now and then whether they are gone.

use std::time::Duration;

use super::delivery::DeliveryRate;
use super::windowed::WindowedMin;
use super::{
    AcknowledgedPacket, Congestion, FIRST_WINDOW, LostPacket, RateLimits, SentPacket, micros,
    rate_of, thousandths, yield_of,
};
use crate::MAX_DATAGRAM;
use crate::statistics::BytesPerSecond;
use crate::time::Time;

/// A policy that keeps the delay of queues at about ten milliseconds.
#[derive(Clone, Debug)]
pub struct DelayBased {
    /// In bytes per second.
    rate: u64,
    floor: u64,
    ceiling: u64,
    phase: Phase,
    /// Smoothed, in microseconds.
    round_trip: u64,
    least_round_trip: WindowedMin,
    /// The least one-way delay, which includes an unknown constant.
    base: WindowedMin,
    /// The same of the last second, without what packets themselves take and plus a constant.
    recent_base: WindowedMin,
    /// When the newest packet arrived, on the same clock.
    arrived: Option<u64>,
    standing: WindowedMin,
    delivery: DeliveryRate,
    busy: Busy,
    /// Bytes that were acknowledged since the last packet of which the arrival is known.
    untimed: u64,
    usage: Usage,
    losses: Losses,
    /// The rate at which the queue was too long last; 0 if that is long ago.
    capacity: u64,
    round_ends: Time,
    /// Rounds in a row in which nothing was in the way.
    calm: u32,
    /// Whether a packet of this round passed faster than the present rate would explain.
    has_headroom: bool,
    /// It has just slowed down; until then it does not do so again.
    reacts_from: Time,
    /// Until then what is in flight is limited so that the queue drains.
    drains_until: Time,
    /// When that is seen here, and the queue to which it reacted.
    drained_at: Time,
    reacted_to: u64,
    /// When the queue was short last, and the rate then.
    short_at: Time,
    rate_at_short: u64,
    /// Bytes of the packet that was sent last.
    last_packet: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The rate doubles per round trip, until there is a queue or a loss.
    Start,
    Steady,
    /// Somebody else keeps the queue full.
    Competing {
        /// Until then losses do not count again.
        recovers_until: Time,
        /// When to try whether they are gone, and until when.
        tries: Time,
    },
}

impl DelayBased {
    /// Begins with sixteen datagrams in the first round trip.
    pub fn new(limits: RateLimits) -> Self {
        let now = limits.now;
        let (floor, ceiling) = (limits.floor.0.max(1), limits.ceiling.0.max(1));
        Self {
            rate: rate_of(FIRST_WINDOW, FIRST_ROUND_TRIP).min(ceiling),
            floor: floor.min(ceiling),
            ceiling,
            phase: Phase::Start,
            round_trip: FIRST_ROUND_TRIP,
            least_round_trip: WindowedMin::new(LONG),
            base: WindowedMin::new(LONG),
            recent_base: WindowedMin::new(RECENT),
            arrived: None,
            standing: WindowedMin::new(SHORT),
            delivery: DeliveryRate::default(),
            busy: Busy::default(),
            untimed: 0,
            usage: Usage::new(now),
            losses: Losses::new(now),
            capacity: 0,
            round_ends: now,
            calm: 0,
            has_headroom: false,
            reacts_from: now,
            drains_until: now,
            drained_at: now,
            reacted_to: 0,
            short_at: now,
            rate_at_short: 0,
            last_packet: 0,
        }
    }

    /// The queue that is aimed at: longer where delays vary anyway, and a little longer at low rates,
    /// so that of several connections the slower ones gain.
    fn target(&self) -> u64 {
        let mut target = TARGET + VARIATION_TARGET * self.busy.variation() / 1000;
        let mut rate = self.rate;
        while rate < TARGET_RATE && target < MAX_TARGET {
            rate *= 2;
            target += target / 12;
        }
        while rate > 2 * TARGET_RATE && target > MIN_TARGET {
            rate /= 2;
            target -= target / 12;
        }
        target.min(MAX_TARGET)
    }

    /// Samples of the queue that a packet met, in microseconds: what may have been one, and what
    /// certainly was. `None` without a one-way delay.
    fn queue_of(&mut self, packet: &AcknowledgedPacket) -> Option<(u64, u64)> {
        let one_way = micros(packet.one_way?);
        // A queue that never drains must not become the base.
        let base = match (self.phase, self.base.get()) {
            (Phase::Competing { .. }, Some(base)) if one_way > base => base,
            _ => self.base.note(one_way, packet.now),
        };
        let excess = one_way - base;
        let sent = packet.sent.as_micros();
        let arrived = sent.saturating_add(one_way);
        // Behind the packet before it.
        let behind = match self.arrived {
            Some(before) => before.saturating_sub(sent.saturating_add(base)),
            None => 0,
        };
        self.arrived = self.arrived.max(Some(arrived));
        let bytes = packet.bytes as u64;
        let own = match self.delivery.get() {
            Some(rate) => yield_time(bytes, rate),
            None => excess,
        };
        // On a slow link it is the packet itself that takes long. If it suddenly takes less than
        // the rate explains, the link has become faster.
        let rate = match self.capacity {
            0 => self.rate,
            capacity => capacity,
        };
        let takes = yield_time(bytes, rate).min(MAX_TAKES);
        let besides = one_way.saturating_add(MAX_TAKES) - takes;
        let recent = self.recent_base.get();
        if recent.is_some_and(|recent| besides.saturating_add(takes / 2) < recent) {
            self.has_headroom = true;
            self.calm = self.calm.max(1);
        }
        self.recent_base.note(besides, packet.now);
        let behind = behind.min(excess);
        Some((behind.max(excess.saturating_sub(own)), behind))
    }

    fn slow_down(&mut self, queue: u64, in_flight: usize, now: Time) {
        let target = self.target();
        let busy = self.busy.get(now);
        let delivered = busy.or(self.delivery.get()).unwrap_or(self.rate);
        // What arrived between two samples may be less than the link carries, but what was sent is
        // at most halved at a time.
        let half = self.usage.rate.min(self.rate) / 2;
        self.capacity = delivered.max(half).max(self.floor);
        let over = (queue.saturating_sub(target) * 1000 / target).min(1000);
        let factor = 1000 - over * MAX_DECREASE / 1000;
        let slower = thousandths(self.capacity, factor);
        self.rate = self.rate.min(slower).max(self.floor);
        self.reacts_from = now.after(Duration::from_micros(
            self.round_trip.max(MIN_ROUND) + MIN_ROUND / 2,
        ));
        if queue > 2 * target {
            // Most of what is in flight is in the queue, which is longer than what the newest
            // acknowledgement says of it.
            let in_flight = yield_time(in_flight as u64, self.capacity).min(2 * MAX_DRAIN);
            let drains = (queue.min(MAX_DRAIN) + self.round_trip / 2).max(in_flight);
            self.drains_until = now.after(Duration::from_micros(drains));
            let seen = drains + self.round_trip;
            self.drained_at = now.after(Duration::from_micros(seen));
        }
        self.reacted_to = queue;
        self.calm = 0;
        self.has_headroom = false;
        self.phase = Phase::Steady;
    }

    /// Grows once per round, if the application uses the rate.
    fn grow(&mut self, now: Time) {
        if now < self.round_ends {
            return;
        }
        let round = self.round_trip.max(MIN_ROUND);
        self.round_ends = now.after(Duration::from_micros(round));
        let has_headroom = self.has_headroom;
        if now < self.reacts_from || now < self.drains_until || !self.usage.is_used(self.rate) {
            return;
        }
        self.calm = self.calm.saturating_add(1);
        let near = self.capacity;
        let factor = match self.phase {
            Phase::Start => 2000,
            _ if has_headroom => 1000 + HEADROOM_GROWTH,
            _ if near == 0 || self.rate > near + near / 8 => {
                1000 + (GROWTH * u64::from(self.calm.min(8))).min(MAX_GROWTH)
            }
            _ if self.rate < near - near / 16 => 1000 + FAST_GROWTH,
            _ if self.busy.variation() > VARIABLE => 1000 + FAST_GROWTH,
            // In bytes nearly the same for all, so that several connections become equal.
            _ => 1000 + (GENTLE_STEP / self.rate.max(1)).clamp(MIN_GENTLE, GENTLE_GROWTH),
        };
        let limit = self.usage.limit(self.rate);
        let grown = thousandths(self.rate, factor).max(self.rate + 50);
        self.rate = grown
            .min(limit.max(self.rate))
            .clamp(self.floor, self.ceiling);
        if self.calm > FORGETS && self.rate > near {
            self.capacity = 0;
        }
    }

    /// Whether a queue stays that we do not cause.
    fn note_queue(&mut self, queue: u64, now: Time) {
        let target = self.target();
        if queue <= target {
            self.short_at = now;
            self.rate_at_short = self.rate;
            if matches!(self.phase, Phase::Competing { .. }) {
                self.phase = Phase::Steady;
                self.calm = 0;
            }
            return;
        }
        let span = micros(now.since(self.short_at));
        let patience = (self.round_trip * 8).max(MIN_COMPETITION);
        if self.phase == Phase::Steady
            && span > patience
            && self.rate * COMPETES_AT < self.rate_at_short
            && self.delivery.get().is_some_and(|rate| rate > 0)
        {
            self.phase = Phase::Competing {
                recovers_until: now,
                tries: now.after(TRY_EVERY),
            };
            self.rate = self.rate.max(self.rate_at_short / 2);
        }
    }

    fn compete(&mut self, acknowledged: &AcknowledgedPacket) {
        let Phase::Competing {
            recovers_until,
            tries,
        } = self.phase
        else {
            return;
        };
        let now = acknowledged.now;
        if now >= tries.after(TRY_FOR) {
            self.phase = Phase::Competing {
                recovers_until,
                tries: now.after(TRY_EVERY),
            };
        }
        // A datagram per round trip and round trip, in proportion to what is acknowledged.
        let window = yield_of(self.rate, self.round_trip).max(1);
        let grows = (MAX_DATAGRAM * acknowledged.bytes) as u64 * COMPETITION / 1000 / window;
        let grows = rate_of(grows, self.round_trip);
        if self.usage.is_used(self.rate) {
            self.rate = self.rate.saturating_add(grows).min(self.ceiling);
        }
    }
}

impl Congestion for DelayBased {
    fn on_sent(&mut self, sent: &SentPacket) {
        self.usage.note(sent.bytes as u64, sent.now);
        self.last_packet = sent.bytes as u64;
        self.losses.sent += 1;
    }

    fn on_acknowledged(&mut self, acknowledged: &AcknowledgedPacket) {
        let now = acknowledged.now;
        let sample = micros(acknowledged.round_trip);
        self.round_trip = (self.round_trip * 7 + sample) / 8;
        self.least_round_trip.note(sample, now);
        self.losses.arrived += 1;
        let span = self.round_trip.clamp(MIN_DELIVERY, MAX_DELIVERY);
        let before = self.arrived;
        let queue = self.queue_of(acknowledged);
        self.untimed += acknowledged.bytes as u64;
        if acknowledged.is_marked && now >= self.reacts_from {
            let target = self.target();
            self.slow_down(target + target / 2, acknowledged.in_flight, now);
        }
        let Some((queue, behind)) = queue else {
            return self.compete(acknowledged);
        };
        // Packets that are not the newest arrived with it or before.
        let bytes = std::mem::take(&mut self.untimed);
        if let Some((before, at)) = before.zip(self.arrived) {
            self.delivery.note(bytes, Time::from_micros(at), span);
            self.busy
                .note(bytes, at.saturating_sub(before), behind, now);
        }
        let standing = self.standing.note(queue, now);
        let target = self.target();
        self.note_queue(standing, now);
        if matches!(self.phase, Phase::Competing { .. }) {
            return self.compete(acknowledged);
        }
        if standing > target {
            self.calm = 0;
            // While it drains, what arrives says nothing about the capacity.
            let grows = standing > self.reacted_to + self.reacted_to / 2;
            if now >= self.reacts_from && (grows || now >= self.drained_at) {
                self.slow_down(standing, acknowledged.in_flight, now);
            }
        } else if let Some(rate) = self.losses.reaction(self.rate, now) {
            self.rate = rate.clamp(self.floor, self.ceiling);
            self.phase = Phase::Steady;
        } else {
            self.grow(now);
        }
    }

    fn on_lost(&mut self, lost: &LostPacket) {
        self.losses.lost += 1;
        if let Phase::Competing {
            recovers_until,
            tries,
        } = self.phase
            && lost.now >= recovers_until
        {
            self.rate = thousandths(self.rate, 700).max(self.floor);
            self.phase = Phase::Competing {
                recovers_until: lost.now.after(Duration::from_micros(self.round_trip)),
                tries,
            };
        }
        if self.phase == Phase::Start && self.losses.lost > 2 {
            self.phase = Phase::Steady;
        }
    }

    fn on_spurious_loss(&mut self, _bytes: usize, _now: Time) {
        self.losses.lost = self.losses.lost.saturating_sub(1);
        self.losses.arrived += 1;
    }

    fn rate(&self) -> BytesPerSecond {
        let rate = match self.phase {
            Phase::Competing { tries, .. } if self.usage.now >= tries => self.rate / 2,
            _ => self.rate,
        };
        BytesPerSecond(rate)
    }

    fn window(&self) -> usize {
        let slack = match self.phase {
            Phase::Competing { .. } => self.round_trip,
            _ if self.usage.now < self.drains_until => {
                let trip = self.least_round_trip.get().unwrap_or(self.round_trip);
                let window = yield_of(self.capacity, trip + TARGET) + self.last_packet;
                return usize::try_from(window).unwrap_or(usize::MAX);
            }
            _ => MAX_DELAYED,
        };
        let window = yield_of(self.rate, self.round_trip + slack);
        usize::try_from(window + 4 * MAX_DATAGRAM as u64).unwrap_or(usize::MAX)
    }

    fn header_bytes(&self) -> usize {
        HEADERS
    }

    fn queue_delay(&self) -> Option<Duration> {
        self.standing.get().map(Duration::from_micros)
    }
}

/// How long a rate takes for some bytes, in microseconds.
fn yield_time(bytes: u64, rate: u64) -> u64 {
    bytes.saturating_mul(1_000_000) / rate.max(1)
}

/// The rate of the bottleneck, measured while a queue keeps it busy.
#[derive(Clone, Debug, Default)]
struct Busy {
    rate: u64,
    at: Time,
    /// Whether the last packet of which the arrival is known had to wait.
    waited: bool,
    /// Mean deviation of the samples, in thousandths.
    variation: u64,
}

impl Busy {
    /// Adds bytes that arrived in a time; the last of them met this queue.
    fn note(&mut self, bytes: u64, micros: u64, queue: u64, now: Time) {
        let waited = queue > MIN_WAIT;
        if std::mem::replace(&mut self.waited, waited) && waited && micros > 0 {
            let rate = rate_of(bytes, micros);
            let is_old = now.since(self.at) > BUSY_FOR;
            let apart = rate.abs_diff(self.rate).saturating_mul(1000);
            if let Some(apart) = apart.checked_div(self.rate) {
                let apart = apart.saturating_sub(MEASURED).min(1000);
                self.variation = (self.variation * 15 + apart) / 16;
            }
            self.rate = match is_old || self.rate == 0 {
                true => rate,
                // A sample is too low if the link was idle in between, which is not always seen.
                false if rate < self.rate => (self.rate * 3 + rate) / 4,
                false => (self.rate + rate) / 2,
            };
            self.at = now;
        }
    }

    /// How much the rate varies, in thousandths.
    fn variation(&self) -> u64 {
        self.variation
    }

    /// The rate, if it was measured lately.
    fn get(&self, now: Time) -> Option<u64> {
        (self.rate > 0 && now.since(self.at) <= BUSY_FOR).then_some(self.rate)
    }
}

/// How much of the rate the application uses.
#[derive(Clone, Debug)]
struct Usage {
    now: Time,
    since: Time,
    bytes: u64,
    /// The rate of the last whole span.
    rate: u64,
}

impl Usage {
    fn new(now: Time) -> Self {
        Self {
            now,
            since: now,
            bytes: 0,
            rate: 0,
        }
    }

    fn note(&mut self, bytes: u64, now: Time) {
        self.now = self.now.max(now);
        let passed = micros(now.since(self.since));
        if passed >= USAGE_SPAN {
            self.rate = rate_of(self.bytes, passed);
            (self.since, self.bytes) = (now, 0);
        }
        self.bytes += bytes;
    }

    /// Whether what is sent shows that the path carries the rate.
    fn is_used(&self, rate: u64) -> bool {
        self.rate >= thousandths(rate, 700)
    }

    /// The highest rate to which what is sent lets it grow.
    fn limit(&self, rate: u64) -> u64 {
        self.rate.saturating_mul(2).max(rate)
    }
}

/// The share of packets that are lost, and what a lower rate does about it.
#[derive(Clone, Debug)]
struct Losses {
    since: Time,
    sent: u64,
    arrived: u64,
    lost: u64,
    /// The share that is not due to congestion, in thousandths.
    accepted: u64,
    accepted_until: Time,
    /// A lower rate is being tried: the share and the rate before.
    trial: Option<(u64, u64)>,
}

impl Losses {
    fn new(now: Time) -> Self {
        Self {
            since: now,
            sent: 0,
            arrived: 0,
            lost: 0,
            accepted: 0,
            accepted_until: now,
            trial: None,
        }
    }

    /// The rate to go on with, if losses are a reason to change it.
    fn reaction(&mut self, rate: u64, now: Time) -> Option<u64> {
        let all = self.arrived + self.lost;
        if micros(now.since(self.since)) < LOSS_SPAN || all < MIN_LOSS_PACKETS {
            return None;
        }
        let share = self.lost * 1000 / all;
        (self.since, self.arrived, self.lost) = (now, 0, 0);
        if now >= self.accepted_until {
            self.accepted = 0;
        }
        if let Some((before, rate_before)) = self.trial.take()
            && share * 10 >= before * 7
        {
            // It did not help: the losses are of another kind.
            self.accepted = share.max(before) * 3 / 2;
            self.accepted_until = now.after(ACCEPTED_FOR);
            return Some(rate_before.max(rate));
        }
        if share <= MAX_LOSS.max(self.accepted) {
            return None;
        }
        self.trial = Some((share, rate));
        Some(thousandths(rate, 1000 - share / 2))
    }
}

/// Before the first measurement, in microseconds.
const FIRST_ROUND_TRIP: u64 = 100_000;
const RECENT: Duration = Duration::from_secs(1);
/// Of IP and UDP, which take a large part of a slow link.
const HEADERS: usize = 28;
/// What a packet takes by itself at most, in microseconds.
const MAX_TAKES: u64 = 2_000_000;
const BUSY_FOR: Duration = Duration::from_millis(250);
const MIN_WAIT: u64 = 2_000;
const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(25);
/// The queue that is aimed at, at this rate.
const TARGET: u64 = 6_000;
const TARGET_RATE: u64 = 125_000;
const MIN_TARGET: u64 = 5_000;
const MAX_TARGET: u64 = 60_000;
/// In thousandths, at twice the target.
const MAX_DECREASE: u64 = 150;
const MIN_ROUND: u64 = 40_000;
const MAX_DRAIN: u64 = 500_000;
/// Growth per round, in thousandths: near the capacity that was met last, below it, and above it,
/// multiplied by the number of calm rounds.
const GENTLE_GROWTH: u64 = 12;
const MIN_GENTLE: u64 = 4;
const GENTLE_STEP: u64 = 3_750_000;
const VARIATION_TARGET: u64 = 30_000;
const VARIABLE: u64 = 150;
const COMPETES_AT: u64 = 2;
const MEASURED: u64 = 80;
const FAST_GROWTH: u64 = 120;
const GROWTH: u64 = 25;
const MAX_GROWTH: u64 = 250;
const HEADROOM_GROWTH: u64 = 200;
/// Calm rounds after which the last capacity is forgotten.
const FORGETS: u32 = 100;
const MIN_DELIVERY: u64 = 70_000;
const MAX_DELIVERY: u64 = 200_000;
const USAGE_SPAN: u64 = 100_000;
/// Acknowledgements of what is not retransmitted may wait that long.
const MAX_DELAYED: u64 = 120_000;
const MIN_COMPETITION: u64 = 1_000_000;
const TRY_EVERY: Duration = Duration::from_secs(5);
const TRY_FOR: Duration = Duration::from_millis(200);
/// Growth against senders that heed only losses, in thousandths of a datagram per round trip.
const COMPETITION: u64 = 1000;
const LOSS_SPAN: u64 = 500_000;
const MIN_LOSS_PACKETS: u64 = 15;
/// In thousandths.
const MAX_LOSS: u64 = 100;
const ACCEPTED_FOR: Duration = Duration::from_secs(10);

#[cfg(test)]
#[path = "delay_tests.rs"]
mod tests;
