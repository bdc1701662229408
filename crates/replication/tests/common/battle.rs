//! A battle, and a check that clients show it truly.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::collections::BTreeMap;

use prescient_replication::{Client, EntityHandle, PeerId, Tick};
use prescient_schema::Ref;

use super::{TestClient, TestWorld, Unit};

/// A battle in which units spawn, despawn, walk and refer to each other.
pub struct Battle {
    pub units: Vec<(Ref<Unit>, Unit)>,
    /// The true state at each tick, by the server's reference.
    pub past: BTreeMap<Tick, BTreeMap<i64, Unit>>,
}

impl Battle {
    pub fn new() -> Self {
        Self {
            units: Vec::new(),
            past: BTreeMap::new(),
        }
    }

    pub fn step(&mut self, test_world: &mut TestWorld) {
        test_world.tick += 1;
        let dice = &mut test_world.dice;
        let mut step = test_world
            .server
            .step(Tick(test_world.tick.into()))
            .expect("in order");
        if self.units.len() < 30 && dice.chance(40) {
            let position = [dice.below(200) as f32, dice.below(200) as f32];
            let unit = Unit {
                position,
                health: dice.below(250) as u8,
                ..Unit::default()
            };
            let owner = PeerId(1 + dice.below(3));
            let spawned = step.spawn_for(owner, &unit).expect("sound values");
            self.units.push((spawned, unit));
        }
        if self.units.len() > 5 && dice.chance(10) {
            let at = dice.below(self.units.len() as u64) as usize;
            let (gone, _) = self.units.swap_remove(at);
            for (_, unit) in &mut self.units {
                if unit.target == gone {
                    unit.target = Ref::NONE;
                }
            }
            step.despawn(gone.entity_ref()).expect("it was there");
        }
        for at in 0..self.units.len() {
            let other = self.units[dice.below(self.units.len() as u64) as usize].0;
            let (entity, unit) = &mut self.units[at];
            if dice.chance(60) {
                unit.position[0] += dice.below(5) as f32 - 2.0;
                unit.position[1] += 0.25;
            }
            if dice.chance(5) {
                unit.target = other;
                unit.gold = unit.gold.wrapping_add(dice.below(500) as u16);
            }
            step.set(*entity, unit).expect("sound values");
        }
        step.finish();
        let now = self.units.iter();
        let now = now.map(|(entity, unit)| (entity.entity_ref().cell(), unit.clone()));
        self.past
            .insert(Tick(test_world.tick.into()), now.collect());
    }

    /// Asserts that every client shows the true state of its tick, references included.
    pub fn check(&self, test_world: &TestWorld) {
        for test_client in &test_world.clients {
            if let Some((shown, was)) = self.compare(test_client) {
                assert_eq!(shown, was, "at {:?}", test_client.client.tick());
            }
        }
    }

    /// Whether a client shows the complete true state of its tick.
    pub fn agrees(&self, test_client: &TestClient) -> bool {
        let compared = self.compare(test_client);
        compared.is_some_and(|(shown, was)| shown == was)
    }

    fn compare(&self, test_client: &TestClient) -> Option<(Vec<Pair>, Vec<Pair>)> {
        self.compare_shown(&test_client.client, &test_client.entities)
    }

    /// What a client shows, and what was true at its tick.
    pub fn compare_shown(
        &self,
        client: &Client,
        entities: &BTreeMap<EntityHandle, Unit>,
    ) -> Option<(Vec<Pair>, Vec<Pair>)> {
        let there = &self.past[&client.tick()?];
        let was = there.values().map(|unit| {
            let target = there.get(&unit.target.entity_ref().cell());
            (looks(unit), target.map(looks))
        });
        let shown = entities.values().map(|unit| {
            let target = client.resolve(unit.target.entity_ref());
            let target = target.map(|entity| looks(&entities[&entity]));
            (looks(unit), target)
        });
        Some((sorted(shown), sorted(was)))
    }
}

pub type Looks = ([u32; 2], u8);
/// A unit and its target.
pub type Pair = (Looks, Option<Looks>);

fn looks(unit: &Unit) -> Looks {
    (unit.position.map(f32::to_bits), unit.health)
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort();
    all
}
