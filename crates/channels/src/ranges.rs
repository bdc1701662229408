//! Sets of mostly consecutive numbers.

/// Half-open ranges in ascending order. None is empty, and no two of them touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Adds the numbers from `start` up to `end`; returns how many of them are new.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let first = self.0.partition_point(|range| range.1 < start);
        let last = self.0.partition_point(|range| range.0 <= end);
        if first == last {
            self.0.insert(first, (start, end));
            return end - start;
        }
        let there: u64 = self.0[first..last]
            .iter()
            .map(|range| range.1 - range.0)
            .sum();
        let joined = (start.min(self.0[first].0), end.max(self.0[last - 1].1));
        self.0[first] = joined;
        self.0.drain(first + 1..last);
        joined.1 - joined.0 - there
    }

    /// Removes the numbers from `start` up to `end`.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        let first = self.0.partition_point(|range| range.1 <= start);
        let last = self.0.partition_point(|range| range.0 < end);
        if first >= last || start >= end {
            return;
        }
        let kept = [(self.0[first].0, start), (end, self.0[last - 1].1)];
        let kept = kept.into_iter().filter(|range| range.0 < range.1);
        self.0.splice(first..last, kept);
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        let place = self.0.partition_point(|range| range.1 <= number);
        self.0.get(place).is_some_and(|range| range.0 <= number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.0.first().copied()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }

    /// Drops the lowest ranges until at most `max` are left.
    pub(crate) fn keep_highest(&mut self, max: usize) {
        let excess = self.0.len().saturating_sub(max);
        self.0.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Fails if ranges that touch are not joined (`range.0 < end` in `insert`).
        #[test]
        fn it_agrees_with_a_set(steps in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..12), 0..60)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (add, start, length) in steps {
                let span = start..start + length;
                if add {
                    let new = span.clone().filter(|number| set.insert(*number)).count() as u64;
                    prop_assert_eq!(ranges.insert(start, span.end), new);
                } else {
                    ranges.remove(start, span.end);
                    set.retain(|number| !span.contains(number));
                }
                let listed: Vec<u64> = ranges.iter().flat_map(|(start, end)| start..end).collect();
                prop_assert_eq!(&listed, &set.iter().copied().collect::<Vec<_>>());
                prop_assert!((0..80).all(|number| ranges.contains(number) == set.contains(&number)));
                let apart = ranges.0.windows(2).all(|pair| pair[0].1 < pair[1].0);
                prop_assert!(apart && ranges.iter().all(|(start, end)| start < end));
            }
        }
    }

    /// Fails if `remove` drops the upper rest of a range (`(end, end)` in `kept`).
    #[test]
    fn all_numbers_are_a_range_like_any_other() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.insert(0, u64::MAX), u64::MAX);
        assert_eq!(ranges.insert(5, u64::MAX), 0);
        ranges.remove(7, u64::MAX - 1);
        assert_eq!(
            ranges.iter().collect::<Vec<_>>(),
            [(0, 7), (u64::MAX - 1, u64::MAX)]
        );
        ranges.keep_highest(1);
        assert_eq!(ranges.first(), Some((u64::MAX - 1, u64::MAX)));
    }
}
