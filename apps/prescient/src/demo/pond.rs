//! The world of the demo: a pond.
//!
//! Fish hold their course most of the time, turtles swim straight, lilies rest. So most of the
//! state is predictable, and the unpredictable part is visible: fish that turn, and reactions to
//! taps.

use std::f32::consts::{PI, TAU};

use prescient_sim::world::Random;

use super::creature::{Creature, CreatureKind, Mood, STEPS};
use super::plane::{angle, course, heading_of, length, minus, plus, scaled, units};

/// The server's world.
pub(super) struct Pond {
    dwellers: Vec<Dweller>,
    tick: u32,
    random: Random,
}

/// A creature with its hidden state.
struct Dweller {
    /// In steps, so that quantisation loses nothing.
    position: [i32; 2],
    velocity: [i32; 2],
    kind: CreatureKind,
    /// The tick at which its reaction to a tap ends.
    stirred_until: u32,
}

impl Pond {
    /// A pond from a seed.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut dwellers = Vec::new();
        for (kind, count) in POPULATION {
            for _ in 0..count {
                let position =
                    SIZE.map(|side| random.range(40, i64::from(side) - 40) as i32 * STEPS);
                let heading = random.range(0, 628) as f32 / 100.0;
                dwellers.push(Dweller {
                    position,
                    velocity: course(heading, speed(kind)),
                    kind,
                    stirred_until: 0,
                });
            }
        }
        keep_lilies_apart(&mut dwellers, &mut random);
        Self {
            dwellers,
            tick: 0,
            random,
        }
    }

    /// The replicated state of all creatures, by index.
    pub(super) fn creatures(&self) -> Vec<Creature> {
        let creature = |(number, dweller): (usize, &Dweller)| Creature {
            position: dweller.position.map(units),
            velocity: dweller.velocity.map(units),
            mood: match dweller.stirred_until > self.tick {
                true => Mood::Stirred,
                false => Mood::Calm,
            },
            kind: dweller.kind,
            number: number as u16,
        };
        self.dwellers.iter().enumerate().map(creature).collect()
    }

    /// Simulates one tick.
    pub(super) fn step(&mut self) {
        self.tick += 1;
        for number in 0..self.dwellers.len() {
            let velocity = self.decide(number);
            let dweller = &mut self.dwellers[number];
            dweller.velocity = velocity;
            for (axis, side) in SIZE.into_iter().enumerate() {
                let next = dweller.position[axis] + dweller.velocity[axis];
                if !(0..=side * STEPS).contains(&next) {
                    dweller.velocity[axis] = -dweller.velocity[axis];
                }
                dweller.position[axis] += dweller.velocity[axis];
            }
        }
    }

    /// Taps on a creature, which also startles fish nearby.
    pub(super) fn tap(&mut self, number: usize) {
        let Some(tapped) = self.dwellers.get(number) else {
            return;
        };
        let (centre, kind) = (tapped.position.map(units), tapped.kind);
        if !is_fish(kind) {
            let span = if kind == CreatureKind::Lily { 90 } else { 45 };
            self.dwellers[number].stirred_until = self.tick + span;
        }
        for (other, dweller) in self.dwellers.iter_mut().enumerate() {
            let away = minus(dweller.position.map(units), centre);
            if !is_fish(dweller.kind) || length(away) > STARTLED {
                continue;
            }
            let heading = match length(away) < 1.0 {
                true => heading_of(dweller.velocity.map(units)) + PI,
                false => heading_of(away),
            };
            dweller.velocity = course(heading, speed(dweller.kind) * 2.6);
            dweller.stirred_until = self.tick + 14 + other as u32 % 9;
        }
    }

    /// The new velocity of a creature.
    fn decide(&mut self, number: usize) -> [i32; 2] {
        let dweller = &self.dwellers[number];
        let kind = dweller.kind;
        let stirred = dweller.stirred_until > self.tick;
        let heading = heading_of(dweller.velocity.map(units));
        match kind {
            CreatureKind::Lily => [0, 0],
            CreatureKind::Turtle if stirred => [0, 0],
            CreatureKind::Turtle if dweller.velocity == [0, 0] || self.random.chance(2_500) => {
                course(self.random.range(0, 628) as f32 / 100.0, speed(kind))
            }
            CreatureKind::Turtle => dweller.velocity,
            _ if stirred => dweller.velocity,
            _ if dweller.stirred_until == self.tick => course(heading, speed(kind)),
            _ if (self.tick + number as u32).is_multiple_of(THINKS_EVERY) => {
                let turn = angle(self.wish(number) - heading);
                match turn.abs() < MINDS {
                    true => dweller.velocity,
                    false => course(heading + turn.clamp(-SHARPEST, SHARPEST), speed(kind)),
                }
            }
            _ => dweller.velocity,
        }
    }

    /// The desired heading of a fish: with its shoal, towards the shoal's goal, away from close
    /// neighbours and from the shore.
    fn wish(&self, number: usize) -> f32 {
        let own = &self.dwellers[number];
        let position = own.position.map(units);
        let goal = minus(self.goal(own.kind), position);
        let mut wish = scaled(
            goal,
            (length(goal) / 160.0).min(1.0) / length(goal).max(1.0),
        );
        for (other, dweller) in self.dwellers.iter().enumerate() {
            let apart = minus(position, dweller.position.map(units));
            let distance = length(apart);
            if other == number || !is_fish(dweller.kind) || distance > 80.0 {
                continue;
            }
            if dweller.kind == own.kind {
                let along = dweller.velocity.map(units);
                wish = plus(wish, scaled(along, 0.12 / length(along).max(0.1)));
            }
            if distance < 24.0 {
                wish = plus(wish, scaled(apart, 0.9 / distance.max(4.0)));
            }
        }
        for (axis, &side) in SIZE.iter().enumerate() {
            let side = side as f32;
            wish[axis] += ((50.0 - position[axis]) / 25.0).max(0.0);
            wish[axis] -= ((position[axis] - side + 50.0) / 25.0).max(0.0);
        }
        heading_of(wish)
    }

    /// The goal of a shoal: a point that moves along a figure of eight, at an offset per shoal.
    fn goal(&self, kind: CreatureKind) -> [f32; 2] {
        let start = match kind {
            CreatureKind::Minnow => 0.0,
            CreatureKind::Perch => TAU / 3.0,
            _ => TAU * 2.0 / 3.0,
        };
        let along = start + TAU * self.tick as f32 / ROUND;
        let [width, height] = SIZE.map(|side| side as f32 / 2.0);
        [
            width * (1.0 + 0.7 * along.cos()),
            height * (1.0 + 0.6 * (2.0 * along).sin()),
        ]
    }
}

/// Moves lilies that overlap.
fn keep_lilies_apart(dwellers: &mut [Dweller], random: &mut Random) {
    let mut taken: Vec<[f32; 2]> = Vec::new();
    for lily in (dwellers.iter_mut()).filter(|dweller| dweller.kind == CreatureKind::Lily) {
        for _ in 0..50 {
            let position = lily.position.map(units);
            if taken
                .iter()
                .all(|other| length(minus(position, *other)) > 46.0)
            {
                break;
            }
            lily.position = SIZE.map(|side| random.range(30, i64::from(side) - 30) as i32 * STEPS);
        }
        lily.velocity = [0, 0];
        taken.push(lily.position.map(units));
    }
}

fn is_fish(kind: CreatureKind) -> bool {
    !matches!(kind, CreatureKind::Turtle | CreatureKind::Lily)
}

/// Units per tick.
fn speed(kind: CreatureKind) -> f32 {
    match kind {
        CreatureKind::Minnow => 2.1,
        CreatureKind::Perch => 1.7,
        CreatureKind::Carp => 1.25,
        CreatureKind::Turtle => 0.5,
        CreatureKind::Lily => 0.0,
    }
}

/// Width and height of the pond, in units.
pub(super) const SIZE: [i32; 2] = [960, 600];
/// Ticks per second.
pub(super) const HZ: u32 = 30;
/// Two hundred creatures.
const POPULATION: [(CreatureKind, usize); 5] = [
    (CreatureKind::Lily, 28),
    (CreatureKind::Turtle, 6),
    (CreatureKind::Carp, 24),
    (CreatureKind::Perch, 50),
    (CreatureKind::Minnow, 92),
];
/// Ticks in which shoals complete the figure of eight.
const ROUND: f32 = 1400.0;
/// Each fish decides every so many ticks, at staggered times.
const THINKS_EVERY: u32 = 8;
/// Minimum angle between heading and desired heading for a turn.
const MINDS: f32 = 0.42;
/// Maximum angle of a turn.
const SHARPEST: f32 = 0.75;
/// Maximum distance from a tap at which fish flee.
const STARTLED: f32 = 70.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a shore does not reverse the velocity (leave out `-` in `Pond::step`), or if
    /// positions are not exactly the sum of velocities (round one of them to a unit).
    #[test]
    fn everybody_stays_in_the_pond_and_moves_as_it_says() {
        let mut pond = Pond::new(1);
        let mut before = pond.creatures();
        assert_eq!(before.len(), 200);
        for tick in 0..2000 {
            if tick % 7 == 0 {
                pond.tap(tick % before.len());
            }
            pond.step();
            let now = pond.creatures();
            for (was, is) in before.iter().zip(&now) {
                for (axis, side) in SIZE.into_iter().enumerate() {
                    assert!((0.0..=side as f32).contains(&is.position[axis]), "{is:?}");
                    assert_eq!(is.position[axis], was.position[axis] + is.velocity[axis]);
                }
            }
            before = now;
        }
    }

    /// Most of the pond must be predictable. Fails if fish always turn to their desired heading
    /// (`MINDS` of 0).
    #[test]
    fn most_hold_their_course() {
        let mut pond = Pond::new(1);
        let (mut turned, mut moved) = (0, 0);
        let mut before = pond.creatures();
        for _ in 0..900 {
            pond.step();
            let now = pond.creatures();
            let swimming = now.iter().zip(&before).filter(|(is, _)| is_fish(is.kind));
            for (is, was) in swimming {
                moved += 1;
                turned += u32::from(is.velocity != was.velocity);
            }
            before = now;
        }
        assert!(turned * 15 < moved, "{turned} of {moved}");
        assert!(turned * 100 > moved, "{turned} of {moved}");
    }

    /// Fails if a tap startles no other creature (a distance of 0), or the whole pond (one of
    /// 2000).
    #[test]
    fn a_tap_startles_those_nearby() {
        let mut pond = Pond::new(1);
        let fish = pond.creatures().len() - 1;
        pond.tap(fish);
        let stirred = |pond: &Pond| {
            let creatures = pond.creatures().into_iter();
            let stirred = creatures.filter(|creature| creature.mood == Mood::Stirred);
            stirred.count()
        };
        assert!((2..40).contains(&stirred(&pond)), "{}", stirred(&pond));
        for _ in 0..30 {
            pond.step();
        }
        assert_eq!(stirred(&pond), 0);
    }
}
