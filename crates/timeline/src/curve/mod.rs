//! One property's value over time.
//!
//! Times lie in an array of their own, apart from values, so that a search touches nothing else.
//! Adding at the end and dropping at the front are cheap; adding in the middle moves the shorter side.

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

/// How a curve goes on from a keyframe to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// Holds the value until the next keyframe.
    Step,
    /// In a straight line; rotations are normalised on the way.
    #[default]
    Linear,
    /// A cubic without corners, which never leaves the range of the two keyframes around it
    /// (Steffen's tangents), per component. Beside a keyframe that is not smooth, and at the ends, it
    /// starts like the straight line.
    Smooth,
    /// At a constant turning rate: rotations, directions (any vector, with its length changing
    /// linearly), and plain floats as angles in radians, which turn the shorter way. Not for integers.
    Spherical,
    /// The keyframe's value is a velocity, per second, and the curve its integral, in closed form:
    /// the velocity changes linearly up to the next velocity keyframe, or stays if another kind
    /// follows. The value goes on from where the curve was, at first from [`CurveConfig::origin`].
    /// A keyframe of another kind at the same time, before this one, sets that value. Not for
    /// rotations.
    Velocity,
}

/// A value at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keyframe<V> {
    /// When.
    pub time: Time,
    /// The value then, or the velocity ([`Interpolation::Velocity`]).
    pub value: V,
    /// How the curve goes on from here; `None` as the property's configuration says.
    pub interpolation: Option<Interpolation>,
}

impl<V> Keyframe<V> {
    /// A keyframe that is interpolated as its property says.
    pub fn new(time: Time, value: V) -> Self {
        Self {
            time,
            value,
            interpolation: None,
        }
    }

    /// The same with an interpolation of its own.
    pub fn with(self, interpolation: Interpolation) -> Self {
        Self {
            interpolation: Some(interpolation),
            ..self
        }
    }
}

/// Keyframes in order of time, and what lies between them.
///
/// Edits ([`add`](Self::add), [`remove`](Self::remove), [`move_one`](Self::move_one),
/// [`move_within`](Self::move_within), [`clear`](Self::clear)) are refused whole or applied whole. Two
/// curves with the same configuration that saw the same edits in the same order are equal.
///
/// Several keyframes may stand at one time, in the order in which they were added: what comes before
/// leads up to the first of them, and from that time on the last one counts, which makes a step.
#[derive(Clone, Debug)]
pub struct Curve<V: Value> {
    config: CurveConfig<V>,
    times: VecDeque<i64>,
    slots: VecDeque<Slot<V>>,
    /// The value at each keyframe, if the curve has velocities; else empty.
    reached: VecDeque<V::Sum>,
    velocities: usize,
    /// The value before the first keyframe, as far as it is a velocity.
    origin: V::Sum,
    /// Keyframes up to here were thinned and are not thinned again, which would add up errors.
    thinned_until: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot<V> {
    value: V,
    interpolation: Option<Interpolation>,
}

impl<V: Value> Curve<V> {
    /// Without keyframes.
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

    /// Of keyframes in order of time.
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

    /// How it behaves.
    pub fn config(&self) -> &CurveConfig<V> {
        &self.config
    }

    /// How many keyframes it has.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether it has no keyframes, and therefore no value at any time.
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

    fn keyframe(&self, index: usize) -> Keyframe<V> {
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

    fn interpolation(&self, index: usize) -> Interpolation {
        self.slots[index]
            .interpolation
            .unwrap_or(self.config.interpolation)
    }

    fn is_velocity(&self, index: usize) -> bool {
        self.interpolation(index) == Interpolation::Velocity
    }
}

/// The same keyframes and configuration; how they came about does not matter.
impl<V: Value> PartialEq for Curve<V> {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config
            && self.times == other.times
            && self.slots == other.slots
            && self.origin == other.origin
    }
}
