//! Learned transitions of an enumeration: the frequency of each state after each other state.
//!
//! One row of frequencies per previous state, and one for entities without one. Only observed
//! transitions are stored; the unseen states of a row share the weight that a full table would give
//! them.

use std::{collections::BTreeMap, sync::Arc};

use super::distribution::{FLOOR, INCREMENT, LIMIT};

/// The transitions of one field.
#[derive(Clone, Debug)]
pub(super) struct Transitions {
    values: u32,
    rows: BTreeMap<Option<u32>, Arc<Row>>,
}

#[derive(Clone, Debug, Default)]
struct Row {
    /// State and frequency in order of first appearance.
    seen: Vec<(u32, u32)>,
    sum: u32,
}

/// The interval of a state in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SymbolRange {
    /// The state was observed after the previous one.
    Seen { start: u32, size: u32 },
    /// It was not: the shared interval, then its rank among the unseen states.
    Unseen { start: u32, size: u32, rank: u32 },
}

/// Limits the weight of the unseen states of a large enumeration.
const MAX_UNSEEN_WEIGHT: u32 = 8 * INCREMENT;

impl Transitions {
    pub(super) fn new(values: u32) -> Self {
        Self {
            values,
            rows: BTreeMap::new(),
        }
    }

    /// Whether the enumeration has this state.
    pub(super) fn contains(&self, state: u32) -> bool {
        state < self.values
    }

    /// Bytes of a state at natural width.
    pub(super) fn width(&self) -> usize {
        match self.values {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        }
    }

    /// The sum of a row's frequencies.
    pub(super) fn total(&self, from: Option<u32>) -> u32 {
        let (seen, sum) = self.row(from);
        sum + self.unseen_weight(seen.len())
    }

    /// Number of states not observed after this one.
    pub(super) fn unseen(&self, from: Option<u32>) -> u32 {
        self.values - self.row(from).0.len() as u32
    }

    pub(super) fn range_of(&self, from: Option<u32>, to: u32) -> SymbolRange {
        let (seen, sum) = self.row(from);
        let mut start = 0;
        let mut smaller = 0;
        for &(state, size) in seen {
            if state == to {
                return SymbolRange::Seen { start, size };
            }
            start += size;
            smaller += u32::from(state < to);
        }
        SymbolRange::Unseen {
            start: sum,
            size: self.unseen_weight(seen.len()),
            rank: to - smaller,
        }
    }

    /// The state at a position of a row and its interval; `None` for the interval of unseen states.
    pub(super) fn find(&self, from: Option<u32>, at: u32) -> (Option<u32>, u32, u32) {
        let (seen, sum) = self.row(from);
        let mut start = 0;
        for &(state, size) in seen {
            if at - start < size {
                return (Some(state), start, size);
            }
            start += size;
        }
        (None, sum, self.unseen_weight(seen.len()))
    }

    /// The unseen state of this rank.
    pub(super) fn unseen_at(&self, from: Option<u32>, rank: u32) -> u32 {
        let mut states: Vec<u32> = self.row(from).0.iter().map(|&(state, _)| state).collect();
        states.sort_unstable();
        states
            .iter()
            .fold(rank, |value, &state| value + u32::from(state <= value))
    }

    pub(super) fn record(&mut self, from: Option<u32>, to: u32) {
        let row = Arc::make_mut(self.rows.entry(from).or_default());
        match row.seen.iter().position(|&(state, _)| state == to) {
            Some(index) => {
                row.seen[index].1 += INCREMENT;
                // Frequent states move to the front, where they are found first.
                if index > 0 && row.seen[index - 1].1 < row.seen[index].1 {
                    row.seen.swap(index - 1, index);
                }
            }
            None => row.seen.push((to, INCREMENT + FLOOR)),
        }
        row.sum = row.seen.iter().map(|&(_, size)| size).sum();
        if row.sum >= LIMIT {
            row.seen
                .iter_mut()
                .for_each(|(_, size)| *size = (*size / 2).max(FLOOR));
            row.sum = row.seen.iter().map(|&(_, size)| size).sum();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.values().map(|row| 48 + 8 * row.seen.len()).sum()
    }

    fn row(&self, from: Option<u32>) -> (&[(u32, u32)], u32) {
        self.rows
            .get(&from)
            .map_or((&[], 0), |row| (&row.seen, row.sum))
    }

    fn unseen_weight(&self, seen: usize) -> u32 {
        (self.values - seen as u32)
            .saturating_mul(FLOOR)
            .min(MAX_UNSEEN_WEIGHT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seen_and_unseen_states_are_found_again() {
        let mut transitions = Transitions::new(9);
        for to in [4, 4, 1, 8, 4, 1] {
            transitions.record(Some(3), to);
        }
        let total = transitions.total(Some(3));
        let mut covered = 0;
        for to in 0..9 {
            match transitions.range_of(Some(3), to) {
                SymbolRange::Seen { start, size } => {
                    covered += size;
                    assert_eq!(transitions.find(Some(3), start), (Some(to), start, size));
                }
                SymbolRange::Unseen { start, size, rank } => {
                    assert_eq!(start + size, total);
                    assert_eq!(transitions.find(Some(3), start), (None, start, size));
                    assert!(rank < transitions.unseen(Some(3)));
                    assert_eq!(transitions.unseen_at(Some(3), rank), to);
                }
            }
        }
        assert_eq!(covered + transitions.unseen_weight(3), total);
    }
}
