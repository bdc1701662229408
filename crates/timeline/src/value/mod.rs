//! What a curve can be made of, and the arithmetic of each.
//!
//! Integers stay integers throughout, with defined rounding, so that two machines that hold the same
//! keyframes look up the same bits. Floats are computed in `f64`; addition, multiplication and
//! division are the same on every machine, but the sines of spherical interpolation may differ in
//! their last bits.

mod integer;
mod real;
mod rotation;

use std::fmt;

pub use rotation::{Rotation, RotationError};

use crate::curve::Interpolation;

/// A value that a curve can hold: `i64`, `f32`, `f64`, arrays of `f32` or `f64` as vectors, and
/// [`Rotation`].
///
/// Vectors of other crates convert to arrays (`to_array` in glam). The trait is sealed: what it
/// holds is arithmetic that has to agree with itself.
pub trait Value: Copy + PartialEq + fmt::Debug + sealed::Arithmetic {}

impl<V: sealed::Arithmetic + Copy + PartialEq + fmt::Debug> Value for V {}

/// Why a value cannot stand in a keyframe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// NaN or infinite: leave the keyframe out and find out where it came from.
    #[error("the value is not a finite number")]
    NotFinite,
    /// Beyond [`MAX_MAGNITUDE`], where arithmetic could overflow.
    #[error("the value's magnitude is above {MAX_MAGNITUDE:e}")]
    TooLarge,
}

/// The largest magnitude of a float in a keyframe; look-ups and extrapolations of anything smaller
/// stay finite.
pub const MAX_MAGNITUDE: f64 = 1e100;

/// Where between two keyframes: microseconds since the first, and between the two. The length is
/// positive; `elapsed` is outside `0..=length` only when extrapolating.
#[derive(Clone, Copy, Debug)]
pub struct Fraction {
    pub(crate) elapsed: i64,
    pub(crate) length: i64,
}

impl Fraction {
    pub(crate) fn whole(length: i64) -> Self {
        Self {
            elapsed: length,
            length,
        }
    }

    fn ratio(self) -> f64 {
        self.elapsed as f64 / self.length as f64
    }
}

/// The keyframe on the far side of one end of a segment, if the curve goes through that end smoothly.
pub(crate) type Neighbour<V> = Option<(V, i64)>;

pub(crate) mod sealed {
    use super::{Fraction, Interpolation, Neighbour, ValueError};

    /// The arithmetic of one type of value.
    pub trait Arithmetic: Sized {
        /// The running integral of a velocity, exact where values are integers.
        type Sum: Copy + PartialEq + std::fmt::Debug;

        /// How many numbers a value has, for fitting.
        const COMPONENTS: usize;
        /// Whether a linear segment is a straight line in the metric of `distance`, so that two
        /// piecewise linear curves are farthest apart at a keyframe.
        const STRAIGHT: bool;

        fn check(&self) -> Result<(), ValueError>;
        fn supports(interpolation: Interpolation) -> bool;

        fn linear(from: Self, to: Self, at: Fraction) -> Self;
        fn smooth(
            before: Neighbour<Self>,
            from: Self,
            to: Self,
            after: Neighbour<Self>,
            at: Fraction,
        ) -> Self;
        fn spherical(from: Self, to: Self, at: Fraction) -> Self;

        fn zero_sum() -> Self::Sum;
        fn sum_of(value: Self) -> Self::Sum;
        fn value_of(sum: Self::Sum) -> Self;
        /// Adds the integral of a rate per second that goes from `from` to `to` linearly.
        fn integrate(sum: Self::Sum, from: Self, to: Self, at: Fraction) -> Self::Sum;

        fn distance(self, other: Self) -> f64;
        /// Whether the line from `from` to `to`, before any rounding, passes `value` within `error`.
        fn passes(from: Self, to: Self, at: Fraction, value: Self, error: f64) -> bool;

        fn component(&self, index: usize) -> f64;
        /// The value nearest to the numbers, by components.
        fn from_components(components: &[f64]) -> Self;
        /// How far each component may be off for the value to be within `error`.
        fn error_per_component(error: f64) -> f64;
        /// The same value in the form that is nearest to another one's.
        fn aligned_with(self, other: Self) -> Self;
    }
}
