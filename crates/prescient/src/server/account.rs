//! The statistics and ledger that a server keeps per client.

use prescient_channels::Traffic;
use prescient_replication::{PeerError, PeerId};

use crate::server::Server;
use crate::statistics::{Expense, PeerReport};

impl Server {
    /// Packets and bytes that passed the sockets of all carriers.
    pub fn traffic(&self) -> Traffic {
        self.carriers.traffic()
    }

    /// A peer's round trip, loss and rates, and how much state it is sent.
    pub fn statistics(&self, peer: PeerId) -> Option<PeerReport> {
        let world_server = self.worlds.world_of(peer);
        let state = world_server.statistics(peer)?;
        let link = self.carriers.statistics(peer);
        let backlog = self.backlogs.get(&peer);
        let tick = world_server.world().tick().unwrap_or_default();
        Some(PeerReport::new(link, state, tick, backlog))
    }

    /// Starts or stops recording what a peer's bytes are spent on. Recording makes
    /// [`send`](Self::send) slower.
    pub fn keep_ledger(&mut self, peer: PeerId, keep: bool) -> Result<(), PeerError> {
        self.worlds.world_of_mut(peer).keep_ledger(peer, keep)
    }

    /// What a peer's bytes were spent on since its [ledger](Self::keep_ledger) was started, the
    /// most expensive first; empty without a ledger.
    pub fn ledger(&self, peer: PeerId) -> Vec<Expense> {
        let world_server = self.worlds.world_of(peer);
        let schema = world_server.world().archive().schema();
        let ledger = world_server.ledger(peer);
        ledger.map_or_else(Vec::new, |ledger| Expense::list(ledger, schema))
    }
}
