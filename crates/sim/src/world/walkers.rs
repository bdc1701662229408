//! A world like that of `prescient swarm`.
//!
//! Most of what a game server encodes is predictable: two thirds of the walkers on a grid go to and
//! fro, each with its own speed and period, and the others stand.

use std::sync::Arc;

use prescient_schema::{Class, Field, FieldKind, Schema};

use super::{Scene, Script};

/// Walkers on a square grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walkers {
    /// Number of walkers.
    pub count: usize,
    /// Number of ticks.
    pub ticks: usize,
}

impl Walkers {
    /// Computes all ticks.
    pub fn script(&self) -> Script {
        let int = |bits, signed| FieldKind::Int { bits, signed };
        let mut number = Field::new("number", int(32, false));
        number.only_on_spawn = true;
        let fields = vec![
            Field::new("x", int(24, true)),
            Field::new("y", int(24, true)),
            number,
            Field::new("steps", int(16, false)),
        ];
        let schema = Schema {
            classes: vec![Class::new("walker", fields)],
        };
        let side = self.count.isqrt().max(1);
        let row = |number, tick| walker(number, tick, side);
        let mut first = Scene::default();
        let born = (0..self.count).map(|number| (0, row(number, 0)));
        first.spawned.extend(born);
        let mut scenes = vec![first];
        for tick in 1..self.ticks {
            let mut scene = Scene::default();
            let walking = (0..self.count).filter(|&number| !stands(number));
            let moved = walking.map(|number| (number, row(number, tick)));
            scene.changed.extend(moved);
            scenes.push(scene);
        }
        Script {
            schema: Arc::new(schema),
            scenes,
        }
    }
}

fn walker(number: usize, tick: usize, side: usize) -> Arc<[i64]> {
    let (speed, beat) = (3 + number % 29, 40 + number % 61);
    let round = (tick + number * 7) % (2 * beat);
    let mut row = [number % side * SPACING, number / side * SPACING, number, 0];
    if !stands(number) {
        row[number % 2] += speed * round.min(2 * beat - round);
        row[3] = tick / beat;
    }
    row.map(|value| value as i64).into()
}

fn stands(number: usize) -> bool {
    number.is_multiple_of(3)
}

const SPACING: usize = 1000;
