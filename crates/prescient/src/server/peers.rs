//! What a program sets, requests and reads per peer, in whichever world the peer is.

use prescient_replication::{PeerError, PeerId, Position, WorldError};
use prescient_schema::EntityRef;

use crate::server::Server;

impl Server {
    /// All connected peers of all worlds, including those of which no
    /// [`Joined`](crate::ServerEvent::Joined) was reported yet.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        let world_servers = self.worlds.iter();
        world_servers.flat_map(|world_server| world_server.peers())
    }

    /// Sets a fixed view position, which a [`Relevance`](crate::Relevance) policy gets as
    /// [`Observer::view_position`](crate::Observer::view_position). Replaces [`follow`](Self::follow).
    /// A policy with a [`reach`](crate::Relevance::reach) is asked again within
    /// [`relevance_interval`](crate::ServerConfig::relevance_interval) ticks.
    pub fn set_view_position(&mut self, peer: PeerId, position: Position) -> Result<(), PeerError> {
        let world_server = self.worlds.world_of_mut(peer);
        world_server.set_view_position(peer, position)
    }

    /// Makes an entity's position the view position of a peer, from tick to tick. The entity must be in
    /// the peer's world; without it, or without a position of it, the peer has no view position.
    /// Replaces [`set_view_position`](Self::set_view_position).
    pub fn follow(&mut self, peer: PeerId, entity: EntityRef) -> Result<(), PeerError> {
        self.worlds.world_of_mut(peer).follow(peer, entity)
    }

    /// Sets the team of a peer; 0 for none. If it changes, the policy is asked about every entity of
    /// the peer's world again, for all peers there.
    pub fn set_team(&mut self, peer: PeerId, team: u32) -> Result<(), PeerError> {
        self.worlds.world_of_mut(peer).set_team(peer, team)
    }

    /// Whether an entity of the peer's world is visible to the peer, as of the last
    /// [`send`](Self::send).
    pub fn sees(&self, peer: PeerId, entity: EntityRef) -> bool {
        self.worlds.world_of(peer).sees(peer, entity)
    }

    /// Asks the relevance policies of all worlds about every entity again, for all peers, at the next
    /// [`send`](Self::send). Needed only if a policy depends on something other than teams, owners and
    /// positions.
    pub fn reevaluate_relevance(&mut self) {
        let world_servers = self.worlds.iter_mut();
        world_servers.for_each(prescient_replication::Server::reevaluate_relevance);
    }

    /// Sends an event about an entity to one peer, if the entity is visible to it.
    /// [`send_entity_event`](Self::send_entity_event) sends to all that see the entity.
    pub fn send_entity_event_to(
        &mut self,
        peer: PeerId,
        entity: EntityRef,
        payload: &[u8],
    ) -> Result<(), WorldError> {
        let world_server = self.worlds.world_of_mut(peer);
        world_server.send_entity_event_to(peer, entity, payload)
    }

    /// The keys that a player holds down, a bit each, as of the last input that arrived.
    pub fn keys(&self, peer: PeerId) -> u64 {
        self.worlds.world_of(peer).keys(peer).unwrap_or(0)
    }

    /// Requests a state audit: the client reports all that it shows, and each part is compared with
    /// the world and polled as [`AuditReport`](crate::ServerEvent::AuditReport). The reports take about
    /// as many bytes as everything visible. A client that is asked again before it has answered
    /// answers once.
    pub fn audit(&mut self, peer: PeerId) -> Result<(), PeerError> {
        self.worlds.world_of_mut(peer).audit(peer)
    }

    /// Starts a new epoch with a peer: drops the models that both ends learned and sends every visible
    /// entity again. The client keeps what it shows. A client that cannot decode any more requests
    /// this by itself.
    pub fn resync(&mut self, peer: PeerId) -> Result<(), PeerError> {
        self.worlds.world_of_mut(peer).resync(peer)
    }
}
