//! What a server can say of its clients: what they cost, and how well it goes.

use prescient_net::SocketStatistics;
use prescient_replication::{PeerError, PeerId};

use crate::server::Server;
use crate::statistics::{Expense, PeerReport};

impl Server {
    /// What its socket did.
    pub fn socket_statistics(&self) -> SocketStatistics {
        self.carrier.socket_statistics()
    }

    /// What happened between the server and a peer: round trips, losses and rates, and what it is
    /// shown.
    pub fn statistics(&self, peer: PeerId) -> Option<PeerReport> {
        let world_server = self.worlds.world_of(peer);
        let state = world_server.statistics(peer)?;
        let link = self.carrier.statistics(peer);
        let backlog = self.backlogs.get(&peer);
        let tick = world_server.world().tick().unwrap_or_default();
        Some(PeerReport::new(link, state, tick, backlog))
    }

    /// Keeps an account of what bytes for a peer are spent on from now on, or no longer. It makes
    /// [`send`](Self::send) slower.
    pub fn keep_ledger(&mut self, peer: PeerId, keep: bool) -> Result<(), PeerError> {
        self.worlds.world_of_mut(peer).keep_ledger(peer, keep)
    }

    /// What is using my bytes? Everything that was sent to a peer since its account is
    /// [kept](Self::keep_ledger), the dearest first; nothing if it is not.
    pub fn ledger(&self, peer: PeerId) -> Vec<Expense> {
        let world_server = self.worlds.world_of(peer);
        let schema = world_server.world().archive().schema();
        let ledger = world_server.ledger(peer);
        ledger.map_or_else(Vec::new, |ledger| Expense::list(ledger, schema))
    }
}
