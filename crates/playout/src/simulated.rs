//! Physics rewinding with a known clock: the newest sample, simulated from its tick to the present.
//!
//! [`PhysicsRewind`](crate::PhysicsRewind) has to guess from when on an update is to be simulated.
//! Where samples have ticks, and the server's present is known, there is nothing to guess: an update
//! is never applied too early or too late, however irregular the link is.

use std::time::Duration;

use prescient_schema::State;

use crate::layout::Layout;
use crate::mending::{Mending, Numbers, first_table};
use crate::moment::Moment;

/// An entity whose physics the client knows.
#[derive(Clone, Debug)]
pub struct SimulatedEntity<T> {
    mending: Mending,
    newest: Option<u64>,
    /// The present guess, and the tick it is of.
    state: Option<(T, f64)>,
}

impl<T: State + Clone> SimulatedEntity<T> {
    /// An entity of which nothing is known yet.
    pub fn new(layout: &Layout<T>) -> Self {
        Self {
            mending: Mending::new(layout),
            newest: None,
            state: None,
        }
    }

    /// The tick of the newest sample.
    pub fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Takes over a sample, simulated to where the last frame was; the next frames mend the
    /// difference. Returns `false` if it is not newer than the last one, or has a number that is
    /// not finite; then it changes nothing.
    pub fn push(
        &mut self,
        layout: &Layout<T>,
        tick: u64,
        sample: T,
        tick_seconds: f64,
        mut step: impl FnMut(&mut T, Duration, Duration),
    ) -> bool {
        if self.newest >= Some(tick) || !is_finite(&sample) {
            return false;
        }
        self.newest = Some(tick);
        let Some((before, at)) = self.state.take() else {
            self.state = Some((sample, tick as f64));
            return true;
        };
        let until = at.max(tick as f64);
        // Both as of the same time: what passed since the last frame is no error.
        let before = simulated(layout, before, (at, until), tick_seconds, &mut step);
        let after = simulated(layout, sample, (tick as f64, until), tick_seconds, step);
        self.mending.note(layout, &before, &after);
        self.state = Some((after, until));
        true
    }

    /// What a frame shows: the entity at [`Moment::present`], but not further ahead of its newest
    /// sample than a guess may be ([`ShowConfig`](crate::ShowConfig)). `None` without a sample.
    ///
    /// `step` gets times since tick 0. If it returns a number that is not finite, that step is left
    /// out.
    pub fn shown(
        &mut self,
        layout: &Layout<T>,
        moment: &Moment,
        step: impl FnMut(&mut T, Duration, Duration),
    ) -> Option<T> {
        let (state, at) = self.state.take()?;
        let furthest = self.newest? as f64 + layout.max_ahead / moment.tick_seconds;
        // A present that is no number is ignored by `min` and `max`.
        let until = moment.present.min(furthest).max(at);
        let state = simulated(layout, state, (at, until), moment.tick_seconds, step);
        let mut shown = state.clone();
        self.state = Some((state, until));
        self.mending.apply(layout, &mut shown, moment.now);
        Some(shown)
    }
}

/// A state, simulated from one tick to another.
fn simulated<T: State + Clone>(
    layout: &Layout<T>,
    state: T,
    (from, until): (f64, f64),
    tick_seconds: f64,
    mut step: impl FnMut(&mut T, Duration, Duration),
) -> T {
    let limit = layout.max_ahead / tick_seconds;
    let time = |tick: f64| Duration::try_from_secs_f64(tick * tick_seconds).unwrap_or_default();
    let (from, until) = (time(from.max(until - limit)), time(until));
    if until <= from {
        return state;
    }
    let mut next = state.clone();
    step(&mut next, from, until);
    if is_finite(&next) { next } else { state }
}

fn is_finite<T: State + Clone>(state: &T) -> bool {
    Numbers::of(state, first_table::<T>()).are_finite()
}
