//! Methods per peer, whatever world the peer is in.

use prescient_replication::{Link, PeerError, PeerId, Position, Quality, WorldError};
use prescient_schema::EntityRef;

use crate::server::Server;

impl Server {
    /// Calls the world of a peer. Does nothing for a peer whose end the program has not polled yet.
    pub(super) fn about_peer(
        &mut self,
        peer: PeerId,
        call: impl FnOnce(&mut prescient_replication::Server) -> Result<(), PeerError>,
    ) -> Result<(), PeerError> {
        match self.leaving.contains(&peer) {
            true => Ok(()),
            false => call(self.worlds.world_of_mut(peer)),
        }
    }

    /// All connected peers of all worlds, including those of which no
    /// [`Joined`](crate::ServerEvent::Joined) was reported yet.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        let world_servers = self.worlds.iter();
        world_servers.flat_map(|world_server| world_server.peers())
    }

    /// Sets a fixed view position, which a [`Relevance`](crate::Relevance) policy gets as
    /// [`Observer::view_position`](crate::Observer::view_position). Replaces
    /// [`follow`](Self::follow). A policy with a [`reach`](crate::Relevance::reach) is queried
    /// again within [`relevance_interval`](crate::ServerConfig::with_relevance_interval) ticks.
    pub fn set_view_position(&mut self, peer: PeerId, position: Position) -> Result<(), PeerError> {
        self.about_peer(peer, |world_server| {
            world_server.set_view_position(peer, position)
        })
    }

    /// Makes a peer's view position follow an entity. The entity must be in the peer's world; if it
    /// is gone or has no position, the peer has no view position. Replaces
    /// [`set_view_position`](Self::set_view_position).
    pub fn follow(&mut self, peer: PeerId, entity: impl Into<EntityRef>) -> Result<(), PeerError> {
        let entity = entity.into();
        self.about_peer(peer, |world_server| world_server.follow(peer, entity))
    }

    /// Sets the team of a peer; 0 for none. If it changes, the policy is queried again about every
    /// entity of the peer's world, for all peers there.
    pub fn set_team(&mut self, peer: PeerId, team: u32) -> Result<(), PeerError> {
        self.about_peer(peer, |world_server| world_server.set_team(peer, team))
    }

    /// Sets how precisely and how often a peer gets entities, by their
    /// [priority](crate::Visibility::priority), from the next [`send`](Self::send) on; at first
    /// nothing is degraded. The relevance policy is not queried for it, so it may change with every
    /// tick. The peer keeps it when it changes worlds.
    ///
    /// An entity that is sent more rarely keeps its last values at the client until its turn comes;
    /// it appears and disappears without delay.
    pub fn set_quality(&mut self, peer: PeerId, quality: Quality) -> Result<(), PeerError> {
        self.about_peer(peer, |world_server| world_server.set_quality(peer, quality))
    }

    /// Lets relevance policies know the connections of peers.
    pub(super) fn update_links(&mut self, peers: &[PeerId]) {
        for &peer in peers {
            let link = self.carriers.statistics(peer).map(|statistics| Link {
                round_trip_micros: statistics
                    .round_trip
                    .map(|round_trip| round_trip.smoothed.as_micros() as u64),
                loss: statistics.loss_sent(),
                bytes_per_second: statistics.rate_allowed.0,
            });
            // A peer that has left needs none.
            let _ = self.worlds.world_of_mut(peer).set_link(peer, link);
        }
    }

    /// Whether an entity of the peer's world is visible to the peer, as of the last
    /// [`send`](Self::send).
    pub fn sees(&self, peer: PeerId, entity: impl Into<EntityRef>) -> bool {
        self.worlds.world_of(peer).sees(peer, entity.into())
    }

    /// Queries the relevance policies of all worlds again about every entity, for all peers, at the
    /// next [`send`](Self::send). Needed only if a policy depends on something other than teams,
    /// owners and positions.
    pub fn reevaluate_relevance(&mut self) {
        let world_servers = self.worlds.iter_mut();
        world_servers.for_each(prescient_replication::Server::reevaluate_relevance);
    }

    /// Sends an event about an entity to one peer, if the entity is visible to it.
    /// [`send_entity_event`](Self::send_entity_event) sends to all peers that see the entity.
    pub fn send_entity_event_to(
        &mut self,
        peer: PeerId,
        entity: impl Into<EntityRef>,
        payload: &[u8],
    ) -> Result<(), WorldError> {
        if self.leaving.contains(&peer) {
            return Ok(());
        }
        let world_server = self.worlds.world_of_mut(peer);
        world_server.send_entity_event_to(peer, entity.into(), payload)
    }

    /// The keys that a player holds down, one bit per key, as of the last input that arrived.
    pub fn keys(&self, peer: PeerId) -> u64 {
        self.worlds.world_of(peer).keys(peer).unwrap_or(0)
    }

    /// Requests a state audit: the client reports its state, and each part is compared with the
    /// server's and polled as [`AuditReport`](crate::ServerEvent::AuditReport). The reports are
    /// about as large as all visible state. A request while another is being answered is not
    /// answered separately.
    pub fn audit(&mut self, peer: PeerId) -> Result<(), PeerError> {
        self.about_peer(peer, |world_server| world_server.audit(peer))
    }

    /// Starts a new epoch with a peer: discards the models that both ends learned and sends every
    /// visible entity again; the client keeps its entities. A client that cannot decode any more
    /// requests this by itself.
    pub fn resync(&mut self, peer: PeerId) -> Result<(), PeerError> {
        self.about_peer(peer, |world_server| world_server.resync(peer))
    }
}
