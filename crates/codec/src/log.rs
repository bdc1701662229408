//! What a packet taught: kept by both ends until it is known whether the packet was applied.

use alloc::{sync::Arc, vec::Vec};

use crate::{
    buffer,
    kept::KeptRow,
    model::decisions::Decisions,
    predict::CostSample,
    units::{Sequence, Tick},
};

/// The lesson of one packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub sequence: Sequence,
    pub tick: Tick,
    /// The newest folded packet when this one was coded.
    pub cursor: Sequence,
    /// Whether it covered every entity.
    pub full: bool,
    pub decisions: Decisions,
    /// Grouped by entity.
    pub surprises: Vec<Surprise>,
    /// Entities that did anything but hold still.
    pub moved: Vec<u32>,
    pub spawns: Vec<(u32, u16)>,
    pub despawns: Vec<u32>,
    /// Entities with values in this packet, ascending; only kept if it was not full.
    pub covered: Vec<u32>,
    /// Entities whose precision changed.
    pub levels: Vec<(u32, u8)>,
    /// The newest entity of each class that appeared.
    pub references: Vec<(u16, Arc<KeptRow>)>,
}

/// A field that was not as predicted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surprise {
    pub id: u32,
    pub field: u16,
    /// Bit length of the residual, and its sign in bit 7.
    pub last: u8,
    /// What had to be added; for enumerations zero.
    pub residual: i64,
    /// What the predictors would have cost, if that was asked.
    pub costs: Option<CostSample>,
}

impl Log {
    /// What folding it takes, in decisions: unless it is full, coverage is noted for each of `active`
    /// entities.
    pub(crate) fn work(&self, active: usize) -> u64 {
        let noted = if self.full { 0 } else { active };
        (self.decisions.count() + noted + self.levels.len()) as u64
    }

    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> usize {
        let Self {
            decisions,
            surprises,
            moved,
            spawns,
            despawns,
            covered,
            levels,
            references,
            ..
        } = self;
        decisions.bytes()
            + buffer::bytes(surprises)
            + buffer::bytes(moved)
            + buffer::bytes(spawns)
            + buffer::bytes(despawns)
            + buffer::bytes(covered)
            + buffer::bytes(levels)
            + buffer::bytes(references)
    }

    /// The same with the rows and contents that it refers to, which others may hold, too.
    pub(crate) fn held_bytes(&self) -> usize {
        let kept = self.references.iter().map(|(_, row)| row.bytes());
        self.bytes() + kept.sum::<usize>()
    }

    /// Empties it for another packet, keeping the memory that it may need.
    pub(crate) fn begin(&mut self, sequence: Sequence, tick: Tick, cursor: Sequence, full: bool) {
        self.sequence = sequence;
        self.tick = tick;
        self.cursor = cursor;
        self.full = full;
        let Self {
            decisions,
            surprises,
            moved,
            spawns,
            despawns,
            covered,
            levels,
            references,
            ..
        } = self;
        decisions.clear();
        buffer::clear(surprises);
        buffer::clear(moved);
        buffer::clear(spawns);
        buffer::clear(despawns);
        buffer::clear(covered);
        buffer::clear(levels);
        buffer::clear(references);
    }
}
