//! What happens to datagrams on their way, as plain values.
//!
//! Shares are parts per million, so that a seed means the same everywhere; more than a million
//! counts as all of them.

use std::time::Duration;

use super::{RecordedLink, Time, time::micros};

/// The conditions of one direction of a link. The default is perfect: everything arrives at once.
///
/// On its way a datagram meets them in this order: blackout, MTU, queue and rate, loss, latency and
/// jitter, reordering, duplication, corruption of each copy, and at the far end blackout again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// How long everything travels at least, after the queue.
    pub latency: Duration,
    /// A random time between nothing and this is added for each datagram.
    pub jitter: Duration,
    /// Whether jitter may change the order. Without it, what would overtake waits for what was
    /// sent before it.
    pub jitter_reorders: bool,
    /// Share of datagrams that are lost, each for itself.
    pub loss: u32,
    /// Losses that come together.
    pub bursts: Option<Bursts>,
    /// Datagrams that others overtake.
    pub reordering: Option<Reordering>,
    /// Datagrams that arrive twice.
    pub duplication: Option<Duplication>,
    /// Share of datagrams in which one to eight random bits are flipped.
    pub corruption: u32,
    /// How fast datagrams leave the queue.
    pub rate: Rate,
    /// Bytes that may wait behind the datagram that is being sent; what does not fit is lost.
    /// `None` is no limit.
    pub queue_limit: Option<usize>,
    /// Bytes that a datagram takes in addition to its own, as headers do: 28 for UDP over IPv4,
    /// 48 over IPv6. They count for rate, queue and MTU.
    pub overhead: usize,
    /// The largest datagram that passes, with its overhead; `None` is no limit.
    pub mtu: Option<usize>,
    /// When nothing passes.
    pub blackouts: Vec<Blackout>,
}

/// Losses that come together: the model of Gilbert and Elliott, in which the link is either good
/// and loses nothing or bad and loses everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Share of all datagrams that are lost.
    pub loss: u32,
    /// How many are lost in a row on average, at least 1. Where this contradicts `loss` (half of
    /// all cannot be lost one at a time by chance), bursts are longer.
    pub length: u32,
}

/// Datagrams that others overtake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordering {
    /// Share of datagrams that are held back.
    pub share: u32,
    /// By a random time of up to this.
    pub by: Duration,
}

/// Datagrams that arrive twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplication {
    /// Share of datagrams that arrive twice. Copies are made behind the queue and take no rate.
    pub share: u32,
    /// The copy comes a random time of up to this later, like a replay.
    pub late: Duration,
}

/// How fast datagrams leave the queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Rate {
    /// At once.
    #[default]
    Unlimited,
    /// At this many bits per second; nothing leaves at 0.
    Constant(u64),
    /// When a recorded link would have let them.
    Recorded(RecordedLink),
}

/// A time in which nothing gets into the link and nothing out of it: both are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blackout {
    /// When it begins.
    pub start: Time,
    /// How long it lasts.
    pub length: Duration,
    /// It begins again this long after it began; `None` if it comes once.
    pub every: Option<Duration>,
}

impl Conditions {
    /// With a delay.
    pub fn with_latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// With a random delay of up to `jitter` that keeps the order.
    pub fn with_jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self.jitter_reorders = false;
        self
    }

    /// With a random delay of up to `jitter` that does not keep the order.
    pub fn with_reordering_jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self.jitter_reorders = true;
        self
    }

    /// With a share of datagrams lost, in parts per million.
    pub fn with_loss(mut self, parts: u32) -> Self {
        self.loss = parts;
        self
    }

    /// With a share of datagrams lost in bursts of `length` on average.
    pub fn with_bursts(mut self, parts: u32, length: u32) -> Self {
        self.bursts = Some(Bursts {
            loss: parts,
            length,
        });
        self
    }

    /// With a share of datagrams held back by up to `by`.
    pub fn with_reordering(mut self, share: u32, by: Duration) -> Self {
        self.reordering = Some(Reordering { share, by });
        self
    }

    /// With a share of datagrams that come again up to `late` later.
    pub fn with_duplication(mut self, share: u32, late: Duration) -> Self {
        self.duplication = Some(Duplication { share, late });
        self
    }

    /// With a share of datagrams that have bits flipped.
    pub fn with_corruption(mut self, parts: u32) -> Self {
        self.corruption = parts;
        self
    }

    /// With a rate in bits per second.
    pub fn with_bandwidth(mut self, bits_per_second: u64) -> Self {
        self.rate = Rate::Constant(bits_per_second);
        self
    }

    /// With the rate of a recorded link.
    pub fn with_recorded(mut self, link: RecordedLink) -> Self {
        self.rate = Rate::Recorded(link);
        self
    }

    /// With a queue that holds this many bytes.
    pub fn with_queue_limit(mut self, bytes: usize) -> Self {
        self.queue_limit = Some(bytes);
        self
    }

    /// With headers of this many bytes around every datagram.
    pub fn with_overhead(mut self, bytes: usize) -> Self {
        self.overhead = bytes;
        self
    }

    /// With a largest size of datagrams, overhead included.
    pub fn with_mtu(mut self, bytes: usize) -> Self {
        self.mtu = Some(bytes);
        self
    }

    /// With one more time in which nothing passes.
    pub fn with_blackout(mut self, start: Time, length: Duration) -> Self {
        self.blackouts.push(Blackout {
            start,
            length,
            every: None,
        });
        self
    }

    /// With a blackout of `on` that begins at `start` and comes again `off` after it ended.
    pub fn with_repeated_blackout(mut self, start: Time, on: Duration, off: Duration) -> Self {
        self.blackouts.push(Blackout {
            start,
            length: on,
            every: Some(on.saturating_add(off)),
        });
        self
    }

    /// Whether nothing passes at this time.
    pub fn is_blacked_out(&self, now: Time) -> bool {
        self.blackouts.iter().any(|blackout| blackout.covers(now))
    }
}

impl Blackout {
    /// Whether it is on at this time: from its start on, up to but not at its end.
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
