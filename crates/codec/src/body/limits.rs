//! What a packet may cost its receiver.

use alloc::vec::Vec;

use super::Spawn;
use crate::shared_model::EntityStates;

/// What a packet may make a reader hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadLimits {
    pub entities: usize,
    pub decisions: usize,
}

/// How many decisions a body may unfold into. What is well predicted costs almost nothing, so
/// without this a few bytes could fill a receiver's memory; a sender pads what says even more
/// with zeros, which mean nothing behind the end of the stream.
pub(crate) fn max_decisions(body: usize, entity_states: &EntityStates) -> usize {
    DECISIONS_PER_BYTE * (body + FREE_BYTES) + 10 * entity_states.active.len()
}

/// How long a body has to be for this many decisions.
pub(crate) fn min_len(decisions: usize, entity_states: &EntityStates) -> usize {
    decisions
        .saturating_sub(max_decisions(0, entity_states))
        .div_ceil(DECISIONS_PER_BYTE)
}

/// Leaves out what [`may_appear`] does not let through.
pub(crate) fn retain_nearby(spawns: &mut Vec<Spawn>, entity_states: &EntityStates) {
    let mut nth = 0;
    spawns.retain(|spawn| {
        let nearby = may_appear(spawn.id, nth, entity_states);
        nth += usize::from(nearby);
        nearby
    });
}

/// Whether an id is near enough to those in use to be given to the `nth` entity that appears in a
/// packet: tables grow with the highest id, so a single far one must not make them huge.
pub(crate) fn may_appear(id: u32, nth: usize, entity_states: &EntityStates) -> bool {
    (id as usize) < NEARBY + 2 * entity_states.population.len() + 64 * nth
}

const DECISIONS_PER_BYTE: usize = 128;
const FREE_BYTES: usize = 64;
const NEARBY: usize = 1 << 13;
