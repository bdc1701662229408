//! The entities that wait to be spawned at the receiver.
//!
//! A large world takes many packets to send. What does not fit yet should cost nothing until then,
//! so a packet only reads the front of an ordered queue.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::cmp::Reverse;

use crate::units::{Tick, Weight};

/// Visible entities that are not confirmed to have reached the receiver.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// All of them, with the tick since which they wait.
    since: BTreeMap<u32, Tick>,
    /// Those that are in no packet in flight, in the order in which they are sent.
    unsent: BTreeSet<(Reverse<Weight>, Tick, u32)>,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.since.len()
    }

    /// All ids, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.since.keys().copied()
    }

    /// The tick since which an entity waits; 0 if it does not.
    pub(crate) fn since(&self, id: u32) -> Tick {
        self.since.get(&id).copied().unwrap_or_default()
    }

    /// Adds an entity, if it is not in the queue, and marks it as not in flight.
    pub(crate) fn push(&mut self, id: u32, now: Tick, weight: Weight) {
        let since = *self.since.entry(id).or_insert(now);
        self.unsent.insert((Reverse(weight), since, id));
    }

    /// Marks an entity as in flight.
    pub(crate) fn note_sent(&mut self, id: u32, weight: Weight) {
        if let Some(&since) = self.since.get(&id) {
            self.unsent.remove(&(Reverse(weight), since, id));
        }
    }

    /// Marks an entity as not in flight.
    pub(crate) fn note_lost(&mut self, id: u32, weight: Weight) {
        if let Some(&since) = self.since.get(&id) {
            self.unsent.insert((Reverse(weight), since, id));
        }
    }

    /// Removes an entity that is confirmed or no longer visible.
    pub(crate) fn remove(&mut self, id: u32, weight: Weight) {
        if let Some(since) = self.since.remove(&id) {
            self.unsent.remove(&(Reverse(weight), since, id));
        }
    }

    pub(crate) fn reweigh(&mut self, id: u32, from: Weight, to: Weight) {
        if let Some(&since) = self.since.get(&id)
            && self.unsent.remove(&(Reverse(from), since, id))
        {
            self.unsent.insert((Reverse(to), since, id));
        }
    }

    /// The first `count` ids that are not in flight and `may` be sent, ascending.
    pub(crate) fn first(&self, count: usize, may: impl Fn(u32) -> bool) -> Vec<u32> {
        let ids = self.unsent.iter().map(|&(_, _, id)| id);
        let mut first: Vec<u32> = ids.filter(|&id| may(id)).take(count).collect();
        first.sort_unstable();
        first
    }
}
