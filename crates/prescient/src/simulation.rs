//! Entities whose physics a client knows: [`Client::simulate`].

use std::any::Any;
use std::time::Duration;

use prescient_playout::{Layout, Moment, SimulatedEntity};
use prescient_replication::{Client as View, EntityHandle, Tick};
use prescient_schema::State;

use crate::client::Client;
use crate::prediction::PredictionError;

/// A simulated entity of any type.
pub(crate) trait AnySimulation: Send {
    fn shown(&mut self, view: &View, entity: EntityHandle, moment: &Moment)
    -> Option<Box<dyn Any>>;
}

struct Simulation<T, F> {
    layout: Layout<T>,
    entity: SimulatedEntity<T>,
    step: F,
}

impl<T, F> AnySimulation for Simulation<T, F>
where
    T: State + Clone + Send + 'static,
    F: FnMut(&mut T, Duration, Duration) + Send,
{
    fn shown(
        &mut self,
        view: &View,
        entity: EntityHandle,
        moment: &Moment,
    ) -> Option<Box<dyn Any>> {
        let newest = view.tick_of(entity, 0)?;
        if self.entity.newest().map(Tick) < Some(newest) {
            let (layout, step) = (&self.layout, &mut self.step);
            let sample = view.get(entity)?;
            self.entity
                .push(layout, newest.0, sample, moment.tick_seconds, step);
        }
        let shown = self.entity.shown(&self.layout, moment, &mut self.step)?;
        Some(Box::new(shown))
    }
}

impl Client {
    /// Shows an entity in the server's present, by simulating its newest sample from its tick to
    /// now: `step` gets the entity and the time since tick 0 from which, and to which, to simulate
    /// it. What turns out to be wrong is mended as the fields' `converge` attributes say.
    ///
    /// For what moves by physics that the client knows, and nobody steers. It ends when the entity
    /// is gone, or with the connection.
    pub fn simulate<T: State + Clone + Send + 'static>(
        &mut self,
        entity: EntityHandle,
        step: impl FnMut(&mut T, Duration, Duration) + Send + 'static,
    ) -> Result<(), PredictionError> {
        // What was removed can still be read.
        if self.tick_of(entity).is_none() || self.get::<T>(entity).is_none() {
            return Err(PredictionError::NoSuchEntity);
        }
        let (_, play_out) = self.play_out_parts();
        let layout = Layout::<T>::new(play_out.show_config());
        let layout = layout.map_err(|_| PredictionError::NoSuchEntity)?;
        let simulation = Simulation {
            entity: SimulatedEntity::new(&layout),
            layout,
            step,
        };
        play_out.simulations.insert(entity, Box::new(simulation));
        Ok(())
    }
}
