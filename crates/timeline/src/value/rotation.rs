//! Orientations in space.

use super::real::{arc, linear, smooth};
use super::sealed::Arithmetic;
use super::{Fraction, Neighbour, ValueError};
use crate::curve::Interpolation;

/// An orientation as a unit quaternion of `f32`: x, y, z, w.
///
/// A quaternion and its negative are the same orientation; curves turn the shorter way. Distances are
/// angles in radians. Rotations have no velocity interpolation, because they cannot be added.
#[derive(Clone, Copy, Debug)]
pub struct Rotation([f32; 4]);

/// Four numbers are not a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the quaternion has no direction: its length is zero, too small or not finite")]
pub struct RotationError;

impl Rotation {
    /// No rotation.
    pub const IDENTITY: Self = Self([0.0, 0.0, 0.0, 1.0]);

    /// From x, y, z, w of any length but zero; normalises them.
    ///
    /// # Errors
    ///
    /// If the length is zero, too small or not finite.
    pub fn new(quaternion: [f32; 4]) -> Result<Self, RotationError> {
        let wide = quaternion.map(f64::from);
        let length = dot(wide, wide).sqrt();
        if !length.is_finite() || length < 1e-12 {
            return Err(RotationError);
        }
        Ok(Self(wide.map(|number| (number / length) as f32)))
    }

    /// x, y, z, w. The length is 1 except for rounding.
    pub fn to_array(self) -> [f32; 4] {
        self.0
    }

    fn wide(self) -> [f64; 4] {
        self.0.map(f64::from)
    }

    /// Normalises a quaternion; `otherwise` if its length is about zero.
    fn normalised(quaternion: [f64; 4], otherwise: Self) -> Self {
        Self::new(quaternion.map(|number| number as f32)).unwrap_or(otherwise)
    }
}

/// Compares orientations: a quaternion equals its negative.
impl PartialEq for Rotation {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.0 == other.0.map(|number| -number)
    }
}

impl Arithmetic for Rotation {
    type Sum = ();

    const COMPONENTS: usize = 4;
    const STRAIGHT: bool = false;

    fn check(&self) -> Result<(), ValueError> {
        Ok(())
    }

    fn supports(interpolation: Interpolation) -> bool {
        interpolation != Interpolation::Velocity
    }

    fn linear(from: Self, to: Self, at: Fraction) -> Self {
        let to = to.aligned_with(from);
        Self::normalised(linear(from.wide(), to.wide(), at.ratio()), from)
    }

    fn smooth(
        before: Neighbour<Self>,
        from: Self,
        to: Self,
        after: Neighbour<Self>,
        at: Fraction,
    ) -> Self {
        let to = to.aligned_with(from);
        let beside = |neighbour: Neighbour<Self>, end: Self| {
            neighbour.map(|(value, length)| (value.aligned_with(end).wide(), length))
        };
        let (before, after) = (beside(before, from), beside(after, to));
        Self::normalised(smooth(before, from.wide(), to.wide(), after, at), from)
    }

    fn spherical(from: Self, to: Self, at: Fraction) -> Self {
        let to = to.aligned_with(from);
        let Some([part_from, part_to]) = arc(dot(from.wide(), to.wide()), at.ratio()) else {
            return Self::linear(from, to, at);
        };
        let (a, b) = (from.wide(), to.wide());
        let turned = std::array::from_fn(|index| part_from * a[index] + part_to * b[index]);
        Self::normalised(turned, from)
    }

    fn zero_sum() {}

    fn sum_of(_: Self) {}

    fn value_of((): ()) -> Self {
        Self::IDENTITY
    }

    fn integrate((): (), _: Self, _: Self, _: Fraction) {}

    fn distance(self, other: Self) -> f64 {
        // The arc sine of the chord is accurate for small angles; the arc cosine is not.
        let other = other.aligned_with(self);
        let chord = super::real::distance(self.wide(), other.wide());
        4.0 * (0.5 * chord).min(1.0).asin()
    }

    fn passes(from: Self, to: Self, at: Fraction, value: Self, error: f64) -> bool {
        Self::linear(from, to, at).distance(value) <= error
    }

    fn component(&self, index: usize) -> f64 {
        f64::from(self.0[index])
    }

    fn from_components(components: &[f64]) -> Self {
        let quaternion = std::array::from_fn(|index| components[index]);
        Self::normalised(quaternion, Self::IDENTITY)
    }

    fn error_per_component(error: f64) -> f64 {
        // An angle is twice the chord between quaternions, which have four components.
        error / 4.0
    }

    fn aligned_with(self, other: Self) -> Self {
        if dot(self.wide(), other.wide()) < 0.0 {
            Self(self.0.map(|number| -number))
        } else {
            self
        }
    }
}

fn dot(one: [f64; 4], other: [f64; 4]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}
