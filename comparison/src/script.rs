//! Everything a world does, computed in advance, so that simulating it is in nobody's time.

use std::{collections::BTreeMap, sync::Arc};

use prescient_schema::Schema;
use prescient_sim::world::{self, World};

type Row = Arc<[i64]>;

/// A world from its first tick to its last. Entities are numbered from zero and never reused.
pub struct Script {
    pub schema: Arc<Schema>,
    pub ticks: Vec<Tick>,
}

/// What happened in one tick, with whole rows.
#[derive(Default)]
pub struct Tick {
    pub despawned: Vec<usize>,
    pub spawned: Vec<(usize, Row)>,
    pub changed: Vec<(usize, Row)>,
}

impl Script {
    pub fn read(name: &str) -> Self {
        let mut source = world::open(name).expect("the world is built in");
        let schema = source.schema().expect("its schema is valid");
        let mut world = World::default();
        let mut numbers = BTreeMap::new();
        let mut next = 0;
        let mut ticks = Vec::new();
        while let Some(update) = source.next_tick().expect("built-in worlds do not fail") {
            let changes = world.apply(update);
            let row = |id: u64| world.get(id).expect("it is alive").row.clone();
            let mut tick = Tick::default();
            for id in changes.despawned {
                tick.despawned.extend(numbers.remove(&id));
            }
            for id in changes.spawned {
                numbers.insert(id, next);
                tick.spawned.push((next, row(id)));
                next += 1;
            }
            for id in changes.changed {
                tick.changed.push((numbers[&id], row(id)));
            }
            ticks.push(tick);
        }
        Self { schema, ticks }
    }

    /// The rows that are alive after the last tick, sorted.
    pub fn rows_at_end(&self) -> Vec<Vec<i64>> {
        let mut alive = BTreeMap::new();
        for tick in &self.ticks {
            for number in &tick.despawned {
                alive.remove(number);
            }
            for (number, row) in tick.spawned.iter().chain(&tick.changed) {
                alive.insert(*number, row.to_vec());
            }
        }
        let mut rows: Vec<_> = alive.into_values().collect();
        rows.sort_unstable();
        rows
    }
}
