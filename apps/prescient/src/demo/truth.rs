//! What was true in recent ticks, to compare with what clients show.

use std::collections::VecDeque;

use prescient::{State, Tick};

use super::creature::Creature;

/// The cells of a creature as both ends count them, the number last.
pub type Row = Vec<i64>;

/// The recent truth.
#[derive(Debug, Default)]
pub struct Truth {
    ticks: VecDeque<TickTruth>,
}

/// A creature as a client shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What it is like.
    pub row: Row,
    /// The tick that it was like this.
    pub tick: Tick,
}

/// The truth of a tick.
#[derive(Debug)]
struct TickTruth {
    tick: Tick,
    /// By number.
    rows: Vec<Row>,
}

/// What became of a comparison, in values: one for each field of each creature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Values that were compared.
    pub compared: u64,
    /// Values that have changed between the tick that they are shown as of and the newest one that
    /// is shown. Where a packet has no room for all, some have to wait for the next.
    pub late: u64,
    /// Values that were not like this at the tick that they are shown as of.
    pub wrong: u64,
}

impl Truth {
    /// This is true now.
    pub fn push(&mut self, tick: Tick, rows: Vec<Row>) {
        if self.ticks.len() == DEPTH {
            self.ticks.pop_front();
        }
        self.ticks.push_back(TickTruth { tick, rows });
    }

    /// The newest tick.
    pub fn tick(&self) -> Option<Tick> {
        self.ticks.back().map(|tick_truth| tick_truth.tick)
    }

    /// What is true now.
    pub fn rows(&self) -> &[Row] {
        self.ticks.back().map_or(&[], |tick_truth| &tick_truth.rows)
    }

    /// Compares what a client shows up to a tick with what was. Nothing is compared with a tick
    /// that is forgotten.
    pub fn judge(&self, newest: Tick, shown: &[Shown]) -> Verdict {
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
    /// How many values of a creature were something else.
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

/// A creature as both ends count it.
pub fn row_of(creature: &Creature) -> Row {
    creature.to_row(Creature::TABLES[0])
}

fn number_of(row: &Row) -> usize {
    row.last().map_or(usize::MAX, |&number| number as usize)
}

/// Ticks that are remembered: longer than any of the links takes.
const DEPTH: usize = 300;

#[cfg(test)]
mod tests {
    use super::super::pond::Pond;
    use super::*;

    /// Fails if what is shown is compared with another tick than its own, or not at all, or if
    /// something that was true only earlier passes for late.
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
        let judged = |newest: u32, tick: u32, rows: &[Row]| {
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
