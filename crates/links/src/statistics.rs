//! Statistics of a link.

use crate::Delays;

/// Counters of one direction of a link. They are complete: `sent + duplicated` equals `delivered +
/// lost.total()` plus the datagrams [in transit](crate::LinkConditioner::in_transit).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Datagrams sent.
    pub sent: u64,
    /// Their bytes, without overhead.
    pub sent_bytes: u64,
    /// Datagrams delivered, copies included.
    pub delivered: u64,
    /// Their bytes, without overhead.
    pub delivered_bytes: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Datagrams and copies that had bits flipped.
    pub corrupted: u64,
    /// Datagrams delayed by reordering.
    pub held_back: u64,
    /// Datagrams that were lost, by cause.
    pub lost: Losses,
    /// Time from being sent to leaving the queue, transmission included. Also of datagrams that
    /// were lost afterwards.
    pub queue_delay: Delays,
}

/// Lost datagrams by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// By independent random loss.
    pub uniform: u64,
    /// By loss in bursts.
    pub bursts: u64,
    /// By a full queue.
    pub queue: u64,
    /// By exceeding the MTU.
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
    /// Adds the statistics of another link.
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
