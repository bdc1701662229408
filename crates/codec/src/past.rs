//! What both ends know of an entity's past, and what they expect of it.

use alloc::{sync::Arc, vec::Vec};

use prescient_schema::{Content, Contract, Shape};

use crate::{
    layout::{ClassLayout, Rate},
    predict::{
        BENT, DECLARED, DEPTH, Guesses, HOLD, LINE, Plan, Predictor, ROWS, Samples, WIDE, divide,
        wrap,
    },
    twin::{Book, FieldState, Head},
    units::Tick,
};

/// An entity's rows at the ticks it is predicted from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past<'a> {
    pub class: &'a ClassLayout,
    pub plan: Plan,
    /// In the order of [`Samples::ticks`].
    pub rows: [&'a [i64]; ROWS],
    /// What the class's contract makes of the newest row; empty without one.
    pub contract: &'a [i64],
    /// What containers of a row hold that an archive may have forgotten.
    pub kept: &'a [Arc<Content>],
}

impl<'a> Past<'a> {
    /// An entity that is only known to hold a row.
    pub fn resting(class: &'a ClassLayout, row: &'a [i64]) -> Self {
        Self {
            class,
            plan: Plan::resting(),
            rows: [row; ROWS],
            contract: &[],
            kept: &[],
        }
    }

    /// The newest row.
    pub fn newest(&self) -> &'a [i64] {
        self.rows[0]
    }

    /// Which predictors have a say about a field.
    #[inline]
    fn known(&self, at: usize, shape: Shape) -> u8 {
        let declared = if !self.contract.is_empty() {
            DECLARED
        } else {
            0
        };
        match shape {
            Shape::Symbol { .. } => HOLD | declared,
            Shape::Number { .. } if self.class.rates[at].is_some() => self.plan.known | DECLARED,
            Shape::Number { .. } => self.plan.known | declared,
            Shape::Content | Shape::Reference => HOLD,
        }
    }

    /// The predictor of a field.
    #[inline]
    pub fn choose(&self, at: usize, state: &FieldState) -> Predictor {
        state.costs.best(self.known(at, self.class.shapes[at]))
    }

    /// What one predictor says. `now` holds the fields of the present row that were coded before.
    #[inline]
    pub fn guess(&self, predictor: Predictor, at: usize, now: &[i64]) -> i64 {
        let shape = self.class.shapes[at];
        let newest = self.rows[0][at];
        let step = match predictor {
            Predictor::Hold => return newest,
            Predictor::Linear => self.line(at, shape),
            Predictor::Wide => self.plan.wide(shape, newest, self.rows[2][at]),
            Predictor::Bent => between(self.line(at, shape), self.bow(at, shape)),
            Predictor::Declared => match self.declared(at, now) {
                Some(Declared::Value(value)) => return value,
                Some(Declared::Step(step)) => step,
                None => self.bow(at, shape),
            },
        };
        wrap(newest.wrapping_add(step), shape)
    }

    /// What all of them say.
    #[inline]
    pub fn guesses(&self, at: usize, now: &[i64]) -> Guesses {
        let shape = self.class.shapes[at];
        let known = self.known(at, shape);
        let newest = self.rows[0][at];
        let reached = |step: i64| wrap(newest.wrapping_add(step), shape);
        let mut values = [newest; 5];
        if known & LINE != 0 {
            let line = self.line(at, shape);
            values[Predictor::Linear as usize] = reached(line);
            if known & WIDE != 0 {
                let wide = self.plan.wide(shape, newest, self.rows[2][at]);
                values[Predictor::Wide as usize] = reached(wide);
            }
            if known & BENT != 0 {
                let bow = self.bow(at, shape);
                values[Predictor::Bent as usize] = reached(between(line, bow));
                values[Predictor::Declared as usize] = reached(bow);
            }
        }
        match self.declared(at, now) {
            Some(Declared::Value(value)) => values[Predictor::Declared as usize] = value,
            Some(Declared::Step(step)) => values[Predictor::Declared as usize] = reached(step),
            None => {}
        }
        Guesses { values, known }
    }

    #[inline]
    fn line(&self, at: usize, shape: Shape) -> i64 {
        self.plan.linear(shape, self.rows[0][at], self.rows[1][at])
    }

    #[inline]
    fn bow(&self, at: usize, shape: Shape) -> i64 {
        let [newest, _, _, middle, far] = self.rows;
        self.plan.bow(shape, newest[at], middle[at], far[at])
    }

    /// What a contract or a declared rate of change says.
    #[inline]
    fn declared(&self, at: usize, now: &[i64]) -> Option<Declared> {
        if let Some(&value) = self.contract.get(at) {
            return Some(Declared::Value(value));
        }
        // The mean of the rate then and the rate now, over the ticks between.
        let Rate { field, ratio } = self.class.rates[at]?;
        let rate = usize::from(field);
        let twice = i128::from(self.rows[0][rate]) + i128::from(now[rate]);
        let numerator = twice * i128::from(ratio.numerator) * i128::from(self.plan.ahead);
        let step = divide(numerator, 2 * i128::from(ratio.denominator.max(1)));
        Some(Declared::Step(step as i64))
    }

    /// What is expected of the whole row. Rates of change come from `truth` where it is known,
    /// because they are coded before what they change.
    pub fn expect(&self, states: &[FieldState], truth: Option<&[i64]>, row: &mut Vec<i64>) {
        row.clear();
        row.extend_from_slice(self.newest());
        for &field in &self.class.updates {
            let at = usize::from(field);
            let Some(state) = states.get(at) else {
                continue;
            };
            let predictor = self.choose(at, state);
            if predictor != Predictor::Hold {
                row[at] = self.guess(predictor, at, truth.unwrap_or(row));
            }
        }
    }
}

/// What is declared about a field: its value, or how far it goes.
enum Declared {
    Value(i64),
    Step(i64),
}

#[inline]
fn between(line: i64, bow: i64) -> i64 {
    line.wrapping_add(bow).wrapping_add(1) >> 1
}

/// Asks a contract what becomes of a row.
pub(crate) fn follow_contract(
    contract: &Contract,
    class: &ClassLayout,
    row: &[i64],
    ahead: u32,
    out: &mut Vec<i64>,
) {
    out.clear();
    out.extend_from_slice(row);
    (contract.fast_forward)(row, ahead, out);
    for ((value, &old), &shape) in out.iter_mut().zip(row).zip(&class.shapes) {
        *value = match shape {
            Shape::Number { .. } => wrap(*value, shape),
            Shape::Symbol { values } => (*value).clamp(0, i64::from(values.max(1)) - 1),
            Shape::Content | Shape::Reference => old,
        };
    }
}

/// Samples and plans of a packet: most entities share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanCache {
    now: Tick,
    folds: u32,
    entries: Vec<(u16, Samples, Plan)>,
}

impl PlanCache {
    /// From which ticks an entity is predicted, and how.
    #[inline]
    pub fn find(&mut self, book: &Book, head: &Head, now: Tick) -> (Samples, Plan) {
        if self.now != now || self.folds != book.fold_count {
            self.now = now;
            self.folds = book.fold_count;
            self.entries.clear();
        }
        let known = book.folds_known(head);
        let newest = (known & ((1 << DEPTH) - 1)) as u16;
        if newest.count_ones() as usize == DEPTH {
            if let Some((_, samples, plan)) = self.entries.iter().find(|(k, ..)| *k == newest) {
                return (*samples, *plan);
            }
            let found = self.work_out(book, known, now);
            self.entries.push((newest, found.0, found.1));
            return found;
        }
        self.work_out(book, known, now)
    }

    #[cold]
    fn work_out(&self, book: &Book, known: u64, now: Tick) -> (Samples, Plan) {
        let samples = book.samples(known, now);
        (samples, Plan::new(now, &samples))
    }
}
