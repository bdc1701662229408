//! What a connection has seen.

use std::net::SocketAddr;
use std::time::Duration;

use crate::exchange::round_trip::RoundTrip;
use crate::time::Time;

/// What a connection has seen. Packets are of all kinds; bytes are without the headers of IP and
/// UDP unless it says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets sent.
    pub packets_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Authentic packets received.
    pub packets_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Packets of the other end that have not arrived although a later one has.
    pub missing: u64,
    /// Packets that arrived after a later one.
    pub out_of_order: u64,
    /// Packets that had been received before.
    pub duplicate: u64,
    /// Packets so late that they cannot be told from repeats, and are not accepted.
    pub late: u64,
    /// Packets that the other end did not seal like this: damaged or forged.
    pub forged: u64,
    /// Packets of ours that arrived, of those that want an answer.
    pub acknowledged: u64,
    /// Packets of ours that are taken for lost.
    pub lost: u64,
    /// The same by the size of packets.
    pub sizes: Sizes,
    /// How long answers take; none before the first.
    pub round_trip: Option<RoundTrip>,
    /// What was sent lately, over at least a second, with the headers of IP and UDP.
    pub rate_sent: BytesPerSecond,
    /// What was received lately, over at least a second, with the headers of IP and UDP.
    pub rate_received: BytesPerSecond,
    /// How large datagrams may be on the way to the other end, as far as is known.
    pub datagram: usize,
    /// How fast the connection may send at the moment.
    pub rate_allowed: BytesPerSecond,
    /// Packets of the other end that were dropped because it said more than it may; it says that
    /// again.
    pub refused: u64,
    /// Inputs that became part of later ones because there were more than may be.
    pub joined_inputs: u64,
    /// Bytes of messages that wait to be sent, or to be acknowledged.
    pub waiting: usize,
    /// Bytes of messages that are held because parts of them, or of those before them, are missing.
    pub incomplete: usize,
    /// Bytes that blobs on their way to us take.
    pub blobs: usize,
}

impl Statistics {
    /// The share of packets to us that did not arrive, in parts per million.
    pub fn loss_received(&self) -> u32 {
        share(self.missing, self.packets_received)
    }

    /// The share of packets of ours that did not arrive, in parts per million.
    pub fn loss_sent(&self) -> u32 {
        share(self.lost, self.acknowledged)
    }
}

fn share(bad: u64, good: u64) -> u32 {
    let all = u128::from(bad) + u128::from(good);
    (u128::from(bad) * 1_000_000).checked_div(all).unwrap_or(0) as u32
}

/// A rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BytesPerSecond(pub u64);

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketOutcome {
    Acknowledged,
    Lost,
}

/// What became of packets, by their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Packets of up to 300, 600, 1200 and more bytes that arrived.
    pub acknowledged: [u64; 4],
    /// And those that are taken for lost.
    pub lost: [u64; 4],
}

impl Sizes {
    pub(crate) fn note(&mut self, size: usize, outcome: PacketOutcome) {
        let class = class(size);
        match outcome {
            PacketOutcome::Acknowledged => self.acknowledged[class] += 1,
            PacketOutcome::Lost => self.lost[class] += 1,
        }
    }

    /// A packet of this size arrived although it was taken for lost.
    pub(crate) fn revive(&mut self, size: usize) {
        let class = class(size);
        self.lost[class] -= 1;
        self.acknowledged[class] += 1;
    }
}

fn class(size: usize) -> usize {
    let maxima = [300, 600, 1200];
    maxima.iter().take_while(|max| size > **max).count()
}

/// Bytes of one direction per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    since: Time,
    bytes: u64,
    last: u64,
}

impl Meter {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            since: now,
            bytes: 0,
            last: 0,
        }
    }

    /// Counts a datagram.
    pub(crate) fn note(&mut self, length: usize, peer: SocketAddr, now: Time) {
        self.advance(now);
        let headers = if peer.is_ipv4() { IPV4 } else { IPV6 };
        self.bytes += (length + headers) as u64;
    }

    pub(crate) fn advance(&mut self, now: Time) {
        let passed = now.since(self.since);
        if passed >= SECOND {
            let rate = u128::from(self.bytes) * SECOND.as_micros() / passed.as_micros();
            self.last = rate as u64;
            self.bytes = 0;
            self.since = now;
        }
    }

    pub(crate) fn rate(&self) -> BytesPerSecond {
        BytesPerSecond(self.last)
    }
}

const SECOND: Duration = Duration::from_secs(1);
const IPV4: usize = 20 + 8;
const IPV6: usize = 40 + 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if headers are left out, or a second that is over counts on.
    #[test]
    fn a_rate_is_that_of_the_last_second_with_headers() {
        let peer = "192.0.2.1:1".parse().expect("an address");
        let mut meter = Meter::new(Time::from_micros(0));
        for tenth in 0..25 {
            meter.note(72, peer, Time::from_micros(tenth * 100_000));
        }
        assert_eq!(meter.rate(), BytesPerSecond(1000));
        meter.advance(Time::from_micros(7_000_000));
        assert_eq!(meter.rate(), BytesPerSecond(100));
        meter.advance(Time::from_micros(9_000_000));
        assert_eq!(meter.rate(), BytesPerSecond(0));
    }

    /// Fails if `share` divides by nothing (`/ all`).
    #[test]
    fn shares_of_nothing_are_none() {
        assert_eq!(share(0, 0), 0);
        assert_eq!(share(u64::MAX, 0), 1_000_000);
        assert_eq!(share(1, 3), 250_000);
    }
}
