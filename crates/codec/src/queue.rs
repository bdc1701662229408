//! Who waits to appear at the receiver.
//!
//! A large world takes many packets to tell. What does not fit yet must not cost anything until
//! its turn comes, so those who wait stand in a queue of which a packet looks at the front only.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::cmp::Reverse;

use crate::units::{Tick, Weight};

/// Visible entities that the receiver is not known to have been told of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// All of them, with the tick since when.
    since: BTreeMap<u32, Tick>,
    /// Those of which no packet is on its way, in turn.
    unsent: BTreeSet<(Reverse<Weight>, Tick, u32)>,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.since.len()
    }

    /// All, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.since.keys().copied()
    }

    /// Since when an entity waits; the beginning of time if it does not.
    pub(crate) fn since(&self, id: u32) -> Tick {
        self.since.get(&id).copied().unwrap_or_default()
    }

    /// An entity waits from now on, if it does not already, and no packet tells of it yet.
    pub(crate) fn push(&mut self, id: u32, now: Tick, weight: Weight) {
        let since = *self.since.entry(id).or_insert(now);
        self.unsent.insert((Reverse(weight), since, id));
    }

    /// A packet with an entity is on its way.
    pub(crate) fn note_sent(&mut self, id: u32, weight: Weight) {
        if let Some(&since) = self.since.get(&id) {
            self.unsent.remove(&(Reverse(weight), since, id));
        }
    }

    /// No packet with an entity is on its way any more.
    pub(crate) fn note_lost(&mut self, id: u32, weight: Weight) {
        if let Some(&since) = self.since.get(&id) {
            self.unsent.insert((Reverse(weight), since, id));
        }
    }

    /// An entity is known to have appeared, or shall not any more.
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

    /// The first of whom no packet is on its way, as many as asked for if there are, ascending.
    /// Those that `may` not appear yet are passed over.
    pub(crate) fn first(&self, count: usize, may: impl Fn(u32) -> bool) -> Vec<u32> {
        let ids = self.unsent.iter().map(|&(_, _, id)| id);
        let mut first: Vec<u32> = ids.filter(|&id| may(id)).take(count).collect();
        first.sort_unstable();
        first
    }
}
