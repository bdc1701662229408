//! What both ends know of an entity's past, and what they expect of it.

use alloc::vec::Vec;

use prescient_schema::{Contract, Shape};

use crate::{
    kept::HashedContent,
    layout::{ClassLayout, Rate},
    predict::{
        BENT, DEPTH, Frames, Guesses, LINE, Plan, Predictor, ROWS, Samples, WIDE, Width, divide,
    },
    shared_model::{EntityStates, FieldState, Head, Rows},
    units::Tick,
};

/// An entity's rows at the ticks it is predicted from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past<'a> {
    pub class: &'a ClassLayout,
    pub plan: &'a Plan,
    /// In the order of [`Samples::ticks`].
    pub rows: [&'a [i64]; ROWS],
    /// What the class's contract makes of the newest row; empty without one.
    pub contract: &'a [i64],
    /// What containers of a row hold that an archive may have forgotten.
    pub kept: &'a [HashedContent],
}

impl<'a> Past<'a> {
    /// An entity that is only known to hold a row.
    pub(crate) fn resting(class: &'a ClassLayout, row: &'a [i64]) -> Self {
        Self {
            class,
            plan: &Plan::RESTING,
            rows: [row; ROWS],
            contract: &[],
            kept: &[],
        }
    }

    /// The newest row.
    pub(crate) fn newest(&self) -> &'a [i64] {
        self.rows[0]
    }

    /// Which predictors have a say about a field.
    #[inline]
    fn known(&self, at: usize) -> u8 {
        let (any, declared) = self.class.predictors[at];
        self.plan.known & any | self.plan.declared & declared
    }

    /// The predictor of a field.
    #[inline]
    pub(crate) fn choose(&self, at: usize, state: &FieldState) -> Predictor {
        let best_predictor = state.best_predictor();
        if best_predictor == Predictor::Hold || self.known(at) >> best_predictor as u8 & 1 == 1 {
            return best_predictor;
        }
        state.costs.best(self.known(at))
    }

    /// What one predictor says. `now` holds the fields of the present row that were coded before.
    #[inline]
    pub(crate) fn guess(&self, predictor: Predictor, at: usize, now: &[i64]) -> i64 {
        let width = self.class.widths[at];
        let newest = self.rows[0][at];
        let step = match predictor {
            Predictor::Hold => return newest,
            Predictor::Linear => self.line(at, width),
            Predictor::Wide => self.plan.wide(width, newest, self.rows[2][at]),
            Predictor::Bent => mean(self.line(at, width), self.parabola(at, width)),
            Predictor::Declared => match self.declared(at, now) {
                Some(Declared::Value(value)) => return value,
                Some(Declared::Increment(step)) => step,
                None => self.parabola(at, width),
            },
        };
        width.wrap(newest.wrapping_add(step))
    }

    /// What all of them say.
    #[inline]
    pub(crate) fn guesses(&self, at: usize, now: &[i64]) -> Guesses {
        let width = self.class.widths[at];
        let known = self.known(at);
        let newest = self.rows[0][at];
        let mut values = [newest; 5];
        if known & LINE != 0 {
            let line = self.line(at, width);
            values[Predictor::Linear as usize] = newest.wrapping_add(line);
            if known & WIDE != 0 {
                let wide = self.plan.wide(width, newest, self.rows[2][at]);
                values[Predictor::Wide as usize] = newest.wrapping_add(wide);
            }
            if known & BENT != 0 {
                let parabola = self.parabola(at, width);
                values[Predictor::Bent as usize] = newest.wrapping_add(mean(line, parabola));
                values[Predictor::Declared as usize] = newest.wrapping_add(parabola);
            }
        }
        match self.declared(at, now) {
            Some(Declared::Value(value)) => values[Predictor::Declared as usize] = value,
            Some(Declared::Increment(step)) => {
                values[Predictor::Declared as usize] = newest.wrapping_add(step);
            }
            None => {}
        }
        Guesses { values, known }
    }

    #[inline]
    fn line(&self, at: usize, width: Width) -> i64 {
        self.plan.linear(width, self.rows[0][at], self.rows[1][at])
    }

    #[inline]
    fn parabola(&self, at: usize, width: Width) -> i64 {
        let [newest, _, _, middle, far] = self.rows;
        self.plan.parabola(width, newest[at], middle[at], far[at])
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
        Some(Declared::Increment(step as i64))
    }

    /// Whether no field depends on another, and there is more to expect than that all hold.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.class.is_plain && self.plan.known & LINE != 0
    }

    /// What is expected of the whole row. Rates of change come from `truth` where it is known,
    /// because they are coded before what they change.
    pub(crate) fn predict(&self, states: &[FieldState], truth: Option<&[i64]>, row: &mut Vec<i64>) {
        row.clear();
        row.extend_from_slice(self.newest());
        if states.len() < row.len() {
            return;
        }
        if self.is_plain() {
            self.predict_plain(states, row);
            return;
        }
        for &field in &self.class.updates {
            let at = usize::from(field);
            let state = &states[at];
            if state.best_predictor() != Predictor::Hold {
                row[at] = self.guess(self.choose(at, state), at, truth.unwrap_or(row));
            }
        }
    }

    /// The same where it [is plain](Self::is_plain), in place of the newest row, which is worth an
    /// eighth of what an entity costs that moves as expected: in the order of the row nothing has to
    /// be checked.
    pub(crate) fn predict_plain(&self, states: &[FieldState], row: &mut [i64]) -> Motion {
        let n = row.len();
        let (second, states) = (&self.rows[1][..n], &states[..n]);
        let widths = &self.class.widths[..n];
        let mut motion = Motion::Holds;
        for at in 0..n {
            let guess = match states[at].best_predictor() {
                Predictor::Hold => continue,
                Predictor::Linear => {
                    let step = self.plan.linear(widths[at], row[at], second[at]);
                    widths[at].wrap(row[at].wrapping_add(step))
                }
                _ => self.guess(self.choose(at, &states[at]), at, &[]),
            };
            if guess != row[at] {
                motion = Motion::Moves;
                row[at] = guess;
            }
        }
        motion
    }
}

/// What an entity does that does as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Holds,
    Moves,
}

/// What an entity did that did as expected of its fields, if no field depends on another and all
/// either hold or go on in a line, as most do; `None` otherwise. This is asked of everybody in
/// every packet, so it looks at nothing but these three rows.
#[inline]
pub(crate) fn plain_motion(
    class: &ClassLayout,
    plan: &Plan,
    states: &[FieldState],
    [newest, second, row]: [&[i64]; 3],
) -> Option<Motion> {
    let n = row.len();
    if !class.is_plain || plan.known & LINE == 0 {
        return None;
    }
    let (newest, second) = (newest.get(..n)?, second.get(..n)?);
    let (states, widths) = (states.get(..n)?, class.widths.get(..n)?);
    let mut motion = Motion::Holds;
    for at in 0..n {
        match states[at].best_predictor() {
            Predictor::Hold if newest[at] == row[at] => {}
            Predictor::Linear => {
                let step = plan.linear(widths[at], newest[at], second[at]);
                if widths[at].wrap(newest[at].wrapping_add(step)) != row[at] {
                    return None;
                }
                if newest[at] != row[at] {
                    motion = Motion::Moves;
                }
            }
            _ => return None,
        }
    }
    Some(motion)
}

/// What is declared about a field: its value, or how far it goes.
enum Declared {
    Value(i64),
    Increment(i64),
}

#[inline]
fn mean(line: i64, parabola: i64) -> i64 {
    line.wrapping_add(parabola).wrapping_add(1) >> 1
}

/// Asks a contract what becomes of a row.
pub(crate) fn run_contract(
    contract: &Contract,
    class: &ClassLayout,
    row: &[i64],
    ahead: u32,
    out: &mut Vec<i64>,
) {
    out.clear();
    out.extend_from_slice(row);
    (contract.fast_forward)(row, ahead, out);
    let columns = class.shapes.iter().zip(&class.widths);
    for ((value, &old), (&shape, &width)) in out.iter_mut().zip(row).zip(columns) {
        *value = match shape {
            Shape::Number { .. } => width.wrap(*value),
            Shape::Symbol { values } => (*value).clamp(0, i64::from(values.max(1)) - 1),
            Shape::Content | Shape::Reference => old,
        };
    }
}

/// Samples and plans of a packet: most entities share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanCache {
    entries: Vec<CachedPlan>,
    /// The one that was asked for last.
    latest: usize,
    /// How many were worked out.
    made: u32,
}

/// From which ticks an entity that some folds covered is predicted, and how.
#[derive(Clone, Debug)]
pub(crate) struct CachedPlan {
    /// These folds, newest in bit 0, as far as they matter.
    folds: u64,
    pub samples: Samples,
    pub plan: Plan,
}

impl PlanCache {
    /// Forgets everything before another packet.
    pub(crate) fn begin(&mut self) {
        self.entries.clear();
        self.made = 0;
    }

    /// From which ticks an entity is predicted, and how.
    #[inline]
    pub(crate) fn find(
        &mut self,
        entity_states: &EntityStates,
        head: &Head,
        now: Tick,
        source: &(impl Rows + ?Sized),
    ) -> &CachedPlan {
        let mut folds = entity_states.folds_known(head);
        if folds & RECENT == RECENT {
            folds = RECENT;
        }
        let is_it = |cached: &CachedPlan| cached.folds == folds;
        if !self.entries.get(self.latest).is_some_and(is_it) {
            let found = self.entries.iter().position(is_it);
            self.latest = found.unwrap_or_else(|| self.compute(entity_states, folds, now, source));
        }
        &self.entries[self.latest]
    }

    #[cold]
    fn compute(
        &mut self,
        entity_states: &EntityStates,
        folds: u64,
        now: Tick,
        source: &(impl Rows + ?Sized),
    ) -> usize {
        let mut samples = entity_states.samples(folds, now);
        let plan = Plan::new(now, &samples);
        self.made += 1;
        samples.frames = Frames::new(self.made, &samples, plan.known, |tick| source.frame(tick));
        // Under heavy loss every entity may have a past of its own.
        self.entries.truncate(MAX_PLANS - 1);
        self.entries.push(CachedPlan {
            folds,
            samples,
            plan,
        });
        self.entries.len() - 1
    }
}

/// The newest folds, as many as are looked at: if all of them covered an entity, older ones do not
/// matter.
const RECENT: u64 = (1 << DEPTH) - 1;
const MAX_PLANS: usize = 16;
