//! The conditions of a link, as plain values.
//!
//! Shares are parts per million, as integers, so that a seed gives the same result everywhere; more
//! than a million counts as all.

use std::time::Duration;

use crate::{RecordedLink, Time, time::micros};

/// The conditions of one direction of a link. The default is a perfect link.
///
/// They apply to a datagram in this order: blackout, MTU, queue and rate, loss, latency and jitter,
/// reordering, duplication, corruption of each copy, and blackout again on arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// Minimum travel time after the queue.
    pub latency: Duration,
    /// Maximum of the random time added for each datagram.
    pub jitter: Duration,
    /// Whether jitter may change the order. If not, a datagram that would overtake an earlier one
    /// waits for it.
    pub jitter_reorders: bool,
    /// Share of datagrams that are lost, independently.
    pub loss: u32,
    /// Losses in bursts.
    pub bursts: Option<Bursts>,
    /// Datagrams that are overtaken by others.
    pub reordering: Option<Reordering>,
    /// Datagrams that arrive twice.
    pub duplication: Option<Duplication>,
    /// Share of datagrams in which one to eight random bits are flipped.
    pub corruption: u32,
    /// Rate at which datagrams leave the queue.
    pub rate: Rate,
    /// Maximum number of bytes waiting behind the datagram being sent; datagrams beyond it are
    /// lost. `None` is no limit.
    pub queue_limit: Option<usize>,
    /// Bytes of headers per datagram: 28 for UDP over IPv4, 48 over IPv6. They count for rate,
    /// queue and MTU.
    pub overhead: usize,
    /// Maximum size of a datagram with its overhead; `None` is no limit.
    pub mtu: Option<usize>,
    /// Periods in which all datagrams are lost.
    pub blackouts: Vec<Blackout>,
}

/// Losses in bursts: the Gilbert-Elliott model, in which the link is either good and loses nothing
/// or bad and loses everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Share of all datagrams that are lost.
    pub loss: u32,
    /// Average number of losses in a row, at least 1. Bursts are longer where this contradicts
    /// `loss` (a loss of 90 % is impossible with single losses).
    pub length: u32,
}

/// Datagrams that are overtaken by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordering {
    /// Share of datagrams that are held back.
    pub share: u32,
    /// Maximum of their random delay.
    pub by: Duration,
}

/// Datagrams that arrive twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplication {
    /// Share of datagrams that arrive twice. Copies are made after the queue and use no rate.
    pub share: u32,
    /// Maximum of the random delay of the copy, like a replay.
    pub late: Duration,
}

/// Rate at which datagrams leave the queue.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Rate {
    /// No delay.
    #[default]
    Unlimited,
    /// This many bits per second; at 0 no datagram leaves.
    Constant(u64),
    /// At the delivery opportunities of a recorded link.
    Recorded(RecordedLink),
}

/// A period in which datagrams that are sent or arrive are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blackout {
    /// Start.
    pub start: Time,
    /// Duration.
    pub length: Duration,
    /// Time between the starts of repeated blackouts; `None` if there is only one.
    pub every: Option<Duration>,
}

impl Conditions {
    /// Sets the latency.
    pub fn with_latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Sets a random delay of up to `jitter` that keeps the order.
    pub fn with_jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self.jitter_reorders = false;
        self
    }

    /// Sets a random delay of up to `jitter` that may change the order.
    pub fn with_reordering_jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self.jitter_reorders = true;
        self
    }

    /// Sets the share of lost datagrams, in parts per million.
    pub fn with_loss(mut self, parts: u32) -> Self {
        self.loss = parts;
        self
    }

    /// Sets the share of datagrams lost in bursts of `length` on average.
    pub fn with_bursts(mut self, parts: u32, length: u32) -> Self {
        self.bursts = Some(Bursts {
            loss: parts,
            length,
        });
        self
    }

    /// Sets the share of datagrams delayed by up to `by`.
    pub fn with_reordering(mut self, share: u32, by: Duration) -> Self {
        self.reordering = Some(Reordering { share, by });
        self
    }

    /// Sets the share of datagrams that arrive again up to `late` later.
    pub fn with_duplication(mut self, share: u32, late: Duration) -> Self {
        self.duplication = Some(Duplication { share, late });
        self
    }

    /// Sets the share of datagrams with flipped bits.
    pub fn with_corruption(mut self, parts: u32) -> Self {
        self.corruption = parts;
        self
    }

    /// Sets the rate in bits per second.
    pub fn with_bandwidth(mut self, bits_per_second: u64) -> Self {
        self.rate = Rate::Constant(bits_per_second);
        self
    }

    /// Sets the rate of a recorded link.
    pub fn with_recorded(mut self, link: RecordedLink) -> Self {
        self.rate = Rate::Recorded(link);
        self
    }

    /// Sets the limit of the queue in bytes.
    pub fn with_queue_limit(mut self, bytes: usize) -> Self {
        self.queue_limit = Some(bytes);
        self
    }

    /// Sets the size of the headers of every datagram.
    pub fn with_overhead(mut self, bytes: usize) -> Self {
        self.overhead = bytes;
        self
    }

    /// Sets the maximum size of datagrams, overhead included.
    pub fn with_mtu(mut self, bytes: usize) -> Self {
        self.mtu = Some(bytes);
        self
    }

    /// Adds a blackout.
    pub fn with_blackout(mut self, start: Time, length: Duration) -> Self {
        self.blackouts.push(Blackout {
            start,
            length,
            every: None,
        });
        self
    }

    /// Adds a blackout of `on` that starts at `start` and repeats `off` after its end.
    pub fn with_repeated_blackout(mut self, start: Time, on: Duration, off: Duration) -> Self {
        self.blackouts.push(Blackout {
            start,
            length: on,
            every: Some(on.saturating_add(off)),
        });
        self
    }

    /// Whether there is a blackout at this time.
    pub fn is_blacked_out(&self, now: Time) -> bool {
        self.blackouts.iter().any(|blackout| blackout.covers(now))
    }
}

impl Blackout {
    /// Whether it is active at this time: from its start up to, but not including, its end.
    pub fn covers(&self, now: Time) -> bool {
        if now < self.start {
            return false;
        }
        let mut passed = micros(now.since(self.start));
        if let Some(every) = self.every.map(micros).filter(|every| *every > 0) {
            passed %= every;
        }
        passed < micros(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_blackout_is_on_and_off_as_asked() {
        let [on, off] = [5, 2].map(Duration::from_secs);
        let conditions = Conditions::default().with_repeated_blackout(Time::from_secs(3), on, off);
        let dark: Vec<u64> = (0..20)
            .filter(|second| conditions.is_blacked_out(Time::from_secs(*second)))
            .collect();
        assert_eq!(dark, [3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 17, 18, 19]);
    }

    #[test]
    fn a_single_blackout_ends() {
        let conditions =
            Conditions::default().with_blackout(Time::from_secs(1), Duration::from_secs(30));
        let dark = |micros| conditions.is_blacked_out(Time::from_micros(micros));
        assert_eq!(
            [999_999, 1_000_000, 30_999_999, 31_000_000].map(dark),
            [false, true, true, false]
        );
    }
}
