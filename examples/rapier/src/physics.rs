//! Bodies in an arena, as rapier moves them.
//!
//! A physics engine keeps more than positions and velocities (contacts, impulses of the last step),
//! which does not travel. Both ends therefore build the world anew from what does travel in every
//! step, so that equal states have equal futures.

use prescient_playout::Simulated;
use rapier2d::prelude::*;

/// Where all bodies are, and how they move. The first one is the client's.
#[derive(Clone)]
pub(crate) struct Arena {
    bodies: Vec<Body>,
}

#[derive(Clone, Copy)]
struct Body {
    at: Vector,
    velocity: Vector,
}

impl Arena {
    pub(crate) fn new(bodies: usize) -> Self {
        let at = |number: usize| {
            Vector::new(
                1.5 + 2.0 * (number % 4) as f32,
                2.0 + 3.0 * (number / 4) as f32,
            )
        };
        let bodies = (0..bodies).map(|number| Body {
            at: at(number),
            velocity: Vector::ZERO,
        });
        Self {
            bodies: bodies.collect(),
        }
    }

    /// The client's body in an empty arena.
    pub(crate) fn alone(mut self) -> Self {
        self.bodies.truncate(1);
        self
    }

    /// Where the client's body is.
    pub(crate) fn own(&self) -> Vector {
        self.bodies[0].at
    }

    /// A tick, in which each player holds these keys.
    pub(crate) fn step(&mut self, keys: &[u8]) {
        let mut world = PhysicsWorld::new();
        world.gravity = Vector::ZERO;
        world.integration_parameters.dt = TICK;
        for (x, y, half_width, half_height) in [
            (SIZE / 2.0, -0.5, SIZE, 0.5),
            (SIZE / 2.0, SIZE + 0.5, SIZE, 0.5),
            (-0.5, SIZE / 2.0, 0.5, SIZE),
            (SIZE + 0.5, SIZE / 2.0, 0.5, SIZE),
        ] {
            let wall = RigidBodyBuilder::fixed().translation(Vector::new(x, y));
            world.insert(wall, ColliderBuilder::cuboid(half_width, half_height));
        }
        let mut handles = Vec::new();
        for (body, keys) in self.bodies.iter().zip(keys) {
            let held = |key: u8| f32::from(keys >> key & 1);
            let wanted = Vector::new(held(0) - held(1), held(2) - held(3)) * SPEED;
            let gain = (wanted - body.velocity).clamp_length_max(ACCELERATION * TICK);
            let moving = RigidBodyBuilder::dynamic()
                .translation(body.at)
                .linvel(body.velocity + gain)
                .lock_rotations();
            let (handle, _) = world.insert(moving, ColliderBuilder::ball(BODY as f32 / 2.0));
            handles.push(handle);
        }
        world.step();
        for (body, handle) in self.bodies.iter_mut().zip(handles) {
            body.at = rounded(world.bodies[handle].translation());
            body.velocity = rounded(world.bodies[handle].linvel());
        }
    }
}

impl Simulated for Arena {
    fn error(&self, other: &Self) -> f64 {
        let pairs = self.bodies.iter().zip(&other.bodies);
        let gaps = pairs.map(|(one, other)| (one.at - other.at).length());
        gaps.fold(0.0, f32::max).into()
    }

    fn is_finite(&self) -> bool {
        let mut bodies = self.bodies.iter();
        bodies.all(|body| body.at.is_finite() && body.velocity.is_finite())
    }
}

/// As it travels: in thousandths.
fn rounded(vector: Vector) -> Vector {
    (vector * 1000.0).round() / 1000.0
}

/// The diameter of a body.
pub(crate) const BODY: f64 = 1.0;
const SIZE: f32 = 10.0;
const SPEED: f32 = 4.0;
const ACCELERATION: f32 = 20.0;
const TICK: f32 = 1.0 / 30.0;
