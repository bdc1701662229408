//! Limits on what a packet may cost its receiver.

use alloc::vec::Vec;

use super::Spawn;
use crate::shared_model::EntityStates;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadLimits {
    pub entities: usize,
    pub decisions: usize,
}

/// The decisions that a body of this length may contain. Well predicted decisions cost almost
/// nothing, so without this limit a few bytes could fill a receiver's memory. A sender whose packet
/// contains more pads it with zeros, which have no meaning behind the end of the stream.
pub(crate) fn max_decisions(body: usize, entity_states: &EntityStates) -> usize {
    DECISIONS_PER_BYTE * (body + FREE_BYTES) + 10 * entity_states.active.len()
}

/// The length that a body needs for this many decisions.
pub(crate) fn min_len(decisions: usize, entity_states: &EntityStates) -> usize {
    decisions
        .saturating_sub(max_decisions(0, entity_states))
        .div_ceil(DECISIONS_PER_BYTE)
}

/// Removes spawns that [`may_appear`] refuses.
pub(crate) fn retain_nearby(spawns: &mut Vec<Spawn>, entity_states: &EntityStates) {
    let mut nth = 0;
    spawns.retain(|spawn| {
        let nearby = may_appear(spawn.id, nth, entity_states);
        nth += usize::from(nearby);
        nearby
    });
}

/// Whether the `nth` spawn of a packet may have this id. Tables grow with the highest id, so an id
/// must be near to those in use.
pub(crate) fn may_appear(id: u32, nth: usize, entity_states: &EntityStates) -> bool {
    (id as usize) < NEARBY + 2 * entity_states.population.len() + 64 * nth
}

const DECISIONS_PER_BYTE: usize = 128;
const FREE_BYTES: usize = 64;
const NEARBY: usize = 1 << 13;
