//! What a packet contained, kept by both ends until it is folded or known to be lost.

use alloc::{sync::Arc, vec::Vec};

use crate::{
    buffer,
    header::{Anchor, Header},
    kept::KeptRow,
    model::decisions::Decisions,
    predict::CostSample,
    units::{Sequence, Tick},
};

/// Everything that folding a packet needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub sequence: Sequence,
    pub tick: Tick,
    /// The newest folded packet when it was coded, and its tick.
    pub cursor: Sequence,
    pub cursor_tick: Tick,
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
    pub relations: RelationSamples,
}

/// Samples from which relations between fields are learned.
#[derive(Clone, Debug, Default)]
pub(crate) struct RelationSamples {
    pub samples: Vec<RelationSample>,
    /// The values of all samples, one sample after the other: of the field and then of the fields
    /// from which it may follow, each at the newest known tick and at the packet's.
    pub values: Vec<i64>,
    /// For each class, how many samples are of it.
    taken: Vec<u16>,
}

/// A sample for the relations of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelationSample {
    pub class: u16,
    pub field: u16,
    /// The field from which it follows; `None` while it is in focus of the search.
    pub source: Option<u16>,
    /// Bit length of the residual that the field's own predictor leaves.
    pub own: u8,
    /// Ticks between the values.
    pub ahead: u32,
    /// The number of its values.
    pub len: usize,
}

impl RelationSamples {
    /// Whether the packet may have more samples of a class.
    pub(crate) fn has_room(&self, class: u16) -> bool {
        let taken = self.taken.get(usize::from(class)).copied();
        taken.unwrap_or(0) < MAX_SAMPLES_OF_CLASS
    }

    pub(crate) fn push(&mut self, sample: RelationSample, values: impl Iterator<Item = i64>) {
        let class = usize::from(sample.class);
        if self.taken.len() <= class {
            self.taken.resize(class + 1, 0);
        }
        self.taken[class] = self.taken[class].saturating_add(1);
        let before = self.values.len();
        self.values.extend(values);
        let len = self.values.len() - before;
        self.samples.push(RelationSample { len, ..sample });
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        while self.samples.len() > len
            && let Some(sample) = self.samples.pop()
        {
            self.values.truncate(self.values.len() - sample.len);
            let taken = &mut self.taken[usize::from(sample.class)];
            *taken = taken.saturating_sub(1);
        }
    }

    fn bytes(&self) -> usize {
        buffer::bytes(&self.samples) + buffer::bytes(&self.values) + buffer::bytes(&self.taken)
    }

    fn shrink(&mut self) {
        buffer::shrink_to_use(&mut self.samples);
        buffer::shrink_to_use(&mut self.values);
    }

    fn clear(&mut self) {
        buffer::clear(&mut self.samples);
        buffer::clear(&mut self.values);
        self.taken.fill(0);
    }
}

/// Samples of one class that a packet holds, give or take those of one entity.
const MAX_SAMPLES_OF_CLASS: u16 = 8;

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
        (self.decisions.count() + noted + self.levels.len() + self.relations.values.len()) as u64
    }

    /// What headers of packets with it as cursor are relative to.
    pub(crate) fn anchor(&self) -> Anchor {
        Anchor {
            sequence: self.sequence,
            tick: self.tick,
            cursor: self.cursor,
            cursor_tick: self.cursor_tick,
        }
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
            relations,
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
            + relations.bytes()
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
            relations,
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
        relations.shrink();
    }

    /// Prepares it for another packet; `cursor_tick` is the tick of the packet at its cursor. Keeps
    /// the memory that is in use.
    pub(crate) fn begin(&mut self, header: &Header, cursor_tick: Tick) {
        self.sequence = header.sequence;
        self.tick = header.tick;
        self.cursor = header.cursor;
        self.cursor_tick = cursor_tick;
        self.full = header.full;
        let Self {
            decisions,
            surprises,
            moved,
            spawns,
            despawns,
            covered,
            levels,
            references,
            relations,
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
        relations.clear();
    }
}
