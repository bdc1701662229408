//! A world in which a known number of fields is mispredicted in every tick.
//!
//! The cost of one mispredicted field or one predicted entity cannot be measured in a world that
//! has both at once. Here each number can be varied alone, and the differences in cost are the
//! prices.

use std::sync::Arc;

use prescient_schema::{Class, Field, FieldKind, Schema};

use super::{Random, Scene, Script};

/// Entities that move in straight lines, all with the same number of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// Entities that move, from the first tick to the last.
    pub entities: usize,
    /// Fields per entity.
    pub fields: usize,
    /// How many of the fields move; the others are constant.
    pub moving: usize,
    /// Fields that change their speed in every tick. With an acknowledgement known one tick later,
    /// each is mispredicted once: a line through the next two values fits again.
    pub surprises: usize,
    /// Additional entities that never change.
    pub resting: usize,
    /// Number of ticks.
    pub ticks: usize,
}

impl Steady {
    /// Computes all ticks.
    pub fn script(&self) -> Script {
        let mut random = Random::new(1);
        let int = FieldKind::Int {
            bits: 32,
            signed: true,
        };
        let fields = (0..self.fields).map(|at| Field::new(format!("f{at}"), int.clone()));
        let schema = Schema {
            classes: vec![Class::new("mover", fields.collect())],
        };
        let mut rows: Vec<Vec<i64>> = Vec::new();
        let mut speeds: Vec<Vec<i64>> = Vec::new();
        for _ in 0..self.entities + self.resting {
            let start = (0..self.fields).map(|_| random.range(-100_000, 100_000));
            rows.push(start.collect());
            speeds.push((0..self.moving).map(|_| speed(&mut random)).collect());
        }
        let mut first = Scene::default();
        let born = rows.iter().map(|row| (0, row.as_slice().into()));
        first.spawned.extend(born);
        rows.truncate(self.entities);
        let mut scenes = vec![first];
        // No field changes its speed twice in a row, so that each change is mispredicted once.
        let mut turn = 0;
        let all = self.entities * self.moving;
        while scenes.len() < self.ticks {
            for _ in 0..self.surprises.min(all) {
                let (entity, field) = (turn / self.moving, turn % self.moving);
                speeds[entity][field] = speed(&mut random);
                turn = (turn + STRIDE) % all;
            }
            let mut scene = Scene::default();
            for (number, (row, speeds)) in rows.iter_mut().zip(&speeds).enumerate() {
                for (value, speed) in row.iter_mut().zip(speeds) {
                    *value += speed;
                }
                scene.changed.push((number, row.as_slice().into()));
            }
            scenes.push(scene);
        }
        Script {
            schema: Arc::new(schema),
            scenes,
        }
    }
}

fn speed(random: &mut Random) -> i64 {
    random.range(1, 128)
}

/// Prime, so that all fields are visited before any is visited again.
const STRIDE: usize = 7919;
