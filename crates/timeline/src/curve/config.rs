//! How one property's curve behaves.

use super::Interpolation;
use crate::time::Span;
use crate::value::{Value, ValueError};

/// How a curve is interpolated, what it is outside its keyframes, and how many it may hold.
///
/// The default is the keyframe protocol's: linear, the first value before and the last value after.
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

/// What a curve is outside its keyframes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extrapolation {
    /// The nearest keyframe's value.
    #[default]
    Hold,
    /// Goes on as at the nearest keyframe, for at most this long, and then holds. Steps hold at once;
    /// before the first keyframe a velocity goes back.
    Continue {
        /// How far.
        at_most: Span,
    },
    /// No value at all.
    Absent,
}

/// What happens to a keyframe that there is no room for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WhenFull {
    /// It is refused.
    Refuse,
    /// The oldest one goes.
    DropOldest,
    /// Of the older half, those go that a straight line replaces within this error; where that does
    /// not help, the oldest one. No part of the curve is thinned twice, so the error does not add up.
    /// Only linear and stepped parts are thinned.
    Thin {
        /// How far the curve may move, in the value's own unit: the distance of vectors. Of integers
        /// only whole errors count.
        max_error: f64,
    },
}

/// Why a setting is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurveConfigError {
    /// Values of this type cannot be interpolated like that.
    #[error("values of this type have no {0:?} interpolation")]
    Interpolation(Interpolation),
    /// The value is not usable.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A limit that leaves no room for what it limits.
    #[error("a limit is too small: at least {min} is needed")]
    TooSmall {
        /// The least that works.
        min: usize,
    },
    /// An error bound or a span that is negative or no number.
    #[error("an error bound or a span is negative, or not a number")]
    Negative,
    /// Curves of this type cannot be thinned, because their lines are not straight.
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
    /// The interpolation of keyframes that have none of their own; linear if not set.
    ///
    /// # Errors
    ///
    /// If the type has no such interpolation.
    pub fn interpolation(mut self, interpolation: Interpolation) -> Result<Self, CurveConfigError> {
        if !V::supports(interpolation) {
            return Err(CurveConfigError::Interpolation(interpolation));
        }
        self.interpolation = interpolation;
        Ok(self)
    }

    /// What the curve is before its first keyframe; the first value if not set.
    ///
    /// # Errors
    ///
    /// If a span is negative.
    pub fn before(mut self, before: Extrapolation) -> Result<Self, CurveConfigError> {
        self.before = before.checked()?;
        Ok(self)
    }

    /// What the curve is after its last keyframe; the last value if not set.
    ///
    /// # Errors
    ///
    /// If a span is negative.
    pub fn after(mut self, after: Extrapolation) -> Result<Self, CurveConfigError> {
        self.after = after.checked()?;
        Ok(self)
    }

    /// The value from which velocities are integrated; zero if not set.
    ///
    /// # Errors
    ///
    /// If it is no value that a keyframe could have.
    pub fn origin(mut self, origin: V) -> Result<Self, CurveConfigError> {
        origin.check()?;
        self.origin = Some(origin);
        Ok(self)
    }

    /// How many keyframes the curve holds, 65,536 if not set, and what happens to further ones; the
    /// oldest goes if not set.
    ///
    /// # Errors
    ///
    /// If that is less than 4, or the curve cannot be thinned as asked for.
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

    /// How many keyframes may stand at one time; 4 if not set, which is a velocity that ends, a value,
    /// a velocity that begins, and one to spare.
    ///
    /// # Errors
    ///
    /// If that is less than 1.
    pub fn max_at_one_time(mut self, max: usize) -> Result<Self, CurveConfigError> {
        if max < 1 {
            return Err(CurveConfigError::TooSmall { min: 1 });
        }
        self.max_at_one_time = max;
        Ok(self)
    }

    /// Whether a keyframe may be added that is there already, which is refused if not set. Who follows
    /// another end's edits exactly must allow what that one allows.
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

/// Whether curves can be thinned or fitted to within an error.
pub(super) fn check_error<V: Value>(max_error: f64) -> Result<(), CurveConfigError> {
    if !V::STRAIGHT {
        return Err(CurveConfigError::CannotThin);
    }
    if !max_error.is_finite() || max_error < 0.0 {
        return Err(CurveConfigError::Negative);
    }
    Ok(())
}
