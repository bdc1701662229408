//! Keyframes that split a segment without a change of the curve before them.

use super::{Curve, Extrapolation, Interpolation, Keyframe};
use crate::time::{Span, Time};
use crate::value::{Fraction, Value};

/// What must be added at a time so that edits after it do not change the curve before it.
pub(crate) enum Cut<V> {
    /// Nothing: later keyframes have no effect before the time.
    Nothing,
    /// This keyframe.
    Keyframe(Keyframe<V>),
    /// No single keyframe is enough.
    Impossible,
}

impl<V: Value> Curve<V> {
    /// How many keyframes after a time the curve up to it depends on: the end of the segment that the time
    /// is on, or the line that is continued to before the first keyframe. A smooth segment depends on
    /// another one, which is not counted.
    pub(crate) fn decisive_after(&self, time: Time) -> usize {
        let is_before_first = self.first_time().is_some_and(|first| time < first);
        match (self.config.before, self.times.front()) {
            (Extrapolation::Continue { .. }, Some(&first)) if is_before_first => {
                self.count_until(first) + 1
            }
            _ => 1,
        }
    }

    pub(crate) fn cut(&self, time: Time) -> Cut<V> {
        let count = self.count_until(time.as_micros());
        let Some(index) = count.checked_sub(1) else {
            return self.cut_before_first(time);
        };
        if self.times[index] == time.as_micros() {
            return Cut::Nothing;
        }
        let value = if count == self.len() {
            self.cut_value_after_last(time)
        } else if self.is_velocity(index) {
            Some(self.velocity_at(index, time.as_micros()))
        } else {
            self.at(time)
        };
        let interpolation = self.slots[index].interpolation;
        value.map_or(Cut::Impossible, |value| {
            Cut::Keyframe(Keyframe {
                time,
                value,
                interpolation,
            })
        })
    }

    fn cut_before_first(&self, time: Time) -> Cut<V> {
        match (self.config.before, self.at(time)) {
            (Extrapolation::Hold, Some(value)) => {
                Cut::Keyframe(Keyframe::new(time, value).with(Interpolation::Step))
            }
            (Extrapolation::Continue { .. }, Some(_)) => Cut::Impossible,
            _ => Cut::Nothing,
        }
    }

    /// The value of a keyframe at a time after the last one that leaves the extrapolated part between them
    /// unchanged; `None` if there is none.
    fn cut_value_after_last(&self, time: Time) -> Option<V> {
        let last = self.len() - 1;
        let since = time.since(Time::from_micros(self.times[last]));
        let continued = match self.config.after {
            Extrapolation::Absent => return None,
            Extrapolation::Hold => Span::ZERO,
            Extrapolation::Continue { at_most } => at_most,
        };
        let (own, there) = (self.slots[last].value, self.at(time)?);
        let rests = there == self.value_at(last);
        if !rests && since > continued {
            return None;
        }
        if !self.is_velocity(last) {
            return self.is_turn_kept(last, time, there).then_some(there);
        }
        // If the curve holds after a velocity keyframe, only a velocity of zero describes it.
        (since <= continued || own == V::value_of(V::zero_sum())).then_some(own)
    }

    /// False if a spherical segment from the last keyframe to this value turns the other way than the
    /// extrapolation does, which has turned by more than half a turn.
    fn is_turn_kept(&self, last: usize, time: Time, there: V) -> bool {
        if self.interpolation(last) != Interpolation::Spherical {
            return true;
        }
        let start = self.times[last];
        let length = time.as_micros() - start;
        let halfway = Fraction {
            elapsed: length / 2,
            length,
        };
        let turned = V::spherical(self.slots[last].value, there, halfway);
        let extrapolated = self.at(Time::from_micros(start + halfway.elapsed));
        // The other way differs by half a turn at least, the same way by rounding.
        extrapolated.is_some_and(|value| 4.0 * value.distance(turned) <= value.distance(there))
    }

    /// The velocity at a time on a segment that starts with a velocity keyframe.
    fn velocity_at(&self, index: usize, time: i64) -> V {
        let (from, to) = (self.slots[index].value, self.slots[index + 1].value);
        if !self.is_velocity(index + 1) {
            return from;
        }
        let start = self.times[index];
        let at = Fraction {
            elapsed: time - start,
            length: self.times[index + 1] - start,
        };
        V::linear(from, to, at)
    }
}
