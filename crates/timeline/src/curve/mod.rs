//! One property's value over time.
//!
//! Times and values are in separate arrays, so that a search reads times only. Adding at the end and
//! dropping at the front are cheap; adding in the middle moves the shorter side.

mod config;
mod cut;
mod edit;
mod look_up;
mod memory;
mod search;

use std::collections::VecDeque;

pub use config::{CurveConfig, CurveConfigError, Extrapolation, WhenFull};
pub(crate) use cut::Cut;
pub use edit::{Edit, EditError};
pub use search::Cursor;

use crate::time::Time;
use crate::value::Value;

/// How a curve is interpolated between a keyframe and the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interpolation {
    /// Holds the value until the next keyframe.
    Step,
    /// A straight line; rotations are normalised.
    #[default]
    Linear,
    /// A cubic per component, without corners and within the range of the two keyframes (Steffen's
    /// tangents). Next to a keyframe of another kind, and at the ends of the curve, it has the slope of the
    /// straight line.
    Smooth,
    /// A constant turning rate, the shorter way: for rotations, directions (any vector; its length changes
    /// linearly), and floats as angles in radians. Not for integers.
    Spherical,
    /// The keyframe's value is a velocity per second, and the curve is its integral, in closed form. The
    /// velocity changes linearly up to the next velocity keyframe, or is constant if another kind follows.
    /// The integral starts at the curve's value at the keyframe's time, at first [`CurveConfig::origin`]. A
    /// keyframe of another kind at the same time, added before, sets that value. Not for rotations.
    Velocity,
}

/// A value at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keyframe<V> {
    /// Its time.
    pub time: Time,
    /// The value at that time, or the velocity ([`Interpolation::Velocity`]).
    pub value: V,
    /// The interpolation after it; `None` for that of the property's configuration.
    pub interpolation: Option<Interpolation>,
}

impl<V> Keyframe<V> {
    /// A keyframe with the interpolation of its property.
    pub fn new(time: Time, value: V) -> Self {
        Self {
            time,
            value,
            interpolation: None,
        }
    }

    /// The same keyframe with its own interpolation.
    pub fn with(self, interpolation: Interpolation) -> Self {
        Self {
            interpolation: Some(interpolation),
            ..self
        }
    }
}

/// A value over time: keyframes in order, interpolated.
///
/// Edits ([`add`](Self::add), [`remove`](Self::remove), [`move_one`](Self::move_one),
/// [`move_within`](Self::move_within), [`clear`](Self::clear)) are applied or refused as a whole. Two
/// curves with the same configuration and the same edits in the same order are equal.
///
/// Several keyframes may have the same time, in the order in which they were added. The segment before that
/// time ends at the first of them, the segment after it starts at the last: a step.
#[derive(Clone, Debug)]
pub struct Curve<V: Value> {
    config: CurveConfig<V>,
    times: VecDeque<i64>,
    slots: VecDeque<Slot<V>>,
    /// The value at each keyframe, if the curve has velocities; empty otherwise.
    reached: VecDeque<V::Sum>,
    velocities: usize,
    /// The start value of the integral, if the first keyframe is a velocity.
    origin: V::Sum,
    /// Keyframes up to this time were thinned. They are not thinned again, because errors would add up.
    thinned_until: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot<V> {
    value: V,
    interpolation: Option<Interpolation>,
}

impl<V: Value> Curve<V> {
    /// A curve without keyframes.
    pub fn new(config: CurveConfig<V>) -> Self {
        let origin = config.origin.map_or(V::zero_sum(), V::sum_of);
        Self {
            config,
            times: VecDeque::new(),
            slots: VecDeque::new(),
            reached: VecDeque::new(),
            velocities: 0,
            origin,
            thinned_until: i64::MIN,
        }
    }

    /// A curve of keyframes in order of time.
    ///
    /// # Errors
    ///
    /// [`EditError::Unordered`] if one is earlier than the one before it, else as
    /// [`add`](Self::add).
    pub fn from_keyframes(
        config: CurveConfig<V>,
        keyframes: impl IntoIterator<Item = Keyframe<V>>,
    ) -> Result<Self, EditError> {
        let mut curve = Self::new(config);
        let keyframes = keyframes.into_iter();
        let expected = keyframes.size_hint().0.min(curve.config.max_keyframes);
        curve.times.reserve(expected);
        curve.slots.reserve(expected);
        for keyframe in keyframes {
            if curve.last_time().is_some_and(|last| keyframe.time < last) {
                return Err(EditError::Unordered {
                    time: keyframe.time,
                });
            }
            curve.add(keyframe)?;
        }
        Ok(curve)
    }

    /// The configuration.
    pub fn config(&self) -> &CurveConfig<V> {
        &self.config
    }

    /// The number of keyframes.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether it has no keyframes, and so no value at any time.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The time of the first keyframe.
    pub fn first_time(&self) -> Option<Time> {
        self.times.front().copied().map(Time::from_micros)
    }

    /// The time of the last keyframe.
    pub fn last_time(&self) -> Option<Time> {
        self.times.back().copied().map(Time::from_micros)
    }

    /// All keyframes in order.
    pub fn keyframes(&self) -> impl DoubleEndedIterator<Item = Keyframe<V>> + ExactSizeIterator {
        (0..self.len()).map(|index| self.keyframe(index))
    }

    /// The keyframes from a time on, in order.
    pub fn keyframes_from(&self, time: Time) -> impl DoubleEndedIterator<Item = Keyframe<V>> {
        let start = self.first_at_or_after(time.as_micros());
        (start..self.len()).map(|index| self.keyframe(index))
    }

    /// A keyframe by its index, which must be less than [`len`](Self::len).
    pub(crate) fn keyframe(&self, index: usize) -> Keyframe<V> {
        let Slot {
            value,
            interpolation,
        } = self.slots[index];
        Keyframe {
            time: Time::from_micros(self.times[index]),
            value,
            interpolation,
        }
    }

    /// A keyframe to add before all others to a new curve, so that it integrates as this one does although
    /// its oldest velocities were dropped.
    pub(crate) fn start(&self) -> Option<Keyframe<V>> {
        let time = self.first_time().filter(|_| self.is_velocity(0))?;
        let configured = self.config.origin.map_or(V::zero_sum(), V::sum_of);
        let start = Keyframe::new(time, V::value_of(self.origin)).with(Interpolation::Step);
        (self.origin != configured).then_some(start)
    }

    fn interpolation(&self, index: usize) -> Interpolation {
        self.slots[index]
            .interpolation
            .unwrap_or(self.config.interpolation)
    }

    fn is_velocity(&self, index: usize) -> bool {
        self.interpolation(index) == Interpolation::Velocity
    }
}

/// Compares keyframes and configuration, not the edits that led to them.
impl<V: Value> PartialEq for Curve<V> {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config
            && self.times == other.times
            && self.slots == other.slots
            && self.origin == other.origin
    }
}
