//! What a packet contained, kept by both ends until it is folded or known to be lost.

use alloc::{sync::Arc, vec::Vec};

use crate::{
    buffer,
    kept::KeptRow,
    model::decisions::Decisions,
    predict::CostSample,
    units::{Sequence, ShortTick},
};

/// Everything that folding a packet needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub sequence: Sequence,
    pub tick: ShortTick,
    /// The newest folded packet when it was coded.
    pub cursor: Sequence,
    /// Whether it covered every entity.
    pub full: bool,
    pub decisions: Decisions,
    /// All surprises of an entity are adjacent.
    pub surprises: Vec<Surprise>,
    /// Entities whose row changed.
    pub moved: Vec<u32>,
    pub spawns: Vec<(u32, u16)>,
    pub despawns: Vec<u32>,
    /// The covered entities, ascending; of a full packet only those that woke or were spawned.
    pub covered: Vec<u32>,
    /// Entities whose precision changed, with the new level.
    pub levels: Vec<(u32, u8)>,
    /// For each class, the last spawned row.
    pub references: Vec<(u16, Arc<KeptRow>)>,
}

/// A field that differed from its prediction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surprise {
    pub id: u32,
    pub field: u16,
    /// Bit length of the residual, and its sign in bit 7.
    pub last: u8,
    /// The difference from the prediction; for references the value, for symbols and containers
    /// zero.
    pub residual: i64,
    /// What each predictor would have cost, if that was computed.
    pub costs: Option<CostSample>,
}

impl Log {
    /// The work of folding it, in decisions. For a partial packet, coverage is recorded for each of
    /// the `active` entities.
    pub(crate) fn work(&self, active: usize) -> u64 {
        let noted = if self.full { 0 } else { active };
        (self.decisions.count() + noted + self.levels.len()) as u64
    }

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

    /// [`bytes`](Self::bytes) plus the rows and contents that it refers to, which may be shared.
    pub(crate) fn held_bytes(&self) -> usize {
        let kept = self.references.iter().map(|(_, row)| row.bytes());
        self.bytes() + kept.sum::<usize>()
    }

    /// Gives back the memory that a longer attempt at its packet took.
    pub(crate) fn shrink(&mut self) {
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
        decisions.shrink();
        buffer::shrink_to_use(surprises);
        buffer::shrink_to_use(moved);
        buffer::shrink_to_use(spawns);
        buffer::shrink_to_use(despawns);
        buffer::shrink_to_use(covered);
        buffer::shrink_to_use(levels);
        buffer::shrink_to_use(references);
    }

    /// Prepares it for another packet. Keeps the memory that is in use.
    pub(crate) fn begin(
        &mut self,
        sequence: Sequence,
        tick: ShortTick,
        cursor: Sequence,
        full: bool,
    ) {
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
