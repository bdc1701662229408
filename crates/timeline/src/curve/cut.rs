//! Keyframes that split a segment without changing the curve before them.

use super::{Curve, Extrapolation, Interpolation, Keyframe};
use crate::time::{Span, Time};
use crate::value::{Fraction, Value};

/// What an edit after a time needs so that the curve up to that time stays as it is.
pub(crate) enum Cut<V> {
    /// Nothing: later keyframes have no effect before the time.
    Nothing,
    /// This keyframe at the time.
    Keyframe(Keyframe<V>),
    /// No single keyframe is enough.
    Impossible,
}

impl<V: Value> Curve<V> {
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
            return Some(there);
        }
        // Where the curve holds after a velocity keyframe, only a velocity of zero describes it.
        (since <= continued || own == V::value_of(V::zero_sum())).then_some(own)
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
