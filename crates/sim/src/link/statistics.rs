//! What became of everything that was sent.

use super::Delays;

/// Counts of one direction of a link. Nothing goes missing: `sent + duplicated` is
/// `delivered + lost.total()` and what is [in transit](super::LinkConditioner::in_transit).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Datagrams sent.
    pub sent: u64,
    /// Their bytes, without overhead.
    pub sent_bytes: u64,
    /// Datagrams handed out, copies included.
    pub delivered: u64,
    /// Their bytes, without overhead.
    pub delivered_bytes: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Datagrams and copies that had bits flipped.
    pub corrupted: u64,
    /// Datagrams that were held back so that others could overtake them.
    pub held_back: u64,
    /// Datagrams that were lost, by cause.
    pub lost: Losses,
    /// From being sent to having left the queue, being transmitted included. Also of datagrams
    /// that were lost afterwards.
    pub queue_delay: Delays,
}

/// Lost datagrams by what lost them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// By chance, each for itself.
    pub uniform: u64,
    /// By chance, several in a row.
    pub bursts: u64,
    /// By a full queue.
    pub queue: u64,
    /// By being too large.
    pub mtu: u64,
    /// By a blackout.
    pub blackout: u64,
}

impl Losses {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.uniform + self.bursts + self.queue + self.mtu + self.blackout
    }
}

impl Statistics {
    /// Adds those of another link.
    pub fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.duplicated += other.duplicated;
        self.corrupted += other.corrupted;
        self.held_back += other.held_back;
        self.lost.uniform += other.lost.uniform;
        self.lost.bursts += other.lost.bursts;
        self.lost.queue += other.lost.queue;
        self.lost.mtu += other.lost.mtu;
        self.lost.blackout += other.lost.blackout;
        self.queue_delay.merge(&other.queue_delay);
    }
}
