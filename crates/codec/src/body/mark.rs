//! Undoing the last part of a packet that is being written, if it does not fit.

use alloc::{sync::Arc, vec::Vec};

use crate::{
    kept::KeptRow,
    model::{context_model::ContextMark, decisions::Length},
    packet_coder::PacketCoder,
    range::{Checkpoint, RangeEncoder},
};

/// The state of a packet coder; see [`PacketCoder::rewind`].
pub(crate) struct Mark {
    coder: Checkpoint,
    context_model: ContextMark,
    decisions: Length,
    surprises: usize,
    moved: usize,
    spawns: usize,
    despawns: usize,
    covered: usize,
    levels: usize,
    relations: usize,
    references: Vec<(u16, Arc<KeptRow>)>,
    copy_work: usize,
    new_contents: usize,
    sum: crate::check::Checksum,
    cost: u64,
}

impl<const N: usize> PacketCoder<'_, RangeEncoder, N> {
    pub(super) fn mark(&mut self) -> Mark {
        Mark {
            coder: self.coder.checkpoint(),
            context_model: self.context_model.mark(),
            decisions: self.log.decisions.len(),
            surprises: self.log.surprises.len(),
            moved: self.log.moved.len(),
            spawns: self.log.spawns.len(),
            despawns: self.log.despawns.len(),
            covered: self.log.covered.len(),
            levels: self.log.levels.len(),
            relations: self.log.relations.samples.len(),
            references: self.log.references.clone(),
            copy_work: self.copy_work,
            new_contents: self.new_contents.len(),
            sum: self.sum,
            cost: self.cost,
        }
    }

    pub(super) fn rewind(&mut self, to: Mark) {
        self.coder.rewind(to.coder);
        self.context_model.rewind(to.context_model);
        self.log.decisions.truncate(to.decisions);
        self.log.surprises.truncate(to.surprises);
        self.log.moved.truncate(to.moved);
        self.log.spawns.truncate(to.spawns);
        self.log.despawns.truncate(to.despawns);
        self.log.covered.truncate(to.covered);
        self.log.levels.truncate(to.levels);
        self.log.relations.truncate(to.relations);
        self.log.references = to.references;
        self.copy_work = to.copy_work;
        self.new_contents.truncate(to.new_contents);
        self.sum = to.sum;
        self.cost = to.cost;
    }
}
