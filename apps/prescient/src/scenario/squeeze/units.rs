//! The units that roam, of four priorities.

use std::f32::consts::TAU;

use prescient::{Schema, SchemaBuilder, State};
use prescient_sim::world::Random;

/// The fields of a unit of any priority.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pose {
    pub(super) number: u8,
    pub(super) position: [f32; 2],
    pub(super) heading: f32,
}

macro_rules! unit {
    ($name:ident, $priority:tt) => {
        #[derive(State, Clone)]
        #[state(priority = $priority)]
        pub(super) struct $name {
            number: u8,
            #[state(step = 0.01, position, levels(0, 2, 3, 4))]
            position: [f32; 2],
            #[state(step = 0.01, levels(0, 2, 3, 4))]
            heading: f32,
        }

        impl From<Pose> for $name {
            fn from(pose: Pose) -> Self {
                Self {
                    number: pose.number,
                    position: pose.position,
                    heading: pose.heading,
                }
            }
        }

        impl From<$name> for Pose {
            fn from(unit: $name) -> Self {
                Self {
                    number: unit.number,
                    position: unit.position,
                    heading: unit.heading,
                }
            }
        }
    };
}

unit!(Player, 0);
unit!(Near, 1);
unit!(Middle, 2);
unit!(Far, 3);

/// How many units there are of each priority.
pub(super) const UNITS: [usize; 4] = [8, 30, 30, 30];

pub(super) fn schema() -> Schema {
    let builder = SchemaBuilder::new()
        .state::<Player>()
        .state::<Near>()
        .state::<Middle>()
        .state::<Far>();
    builder.build().expect("a sound schema")
}

/// The priority of a unit.
pub(super) fn priority(number: usize) -> usize {
    let mut end = 0;
    let ends = UNITS.map(|count| {
        end += count;
        end
    });
    ends.iter().position(|end| number < *end).unwrap_or(3)
}

/// A unit that runs in a circle, and turns and changes its speed at random.
#[derive(Clone, Debug)]
pub(super) struct Roamer {
    pub(super) pose: Pose,
    speed: f32,
    /// Radians per tick.
    turn: f32,
}

impl Roamer {
    pub(super) fn new(number: usize, random: &mut Random) -> Self {
        let mut between =
            |low: f32, high: f32| low + (high - low) * random.range(0, 10_000) as f32 / 10_000.0;
        Self {
            pose: Pose {
                number: number as u8,
                position: [between(-30.0, 30.0), between(-30.0, 30.0)],
                heading: between(0.0, TAU),
            },
            speed: between(SPEEDS[0], SPEEDS[1]),
            turn: between(-0.03, 0.03),
        }
    }

    pub(super) fn step(&mut self, random: &mut Random) {
        let mut between =
            |low: f32, high: f32| low + (high - low) * random.range(0, 10_000) as f32 / 10_000.0;
        let chance = between(0.0, 1.0);
        if chance < 0.02 {
            self.turn = between(-0.06, 0.06);
        } else if chance < 0.05 {
            self.speed = between(SPEEDS[0], SPEEDS[1]);
        }
        self.pose.heading = (self.pose.heading + self.turn + between(-0.02, 0.02)).rem_euclid(TAU);
        let way = self.speed * (1.0 + between(-0.2, 0.2)) / 30.0;
        let [x, y] = self.pose.position;
        self.pose.position = [
            (x + self.pose.heading.cos() * way).clamp(-60.0, 60.0),
            (y + self.pose.heading.sin() * way).clamp(-60.0, 60.0),
        ];
    }
}

/// Units per second, so that a run without adaptation shows the document's error.
const SPEEDS: [f32; 2] = [1.6, 4.0];
