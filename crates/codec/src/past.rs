//! The past rows of an entity that both ends have, and the prediction of its next row.

use alloc::vec::Vec;

use prescient_schema::{Contract, Shape};

use crate::{
    history::line::{Line, MIN_PERIOD},
    kept::HashedContent,
    layout::{ClassLayout, Rate},
    predict::{
        BENT, DEPTH, Frames, Guesses, LINE, Plan, Predictor, ROWS, Samples, WIDE, Width, divide,
        relation::Relation,
    },
    shared_model::{EntityStates, ExpectedMotion, FieldState, Head, Reach, Rows},
    units::Tick,
};

/// The rows of an entity at the ticks from which it is predicted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past<'a> {
    pub class: &'a ClassLayout,
    pub plan: &'a Plan,
    /// In the order of [`Samples::ticks`].
    pub rows: [&'a [i64]; ROWS],
    /// The row that the class's contract predicts; empty without a contract.
    pub contract: &'a [i64],
    /// Contents of a kept row, which the archive may have dropped.
    pub kept: &'a [HashedContent],
    /// The order in which its fields are coded: the common ones, and the rare ones.
    pub order: (&'a [u16], &'a [u16]),
    /// For each field, the relation by which it is predicted; empty without any.
    pub relations: &'a [Option<Relation>],
}

impl<'a> Past<'a> {
    /// The past of an entity at rest, of which only one row is known.
    pub(crate) fn resting(class: &'a ClassLayout, row: &'a [i64]) -> Self {
        Self {
            class,
            plan: &Plan::RESTING,
            rows: [row; ROWS],
            contract: &[],
            kept: &[],
            order: (&[], &[]),
            relations: &[],
        }
    }

    pub(crate) fn newest(&self) -> &'a [i64] {
        self.rows[0]
    }

    /// The predictors that are available for a field, as bits.
    #[inline]
    fn known(&self, at: usize) -> u8 {
        let (any, declared) = self.class.predictors[at];
        self.plan.known & any | self.plan.declared & declared
    }

    /// The relation by which a field is predicted.
    #[inline]
    pub(crate) fn relation(&self, at: usize) -> Option<&'a Relation> {
        self.relations.get(at)?.as_ref()
    }

    /// The predictor to use for a field.
    #[inline]
    pub(crate) fn choose(&self, at: usize, state: &FieldState) -> Predictor {
        match self.relation(at) {
            Some(_) => Predictor::Related,
            None => self.choose_own(at, state),
        }
    }

    /// The predictor to use for a field without regard to others.
    #[inline]
    pub(crate) fn choose_own(&self, at: usize, state: &FieldState) -> Predictor {
        let best_predictor = state.best_predictor();
        if best_predictor == Predictor::Hold || self.known(at) >> best_predictor as u8 & 1 == 1 {
            return best_predictor;
        }
        state.costs.best(self.known(at))
    }

    /// The value that one predictor predicts. `now` has the fields of the present row that are
    /// coded before.
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
            Predictor::Related => match self.relation(at) {
                Some(relation) => return self.related(relation, at, now),
                None => return newest,
            },
        };
        width.wrap(newest.wrapping_add(step))
    }

    /// The value that follows from another field.
    fn related(&self, relation: &Relation, at: usize, now: &[i64]) -> i64 {
        relation.guess(self.plan.ahead, self.class, (self.rows[0], now), at)
    }

    /// The values that all predictors predict.
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

    /// The prediction by a contract or a declared rate of change.
    #[inline]
    fn declared(&self, at: usize, now: &[i64]) -> Option<Declared> {
        if let Some(&value) = self.contract.get(at) {
            return Some(Declared::Value(value));
        }
        // The mean of the old and the present rate, times the ticks in between.
        let Rate { field, ratio } = self.class.rates[at]?;
        let rate = usize::from(field);
        let twice = i128::from(self.rows[0][rate]) + i128::from(now[rate]);
        let numerator = twice * i128::from(ratio.numerator) * i128::from(self.plan.ahead);
        let step = divide(numerator, 2 * i128::from(ratio.denominator.max(1)));
        Some(Declared::Increment(step as i64))
    }

    /// Whether [`predict_plain`](Self::predict_plain) applies: no field depends on another, and
    /// lines can be extended.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.class.is_plain && self.relations.is_empty() && self.plan.known & LINE != 0
    }

    /// Predicts the whole row. Rates of change and sources of relations are taken from `truth` where
    /// it is given, because they are coded before the fields that follow from them.
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
        let (common, rare) = self.order;
        for &field in common.iter().chain(rare) {
            let at = usize::from(field);
            let state = &states[at];
            if state.best_predictor() != Predictor::Hold || self.relation(at).is_some() {
                row[at] = self.guess(self.choose(at, state), at, truth.unwrap_or(row));
            }
        }
    }

    /// As [`predict`](Self::predict) if the past [is plain](Self::is_plain), into `row`, which has
    /// the newest row. Going in the order of the row without checks saves an eighth of the cost of
    /// an entity that moves as predicted.
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

/// Whether an entity that is as predicted has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Holds,
    Moves,
}

/// The motion of an entity whose fields all hold or follow a line as predicted; `None` if it
/// differs, or other predictors are needed. This runs for every entity in every packet, so it reads
/// only these three rows.
#[inline]
pub(crate) fn plain_motion(
    (class, relations): (&ClassLayout, &[Option<Relation>]),
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
        if let Some(Some(relation)) = relations.get(at) {
            let guess = relation.guess(plan.ahead, class, (newest, row), at);
            if guess != row[at] {
                return None;
            }
            if newest[at] != row[at] {
                motion = Motion::Moves;
            }
            continue;
        }
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

/// The motion of an entity that moves in a straight line, if that is all that is needed to know that
/// it is as predicted. Fields that are `related` to others are not looked at.
#[inline]
pub(crate) fn straight_motion(
    (class, related): (&ClassLayout, u64),
    (samples, plan): (&Samples, &Plan),
    expected: &ExpectedMotion,
    line: &Line,
) -> Option<Motion> {
    let oldest = match expected.reach {
        Reach::Newest => samples.ticks[0],
        Reach::Line => samples.ticks[1],
        Reach::Wide | Reach::All => samples.frames.oldest,
    };
    if oldest < line.since || !class.is_plain || plan.known & LINE == 0 {
        return None;
    }
    if line.moving == 0 {
        return Some(Motion::Holds);
    }
    if line.moving & !(expected.lines | related) != 0
        || plan.ahead >= MAX_AHEAD
        || !plan.continues_lines(expected.reach >= Reach::Wide)
    {
        return None;
    }
    Some(Motion::Moves)
}

/// Whether all fields that are predicted from others are as predicted.
#[inline]
pub(crate) fn follows_relations(
    class: &ClassLayout,
    plan: &Plan,
    relations: &[Option<Relation>],
    [newest, _, row]: [&[i64]; 3],
) -> bool {
    let mut relations = relations.iter().enumerate();
    relations.all(|(at, relation)| {
        let guess = |relation: &Relation| relation.guess(plan.ahead, class, (newest, row), at);
        relation
            .as_ref()
            .is_none_or(|relation| guess(relation) == row[at])
    })
}

/// A declared prediction: a value, or a difference from the newest value.
enum Declared {
    Value(i64),
    Increment(i64),
}

#[inline]
fn mean(line: i64, parabola: i64) -> i64 {
    line.wrapping_add(parabola).wrapping_add(1) >> 1
}

/// Runs a contract on a row, and brings the result into the range of the fields.
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

/// Samples and plans of a packet, which most entities share.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanCache {
    entries: Vec<CachedPlan>,
    /// Index of the entry that was used last.
    latest: usize,
    /// Entries computed in this packet.
    made: u32,
}

/// The ticks from which an entity that some folds covered is predicted, and the coefficients.
#[derive(Clone, Debug)]
pub(crate) struct CachedPlan {
    /// These folds, newest in bit 0; older ones than matter are left out.
    folds: u64,
    pub samples: Samples,
    pub plan: Plan,
}

impl PlanCache {
    /// Clears it for another packet.
    pub(crate) fn begin(&mut self) {
        self.entries.clear();
        self.made = 0;
    }

    /// The samples and plan of an entity.
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
        // Under heavy loss the entities may have many different pasts.
        self.entries.truncate(MAX_PLANS - 1);
        self.entries.push(CachedPlan {
            folds,
            samples,
            plan,
        });
        self.entries.len() - 1
    }
}

/// Rows of a [`Line`] that are this many ticks apart may be equal although the entity moves.
pub(crate) const MAX_AHEAD: u32 = 1 << MIN_PERIOD;

/// The newest [`DEPTH`] folds: if all of them covered an entity, older ones do not matter.
const RECENT: u64 = (1 << DEPTH) - 1;
const MAX_PLANS: usize = 16;
