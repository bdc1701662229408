//! Joins a policy and the pacer, and bounds what the policy asks for.
//!
//! The rate stays between floor and ceiling. After four round trips without any acknowledgement
//! while packets were in flight, it drops to at most [`ExchangeConfig::with_floor`]: enough to notice
//! that the path has recovered, too little to harm it. The first acknowledgement restores it.
//!
//! [`ExchangeConfig::with_floor`]: crate::ExchangeConfig::with_floor

use std::time::Duration;

use super::pacer::Pacer;
use super::{AcknowledgedPacket, Congestion, LostPacket, SentPacket, micros, yield_of};
use crate::MAX_DATAGRAM;
use crate::statistics::BytesPerSecond;
use crate::time::Time;

/// The sending rate of one connection.
pub(crate) struct Governor {
    policy: Box<dyn Congestion>,
    pacer: Pacer,
    /// The rate while nothing is acknowledged.
    silent: BytesPerSecond,
    floor: BytesPerSecond,
    ceiling: BytesPerSecond,
    /// What may be sent at once before the first round trip was measured.
    first_burst: u64,
    in_flight: usize,
    updated: Time,
    /// How long packets have been in flight since the last acknowledgement.
    unanswered: Duration,
    round_trip: Option<Duration>,
}

impl Governor {
    /// Rates of zero count as one byte per second, and neither floor nor `silent` exceeds the
    /// ceiling.
    pub(crate) fn new(
        policy: Box<dyn Congestion>,
        (floor, silent, ceiling): (BytesPerSecond, BytesPerSecond, BytesPerSecond),
        first_burst: u64,
        now: Time,
    ) -> Self {
        let least = BytesPerSecond(1);
        let ceiling = ceiling.max(least);
        let mut governor = Self {
            policy,
            pacer: Pacer::new(0, now),
            silent: silent.clamp(least, ceiling),
            floor: floor.clamp(least, ceiling),
            ceiling,
            first_burst,
            in_flight: 0,
            updated: now,
            unanswered: Duration::ZERO,
            round_trip: None,
        };
        governor.pacer = Pacer::new(governor.burst(), now);
        governor
    }

    /// A packet was sent that elicits an acknowledgement.
    pub(crate) fn on_sent(&mut self, bytes: usize, now: Time) {
        self.on_unanswered(bytes, now);
        let bytes = bytes.saturating_add(self.policy.header_bytes());
        self.in_flight = self.in_flight.saturating_add(bytes);
        let in_flight = self.in_flight;
        self.policy.on_sent(&SentPacket {
            bytes,
            in_flight,
            now,
        });
    }

    /// A packet was sent that is not acknowledged, or whose loss is no sign of congestion.
    pub(crate) fn on_unanswered(&mut self, bytes: usize, now: Time) {
        self.advance(now);
        self.pacer
            .spend(bytes.saturating_add(self.policy.header_bytes()));
    }

    /// A packet was acknowledged; `acknowledged.in_flight` is set here.
    pub(crate) fn on_acknowledged(&mut self, mut acknowledged: AcknowledgedPacket) {
        self.advance(acknowledged.now);
        acknowledged.bytes = acknowledged
            .bytes
            .saturating_add(self.policy.header_bytes());
        self.in_flight = self.in_flight.saturating_sub(acknowledged.bytes);
        self.unanswered = Duration::ZERO;
        acknowledged.round_trip = acknowledged.round_trip.min(MAX_ROUND_TRIP);
        let sample = acknowledged.round_trip;
        let smoothed = self.round_trip.map_or(sample, |old| (old * 7 + sample) / 8);
        self.round_trip = Some(smoothed);
        acknowledged.in_flight = self.in_flight;
        self.policy.on_acknowledged(&acknowledged);
    }

    /// A packet was declared lost.
    pub(crate) fn on_lost(&mut self, bytes: usize, sent: Time, now: Time) {
        self.advance(now);
        let bytes = bytes.saturating_add(self.policy.header_bytes());
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let in_flight = self.in_flight;
        self.policy.on_lost(&LostPacket {
            bytes,
            sent,
            now,
            in_flight,
        });
    }

    /// A lost packet has arrived after all.
    pub(crate) fn on_spurious_loss(&mut self, bytes: usize, now: Time) {
        let bytes = bytes.saturating_add(self.policy.header_bytes());
        self.policy.on_spurious_loss(bytes, now);
    }

    /// The application has nothing to send now.
    pub(crate) fn on_idle(&mut self, now: Time) {
        self.policy.on_idle(now);
    }

    /// How many bytes may be sent now.
    pub(crate) fn allowance(&mut self, now: Time) -> usize {
        self.advance(now);
        let allowance = self.pacer.allowance();
        allowance.saturating_sub(self.policy.header_bytes())
    }

    /// How many bytes of what can wait may be sent within the next [`TICK`].
    pub(crate) fn capacity(&mut self, now: Time) -> usize {
        self.advance(now);
        let headers = self.policy.header_bytes();
        // One packet may always be sent once everything has been acknowledged.
        let window = match self.in_flight {
            0 => self.policy.window().max(MAX_DATAGRAM + headers),
            _ => self.policy.window(),
        };
        let paced = self
            .pacer
            .allowance_within(self.rate(), TICK.saturating_sub(self.policy.burst()));
        let bytes = paced.min(window.saturating_sub(self.in_flight));
        bytes - bytes.saturating_mul(headers) / (MAX_DATAGRAM + headers)
    }

    /// When the allowance will suffice for a full datagram if nothing happens until then. A time in
    /// the past means that it does now.
    pub(crate) fn next_allowance(&self) -> Time {
        let full = MAX_DATAGRAM + self.policy.header_bytes();
        let at_rate = self.pacer.next(self.rate(), full);
        if self.is_starved() || self.in_flight == 0 {
            return at_rate;
        }
        let patient = self.patience().saturating_sub(self.unanswered);
        let starved_at = self.updated.after(patient);
        if at_rate <= starved_at {
            return at_rate;
        }
        let mut pacer = self.pacer.clone();
        pacer.advance(self.rate(), self.burst(), starved_at);
        pacer.next(self.silent.min(self.rate()), full)
    }

    /// The present sending rate.
    pub(crate) fn rate(&self) -> BytesPerSecond {
        let rate = self.policy.rate().clamp(self.floor, self.ceiling);
        match self.is_starved() {
            true => rate.min(self.silent),
            false => rate,
        }
    }

    /// The delay that queues add, as far as the policy measures it.
    pub(crate) fn queue_delay(&self) -> Option<Duration> {
        self.policy.queue_delay()
    }

    /// Updates the balance: at the full rate up to the time at which patience ends, at the lower one
    /// after it, however long the last call is ago.
    fn advance(&mut self, now: Time) {
        let passed = now.since(self.updated);
        if self.in_flight > 0 && !self.is_starved() {
            let patient = self.patience().saturating_sub(self.unanswered);
            if passed > patient {
                let starved_at = self.updated.after(patient);
                self.pacer.advance(self.rate(), self.burst(), starved_at);
            }
        }
        if self.in_flight > 0 {
            self.unanswered = self.unanswered.saturating_add(passed);
        }
        self.updated = self.updated.max(now);
        self.pacer.advance(self.rate(), self.burst(), now);
    }

    /// Whether it sends less, because nothing is acknowledged.
    fn is_starved(&self) -> bool {
        self.unanswered >= self.patience()
    }

    fn patience(&self) -> Duration {
        let patience = self.round_trip.map(|time| time * PATIENT_ROUND_TRIPS);
        patience.map_or(FIRST_PATIENCE, |time| time.max(MIN_PATIENCE))
    }

    /// What may be sent at once: two datagrams, or what the rate yields in some milliseconds. An
    /// allowance that was saved at the full rate is not spent on a path that may be down.
    fn burst(&self) -> u64 {
        match self.is_starved() {
            true => MIN_BURST,
            false if self.round_trip.is_none() => self.first_burst.max(MIN_BURST),
            false => yield_of(self.rate().0, micros(self.policy.burst())).max(MIN_BURST),
        }
    }
}

/// A server sends once per tick; what a tick needs is spread over the time until the next.
pub(crate) const TICK: Duration = Duration::from_millis(30);
const MIN_BURST: u64 = 2 * MAX_DATAGRAM as u64;
const PATIENT_ROUND_TRIPS: u32 = 4;
/// Before the first round trip measurement.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);
/// With 90 % loss in both directions, acknowledgements arrive twice a second.
const MIN_PATIENCE: Duration = Duration::from_secs(1);
const MAX_ROUND_TRIP: Duration = Duration::from_secs(10);

#[cfg(test)]
#[path = "governor_tests.rs"]
mod tests;
