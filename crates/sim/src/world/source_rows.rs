//! Stores the rows that a synthetic world last reported, so that it reports only changes.

use std::collections::BTreeMap;

use super::{Change, Spawn, TickUpdate};

/// The last reported row of every entity.
#[derive(Default)]
pub(super) struct Rows(BTreeMap<u64, Vec<i64>>);

impl Rows {
    pub(super) fn spawn(&mut self, spawn: Spawn, update: &mut TickUpdate) {
        self.0.insert(spawn.id, spawn.row.clone());
        update.spawns.push(spawn);
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.0.remove(&id);
    }

    pub(super) fn change(&mut self, id: u64, row: Vec<i64>, update: &mut TickUpdate) {
        let Some(known) = self.0.get_mut(&id) else {
            return;
        };
        let pairs = known.iter().zip(&row).enumerate();
        let values: Vec<_> = pairs
            .filter(|(_, (old, new))| old != new)
            .map(|(field, (_, &new))| (field as u16, new))
            .collect();
        if !values.is_empty() {
            *known = row;
            update.changes.push(Change { id, values });
        }
    }
}
