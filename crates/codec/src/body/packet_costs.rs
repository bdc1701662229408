//! What a packet cost, entity by entity.

use alloc::vec::Vec;

use crate::buffer;

/// What each entity cost, for choosing what to leave out; ids are unique across the lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketCosts {
    /// What naming those who leave cost.
    pub despawns: u64,
    pub wakes: Vec<(u32, u64)>,
    /// Active entities that differed from what was expected of them.
    pub active: Vec<(u32, u64)>,
    pub silent: Vec<u32>,
    /// How many active entities a part named only to say that they are as expected, and at what
    /// cost.
    pub quiet: (u64, u64),
    pub spawns: Vec<(u32, u64)>,
}

impl PacketCosts {
    /// Entities that have values in it.
    pub fn len(&self) -> usize {
        self.wakes.len() + self.active.len() + self.silent.len() + self.spawns.len()
    }

    pub fn clear(&mut self) {
        self.despawns = 0;
        buffer::empty(&mut self.wakes);
        buffer::empty(&mut self.active);
        buffer::empty(&mut self.silent);
        self.quiet = (0, 0);
        buffer::empty(&mut self.spawns);
    }
}
