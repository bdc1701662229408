//! Removal of old keyframes.

use super::config::check_error;
use super::{Curve, CurveConfigError, EditError, Interpolation, WhenFull};
use crate::time::Time;
use crate::value::{Fraction, Value};

impl<V: Value> Curve<V> {
    /// Drops the keyframes that look-ups at `time` and later do not need, and returns their number. This
    /// changes the curve before `time`. A smooth segment that contains `time` may start with another slope.
    pub fn drop_before(&mut self, time: Time) -> usize {
        let count = self.count_until(time.as_micros()).saturating_sub(1);
        // Of several keyframes at one time, the last one starts the segment.
        self.drop_first(count);
        count
    }

    /// Removes keyframes before `time` that straight lines between others replace within an error, and
    /// returns their number. No part is thinned twice, so errors do not add up.
    ///
    /// # Errors
    ///
    /// If the error is negative or not a number, or curves of this type cannot be thinned.
    pub fn thin_before(&mut self, time: Time, max_error: f64) -> Result<usize, CurveConfigError> {
        check_error::<V>(max_error)?;
        let until = self.first_at_or_after(time.as_micros());
        Ok(self.thin(until, max_error))
    }

    /// Makes room for a keyframe at `index`, and returns how many before it were removed.
    pub(super) fn make_room(&mut self, index: usize, time: Time) -> Result<usize, EditError> {
        let max = self.config.max_keyframes;
        if self.len() < max {
            return Ok(0);
        }
        if self.config.when_full == WhenFull::Refuse {
            return Err(EditError::Full { max });
        }
        if index == 0 {
            return Err(EditError::TooOld { time, max });
        }
        let before = self.len();
        let half = self.len() / 2;
        if let WhenFull::Thin { max_error } = self.config.when_full {
            let fresh = half.saturating_sub(self.thinned());
            // Thinning few keyframes would remove few and be repeated soon.
            if fresh >= (self.len() / 8).max(2) && index >= half {
                self.thin(half, max_error);
            }
        }
        if self.len() >= max {
            self.drop_first(self.len() + 1 - max);
        }
        Ok(before - self.len())
    }

    fn drop_first(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        if let Some(&reached) = self.reached.get(count) {
            self.origin = reached;
            self.reached.drain(..count);
        }
        let velocities = (0..count).filter(|&index| self.is_velocity(index)).count();
        self.velocities -= velocities;
        self.times.drain(..count);
        self.slots.drain(..count);
        if self.velocities == 0 {
            self.reached.clear();
        }
    }

    /// The number of keyframes at the front that were thinned.
    fn thinned(&self) -> usize {
        self.first_at_or_after(self.thinned_until)
    }

    /// Thins the keyframes up to an index that were not thinned yet, and returns how many were removed.
    fn thin(&mut self, until: usize, max_error: f64) -> usize {
        let start = self.thinned();
        if until <= start + 2 {
            return 0;
        }
        let mut kept = start + 1;
        let mut index = start;
        while index + 1 < until {
            let next = self.farthest(index, until, max_error);
            self.times[kept] = self.times[next];
            self.slots[kept] = self.slots[next];
            kept += 1;
            index = next;
        }
        self.thinned_until = self.times[kept - 1];
        let gone = until - kept;
        self.times.drain(kept..until);
        self.slots.drain(kept..until);
        self.integrate_from(start);
        gone
    }

    /// The last keyframe before `until` that one segment from `index` can reach; at least the next.
    fn farthest(&self, index: usize, until: usize, max_error: f64) -> usize {
        let interpolation = self.interpolation(index);
        let mut reached = index + 1;
        for next in index + 2..until.min(index + 2 + MAX_REPLACED) {
            let between = next - 1;
            let same = self.interpolation(between) == interpolation
                && !self.is_velocity(next)
                && self.times[between] > self.times[between - 1]
                && self.times[next] > self.times[between];
            let replaced = same
                && match interpolation {
                    Interpolation::Step => self.slots[between].value == self.slots[index].value,
                    Interpolation::Linear => self.line_passes(index, next, max_error),
                    _ => false,
                };
            if !replaced {
                // A longer line might fit again, but that is too rare to search for.
                break;
            }
            reached = next;
        }
        reached
    }

    fn line_passes(&self, first: usize, last: usize, max_error: f64) -> bool {
        let start = self.times[first];
        let length = self.times[last] - start;
        (first + 1..last).all(|index| {
            let elapsed = self.times[index] - start;
            let at = Fraction { elapsed, length };
            let (from, to) = (self.slots[first].value, self.slots[last].value);
            V::passes(from, to, at, self.slots[index].value, max_error)
        })
    }
}

/// The most keyframes that one segment replaces, which bounds the work.
const MAX_REPLACED: usize = 64;
