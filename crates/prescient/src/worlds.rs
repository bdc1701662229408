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
    stages: BTreeMap<WorldId, Server>,
    opened: u32,
    homes: BTreeMap<PeerId, WorldId>,
}

impl Worlds {
    pub fn new(first: Server) -> Self {
        Self {
            stages: BTreeMap::from([(WorldId::FIRST, first)]),
            opened: 1,
            homes: BTreeMap::new(),
        }
    }

    pub fn open(&mut self, stage: Server) -> WorldId {
        let id = WorldId(self.opened);
        self.opened += 1;
        self.stages.insert(id, stage);
        id
    }

    pub fn close(&mut self, world: WorldId) -> Result<(), MoveError> {
        let stage = self.stages.get(&world);
        let stage = stage.ok_or(MoveError::NoSuchWorld(world))?;
        if world == WorldId::FIRST || stage.peers().next().is_some() {
            return Err(MoveError::InUse(world));
        }
        self.stages.remove(&world);
        Ok(())
    }

    pub fn first(&self) -> &Server {
        &self.stages[&WorldId::FIRST]
    }

    pub fn first_mut(&mut self) -> &mut Server {
        let first = self.stages.get_mut(&WorldId::FIRST);
        first.expect("the first stays open")
    }

    pub fn get_mut(&mut self, world: WorldId) -> Option<&mut Server> {
        self.stages.get_mut(&world)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Server> {
        self.stages.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Server> {
        self.stages.values_mut()
    }

    /// Where a peer is; where it would arrive, if it is nowhere.
    pub fn home(&self, peer: PeerId) -> &Server {
        &self.stages[&self.home_id(peer)]
    }

    pub fn home_mut(&mut self, peer: PeerId) -> &mut Server {
        let home = self.home_id(peer);
        let stage = self.stages.get_mut(&home);
        stage.expect("nobody is in a world that is closed")
    }

    pub fn arrive(&mut self, peer: PeerId) {
        self.homes.insert(peer, WorldId::FIRST);
        self.home_mut(peer).connect(peer);
    }

    pub fn leave(&mut self, peer: PeerId) {
        self.home_mut(peer).disconnect(peer);
        self.homes.remove(&peer);
    }

    pub fn move_to(&mut self, peer: PeerId, world: WorldId) -> Result<(), MoveError> {
        if !self.stages.contains_key(&world) {
            return Err(MoveError::NoSuchWorld(world));
        }
        if !self.homes.contains_key(&peer) {
            return Err(MoveError::NoSuchPeer(peer));
        }
        let Some(traveller) = self.home_mut(peer).depart(peer) else {
            return Err(MoveError::NoSuchPeer(peer));
        };
        self.homes.insert(peer, world);
        self.home_mut(peer).welcome(peer, traveller);
        Ok(())
    }

    fn home_id(&self, peer: PeerId) -> WorldId {
        self.homes.get(&peer).copied().unwrap_or(WorldId::FIRST)
    }
}
