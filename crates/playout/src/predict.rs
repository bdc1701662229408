//! Prediction: a client applies its inputs at once, and takes them back where the server disagrees.
//!
//! The state after every input is kept until the server confirms that input. If the server's state
//! after it is the same, nothing is done; if not, the prediction starts again from the server's
//! state and repeats the inputs that it lacks (a *rollback*).

use std::collections::VecDeque;

use crate::error::PredictError;

/// A state that can be predicted: an entity ([`Predicted`](crate::Predicted) wraps one), or a whole
/// physics world with the bodies around it.
pub trait Simulated: Clone {
    /// How far apart two states are, in units of the game. What cannot be compared is infinitely
    /// far apart.
    fn error(&self, other: &Self) -> f64;

    /// How far a correction moved what is seen of it, for statistics.
    fn moved(&self, before: &Self) -> f64 {
        self.error(before)
    }

    /// Whether all its numbers are finite.
    fn is_finite(&self) -> bool {
        true
    }
}

/// What became of a state of the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Confirmation {
    /// It is the first one: the prediction starts.
    Started,
    /// It is what was predicted.
    AsPredicted,
    /// It is not what was predicted.
    Corrected {
        /// How far the prediction of the present moved.
        moved: f64,
        /// Inputs that were applied again.
        replayed: usize,
    },
}

/// How well predictions fared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PredictionStatistics {
    /// Inputs applied.
    pub inputs: u64,
    /// States of the server that were compared.
    pub confirmed: u64,
    /// Those that differed.
    pub corrected: u64,
    /// Inputs that were applied again because of that.
    pub replayed: u64,
    /// How far the present moved by the largest correction.
    pub largest: f64,
    /// The sum of all of them.
    pub moved: f64,
}

/// The prediction of a client's own state.
#[derive(Clone, Debug)]
pub struct Predictor<S, I> {
    tolerance: f64,
    max_ahead: usize,
    /// The state after the newest confirmed input.
    base: Option<S>,
    confirmed: Option<u64>,
    /// The inputs after that, each with the state after it.
    history: VecDeque<(u64, I, S)>,
    /// Inputs before the first state, which it may lack.
    early: VecDeque<(u64, I)>,
    statistics: PredictionStatistics,
}

impl<S: Simulated, I> Predictor<S, I> {
    /// Differences up to `tolerance` are no errors: both ends may round differently. At most
    /// `max_ahead` inputs are predicted beyond what the server confirmed.
    pub fn new(tolerance: f64, max_ahead: usize) -> Self {
        Self {
            tolerance,
            max_ahead,
            base: None,
            confirmed: None,
            history: VecDeque::new(),
            early: VecDeque::new(),
            statistics: PredictionStatistics::default(),
        }
    }

    /// Applies an input; returns the predicted state, or `None` before the first state of the
    /// server. If the step returns a number that is not finite, the state remains as it was before
    /// it, and the input counts as one that did nothing.
    pub fn act(
        &mut self,
        tick: u64,
        input: I,
        step: impl FnOnce(&mut S, &I),
    ) -> Result<Option<&S>, PredictError> {
        let last = self.last_tick();
        if let Some(last) = last.filter(|&last| last >= tick) {
            return Err(PredictError::NotLater { last });
        }
        let waiting = self.history.len() + self.early.len();
        if waiting >= self.max_ahead {
            return Err(PredictError::TooFarAhead(waiting));
        }
        let Some(before) = self.predicted() else {
            self.early.push_back((tick, input));
            return Ok(None);
        };
        let (after, is_finite) = stepped(before, &input, step);
        self.statistics.inputs += 1;
        self.history.push_back((tick, input, after));
        match is_finite {
            true => Ok(self.predicted()),
            false => Err(PredictError::NotFinite),
        }
    }

    /// Takes over the server's state, which has consumed the inputs up to this tick (`None`: none
    /// yet). Repeats those after it if the prediction was wrong.
    ///
    /// If a repeated step returns a number that is not finite, it counts as one that did nothing,
    /// and the error is returned when all inputs were repeated.
    pub fn confirm(
        &mut self,
        consumed: Option<u64>,
        state: S,
        mut step: impl FnMut(&mut S, &I),
    ) -> Result<Confirmation, PredictError> {
        if let Some(confirmed) = self.confirmed.filter(|_| consumed < self.confirmed) {
            return Err(PredictError::Backwards { confirmed });
        }
        if !state.is_finite() {
            return Err(PredictError::StateNotFinite);
        }
        let shown = self.predicted().cloned();
        while let Some((tick, ..)) = self.history.front()
            && Some(*tick) <= consumed
        {
            self.base = self.history.pop_front().map(|(.., after)| after);
        }
        while let Some((tick, _)) = self.early.front()
            && Some(*tick) <= consumed
        {
            self.early.pop_front();
        }
        self.confirmed = consumed;
        let expected = self.base.replace(state.clone());
        let is_first = expected.is_none();
        if let Some(expected) = expected {
            self.statistics.confirmed += 1;
            if expected.error(&state) <= self.tolerance {
                // Not the server's: it may be rounded, and rounding again and again would drift.
                self.base = Some(expected);
                return Ok(Confirmation::AsPredicted);
            }
        }
        for (tick, input) in std::mem::take(&mut self.early) {
            self.history.push_back((tick, input, state.clone()));
        }
        let (mut present, mut is_sound) = (state, true);
        for (_, input, after) in &mut self.history {
            let (next, is_finite) = stepped(&present, input, &mut step);
            is_sound &= is_finite;
            *after = next.clone();
            present = next;
        }
        let replayed = self.history.len();
        let confirmation = match shown {
            Some(shown) if !is_first => {
                let moved = present.moved(&shown);
                self.note(moved, replayed);
                Confirmation::Corrected { moved, replayed }
            }
            _ => Confirmation::Started,
        };
        match is_sound {
            true => Ok(confirmation),
            false => Err(PredictError::NotFinite),
        }
    }

    /// The server has consumed the inputs up to this tick, but nothing is known of the state after
    /// them: a packet arrived that does not cover it. They wait no longer, and count as predicted
    /// until a state tells otherwise.
    pub fn consume(&mut self, consumed: u64) {
        if self.confirmed >= Some(consumed) {
            return;
        }
        self.confirmed = Some(consumed);
        while let Some((tick, ..)) = self.history.front()
            && *tick <= consumed
        {
            self.base = self.history.pop_front().map(|(.., after)| after);
        }
        self.early.retain(|(tick, _)| *tick > consumed);
    }

    /// The predicted present; `None` before the first state of the server.
    pub fn predicted(&self) -> Option<&S> {
        let newest = self.history.back().map(|(.., after)| after);
        newest.or(self.base.as_ref())
    }

    /// Inputs that the server has not confirmed.
    pub fn unconfirmed(&self) -> usize {
        self.history.len() + self.early.len()
    }

    /// Forgets everything but the statistics, for another entity or after a reconnect.
    pub fn reset(&mut self) {
        *self = Self {
            statistics: self.statistics,
            ..Self::new(self.tolerance, self.max_ahead)
        };
    }

    /// How well predictions fared so far.
    pub fn statistics(&self) -> PredictionStatistics {
        self.statistics
    }

    fn last_tick(&self) -> Option<u64> {
        let predicted = self.history.back().map(|(tick, ..)| *tick);
        let early = self.early.back().map(|(tick, _)| *tick);
        predicted.max(early).max(self.confirmed)
    }

    fn note(&mut self, moved: f64, replayed: usize) {
        let statistics = &mut self.statistics;
        statistics.corrected += 1;
        statistics.replayed += replayed as u64;
        statistics.largest = statistics.largest.max(moved);
        statistics.moved += moved;
    }
}

/// The state after a step, or the one before it if that is not finite.
fn stepped<S: Simulated, I>(before: &S, input: &I, step: impl FnOnce(&mut S, &I)) -> (S, bool) {
    let mut after = before.clone();
    step(&mut after, input);
    match after.is_finite() {
        true => (after, true),
        false => (before.clone(), false),
    }
}
