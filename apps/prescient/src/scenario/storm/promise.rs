//! Expected content of one connection: visible entities by tick, and events.

use std::collections::{BTreeMap, BTreeSet};

use prescient_replication::Tick;

use super::policy::View;
use super::truth::Key;

/// The state and events that one connection must receive.
#[derive(Default)]
pub(super) struct Promise {
    /// The visible entities at each tick that was sent.
    pub views_by_tick: BTreeMap<Tick, BTreeMap<Key, View>>,
    /// The tick since which each currently visible entity has been visible.
    pub since: BTreeMap<Key, Tick>,
    /// Its events, with the entity of each; 0 for none.
    pub events: BTreeMap<u32, Key>,
    pub received: BTreeSet<u32>,
    /// The last received event of each entity.
    latest: BTreeMap<Key, u32>,
}

/// Why a received event is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is not for this peer.
    NotMeant,
    /// It was received before.
    Again,
    /// A later event about the same entity was received before.
    OutOfOrder,
}

impl Promise {
    /// Sets the visible entities from this tick on.
    pub(super) fn show(&mut self, tick: Tick, views: BTreeMap<Key, View>) {
        self.since.retain(|key, _| views.contains_key(key));
        for &key in views.keys() {
            self.since.entry(key).or_insert(tick);
        }
        self.views_by_tick.insert(tick, views);
    }

    /// Whether an entity was visible at the last tick that was sent.
    pub(super) fn sees(&self, key: Key) -> bool {
        self.since.contains_key(&key)
    }

    /// Records a received event.
    pub(super) fn receive(&mut self, number: u32) -> Result<Key, Wrong> {
        let Some(&about) = self.events.get(&number) else {
            return Err(Wrong::NotMeant);
        };
        if !self.received.insert(number) {
            return Err(Wrong::Again);
        }
        match self.latest.insert(about, number) {
            Some(latest) if latest > number => Err(Wrong::OutOfOrder),
            _ => Ok(about),
        }
    }

    /// The events that are certainly lost: those before a later received one about the same entity,
    /// or with `all` every event not received.
    pub(super) fn lost(&self, all: bool) -> Vec<u32> {
        let missing = self.events.iter().filter(|(number, about)| {
            let overtaken = self.latest.get(about).is_some_and(|latest| latest > number);
            !self.received.contains(number) && (all || overtaken)
        });
        missing.map(|(&number, _)| number).collect()
    }
}
