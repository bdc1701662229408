//! The worlds of one server, and who is in which.

use std::collections::BTreeMap;

use prescient_replication::{PeerId, Server};
use thiserror::Error;

/// One of a server's worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorldId(u32);

impl WorldId {
    /// The world that a server begins with, where everybody arrives.
    pub const FIRST: Self = Self(0);
}

/// Why a peer is where it was, or a world is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MoveError {
    /// There is no such peer.
    #[error("no peer {0:?} is connected")]
    NoSuchPeer(PeerId),
    /// There is no such world, or no longer.
    #[error("there is no world {0:?}")]
    NoSuchWorld(WorldId),
    /// Somebody is there, or would be: everybody arrives in the first.
    #[error("somebody is in world {0:?}; move them first. The first stays open")]
    InUse(WorldId),
}

pub(crate) struct Worlds {
    /// Never empty: the first is always there.
    servers: BTreeMap<WorldId, Server>,
    opened: u32,
    world_ids: BTreeMap<PeerId, WorldId>,
}

impl Worlds {
    pub fn new(first: Server) -> Self {
        Self {
            servers: BTreeMap::from([(WorldId::FIRST, first)]),
            opened: 1,
            world_ids: BTreeMap::new(),
        }
    }

    pub fn open(&mut self, server: Server) -> WorldId {
        let id = WorldId(self.opened);
        self.opened += 1;
        self.servers.insert(id, server);
        id
    }

    pub fn close(&mut self, world: WorldId) -> Result<(), MoveError> {
        let server = self.servers.get(&world);
        let server = server.ok_or(MoveError::NoSuchWorld(world))?;
        if world == WorldId::FIRST || server.peers().next().is_some() {
            return Err(MoveError::InUse(world));
        }
        self.servers.remove(&world);
        Ok(())
    }

    pub fn first(&self) -> &Server {
        &self.servers[&WorldId::FIRST]
    }

    pub fn first_mut(&mut self) -> &mut Server {
        let first = self.servers.get_mut(&WorldId::FIRST);
        first.expect("the first stays open")
    }

    pub fn get(&self, world: WorldId) -> Option<&Server> {
        self.servers.get(&world)
    }

    pub fn get_mut(&mut self, world: WorldId) -> Option<&mut Server> {
        self.servers.get_mut(&world)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Server> {
        self.servers.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Server> {
        self.servers.values_mut()
    }

    /// Where a peer is; where it would arrive, if it is nowhere.
    pub fn world_of(&self, peer: PeerId) -> &Server {
        &self.servers[&self.world_id_of(peer)]
    }

    pub fn world_of_mut(&mut self, peer: PeerId) -> &mut Server {
        let world_id = self.world_id_of(peer);
        let server = self.servers.get_mut(&world_id);
        server.expect("nobody is in a world that is closed")
    }

    pub fn arrive(&mut self, peer: PeerId) {
        self.world_ids.insert(peer, WorldId::FIRST);
        self.world_of_mut(peer).connect(peer);
    }

    pub fn leave(&mut self, peer: PeerId) {
        self.world_of_mut(peer).disconnect(peer);
        self.world_ids.remove(&peer);
    }

    pub fn move_to(&mut self, peer: PeerId, world: WorldId) -> Result<(), MoveError> {
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
