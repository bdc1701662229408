//! The entities: balls that bounce, and runners whose players press keys.

use prescient::State;
use prescient_sim::world::Random;

/// A ball in a box. Its physics is known to both ends.
#[derive(State, Clone, Copy, Debug)]
#[state(tick_hz = 30)]
pub(in crate::scenario) struct Ball {
    #[state(step = 0.001, position, snap_beyond = 3.0)]
    pub position: [f64; 2],
    #[state(step = 0.001, velocity_of = "position", per_second)]
    pub velocity: [f64; 2],
    /// The same at both ends.
    #[state(only_on_spawn)]
    pub number: u8,
}

/// A runner. Where it goes is known to its player only.
#[derive(State, Clone, Copy, Debug, PartialEq)]
#[state(tick_hz = 30, predicted)]
pub(in crate::scenario) struct Runner {
    #[state(step = 0.001, position, snap_beyond = 3.0)]
    pub position: [f64; 2],
    #[state(step = 0.001, velocity_of = "position", per_second)]
    pub velocity: [f64; 2],
    /// The same at both ends.
    #[state(only_on_spawn)]
    pub number: u8,
}

pub(in crate::scenario) const WIDTH: f64 = 20.0;
pub(in crate::scenario) const HEIGHT: f64 = 8.0;
const GRAVITY: f64 = 10.0;
const TOP_SPEED: f64 = 5.0;
/// Metres per second that a runner gains in a second.
const ACCELERATION: f64 = 25.0;

impl Ball {
    pub(in crate::scenario) fn new(number: u8, random: &mut Random) -> Self {
        let position = [
            random.range(1000, 19_000) as f64 / 1000.0,
            random.range(2000, 7000) as f64 / 1000.0,
        ];
        let velocity = [random.range(0, 12_000) as f64 / 1000.0 - 6.0, 0.0];
        Self {
            position,
            velocity,
            number,
        }
    }

    /// A parabola, reflected by the walls; nothing is lost.
    pub(in crate::scenario) fn step(&mut self, seconds: f64) {
        let mut left = seconds;
        while left > 0.0 {
            let part = left.min(1.0 / 240.0);
            left -= part;
            self.position[0] += self.velocity[0] * part;
            self.position[1] += (self.velocity[1] - GRAVITY * part / 2.0) * part;
            self.velocity[1] -= GRAVITY * part;
            let [x, y] = self.position;
            if !(0.0..=WIDTH).contains(&x) {
                self.velocity[0] = -self.velocity[0];
                self.position[0] = if x < 0.0 { -x } else { 2.0 * WIDTH - x };
            }
            if y < 0.0 {
                self.velocity[1] = -self.velocity[1];
                self.position[1] = -y;
            }
        }
    }
}

impl Runner {
    pub(in crate::scenario) fn new(number: u8, random: &mut Random) -> Self {
        let x = random.range(1000, 19_000) as f64 / 1000.0;
        let y = random.range(1000, 7000) as f64 / 1000.0;
        Self {
            position: [x, y],
            velocity: [0.0; 2],
            number,
        }
    }

    /// One tick of a player's keys: right, left, up, down. It is rounded as it will be sent, so
    /// both ends compute the same.
    pub(in crate::scenario) fn step(&mut self, keys: u64) {
        let held = |key: u64| f64::from((keys >> key & 1) as u8);
        let wanted = [held(0) - held(1), held(2) - held(3)];
        for axis in 0..2 {
            let gap = wanted[axis] * TOP_SPEED - self.velocity[axis];
            let gain = ACCELERATION * TICK;
            self.velocity[axis] += gap.clamp(-gain, gain);
            let limit = [WIDTH, HEIGHT][axis];
            let moved = self.position[axis] + self.velocity[axis] * TICK;
            self.position[axis] = moved.clamp(0.0, limit);
            if self.position[axis] != moved {
                self.velocity[axis] = 0.0;
            }
            let round = |value: f64| (value * 1000.0).round() / 1000.0;
            self.velocity[axis] = round(self.velocity[axis]);
            self.position[axis] = round(self.position[axis]);
        }
    }

    /// Extrapolation by a client that does not know the keys.
    pub(in crate::scenario) fn coast(&mut self, seconds: f64) {
        for axis in 0..2 {
            let moved = self.position[axis] + self.velocity[axis] * seconds;
            self.position[axis] = moved.clamp(0.0, [WIDTH, HEIGHT][axis]);
        }
    }
}

/// A player who changes their mind about once a second.
#[derive(Clone, Debug)]
pub(in crate::scenario) struct Player {
    random: Random,
    keys: u64,
    left: u64,
}

impl Player {
    pub(in crate::scenario) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            keys: 0,
            left: 0,
        }
    }

    pub(in crate::scenario) fn keys(&mut self) -> u64 {
        if self.left == 0 {
            self.left = self.random.range(10, 60) as u64;
            self.keys = self.random.bits() & 15;
        }
        self.left -= 1;
        self.keys
    }
}

/// Seconds of a tick.
pub(in crate::scenario) const TICK: f64 = 1.0 / 30.0;
