//! Statistics of a connection.

use crate::round_trip::RoundTrip;

/// Statistics of a connection. Packets of all kinds count; bytes exclude IP and UDP headers unless
/// noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Packets sent.
    pub packets_sent: u64,
    /// Bytes of the packets sent.
    pub bytes_sent: u64,
    /// Authentic packets received.
    pub packets_received: u64,
    /// Bytes of the packets received.
    pub bytes_received: u64,
    /// Packets of the other end that have not arrived although a later one has.
    pub missing: u64,
    /// Packets that arrived after a later one.
    pub out_of_order: u64,
    /// Packets that were received more than once.
    pub duplicate: u64,
    /// Packets older than the replay window, which are rejected.
    pub late: u64,
    /// Packets that failed authentication: damaged or forged, or so late that their number was
    /// mistaken for another.
    pub forged: u64,
    /// Ack-eliciting packets that the other end acknowledged.
    pub acknowledged: u64,
    /// Packets that were declared lost.
    pub lost: u64,
    /// `acknowledged` and `lost` by packet size.
    pub sizes: Sizes,
    /// The round trip time; `None` before the first measurement.
    pub round_trip: Option<RoundTrip>,
    /// The recent sending rate, averaged over at least a second, with IP and UDP headers.
    pub rate_sent: BytesPerSecond,
    /// The recent receiving rate, averaged over at least a second, with IP and UDP headers.
    pub rate_received: BytesPerSecond,
    /// The largest datagram that is known to fit the path to the other end.
    pub datagram: usize,
    /// The sending rate that congestion control allows at the moment.
    pub rate_allowed: BytesPerSecond,
    /// Packets that were dropped because the other end exceeded its limits; it sends their reliable
    /// content again.
    pub refused: u64,
    /// Inputs that were joined with later ones because the client exceeded its limit.
    pub joined_inputs: u64,
    /// Bytes of messages that wait to be sent or acknowledged.
    pub waiting: usize,
    /// Bytes of received messages that wait for missing fragments, or for missing messages before
    /// them.
    pub incomplete: usize,
    /// Bytes that incoming blobs take.
    pub blobs: usize,
}

impl Statistics {
    /// The share of received packets that were lost, in parts per million.
    pub fn loss_received(&self) -> u32 {
        share(self.missing, self.packets_received)
    }

    /// The share of sent packets that were lost, in parts per million.
    pub fn loss_sent(&self) -> u32 {
        share(self.lost, self.acknowledged)
    }
}

fn share(bad: u64, good: u64) -> u32 {
    let all = u128::from(bad) + u128::from(good);
    (u128::from(bad) * 1_000_000).checked_div(all).unwrap_or(0) as u32
}

/// A rate in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BytesPerSecond(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketOutcome {
    Acknowledged,
    Lost,
}

/// Counts of acknowledged and lost packets in four size classes: up to 300, 600, 1200 and more
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// Acknowledged packets.
    pub acknowledged: [u64; 4],
    /// Lost packets.
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

    /// A packet of this size was declared lost but then acknowledged.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if `share` divides by zero (`/ all`).
    #[test]
    fn shares_of_nothing_are_none() {
        assert_eq!(share(0, 0), 0);
        assert_eq!(share(u64::MAX, 0), 1_000_000);
        assert_eq!(share(1, 3), 250_000);
    }
}
