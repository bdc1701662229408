//! Look-ups: the value of a curve at a time.

use super::{Cursor, Curve, Extrapolation, Interpolation};
use crate::time::Time;
use crate::value::{Fraction, Neighbour, Value};

impl<V: Value> Curve<V> {
    /// The value at a time: interpolated between keyframes, extrapolated outside them. `None` without
    /// keyframes, or where the extrapolation is [`Extrapolation::Absent`]. Takes time logarithmic in the
    /// number of keyframes.
    #[inline]
    pub fn at(&self, time: Time) -> Option<V> {
        let time = time.as_micros();
        self.at_count(self.count_until(time), time)
    }

    /// The same, in constant time if the last look-up with this cursor was nearby, before or after.
    #[inline]
    pub fn at_cursor(&self, cursor: &mut Cursor, time: Time) -> Option<V> {
        let time = time.as_micros();
        self.at_count(self.count_until_near(cursor, time), time)
    }

    /// The value at a time; `count` is the number of keyframes at or before it.
    #[inline]
    fn at_count(&self, count: usize, time: i64) -> Option<V> {
        if count == 0 {
            self.before_first(time)
        } else if count == self.len() {
            self.after_last(time)
        } else {
            Some(self.between(count - 1, time))
        }
    }

    /// The value on the segment that starts at a keyframe and ends at the next, which is later.
    #[inline]
    fn between(&self, index: usize, time: i64) -> V {
        let start = self.times[index];
        let at = Fraction {
            elapsed: time - start,
            length: self.times[index + 1] - start,
        };
        self.along(index, at)
    }

    /// The value on a segment, or on its continuation.
    #[inline]
    fn along(&self, index: usize, at: Fraction) -> V {
        let interpolation = self.interpolation(index);
        let from = self.slots[index].value;
        let to = self.slots[index + 1].value;
        // Tested first: the jump table of the `match` below would wait for memory in the common case.
        if interpolation == Interpolation::Linear && !self.is_velocity(index + 1) {
            return V::linear(from, to, at);
        }
        self.along_other(index, at)
    }

    fn along_other(&self, index: usize, at: Fraction) -> V {
        let from = self.slots[index].value;
        let to = self.slots[index + 1].value;
        match self.interpolation(index) {
            Interpolation::Velocity => V::value_of(self.integral(index, at)),
            Interpolation::Step => from,
            // A velocity keyframe has no value to interpolate to.
            _ if self.is_velocity(index + 1) => from,
            Interpolation::Linear => V::linear(from, to, at),
            Interpolation::Spherical => V::spherical(from, to, at),
            Interpolation::Smooth => {
                let (before, after) = (self.smooth_before(index), self.smooth_after(index + 1));
                V::smooth(before, from, to, after, at)
            }
        }
    }

    /// The value at a keyframe's time; for a velocity keyframe the integral.
    pub(super) fn value_at(&self, index: usize) -> V {
        if self.is_velocity(index) {
            V::value_of(self.reached[index])
        } else {
            self.slots[index].value
        }
    }

    fn before_first(&self, time: i64) -> Option<V> {
        let &first = self.times.front()?;
        match self.config.before {
            Extrapolation::Absent => None,
            Extrapolation::Hold => Some(self.value_at(0)),
            Extrapolation::Continue { at_most } => {
                let back = first
                    .saturating_sub(time)
                    .min(at_most.as_micros())
                    .min(FARTHEST);
                // Of several keyframes at the first time, the last one starts the segment.
                let index = self.count_until(first) - 1;
                let at = |length| Fraction {
                    elapsed: -back,
                    length,
                };
                if self.is_velocity(index) {
                    let rate = self.slots[index].value;
                    let sum = V::integrate(self.reached[index], rate, rate, at(1));
                    return Some(V::value_of(sum));
                }
                if index + 1 == self.len() || self.interpolation(index) == Interpolation::Step {
                    return Some(self.value_at(index));
                }
                let length = self.times[index + 1] - first;
                Some(self.straight(index, at(length)))
            }
        }
    }

    fn after_last(&self, time: i64) -> Option<V> {
        let last = self.len().checked_sub(1)?;
        match self.config.after {
            Extrapolation::Absent if time > self.times[last] => None,
            Extrapolation::Absent | Extrapolation::Hold => Some(self.value_at(last)),
            Extrapolation::Continue { at_most } => {
                let since = time.saturating_sub(self.times[last]);
                let on = since.min(at_most.as_micros()).min(FARTHEST);
                if self.is_velocity(last) {
                    let rate = self.slots[last].value;
                    let at = Fraction {
                        elapsed: on,
                        length: 1,
                    };
                    return Some(V::value_of(V::integrate(
                        self.reached[last],
                        rate,
                        rate,
                        at,
                    )));
                }
                let length = match last.checked_sub(1) {
                    Some(index) => self.times[last] - self.times[index],
                    None => 0,
                };
                let holds = self.interpolation(last) == Interpolation::Step
                    || length == 0
                    || self.is_velocity(last - 1);
                if holds {
                    return Some(self.value_at(last));
                }
                let elapsed = length + on;
                Some(self.straight(last - 1, Fraction { elapsed, length }))
            }
        }
    }

    /// The value on the continuation of a segment. A cubic continues as its tangent, which at the end of a
    /// curve is the straight line.
    fn straight(&self, index: usize, at: Fraction) -> V {
        match self.interpolation(index) {
            Interpolation::Smooth if !self.is_velocity(index + 1) => {
                V::linear(self.slots[index].value, self.slots[index + 1].value, at)
            }
            Interpolation::Step if at.elapsed > at.length => self.value_at(index + 1),
            _ => self.along(index, at),
        }
    }

    fn smooth_before(&self, index: usize) -> Neighbour<V> {
        let before = index.checked_sub(1)?;
        let length = self.times[index] - self.times[before];
        let smooth = self.interpolation(before) == Interpolation::Smooth && length > 0;
        smooth.then_some((self.slots[before].value, length))
    }

    fn smooth_after(&self, index: usize) -> Neighbour<V> {
        let after = index + 1;
        if after == self.len() || self.interpolation(index) != Interpolation::Smooth {
            return None;
        }
        let length = self.times[after] - self.times[index];
        (length > 0 && !self.is_velocity(after)).then_some((self.slots[after].value, length))
    }

    /// The integral up to a point of a segment that starts with a velocity keyframe.
    fn integral(&self, index: usize, at: Fraction) -> V::Sum {
        let rate = self.slots[index].value;
        let next = if self.is_velocity(index + 1) {
            self.slots[index + 1].value
        } else {
            rate
        };
        V::integrate(self.reached[index], rate, next, at)
    }

    /// Updates `reached` from the first keyframe on that changed.
    pub(super) fn integrate_from(&mut self, changed: usize) {
        if self.velocities == 0 {
            self.reached.clear();
            return;
        }
        let start = changed.min(self.reached.len());
        self.reached.truncate(start);
        for index in start..self.len() {
            let reached = self.reach(index);
            self.reached.push_back(reached);
        }
    }

    fn reach(&self, index: usize) -> V::Sum {
        if !self.is_velocity(index) {
            return V::sum_of(self.slots[index].value);
        }
        let Some(before) = index.checked_sub(1) else {
            return self.origin;
        };
        let length = self.times[index] - self.times[before];
        if length == 0 || !self.is_velocity(before) {
            return self.reached[before];
        }
        self.integral(before, Fraction::whole(length))
    }
}

/// The longest extrapolation in microseconds: longer than the span of all keyframes, and short enough that
/// integers do not overflow.
const FARTHEST: i64 = 1 << 54;
