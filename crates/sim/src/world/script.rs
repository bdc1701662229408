//! All ticks of a world, computed in advance, so that benchmarks do not measure the simulation.

use std::{collections::BTreeMap, sync::Arc};

use prescient_schema::Schema;

use super::{SourceError, World, open};

/// All ticks of a world.
#[derive(Clone, Debug)]
pub struct Script {
    /// The schema of the rows.
    pub schema: Arc<Schema>,
    /// The changes of each tick.
    pub scenes: Vec<Scene>,
}

/// The changes of one tick. Entities are numbered from zero in the order of their spawns, and no
/// number is reused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// Despawned entities.
    pub despawned: Vec<usize>,
    /// Class and row of the spawned entities; their numbers continue those of the previous spawns.
    pub spawned: Vec<(u16, Arc<[i64]>)>,
    /// Number and new row of changed entities.
    pub changed: Vec<(usize, Arc<[i64]>)>,
}

impl Script {
    /// Runs `world:NAME?options`, or the trace at this path, to its end.
    pub fn read(name: &str) -> Result<Self, SourceError> {
        let mut source = open(name)?;
        let mut script = Self {
            schema: source.schema()?,
            scenes: Vec::new(),
        };
        let mut world = World::default();
        let mut numbers = BTreeMap::new();
        let mut next = 0;
        while let Some(update) = source.next_tick()? {
            let changes = world.apply(update);
            let mut scene = Scene::default();
            for id in &changes.despawned {
                scene.despawned.extend(numbers.remove(id));
            }
            for id in &changes.spawned {
                if let Some(entity) = world.get(*id) {
                    // The entity despawned and respawned within the tick.
                    scene.despawned.extend(numbers.insert(*id, next));
                    scene.spawned.push((entity.class, entity.row.clone()));
                    next += 1;
                }
            }
            for id in &changes.changed {
                if let (Some(&number), Some(entity)) = (numbers.get(id), world.get(*id)) {
                    scene.changed.push((number, entity.row.clone()));
                }
            }
            script.scenes.push(scene);
        }
        Ok(script)
    }

    /// The rows that exist after the last tick, sorted.
    pub fn last_rows(&self) -> Vec<Vec<i64>> {
        let mut rows = BTreeMap::new();
        let mut next = 0;
        for scene in &self.scenes {
            for number in &scene.despawned {
                rows.remove(number);
            }
            for (_, row) in &scene.spawned {
                rows.insert(next, row.to_vec());
                next += 1;
            }
            for (number, row) in &scene.changed {
                rows.insert(*number, row.to_vec());
            }
        }
        let mut rows: Vec<_> = rows.into_values().collect();
        rows.sort_unstable();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_ends_as_its_world_does() {
        let name = "world:rts?ticks=400&count=60";
        let mut source = open(name).unwrap();
        let mut world = World::default();
        while let Some(update) = source.next_tick().unwrap() {
            world.apply(update);
        }
        let mut rows: Vec<_> = world
            .iter()
            .map(|(_, entity)| entity.row.to_vec())
            .collect();
        rows.sort_unstable();
        assert_eq!(Script::read(name).unwrap().last_rows(), rows);
    }
}
