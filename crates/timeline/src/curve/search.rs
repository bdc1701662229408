//! Finding the keyframes around a time.

use super::Curve;
use crate::value::Value;

/// Remembers where in a curve the last look-up was, so that the next one nearby costs the same however
/// many keyframes there are.
///
/// It is a guess, not a reference: after edits, or with another curve, look-ups are as right as without
/// it, and only slower.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor(usize);

impl<V: Value> Curve<V> {
    /// How many keyframes are at or before a time.
    #[inline]
    pub(super) fn count_until(&self, time: i64) -> usize {
        let (front, back) = self.times.as_slices();
        match back.first() {
            Some(&first) if first <= time => front.len() + count_until(back, time),
            _ => count_until(front, time),
        }
    }

    /// The index of the first keyframe at or after a time.
    pub(super) fn first_at_or_after(&self, time: i64) -> usize {
        self.times.partition_point(|&other| other < time)
    }

    /// As `count_until`, searching outwards from where the cursor was: logarithmic in how far it moves.
    pub(super) fn count_until_near(&self, cursor: &mut Cursor, time: i64) -> usize {
        let guess = cursor.0.min(self.len());
        let found = if guess < self.len() && self.times[guess] <= time {
            self.search_after(guess, time)
        } else {
            self.search_before(guess, time)
        };
        cursor.0 = found;
        found
    }

    /// The keyframe at `from` is at or before the time.
    fn search_after(&self, from: usize, time: i64) -> usize {
        let (mut low, mut step) = (from, 1);
        while low + step < self.len() && self.times[low + step] <= time {
            low += step;
            step *= 2;
        }
        self.search_between(low, (low + step).min(self.len()), time)
    }

    /// The keyframe at `from`, if there is one, is after the time.
    fn search_before(&self, from: usize, time: i64) -> usize {
        let (mut high, mut step) = (from, 1);
        while high >= step && self.times[high - step] > time {
            high -= step;
            step *= 2;
        }
        let low = high.saturating_sub(step);
        if high == 0 || self.times[low] > time {
            return 0;
        }
        self.search_between(low, high, time)
    }

    /// `low` is at or before the time, `high` after it or the end.
    fn search_between(&self, mut low: usize, mut high: usize, time: i64) -> usize {
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.times[middle] <= time {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// How many of ascending times are at or before a time.
///
/// Halving a large curve waits for memory at each step. Keyframes mostly come evenly, so two guesses from
/// their density come near enough to search a few lines of cache; where they do not, it is halving again.
/// There is nothing in here that a processor mispredicts often, so that it can begin the next look-up while
/// this one waits; on some, a return from a function would be in the way.
#[inline(always)]
fn count_until(times: &[i64], time: i64) -> usize {
    let halve = |times: &[i64]| times.partition_point(|&other| other <= time);
    let end = match times {
        [first, .., last] if times.len() > NEAR && *first <= time && time < *last => {
            times.len() - 1
        }
        _ => return halve(times),
    };
    let density = end as f64 / (times[end] - times[0]) as f64;
    let guess = |from: usize| {
        let off = (time - times[from]) as f64 * density;
        (from as f64 + off).clamp(0.0, end as f64) as usize
    };
    let start = guess(guess(0)).saturating_sub(NEAR / 2);
    let start = start.min(times.len() - NEAR);
    let near = &times[start..][..NEAR];
    if near[0] <= time && time < near[NEAR - 1] {
        start + halve(near)
    } else {
        halve(times)
    }
}

const NEAR: usize = 32;
