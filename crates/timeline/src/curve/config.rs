//! The configuration of a property's curve.

use super::Interpolation;
use crate::time::Span;
use crate::value::{Value, ValueError};

/// The interpolation, extrapolation and memory of a curve.
///
/// The default is that of the keyframe protocol: linear, the first value before and the last value after.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveConfig<V> {
    pub(super) interpolation: Interpolation,
    pub(super) before: Extrapolation,
    pub(super) after: Extrapolation,
    pub(super) origin: Option<V>,
    pub(super) max_keyframes: usize,
    pub(super) max_at_one_time: usize,
    pub(super) duplicates: bool,
    pub(super) when_full: WhenFull,
}

/// The value of a curve before its first or after its last keyframe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extrapolation {
    /// The nearest keyframe's value.
    #[default]
    Hold,
    /// Continues the nearest segment as a line, or the velocity, for at most this long, and then holds.
    /// Steps hold at once.
    Continue {
        /// The longest continuation.
        at_most: Span,
    },
    /// No value.
    Absent,
}

/// What happens if a keyframe is added to a full curve.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum WhenFull {
    /// It is refused.
    Refuse,
    /// The oldest one is dropped.
    DropOldest,
    /// In the older half, keyframes that a straight line replaces within this error are dropped; if there
    /// are none, the oldest one. No part of the curve is thinned twice, so errors do not add up. Only linear
    /// and step segments are thinned.
    Thin {
        /// The greatest change of the curve, in the value's unit; for vectors a distance. For integers
        /// it is rounded down.
        max_error: f64,
    },
}

/// Why a setting is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CurveConfigError {
    /// The type of value does not support the interpolation.
    #[error("values of this type have no {0:?} interpolation")]
    Interpolation(Interpolation),
    /// The value is not allowed in a keyframe.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A limit is too small.
    #[error("a limit is too small: at least {min} is needed")]
    TooSmall {
        /// The lowest allowed limit.
        min: usize,
    },
    /// An error bound or a span is negative, or not a number.
    #[error("an error bound or a span is negative, or not a number")]
    Negative,
    /// Curves of this type cannot be thinned, because their segments are not straight lines.
    #[error("curves of this type cannot be thinned")]
    CannotThin,
}

impl<V> Default for CurveConfig<V> {
    fn default() -> Self {
        Self {
            interpolation: Interpolation::Linear,
            before: Extrapolation::Hold,
            after: Extrapolation::Hold,
            origin: None,
            max_keyframes: 1 << 16,
            max_at_one_time: 4,
            duplicates: false,
            when_full: WhenFull::DropOldest,
        }
    }
}

impl<V: Value> CurveConfig<V> {
    /// The interpolation of keyframes without one of their own; linear by default.
    ///
    /// # Errors
    ///
    /// If the type does not support it.
    pub fn interpolation(mut self, interpolation: Interpolation) -> Result<Self, CurveConfigError> {
        if !V::supports(interpolation) {
            return Err(CurveConfigError::Interpolation(interpolation));
        }
        self.interpolation = interpolation;
        Ok(self)
    }

    /// The extrapolation before the first keyframe; [`Extrapolation::Hold`] by default.
    ///
    /// # Errors
    ///
    /// If a span is negative.
    pub fn before(mut self, before: Extrapolation) -> Result<Self, CurveConfigError> {
        self.before = before.checked()?;
        Ok(self)
    }

    /// The extrapolation after the last keyframe; [`Extrapolation::Hold`] by default.
    ///
    /// # Errors
    ///
    /// If a span is negative.
    pub fn after(mut self, after: Extrapolation) -> Result<Self, CurveConfigError> {
        self.after = after.checked()?;
        Ok(self)
    }

    /// The start value of integrated velocities; zero by default.
    ///
    /// # Errors
    ///
    /// If the value is not allowed in a keyframe.
    pub fn origin(mut self, origin: V) -> Result<Self, CurveConfigError> {
        origin.check()?;
        self.origin = Some(origin);
        Ok(self)
    }

    /// The most keyframes, and what happens beyond that; 65,536 and [`WhenFull::DropOldest`] by default.
    ///
    /// # Errors
    ///
    /// If the limit is less than 4, or the curve cannot be thinned with this error.
    pub fn memory(mut self, max: usize, when_full: WhenFull) -> Result<Self, CurveConfigError> {
        if max < 4 {
            return Err(CurveConfigError::TooSmall { min: 4 });
        }
        if let WhenFull::Thin { max_error } = when_full {
            check_error::<V>(max_error)?;
        }
        self.max_keyframes = max;
        self.when_full = when_full;
        Ok(self)
    }

    /// The most keyframes at one time; 4 by default: a velocity that ends, a value, a velocity that begins,
    /// and one more.
    ///
    /// # Errors
    ///
    /// If the limit is less than 1.
    pub fn max_at_one_time(mut self, max: usize) -> Result<Self, CurveConfigError> {
        if max < 1 {
            return Err(CurveConfigError::TooSmall { min: 1 });
        }
        self.max_at_one_time = max;
        Ok(self)
    }

    /// Whether a keyframe that equals an existing one may be added; not by default. Ends that apply the
    /// same edits need the same setting.
    pub fn allow_duplicates(mut self, allow: bool) -> Self {
        self.duplicates = allow;
        self
    }
}

impl Extrapolation {
    fn checked(self) -> Result<Self, CurveConfigError> {
        match self {
            Self::Continue { at_most } if at_most < Span::ZERO => Err(CurveConfigError::Negative),
            _ => Ok(self),
        }
    }
}

/// Whether curves of this type can be thinned within this error.
pub(super) fn check_error<V: Value>(max_error: f64) -> Result<(), CurveConfigError> {
    if !V::STRAIGHT {
        return Err(CurveConfigError::CannotThin);
    }
    if !max_error.is_finite() || max_error < 0.0 {
        return Err(CurveConfigError::Negative);
    }
    Ok(())
}
