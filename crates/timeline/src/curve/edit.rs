//! Edits of a curve.

use super::{Curve, Interpolation, Keyframe, Slot};
use crate::time::{Span, Time};
use crate::value::{Value, ValueError};

/// A change of one curve, as data that is sent and applied on both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edit<V> {
    /// [`Curve::add`].
    Add(Keyframe<V>),
    /// [`Curve::remove`].
    Remove {
        /// The time of the keyframes to remove.
        time: Time,
    },
    /// [`Curve::move_one`].
    Move {
        /// The time of the keyframe to move.
        time: Time,
        /// The distance; negative to move backwards.
        by: Span,
    },
    /// [`Curve::move_within`].
    MoveWithin {
        /// The begin of the interval.
        from: Time,
        /// The end of the interval, included.
        to: Time,
        /// The distance; negative to move backwards.
        by: Span,
    },
    /// [`Curve::clear`].
    Clear,
}

/// Why a change is refused. Then nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// Before [`Time::MIN`] or after [`Time::MAX`].
    #[error("{time} is out of range")]
    TimeOutOfRange {
        /// The keyframe's time.
        time: Time,
    },
    /// Farther in the future than the timeline allows.
    #[error("{time} is too far ahead: the latest is {latest}")]
    TooFarAhead {
        /// The keyframe's time.
        time: Time,
        /// The latest that is allowed.
        latest: Time,
    },
    /// The value is not allowed in a keyframe.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The type of value does not support the interpolation.
    #[error("values of this type have no {interpolation:?} interpolation")]
    Interpolation {
        /// The interpolation.
        interpolation: Interpolation,
    },
    /// An equal keyframe exists already.
    #[error("the same keyframe is at {time} already")]
    Duplicate {
        /// Its time.
        time: Time,
    },
    /// The limit of keyframes at one time is reached.
    #[error("{max} keyframes are at {time} already")]
    TooManyAtOneTime {
        /// Their time.
        time: Time,
        /// The limit.
        max: usize,
    },
    /// No keyframe is at this time, or in this interval.
    #[error("no keyframe is at {time}")]
    NoKeyframe {
        /// The time, or the begin of the interval.
        time: Time,
    },
    /// A keyframe in a list is earlier than the one before it.
    #[error("{time} comes after a later time")]
    Unordered {
        /// Its time.
        time: Time,
    },
    /// The curve or timeline is full.
    #[error("{max} keyframes are there already")]
    Full {
        /// The limit.
        max: usize,
    },
    /// The curve is full, and this keyframe is older than all others.
    #[error("{time} is older than the {max} keyframes that are kept")]
    TooOld {
        /// The keyframe's time.
        time: Time,
        /// The limit of keyframes.
        max: usize,
    },
    /// The limit of properties is reached.
    #[error("{max} properties are there already")]
    TooManyProperties {
        /// The limit.
        max: usize,
    },
}

impl<V: Value> Curve<V> {
    /// Applies a change.
    ///
    /// # Errors
    ///
    /// Those of the method for this change.
    pub fn apply(&mut self, edit: &Edit<V>) -> Result<(), EditError> {
        match *edit {
            Edit::Add(keyframe) => self.add(keyframe),
            Edit::Remove { time } => self.remove(time).map(drop),
            Edit::Move { time, by } => self.move_one(time, by),
            Edit::MoveWithin { from, to, by } => self.move_within(from, to, by).map(drop),
            Edit::Clear => {
                self.clear();
                Ok(())
            }
        }
    }

    /// Adds a keyframe, after those at the same time.
    ///
    /// # Errors
    ///
    /// If its time, value or interpolation is not allowed, if it exists already, or if a limit is reached.
    pub fn add(&mut self, keyframe: Keyframe<V>) -> Result<(), EditError> {
        let Keyframe {
            time,
            value,
            interpolation,
        } = keyframe;
        if !time.is_valid() {
            return Err(EditError::TimeOutOfRange { time });
        }
        value.check()?;
        if let Some(interpolation) = interpolation
            && !V::supports(interpolation)
        {
            return Err(EditError::Interpolation { interpolation });
        }
        let slot = Slot {
            value,
            interpolation,
        };
        let micros = time.as_micros();
        let index = self.count_until(micros);
        let same = self.first_at_or_after(micros)..index;
        if same.len() >= self.config.max_at_one_time {
            let max = self.config.max_at_one_time;
            return Err(EditError::TooManyAtOneTime { time, max });
        }
        if !self.config.duplicates && same.into_iter().any(|index| self.slots[index] == slot) {
            return Err(EditError::Duplicate { time });
        }
        let gone = self.make_room(index, time)?;
        let index = index - gone;
        self.times.insert(index, micros);
        self.slots.insert(index, slot);
        self.velocities += usize::from(self.is_velocity(index));
        self.integrate_from(index);
        Ok(())
    }

    /// Removes all keyframes at a time and returns their number.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn remove(&mut self, time: Time) -> Result<usize, EditError> {
        let micros = time.as_micros();
        let found = self.first_at_or_after(micros)..self.count_until(micros);
        if found.is_empty() {
            return Err(EditError::NoKeyframe { time });
        }
        let velocities = found.clone().filter(|&index| self.is_velocity(index));
        self.velocities -= velocities.count();
        self.times.drain(found.clone());
        self.slots.drain(found.clone());
        self.integrate_from(found.start);
        Ok(found.len())
    }

    /// Moves one keyframe, the first if there are several at this time. It may pass others. If it meets
    /// one, both have the same time, in their former order.
    ///
    /// # Errors
    ///
    /// If there is none, or if the keyframe is not allowed at its new time.
    pub fn move_one(&mut self, time: Time, by: Span) -> Result<(), EditError> {
        let index = self.first_at_or_after(time.as_micros());
        if self.times.get(index) != Some(&time.as_micros()) {
            return Err(EditError::NoKeyframe { time });
        }
        self.move_range(index..index + 1, by)
    }

    /// Moves all keyframes from `from` to `to`, both included, as [`move_one`](Self::move_one) does, and
    /// returns their number.
    ///
    /// # Errors
    ///
    /// If there is none, or if one is not allowed at its new time.
    pub fn move_within(&mut self, from: Time, to: Time, by: Span) -> Result<usize, EditError> {
        let first = self.first_at_or_after(from.as_micros());
        let moved = first..self.count_until(to.as_micros()).max(first);
        if moved.is_empty() {
            return Err(EditError::NoKeyframe { time: from });
        }
        self.move_range(moved.clone(), by)?;
        Ok(moved.len())
    }

    /// Removes all keyframes. Velocities start from the configured origin again.
    pub fn clear(&mut self) {
        *self = Self::new(self.config.clone());
    }

    fn move_range(&mut self, moved: std::ops::Range<usize>, by: Span) -> Result<(), EditError> {
        let offset = by.as_micros();
        let shifted = |index: usize| Time::from_micros(self.times[index]) + by;
        let (first, last) = (shifted(moved.start), shifted(moved.end - 1));
        for time in [first, last] {
            if !time.is_valid() {
                return Err(EditError::TimeOutOfRange { time });
            }
        }
        // Sorts them together with those that they pass; the sort is stable, which keeps the order of equal
        // times.
        let from = moved.start.min(self.first_at_or_after(first.as_micros()));
        let until = moved.end.max(self.count_until(last.as_micros()));
        let mut sorted: Vec<(i64, Slot<V>)> = (from..until)
            .map(|index| {
                let by = if moved.contains(&index) { offset } else { 0 };
                (self.times[index] + by, self.slots[index])
            })
            .collect();
        sorted.sort_by_key(|&(time, _)| time);
        let max = self.config.max_at_one_time;
        if let Some(crowd) = sorted.windows(max + 1).find(|few| few[0].0 == few[max].0) {
            let time = Time::from_micros(crowd[0].0);
            return Err(EditError::TooManyAtOneTime { time, max });
        }
        if !self.config.duplicates
            && let Some(time) = duplicate(&sorted)
        {
            return Err(EditError::Duplicate { time });
        }
        for (index, (time, slot)) in (from..).zip(sorted) {
            self.times[index] = time;
            self.slots[index] = slot;
        }
        self.integrate_from(from);
        Ok(())
    }
}

/// The time of the first two equal keyframes.
fn duplicate<V: PartialEq>(sorted: &[(i64, Slot<V>)]) -> Option<Time> {
    let at_one_time = sorted.chunk_by(|one, next| one.0 == next.0);
    let twice =
        |few: &&[(i64, Slot<V>)]| (1..few.len()).any(|index| few[..index].contains(&few[index]));
    let found = at_one_time.into_iter().find(twice)?;
    Some(Time::from_micros(found[0].0))
}
