//! The worlds of one server, and which peer is in which.

use std::collections::BTreeMap;

use prescient_replication::{PeerId, Server};
use thiserror::Error;

/// The id of one of a server's worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorldId(u32);

impl WorldId {
    /// The world that a server starts with and that every client enters first.
    pub const FIRST: Self = Self(0);
}

/// Why a peer was not moved, or a world not closed.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MoveError {
    /// There is no such peer.
    #[error("no peer {0:?} is connected")]
    NoSuchPeer(PeerId),
    /// There is no such world, or it was closed.
    #[error("there is no world {0:?}")]
    NoSuchWorld(WorldId),
    /// The world has peers, or is the first one, which stays open because every client enters it
    /// first.
    #[error("world {0:?} cannot be closed: it has peers, or is the first world")]
    InUse(WorldId),
}

prescient_schema::debug_as_display!(MoveError);

pub(crate) struct Worlds {
    /// Never empty: the first world is never closed.
    servers: BTreeMap<WorldId, Server>,
    opened: u32,
    world_ids: BTreeMap<PeerId, WorldId>,
}

impl Worlds {
    pub(crate) fn new(first: Server) -> Self {
        Self {
            servers: BTreeMap::from([(WorldId::FIRST, first)]),
            opened: 1,
            world_ids: BTreeMap::new(),
        }
    }

    pub(crate) fn open(&mut self, server: Server) -> WorldId {
        let id = WorldId(self.opened);
        self.opened += 1;
        self.servers.insert(id, server);
        id
    }

    pub(crate) fn close(&mut self, world: WorldId) -> Result<(), MoveError> {
        let server = self.servers.get(&world);
        let server = server.ok_or(MoveError::NoSuchWorld(world))?;
        if world == WorldId::FIRST || server.peers().next().is_some() {
            return Err(MoveError::InUse(world));
        }
        self.servers.remove(&world);
        Ok(())
    }

    pub(crate) fn first(&self) -> &Server {
        &self.servers[&WorldId::FIRST]
    }

    pub(crate) fn first_mut(&mut self) -> &mut Server {
        let first = self.servers.get_mut(&WorldId::FIRST);
        first.expect("the first world is never closed")
    }

    pub(crate) fn get(&self, world: WorldId) -> Option<&Server> {
        self.servers.get(&world)
    }

    pub(crate) fn get_mut(&mut self, world: WorldId) -> Option<&mut Server> {
        self.servers.get_mut(&world)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Server> {
        self.servers.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Server> {
        self.servers.values_mut()
    }

    /// The world of a peer; the first one for an unknown peer.
    pub(crate) fn world_of(&self, peer: PeerId) -> &Server {
        &self.servers[&self.world_id_of(peer)]
    }

    pub(crate) fn world_of_mut(&mut self, peer: PeerId) -> &mut Server {
        let world_id = self.world_id_of(peer);
        let server = self.servers.get_mut(&world_id);
        server.expect("a closed world has no peers")
    }

    pub(crate) fn arrive(&mut self, peer: PeerId) {
        self.world_ids.insert(peer, WorldId::FIRST);
        self.world_of_mut(peer).connect(peer);
    }

    pub(crate) fn leave(&mut self, peer: PeerId) {
        self.world_of_mut(peer).disconnect(peer);
        self.world_ids.remove(&peer);
    }

    pub(crate) fn move_to(&mut self, peer: PeerId, world: WorldId) -> Result<(), MoveError> {
        if !self.servers.contains_key(&world) {
            return Err(MoveError::NoSuchWorld(world));
        }
        if !self.world_ids.contains_key(&peer) {
            return Err(MoveError::NoSuchPeer(peer));
        }
        let Some(transfer) = self.world_of_mut(peer).transfer_out(peer) else {
            return Err(MoveError::NoSuchPeer(peer));
        };
        self.world_ids.insert(peer, world);
        self.world_of_mut(peer).transfer_in(peer, transfer);
        Ok(())
    }

    fn world_id_of(&self, peer: PeerId) -> WorldId {
        self.world_ids.get(&peer).copied().unwrap_or(WorldId::FIRST)
    }
}
