//! Which entities move in a straight line. This is found once per tick, when it is captured, so that
//! the encoders of all clients need not compare rows to know that such an entity is as predicted.

use crate::units::Tick;

/// A straight line through the rows of an entity, up to its newest one: from one tick to the next
/// every field changed by the same difference, at the width of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The first tick of it.
    pub since: Tick,
    /// The fields that change along it, as bits. The rows of any two of its ticks that are fewer
    /// than [`MAX_AHEAD`](crate::past::MAX_AHEAD) apart differ, unless it is 0.
    pub moving: u64,
}

impl Line {
    /// No line: none of its ticks was captured.
    pub(crate) const NONE: Self = Self {
        since: Tick(u64::MAX),
        moving: 0,
    };

    /// The line of an entity that holds its row since a tick.
    #[inline]
    pub(crate) fn holding(since: Tick) -> Self {
        Self { since, moving: 0 }
    }

    /// The line after an entity changed in three ticks that are equally far apart, from the line
    /// after the middle one. `masks` has the bits in use of each field.
    #[inline]
    pub(super) fn extend(
        self,
        now: Tick,
        [present, middle, oldest]: [&[i64]; 3],
        masks: &[i64],
    ) -> Self {
        let n = masks.len();
        let none = Self::holding(now);
        if n > u64::BITS as usize || [present, middle, oldest].iter().any(|row| row.len() != n) {
            return none;
        }
        let bends = |at: usize| {
            let before = middle[at].wrapping_sub(oldest[at]);
            let after = present[at].wrapping_sub(middle[at]);
            after.wrapping_sub(before) & masks[at] != 0
        };
        if (0..n).any(bends) {
            return none;
        }
        let mut moving = 0;
        let mut returns_late = false;
        for at in 0..n {
            let step = present[at].wrapping_sub(middle[at]) & masks[at];
            moving |= u64::from(step != 0) << at;
            // It has its old value again after this power of two.
            let period = masks[at].count_ones().saturating_sub(step.trailing_zeros());
            returns_late |= period >= MIN_PERIOD;
        }
        match returns_late {
            true => Self {
                since: self.since.min(now),
                moving,
            },
            false => none,
        }
    }
}

/// A line along which a field takes longer than 2 to this power ticks to return to a value.
pub(crate) const MIN_PERIOD: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    const MASKS: [i64; 3] = [-1, 0xFFFF, 0xFF];

    fn extend(since: u64, rows: [[i64; 3]; 3]) -> Line {
        let line = Line {
            since: Tick(since),
            moving: 0,
        };
        let [present, middle, oldest] = &rows;
        line.extend(Tick(9), [present, middle, oldest], &MASKS)
    }

    /// Fails if a difference is compared without regard to the width of its field.
    #[test]
    fn equal_steps_go_on_with_the_line() {
        let line = extend(4, [[30, 5, 1], [20, 0xFFFE, 1], [10, 0xFFF7, 1]]);
        let expected = Line {
            since: Tick(4),
            moving: 0b11,
        };
        assert_eq!(line, expected);
    }

    /// Fails if a bend of any field is overlooked.
    #[test]
    fn a_bend_ends_the_line() {
        for at in 0..3 {
            let mut present = [30, 5, 1];
            present[at] += 1;
            let line = extend(4, [present, [20, 3, 1], [10, 1, 1]]);
            assert_eq!(line, Line::holding(Tick(9)), "field {at}");
        }
    }

    /// What turns by half a circle in a tick is where it was after two, so rows of a line need not
    /// differ. Fails if `returns_late` is always true.
    #[test]
    fn what_returns_soon_has_no_line() {
        let line = extend(4, [[10, 5, 0x80], [10, 5, 0], [10, 5, 0x80]]);
        assert_eq!(line, Line::holding(Tick(9)));
    }

    /// An entity that changed back in one tick held its row in the tick before. Fails if a line
    /// without movement is extended.
    #[test]
    fn a_row_that_came_back_has_no_line() {
        let line = extend(4, [[10, 5, 1], [10, 5, 1], [10, 5, 1]]);
        assert_eq!(line, Line::holding(Tick(9)));
    }
}
