//! The part of a world that one owner sees: its own entities and those of classes without owner.
//!
//! An entity whose owner field changes enters or leaves the view, which is a spawn or a despawn for
//! the client although the entity lives on.

use std::{collections::BTreeSet, sync::Arc};

use prescient_schema::Schema;

use super::{Change, Spawn, TickUpdate, World};

/// Filters a source's updates to what `owner` may see.
pub struct View {
    schema: Arc<Schema>,
    owner: i64,
    everything: World,
    visible: BTreeSet<u64>,
}

impl View {
    /// An empty view.
    pub fn new(schema: Arc<Schema>, owner: i64) -> Self {
        Self {
            schema,
            owner,
            everything: World::default(),
            visible: BTreeSet::new(),
        }
    }

    /// The part of a tick that the owner sees.
    pub fn filter(&mut self, update: TickUpdate) -> TickUpdate {
        let mut seen = TickUpdate {
            tick: update.tick,
            ..TickUpdate::default()
        };
        seen.despawns
            .extend(update.despawns.iter().filter(|id| self.visible.remove(id)));
        let spawned: BTreeSet<u64> = update.spawns.iter().map(|spawn| spawn.id).collect();
        let touched: Vec<Change> = update.changes.clone();
        self.everything.apply(update);
        for &id in &spawned {
            self.enter_if_visible(id, &mut seen);
        }
        for change in touched {
            if spawned.contains(&change.id) {
                continue;
            }
            match (self.visible.contains(&change.id), self.may_see(change.id)) {
                (true, true) => seen.changes.push(change),
                (true, false) => {
                    self.visible.remove(&change.id);
                    seen.despawns.push(change.id);
                }
                (false, _) => self.enter_if_visible(change.id, &mut seen),
            }
        }
        seen.spawns.sort_unstable_by_key(|spawn| spawn.id);
        seen
    }

    fn enter_if_visible(&mut self, id: u64, seen: &mut TickUpdate) {
        if !self.may_see(id) {
            return;
        }
        if let Some(entity) = self.everything.get(id)
            && self.visible.insert(id)
        {
            seen.spawns.push(Spawn {
                id,
                class: entity.class,
                row: entity.row.to_vec(),
            });
        }
    }

    fn may_see(&self, id: u64) -> bool {
        self.everything.get(id).is_some_and(|entity| {
            let owner = self.schema.classes[usize::from(entity.class)].owner;
            owner.is_none_or(|field| entity.row[usize::from(field)] == self.owner)
        })
    }
}

#[cfg(test)]
mod tests {
    use prescient_schema::{Class, Field, FieldKind};

    use super::*;

    #[test]
    fn a_captured_unit_leaves_one_view_and_enters_the_other() {
        let int = FieldKind::Int {
            bits: 64,
            signed: true,
        };
        let fields = vec![Field::new("owner", int.clone()), Field::new("x", int)];
        let mut class = Class::new("unit", fields);
        class.owner = Some(0);
        let schema = Arc::new(Schema {
            classes: vec![class],
        });
        let (mut one, mut two) = (View::new(schema.clone(), 1), View::new(schema, 2));

        let born = Spawn {
            id: 5,
            class: 0,
            row: vec![1, 10],
        };
        let spawn = TickUpdate {
            tick: 0,
            spawns: vec![born.clone()],
            ..TickUpdate::default()
        };
        assert_eq!(one.filter(spawn.clone()).spawns, [born]);
        assert_eq!(two.filter(spawn).spawns, []);

        let change = Change {
            id: 5,
            values: vec![(0, 2), (1, 11)],
        };
        let capture = TickUpdate {
            tick: 1,
            changes: vec![change],
            ..TickUpdate::default()
        };
        assert_eq!(one.filter(capture.clone()).despawns, [5]);
        assert_eq!(
            two.filter(capture).spawns,
            [Spawn {
                id: 5,
                class: 0,
                row: vec![2, 11]
            }]
        );
    }
}
