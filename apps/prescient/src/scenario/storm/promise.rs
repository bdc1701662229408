//! What a server owes to one connection: views by tick, and events.

use std::collections::{BTreeMap, BTreeSet};

use prescient_replication::Tick;

use super::policy::View;
use super::truth::Key;

/// What one connection was to see and to hear.
#[derive(Default)]
pub struct Promise {
    /// What it was to see at the ticks that it was sent.
    pub views_by_tick: BTreeMap<Tick, BTreeMap<Key, View>>,
    /// Since when it was to see what it is to see now.
    pub since: BTreeMap<Key, Tick>,
    /// The events that it was to hear of, and what they are about; 0 is nothing.
    pub events: BTreeMap<u32, Key>,
    pub heard: BTreeSet<u32>,
    /// The last event that was heard about an entity.
    latest: BTreeMap<Key, u32>,
}

/// What is wrong about an event that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It was not meant for this one.
    NotMeant,
    /// It was heard before.
    Again,
    /// A later one about the same entity was heard before.
    OutOfOrder,
}

impl Promise {
    /// What is to be seen from this tick on.
    pub fn show(&mut self, tick: Tick, views: BTreeMap<Key, View>) {
        self.since.retain(|key, _| views.contains_key(key));
        for &key in views.keys() {
            self.since.entry(key).or_insert(tick);
        }
        self.views_by_tick.insert(tick, views);
    }

    /// Whether an entity is to be seen now or was until now.
    pub fn sees(&self, key: Key) -> bool {
        self.since.contains_key(&key)
    }

    /// Takes note of an event that was heard.
    pub fn receive(&mut self, number: u32) -> Result<Key, Wrong> {
        let Some(&about) = self.events.get(&number) else {
            return Err(Wrong::NotMeant);
        };
        if !self.heard.insert(number) {
            return Err(Wrong::Again);
        }
        match self.latest.insert(about, number) {
            Some(latest) if latest > number => Err(Wrong::OutOfOrder),
            _ => Ok(about),
        }
    }

    /// How many events must have got lost: those before a later one about the same entity, or all
    /// that were not heard, if `all` must have been by now.
    pub fn lost(&self, all: bool) -> Vec<u32> {
        let missing = self.events.iter().filter(|(number, about)| {
            let overtaken = self.latest.get(about).is_some_and(|latest| latest > number);
            !self.heard.contains(number) && (all || overtaken)
        });
        missing.map(|(&number, _)| number).collect()
    }
}
