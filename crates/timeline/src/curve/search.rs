//! The search for the keyframes around a time.

use super::Curve;
use crate::value::Value;

/// The position of the last look-up in a curve. The next look-up nearby takes constant time, independent of
/// the number of keyframes.
///
/// It is a hint: after edits, or with another curve, look-ups are correct and only slower.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor(usize);

impl<V: Value> Curve<V> {
    /// The number of keyframes at or before a time.
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

    /// As `count_until`, but searches outwards from the cursor: logarithmic in the distance.
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

    /// Searches from `from` on, whose keyframe is at or before the time.
    fn search_after(&self, from: usize, time: i64) -> usize {
        let (mut low, mut step) = (from, 1);
        while low + step < self.len() && self.times[low + step] <= time {
            low += step;
            step *= 2;
        }
        self.search_between(low, (low + step).min(self.len()), time)
    }

    /// Searches before `from`, whose keyframe is after the time or does not exist.
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

    /// Bisects: `low` is at or before the time, `high` after it or the end.
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

/// The number of ascending times at or before a time.
///
/// Bisecting a large curve waits for memory at each step. Keyframes are mostly evenly spaced, so two guesses
/// from their density are close enough to search a few cache lines; otherwise it bisects. The code avoids
/// branches that are often mispredicted, so that a processor can start the next look-up while this one
/// waits for memory; it is inlined because a return can prevent that.
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
