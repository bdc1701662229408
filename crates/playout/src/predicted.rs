//! The prediction of one entity of a derived type, with its errors mended smoothly.

use std::time::Duration;

use prescient_schema::State;

use crate::error::PredictError;
use crate::layout::Layout;
use crate::mending::{Mending, Numbers, first_table, larger};
use crate::predict::{Confirmation, PredictionStatistics, Predictor, Simulated};

/// An entity of a derived type as a state that can be predicted. Two are as far apart as the most
/// distant of their numbers, and infinitely if they differ in anything else but the keys that the
/// server fills in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted<T>(pub T);

impl<T: State + Clone> Simulated for Predicted<T> {
    fn error(&self, other: &Self) -> f64 {
        let optional = T::OPTIONAL_TABLES.iter().map(|table| {
            match (self.0.has_table(table), other.0.has_table(table)) {
                (true, true) => self.error_in(other, table),
                (false, false) => 0.0,
                _ => f64::INFINITY,
            }
        });
        optional.fold(self.error_in(other, first_table::<T>()), larger)
    }

    fn moved(&self, before: &Self) -> f64 {
        let table = first_table::<T>();
        Numbers::of(&self.0, table).distance(&Numbers::of(&before.0, table))
    }

    fn is_finite(&self) -> bool {
        Numbers::of(&self.0, first_table::<T>()).are_finite()
    }
}

impl<T: State + Clone> Predicted<T> {
    fn error_in(&self, other: &Self, table: &str) -> f64 {
        let (mine, theirs) = (Numbers::of(&self.0, table), Numbers::of(&other.0, table));
        if mine.shown != theirs.shown {
            return f64::INFINITY;
        }
        let (row, other_row) = (self.0.to_row(table), other.0.to_row(table));
        let cells = row.iter().zip(&other_row).zip(&mine.shown).enumerate();
        let mut wrong = cells.filter(|(_, ((one, other), is_number))| !**is_number && one != other);
        // The server fills in the keys that are held down; they are no state that a step moves.
        let is_state = |column| {
            let keys = T::class(table).ok().and_then(|class| class.keys);
            keys.map(usize::from) != Some(column)
        };
        match wrong.any(|(column, _)| is_state(column)) {
            true => f64::INFINITY,
            false => mine.distance(&theirs),
        }
    }
}

/// The prediction of a client's own entity.
///
/// [`act`](Self::act) with every input, [`confirm`](Self::confirm) with every state of the server,
/// and [`shown`](Self::shown) in every frame.
#[derive(Clone, Debug)]
pub struct PredictedEntity<T, I> {
    predictor: Predictor<Predicted<T>, I>,
    mending: Mending,
}

impl<T: State + Clone, I> PredictedEntity<T, I> {
    /// See [`Predictor::new`].
    pub fn new(layout: &Layout<T>, tolerance: f64, max_ahead: usize) -> Self {
        Self {
            predictor: Predictor::new(tolerance, max_ahead),
            mending: Mending::new(layout),
        }
    }

    /// Applies an input at once; see [`Predictor::act`].
    pub fn act(
        &mut self,
        tick: u64,
        input: I,
        step: impl FnOnce(&mut T, &I),
    ) -> Result<Option<&T>, PredictError> {
        let step = |state: &mut Predicted<T>, input: &I| step(&mut state.0, input);
        Ok(self.predictor.act(tick, input, step)?.map(|state| &state.0))
    }

    /// Takes over the server's state; see [`Predictor::confirm`]. If that moves the entity, the
    /// next frames mend the difference.
    pub fn confirm(
        &mut self,
        layout: &Layout<T>,
        consumed: Option<u64>,
        state: T,
        mut step: impl FnMut(&mut T, &I),
    ) -> Result<Confirmation, PredictError> {
        let before = self.predictor.predicted().cloned();
        let step = |state: &mut Predicted<T>, input: &I| step(&mut state.0, input);
        let confirmation = self.predictor.confirm(consumed, Predicted(state), step);
        if let (Some(before), Some(after)) = (before, self.predictor.predicted())
            && !matches!(confirmation, Ok(Confirmation::AsPredicted))
        {
            self.mending.note(layout, &before.0, &after.0);
        }
        confirmation
    }

    /// The server has consumed inputs, and its state did not come with that; see
    /// [`Predictor::consume`].
    pub fn consume(&mut self, consumed: u64) {
        self.predictor.consume(consumed);
    }

    /// What a frame shows: the predicted entity, and what is left of earlier errors. `None` before
    /// the first state of the server.
    pub fn shown(&mut self, layout: &Layout<T>, now: Duration) -> Option<T> {
        let mut shown = self.predictor.predicted()?.0.clone();
        self.mending.apply(layout, &mut shown, now);
        Some(shown)
    }

    /// The predicted entity, without what is left of earlier errors.
    pub fn predicted(&self) -> Option<&T> {
        self.predictor.predicted().map(|state| &state.0)
    }

    /// How well predictions fared so far.
    pub fn statistics(&self) -> PredictionStatistics {
        self.predictor.statistics()
    }

    /// Forgets everything but the statistics.
    pub fn reset(&mut self) {
        self.predictor.reset();
        self.mending.reset();
    }
}
