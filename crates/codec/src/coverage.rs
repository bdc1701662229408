//! Which entities the packets of recent ticks covered.
//!
//! The rows of a receiver have a value for every entity at every tick, also where no packet said
//! one: an entity that a partial packet left out keeps its row. Only covered rows are those of the
//! sender.

use alloc::{collections::VecDeque, vec::Vec};

use crate::units::Tick;

/// The covered entities of recent ticks. A tick may be told in several packets, of which each adds
/// to what is known of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    /// In ascending order of ticks.
    ticks: VecDeque<(Tick, Covered)>,
    /// Ids in all lists.
    listed: usize,
}

#[derive(Clone, Debug)]
enum Covered {
    All,
    /// Ascending.
    Listed(Vec<u32>),
}

impl Covered {
    fn listed(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Listed(ids) => ids.len(),
        }
    }
}

impl Coverage {
    /// Adds the entities that a packet of a tick covered, in ascending order; `None` for all.
    pub(crate) fn add(&mut self, tick: Tick, covered: Option<&[u32]>) {
        let at = match self.ticks.binary_search_by_key(&tick, |(tick, _)| *tick) {
            Ok(at) => at,
            Err(at) => {
                self.ticks.insert(at, (tick, Covered::Listed(Vec::new())));
                at
            }
        };
        let known = &mut self.ticks[at].1;
        self.listed -= known.listed();
        match (&mut *known, covered) {
            (Covered::All, _) => {}
            (Covered::Listed(_), None) => *known = Covered::All,
            (Covered::Listed(ids), Some(covered)) if ids.is_empty() => *ids = covered.into(),
            (Covered::Listed(ids), Some(covered)) => {
                ids.extend_from_slice(covered);
                ids.sort_unstable();
                ids.dedup();
            }
        }
        self.listed += known.listed();
    }

    /// Whether a packet of a tick covered an entity that was alive then.
    pub(crate) fn includes(&self, tick: Tick, id: u32) -> bool {
        let at = self.ticks.binary_search_by_key(&tick, |(tick, _)| *tick);
        match at.map(|at| &self.ticks[at].1) {
            Ok(Covered::All) => true,
            Ok(Covered::Listed(ids)) => ids.binary_search(&id).is_ok(),
            Err(_) => false,
        }
    }

    /// Drops ticks before this one.
    pub(crate) fn drop_before(&mut self, oldest: Tick) {
        while let Some((_, old)) = self.ticks.pop_front_if(|(tick, _)| *tick < oldest) {
            self.listed -= old.listed();
        }
    }

    /// Bytes that remain when ticks before this one are dropped.
    pub(crate) fn bytes_from(&self, oldest: Tick) -> usize {
        let old = self.ticks.iter().take_while(|(tick, _)| *tick < oldest);
        let (mut ticks, mut listed) = (self.ticks.len(), self.listed);
        for (_, old) in old {
            ticks -= 1;
            listed -= old.listed();
        }
        ticks * size_of::<(Tick, Covered)>() + listed * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if `add` replaces what an earlier packet of the tick covered, if it does not sort, or
    /// if a list replaces `All`.
    #[test]
    fn packets_of_a_tick_add_up() {
        let mut coverage = Coverage::default();
        let covered = |coverage: &Coverage, tick| {
            let ids = (0..10).filter(|&id| coverage.includes(Tick(tick), id));
            ids.collect::<Vec<u32>>()
        };
        coverage.add(Tick(3), Some(&[4, 7]));
        coverage.add(Tick(5), Some(&[]));
        coverage.add(Tick(3), Some(&[1, 4, 5]));
        assert_eq!(covered(&coverage, 3), [1, 4, 5, 7]);
        assert_eq!(covered(&coverage, 4), []);
        assert_eq!(covered(&coverage, 5), []);
        coverage.add(Tick(4), Some(&[2]));
        assert_eq!(covered(&coverage, 4), [2]);
        coverage.add(Tick(3), None);
        coverage.add(Tick(3), Some(&[9]));
        assert_eq!(covered(&coverage, 3).len(), 10);
        assert_eq!(covered(&coverage, 4), [2]);
    }

    /// Fails if `add` counts an id twice, or `drop_before` or `bytes_from` does not subtract.
    #[test]
    fn bytes_are_those_of_kept_ticks() {
        let mut coverage = Coverage::default();
        let tick = size_of::<(Tick, Covered)>();
        coverage.add(Tick(1), Some(&[1, 2, 3]));
        coverage.add(Tick(1), Some(&[2, 4]));
        coverage.add(Tick(2), None);
        coverage.add(Tick(4), Some(&[8]));
        let counts = |coverage: &Coverage| [0, 2, 3, 5].map(|at| coverage.bytes_from(Tick(at)));
        assert_eq!(
            counts(&coverage),
            [3 * tick + 5 * 4, 2 * tick + 4, tick + 4, 0]
        );
        coverage.drop_before(Tick(2));
        assert_eq!(counts(&coverage), [2 * tick + 4, 2 * tick + 4, tick + 4, 0]);
        assert!(!coverage.includes(Tick(1), 1));
        coverage.drop_before(Tick(9));
        assert_eq!(counts(&coverage), [0; 4]);
    }
}
