//! The types of values, and their arithmetic.
//!
//! Integers are computed as integers, with defined rounding, so that two machines with the same keyframes
//! look up the same bits. Floats are computed in `f64`; addition, multiplication and division are the same
//! on every machine, but the sines of spherical interpolation may differ in their last bits.

mod integer;
mod real;
mod rotation;

use std::fmt;

pub use rotation::{Rotation, RotationError};

use crate::curve::Interpolation;

/// The values of a curve: `i64`, `f32`, `f64`, arrays of `f32` or `f64` as vectors, and [`Rotation`].
///
/// Vectors of other crates convert to arrays (`to_array` in glam). The trait is sealed.
pub trait Value: Copy + PartialEq + fmt::Debug + sealed::Arithmetic {}

impl<V: sealed::Arithmetic + Copy + PartialEq + fmt::Debug> Value for V {}

/// Why a value is not allowed in a keyframe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// NaN or infinite.
    #[error("the value is not a finite number")]
    NotFinite,
    /// Above [`MAX_MAGNITUDE`], where arithmetic could overflow.
    #[error("the value's magnitude is above {MAX_MAGNITUDE:e}")]
    TooLarge,
}

/// The largest magnitude of a float in a keyframe. Up to it, look-ups and extrapolations are finite.
pub const MAX_MAGNITUDE: f64 = 1e100;

/// A position between two keyframes: microseconds since the first, and between the two. The length is
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

/// The keyframe beyond one end of a segment and its distance from that end, if the curve is smooth there.
pub(crate) type Neighbour<V> = Option<(V, i64)>;

pub(crate) mod sealed {
    use super::{Fraction, Interpolation, Neighbour, ValueError};

    /// The arithmetic of one type of value.
    pub trait Arithmetic: Sized {
        /// The running integral of a velocity, exact where values are integers.
        type Sum: Copy + PartialEq + std::fmt::Debug;

        /// The number of components, for fitting.
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
        /// Adds the integral of a rate per second that changes linearly from `from` to `to`.
        fn integrate(sum: Self::Sum, from: Self, to: Self, at: Fraction) -> Self::Sum;

        fn distance(self, other: Self) -> f64;
        /// Whether the line from `from` to `to`, before any rounding, passes `value` within `error`.
        fn passes(from: Self, to: Self, at: Fraction, value: Self, error: f64) -> bool;

        fn component(&self, index: usize) -> f64;
        /// The value with these components, rounded.
        fn from_components(components: &[f64]) -> Self;
        /// The error of each component that keeps the value within `error`.
        fn error_per_component(error: f64) -> f64;
        /// The same value in the representation that is nearest to another one's.
        fn aligned_with(self, other: Self) -> Self;
    }
}
