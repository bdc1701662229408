//! A client's own entities, moved at once: [`Client::predict`].

use std::any::Any;
use std::time::Duration;

use prescient_channels::{Input, InputTick};
use prescient_playout::{Layout, PredictError, PredictedEntity, PredictionStatistics};
use prescient_replication::{Client as View, EntityHandle};
use prescient_schema::{Event, FieldKind, State};
use thiserror::Error;

use crate::client::Client;

/// Why an entity is not predicted.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PredictionError {
    /// The type is not declared as predicted: add `#[state(predicted)]`, so that everyone who reads
    /// it knows that both ends move it.
    #[error("the type is not declared with `#[state(predicted)]`")]
    NotPredicted,
    /// There is no such entity here, or it has another type.
    #[error("no entity of this type is shown by that handle")]
    NoSuchEntity,
}

prescient_schema::debug_as_display!(PredictionError);

/// A prediction of any type.
pub(crate) trait AnyPrediction: Send {
    fn act(&mut self, view: &mut View, tick: InputTick, input: &Input);
    fn confirm(&mut self, view: &View, entity: EntityHandle, consumed: Option<InputTick>);
    fn shown(&mut self, now: Duration) -> Option<Box<dyn Any>>;
    fn statistics(&self) -> PredictionStatistics;
    fn error(&self) -> Option<PredictError>;
}

struct Prediction<T, I, F> {
    layout: Layout<T>,
    entity: PredictedEntity<T, I>,
    /// What the step gets of an input.
    read: fn(&mut View, &Input) -> I,
    step: F,
    /// The last error, until an input is applied without one.
    error: Option<PredictError>,
}

impl<T, I, F> AnyPrediction for Prediction<T, I, F>
where
    T: State + Clone + Send + 'static,
    I: Send,
    F: FnMut(&mut T, &I) + Send,
{
    fn act(&mut self, view: &mut View, tick: InputTick, input: &Input) {
        let input = (self.read)(view, input);
        let acted = self.entity.act(tick.0, input, &mut self.step);
        self.error = acted.err();
    }

    fn confirm(&mut self, view: &View, entity: EntityHandle, consumed: Option<InputTick>) {
        let consumed = consumed.map(|tick| tick.0);
        // Without the entity, as always while it is at rest and packets are small.
        if view.tick_of(entity, 0) != view.tick() {
            if let Some(consumed) = consumed {
                self.entity.consume(consumed);
            }
            return;
        }
        if let Some(state) = view.get(entity) {
            let (layout, step) = (&self.layout, &mut self.step);
            let confirmed = self.entity.confirm(layout, consumed, state, step);
            self.error = confirmed.err().or(self.error);
        }
    }

    fn shown(&mut self, now: Duration) -> Option<Box<dyn Any>> {
        let shown = self.entity.shown(&self.layout, now)?;
        Some(Box::new(shown))
    }

    fn statistics(&self) -> PredictionStatistics {
        self.entity.statistics()
    }

    fn error(&self) -> Option<PredictError> {
        self.error
    }
}

impl Client {
    /// Predicts an entity of this client: every input ([`act`](Self::act), [`press`](Self::press))
    /// is applied to it at once by `step`, and [`shown`](Self::shown) shows that. When the server's
    /// state differs from what was predicted, the inputs that it lacks are applied to it again, and
    /// the difference is mended as the fields' `converge` attributes say.
    ///
    /// The server applies the same `step` to the same inputs ([`ServerEvent::Input`]), one per
    /// input. The type is declared with `#[state(predicted)]`; the step sees and moves its first
    /// table. The prediction ends when the entity is gone, with the connection, or by
    /// [`stop_predicting`](Self::stop_predicting). Inputs that are on their way to the server already
    /// count, so that a player who gets another entity can go on at once.
    ///
    /// For typed inputs there is [`predict_typed`](Self::predict_typed). Differences up to the largest step of the type's fields are no errors, because what arrives
    /// is rounded to it; [`predict_within`](Self::predict_within) takes another tolerance.
    ///
    /// [`ServerEvent::Input`]: crate::ServerEvent::Input
    pub fn predict<T: State + Clone + Send + 'static>(
        &mut self,
        entity: EntityHandle,
        step: impl FnMut(&mut T, &Input) + Send + 'static,
    ) -> Result<(), PredictionError> {
        self.predict_within(entity, largest_step::<T>(), step)
    }

    /// Like [`predict`](Self::predict); differences up to `tolerance` are no errors.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use prescient::playout::{PlaybackConfig, ShowConfig};
    /// use prescient::{Everything, PlayOutConfig, Schema, Server, State};
    ///
    /// #[derive(State, Clone)]
    /// #[state(predicted)]
    /// struct Tank { #[state(step = 0.01, position)] x: f64 }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Server::offline(Schema::of::<Tank>()?, Everything)?;
    /// let mut client = server.local_client();
    /// client.set_play_out(
    ///     PlayOutConfig::default()
    ///         .with_playback(PlaybackConfig::default().with_margin(Duration::from_millis(10)))
    ///         .with_show(ShowConfig::default().with_max_ahead(Duration::from_millis(100))),
    /// )?;
    /// server.step()?.spawn(&Tank { x: 0.0 })?;
    /// while server.poll().is_some() {}
    /// server.send();
    /// while client.poll().is_some() {}
    /// let own = client.entities().next().ok_or("no tank")?;
    /// client.predict_within(own, 0.05, |tank: &mut Tank, _input| tank.x += 0.5)?;
    /// client.press(1)?;
    /// assert_eq!(client.prediction_error(own), None);
    /// assert!(client.stop_predicting(own));
    /// # Ok(())
    /// # }
    /// ```
    pub fn predict_within<T: State + Clone + Send + 'static>(
        &mut self,
        entity: EntityHandle,
        tolerance: f64,
        step: impl FnMut(&mut T, &Input) + Send + 'static,
    ) -> Result<(), PredictionError> {
        self.predict_by(entity, tolerance, |_, input| input.clone(), step)
    }

    /// Like [`predict`](Self::predict), for a player who [steers](Self::steer): `step` gets the typed
    /// input, rounded as the server [reads](crate::Server::read_input) it. Inputs of another type move
    /// nothing.
    ///
    /// ```
    /// use prescient::{Event, Everything, Schema, Server, ServerEvent, State};
    ///
    /// #[derive(State, Clone, Debug, PartialEq)]
    /// #[state(predicted)]
    /// struct Tank { #[state(step = 0.01)] x: f32 }
    ///
    /// #[derive(Event)]
    /// struct Drive { #[event(step = 0.01)] throttle: f32 }
    ///
    /// /// What a tick of input does to a tank; both ends have this code.
    /// fn drive(tank: &mut Tank, drive: &Drive) {
    ///     tank.x += drive.throttle;
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Server::offline(Schema::of::<Tank>()?.with_events::<Drive>()?, Everything)?;
    /// let mut client = server.local_client();
    /// let mut tank = Tank { x: 1.0 };
    /// server.step()?.spawn(&tank)?;
    /// server.send();
    /// while client.poll().is_some() {}
    /// let own = client.entities().next().ok_or("no tank")?;
    /// client.predict_typed(own, drive)?;
    /// client.steer(&Drive { throttle: 0.5 })?;
    /// assert_eq!(client.shown(own), Some(Tank { x: 1.5 })); // the server does not know yet
    /// while let Some(event) = server.poll() {
    ///     if let ServerEvent::Input { peer, input, .. } = event
    ///         && let Some(input) = server.read_input(peer, &input)
    ///     {
    ///         drive(&mut tank, &input);
    ///     }
    /// }
    /// assert_eq!(tank, Tank { x: 1.5 });
    /// # Ok(())
    /// # }
    /// ```
    pub fn predict_typed<T: State + Clone + Send + 'static, I: Event + Send + 'static>(
        &mut self,
        entity: EntityHandle,
        mut step: impl FnMut(&mut T, &I) + Send + 'static,
    ) -> Result<(), PredictionError> {
        let step = move |state: &mut T, input: &Option<I>| {
            if let Some(input) = input {
                step(state, input);
            }
        };
        let read = |view: &mut View, input: &Input| view.read_input(&input.fields);
        self.predict_by(entity, largest_step::<T>(), read, step)
    }

    fn predict_by<T: State + Clone + Send + 'static, I: Send + 'static>(
        &mut self,
        entity: EntityHandle,
        tolerance: f64,
        read: fn(&mut View, &Input) -> I,
        step: impl FnMut(&mut T, &I) + Send + 'static,
    ) -> Result<(), PredictionError> {
        if !T::PREDICTED {
            return Err(PredictionError::NotPredicted);
        }
        // What was removed can still be read.
        if self.tick_of(entity).is_none() || self.get::<T>(entity).is_none() {
            return Err(PredictionError::NoSuchEntity);
        }
        let consumed = self.consumed_input();
        let (view, play_out) = self.play_out_parts();
        let layout = Layout::<T>::new(play_out.show_config());
        let layout = layout.map_err(|_| PredictionError::NoSuchEntity)?;
        let mut prediction = Prediction {
            entity: PredictedEntity::new(&layout, tolerance, MAX_AHEAD),
            layout,
            read,
            step,
            error: None,
        };
        prediction.confirm(view, entity, consumed);
        for (tick, input) in play_out.sent_after(consumed) {
            prediction.act(view, *tick, input);
        }
        play_out.predictions.insert(entity, Box::new(prediction));
        Ok(())
    }

    /// Shows an entity as the server has it again. Returns `false` if it was not predicted.
    pub fn stop_predicting(&mut self, entity: EntityHandle) -> bool {
        let (_, play_out) = self.play_out_parts();
        play_out.predictions.remove(&entity).is_some()
    }

    /// How well an entity's prediction fared; `None` if it is not predicted.
    pub fn prediction_statistics(&self, entity: EntityHandle) -> Option<PredictionStatistics> {
        Some(self.play_out().predictions.get(&entity)?.statistics())
    }

    /// Why the last input or state was not predicted, if it was not: for example because the
    /// program's step returned NaN.
    pub fn prediction_error(&self, entity: EntityHandle) -> Option<PredictError> {
        self.play_out().predictions.get(&entity)?.error()
    }
}

/// The largest step of a type's fields, which is how far rounding can move a number.
fn largest_step<T: State>() -> f64 {
    let table = T::TABLES.first().copied().unwrap_or_default();
    let fields = T::class(table)
        .map(|class| class.fields)
        .unwrap_or_default();
    let steps = fields.iter().filter_map(|field| match &field.kind {
        FieldKind::Step { step, .. } => Some(step.as_f64()),
        _ => None,
    });
    steps.fold(0.0, f64::max)
}

/// Inputs beyond the server's state, as many as a client and a server can have between them.
pub(crate) const MAX_AHEAD: usize = 128;
