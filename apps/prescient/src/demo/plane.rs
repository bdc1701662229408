//! Directions and distances in the plane.

use std::f32::consts::{PI, TAU};

use super::creature::STEPS;

/// A velocity in steps.
pub(super) fn course(heading: f32, speed: f32) -> [i32; 2] {
    [heading.cos(), heading.sin()].map(|part| (part * speed * STEPS as f32).round() as i32)
}

pub(super) fn units(steps: i32) -> f32 {
    steps as f32 / STEPS as f32
}

pub(super) fn heading_of([x, y]: [f32; 2]) -> f32 {
    y.atan2(x)
}

/// The same angle between −π and π.
pub(super) fn angle(angle: f32) -> f32 {
    (angle + PI).rem_euclid(TAU) - PI
}

pub(super) fn plus(a: [f32; 2], b: [f32; 2]) -> [f32; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

pub(super) fn minus(a: [f32; 2], b: [f32; 2]) -> [f32; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

pub(super) fn scaled(a: [f32; 2], by: f32) -> [f32; 2] {
    [a[0] * by, a[1] * by]
}

pub(super) fn length([x, y]: [f32; 2]) -> f32 {
    x.hypot(y)
}
