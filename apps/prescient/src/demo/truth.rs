//! The server's state of recent ticks, to compare with the clients' views.

use std::collections::VecDeque;

use prescient::{State, Tick};

use super::creature::Creature;

/// The cells of a creature; the index is the last.
pub(super) type Row = Vec<i64>;

/// The server's state of recent ticks.
#[derive(Debug, Default)]
pub(super) struct Truth {
    ticks: VecDeque<TickTruth>,
}

/// A creature as a client shows it.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// Its state.
    pub row: Row,
    /// The tick it is shown as of.
    pub tick: Tick,
}

/// The server's state of one tick.
#[derive(Debug)]
struct TickTruth {
    tick: Tick,
    /// By index.
    rows: Vec<Row>,
}

/// Result of a comparison, in values: one per field and creature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Values that were compared.
    pub compared: u64,
    /// Values that have changed between the tick they are shown as of and the newest tick of the
    /// view. If a packet has no room for everything, some entities wait for the next.
    pub late: u64,
    /// Values that the server did not have at the tick they are shown as of.
    pub wrong: u64,
}

impl Truth {
    /// Adds the state of a new tick.
    pub(super) fn push(&mut self, tick: Tick, rows: Vec<Row>) {
        if self.ticks.len() == DEPTH {
            self.ticks.pop_front();
        }
        self.ticks.push_back(TickTruth { tick, rows });
    }

    /// The newest tick.
    pub(super) fn tick(&self) -> Option<Tick> {
        self.ticks.back().map(|tick_truth| tick_truth.tick)
    }

    /// The newest state.
    pub(super) fn rows(&self) -> &[Row] {
        self.ticks.back().map_or(&[], |tick_truth| &tick_truth.rows)
    }

    /// Compares a client's view with the server's state. Values as of ticks that are no longer
    /// stored are not compared.
    pub(super) fn judge(&self, newest: Tick, shown: &[Shown]) -> Verdict {
        let mut verdict = Verdict::default();
        let Some(newest) = self.at(newest) else {
            return verdict;
        };
        for Shown { row, tick } in shown {
            let Some(then) = self.at(*tick) else {
                continue;
            };
            verdict.compared += row.len() as u64;
            match then.differing(row) {
                0 => verdict.late += newest.differing(row),
                wrong => verdict.wrong += wrong,
            }
        }
        verdict
    }

    fn at(&self, tick: Tick) -> Option<&TickTruth> {
        let at = self
            .ticks
            .partition_point(|tick_truth| tick_truth.tick < tick);
        self.ticks
            .get(at)
            .filter(|tick_truth| tick_truth.tick == tick)
    }
}

impl TickTruth {
    /// Number of values of a creature that differ.
    fn differing(&self, row: &Row) -> u64 {
        let differing = match self.rows.get(number_of(row)) {
            Some(truth) => truth.iter().zip(row).filter(|(a, b)| a != b).count(),
            None => row.len(),
        };
        differing as u64
    }
}

impl std::ops::AddAssign for Verdict {
    fn add_assign(&mut self, other: Self) {
        self.compared += other.compared;
        self.late += other.late;
        self.wrong += other.wrong;
    }
}

/// The cells of a creature.
pub(super) fn row_of(creature: &Creature) -> Row {
    creature.to_row(Creature::TABLES[0])
}

fn number_of(row: &Row) -> usize {
    row.last().map_or(usize::MAX, |&number| number as usize)
}

/// Number of stored ticks: longer than the delay of any link.
const DEPTH: usize = 300;

#[cfg(test)]
mod tests {
    use super::super::pond::Pond;
    use super::*;

    /// Fails if a value is compared with a tick other than its own, or not at all, or if a value
    /// that was true only at an earlier tick is counted as late.
    #[test]
    fn only_what_was_true_at_its_tick_agrees() {
        let mut pond = Pond::new(3);
        let mut truth = Truth::default();
        let mut past = Vec::new();
        for tick in 1..=400 {
            pond.step();
            let rows: Vec<Row> = pond.creatures().iter().map(row_of).collect();
            truth.push(Tick(tick), rows.clone());
            past.push(rows);
        }
        let judged = |newest: u64, tick: u64, rows: &[Row]| {
            let shown = |row: &Row| Shown {
                row: row.clone(),
                tick: Tick(tick),
            };
            let shown: Vec<Shown> = rows.iter().map(shown).collect();
            truth.judge(Tick(newest), &shown)
        };
        let all = past[389].iter().map(|row| row.len() as u64).sum();
        let right = Verdict {
            compared: all,
            ..Verdict::default()
        };
        assert_eq!(judged(390, 390, &past[389]), right);
        let old = judged(390, 386, &past[385]);
        assert!(old.late > 100 && old.wrong == 0, "{old:?}");
        let early = judged(390, 390, &past[385]);
        assert!(early.wrong > 100 && early.late == 0, "{early:?}");
        let mut lie = past[389].clone();
        lie[7][0] += 1;
        let Verdict { wrong, late, .. } = judged(390, 390, &lie);
        assert_eq!((wrong, late), (1, 0));
        for (newest, tick) in [(50, 50), (390, 50), (401, 400), (390, 401)] {
            let shown = &past[tick as usize - 1..].first().unwrap_or(&past[399]);
            assert_eq!(judged(newest, tick, shown), Verdict::default(), "unknown");
        }
    }
}
