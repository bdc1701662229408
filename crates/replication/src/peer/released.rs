//! Entity ids of a client that were hidden or despawned recently: until the client receives that,
//! it correctly shows them as of earlier ticks.

use std::collections::VecDeque;

use prescient_codec::{HISTORY, NetEntityId, Tick};

#[derive(Debug, Default)]
pub(super) struct ReleasedIds {
    /// With the tick since which they are hidden, ascending.
    ids: VecDeque<(Tick, NetEntityId)>,
}

impl ReleasedIds {
    pub(super) fn note(&mut self, id: NetEntityId, now: Tick) {
        self.ids.push_back((now, id));
    }

    /// Drops what is older than the rows that are kept.
    pub(super) fn forget(&mut self, now: Tick) {
        while self
            .ids
            .pop_front_if(|(since, _)| now.since(*since) > HISTORY.into())
            .is_some()
        {}
        if self.ids.len() < self.ids.capacity() / 4 {
            self.ids.shrink_to(self.ids.len() * 2);
        }
    }

    /// Whether an id was hidden after a tick.
    pub(super) fn contains(&self, id: NetEntityId, tick: Tick) -> bool {
        let later = self.ids.partition_point(|&(since, _)| since <= tick);
        self.ids.range(later..).any(|&(_, of)| of == id)
    }
}
