//! What was true in recent ticks, to compare with what clients show.

use std::collections::VecDeque;

use prescient::{State, Tick};

use super::creature::Creature;

/// The cells of a creature as both ends count them, the number last.
pub type Row = Vec<i64>;

/// The recent truth.
#[derive(Debug, Default)]
pub struct Truth {
    moments: VecDeque<Moment>,
}

/// The truth of a tick.
#[derive(Debug)]
struct Moment {
    tick: Tick,
    /// By number.
    rows: Vec<Row>,
}

/// What became of a comparison, in values: one for each field of each creature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Values that were compared.
    pub compared: u64,
    /// Values that were true at an earlier tick than the one that is shown. Where a packet has no
    /// room for all, some have to wait for the next.
    pub late: u64,
    /// Values of creatures that never were like this.
    pub wrong: u64,
}

impl Truth {
    /// This is true now.
    pub fn push(&mut self, tick: Tick, rows: Vec<Row>) {
        if self.moments.len() == DEPTH {
            self.moments.pop_front();
        }
        self.moments.push_back(Moment { tick, rows });
    }

    /// The newest tick.
    pub fn tick(&self) -> Option<Tick> {
        self.moments.back().map(|moment| moment.tick)
    }

    /// What is true now.
    pub fn rows(&self) -> &[Row] {
        self.moments.back().map_or(&[], |moment| &moment.rows)
    }

    /// Compares what a client shows of a tick with what was. Nothing is compared if the tick is
    /// forgotten.
    pub fn judge(&self, tick: Tick, shown: &[Row]) -> Verdict {
        let mut verdict = Verdict::default();
        let at = self.moments.partition_point(|moment| moment.tick < tick);
        let Some(moment) = self.moments.get(at).filter(|moment| moment.tick == tick) else {
            return verdict;
        };
        for row in shown {
            verdict.compared += row.len() as u64;
            let number = number_of(row);
            let differing = match moment.rows.get(number) {
                Some(truth) => truth.iter().zip(row).filter(|(a, b)| a != b).count() as u64,
                None => row.len() as u64,
            };
            let was = |moment: &Moment| moment.rows.get(number) == Some(row);
            match differing {
                0 => {}
                _ if self.moments.range(..at).any(was) => verdict.late += differing,
                _ => verdict.wrong += differing,
            }
        }
        verdict
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
    /// something that was never true passes for late.
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
        let judged = |tick: u32, rows: &[Row]| truth.judge(Tick(tick), rows);
        let all = past[389].iter().map(|row| row.len() as u64).sum();
        let right = Verdict {
            compared: all,
            ..Verdict::default()
        };
        assert_eq!(judged(390, &past[389]), right);
        let old = judged(390, &past[385]);
        assert!(old.late > 100 && old.wrong == 0, "{old:?}");
        let early = judged(390, &past[393]);
        assert!(early.wrong > 100 && early.late == 0, "{early:?}");
        let mut lie = past[389].clone();
        lie[7][0] += 1;
        let Verdict { wrong, late, .. } = judged(390, &lie);
        assert_eq!((wrong, late), (1, 0));
        assert_eq!(judged(50, &past[49]), Verdict::default(), "forgotten");
        assert_eq!(judged(401, &past[399]), Verdict::default(), "not yet");
    }
}
