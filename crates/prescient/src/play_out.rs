//! What a client shows in a frame: [`Client::begin_frame`] and [`Client::shown`].

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::time::Duration;

use prescient_channels::{Input, InputTick};
use prescient_playout::{
    ConfigError, Layout, Moment, PlaybackClock, PlaybackConfig, PlaybackStatistics, ShowConfig,
    Track,
};
use prescient_replication::{Change, Client as View, EntityHandle, Tick};
use prescient_schema::State;

use crate::client::Client;
use crate::prediction::AnyPrediction;
use crate::simulation::AnySimulation;

/// Settings of what a client shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlayOutConfig {
    playback: PlaybackConfig,
    show: ShowConfig,
}

impl PlayOutConfig {
    /// How late entities are drawn.
    #[must_use]
    pub fn with_playback(mut self, config: PlaybackConfig) -> Self {
        self.playback = config;
        self
    }

    /// How wrong guesses are mended.
    #[must_use]
    pub fn with_show(mut self, config: ShowConfig) -> Self {
        self.show = config;
        self
    }

    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.playback.check()?;
        self.show.check()
    }
}

/// A client's play-out. It costs nothing until the first frame begins.
#[derive(Default)]
pub(crate) struct PlayOut {
    config: PlayOutConfig,
    clock: Option<PlaybackClock>,
    moment: Option<Moment>,
    /// The layout and the tracks of each type that was shown.
    types: BTreeMap<TypeId, Box<dyn AnyTracks>>,
    pub(crate) predictions: BTreeMap<EntityHandle, Box<dyn AnyPrediction>>,
    pub(crate) simulations: BTreeMap<EntityHandle, Box<dyn AnySimulation>>,
}

/// The tracks of a type.
struct Tracks<T> {
    layout: Layout<T>,
    tracks: BTreeMap<EntityHandle, Track<T>>,
}

trait AnyTracks: Any + Send {
    fn forget(&mut self, entity: EntityHandle);
}

impl<T: State + 'static> AnyTracks for Tracks<T> {
    fn forget(&mut self, entity: EntityHandle) {
        self.tracks.remove(&entity);
    }
}

impl PlayOut {
    /// Notes the state that was applied.
    pub(crate) fn handle_state(&mut self, view: &View, consumed: Option<InputTick>, now: Duration) {
        let Some(tick) = view.tick() else {
            return;
        };
        let interval = interval(view);
        let clock = match &mut self.clock {
            Some(clock) => clock,
            None => match PlaybackClock::new(self.config.playback.clone(), interval) {
                Ok(clock) => self.clock.insert(clock),
                Err(_) => return,
            },
        };
        // A tick of several packets counts once, and an interval is never zero.
        let _ = clock.set_interval(interval);
        let _ = clock.handle_state(tick.0, now);
        for (entity, prediction) in &mut self.predictions {
            prediction.confirm(view, *entity, consumed);
        }
    }

    pub(crate) fn is_predicting(&self) -> bool {
        !self.predictions.is_empty()
    }

    /// Applies an input to everything that is predicted.
    pub(crate) fn act(&mut self, tick: InputTick, input: &Input) {
        for prediction in self.predictions.values_mut() {
            prediction.act(tick, input);
        }
    }

    /// Notes a change of the shown world.
    pub(crate) fn note(&mut self, change: &Change) {
        match change {
            Change::Removed(entity) => {
                self.predictions.remove(entity);
                self.simulations.remove(entity);
                self.types.values_mut().for_each(|it| it.forget(*entity));
            }
            Change::Entered => self.reset(),
            _ => {}
        }
    }

    /// Forgets everything but settings, for another connection or world.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            config: self.config.clone(),
            ..Self::default()
        };
    }

    /// The tick that the frame plays back.
    pub(crate) fn playback(&self) -> Option<f64> {
        self.moment.map(|moment| moment.playback)
    }

    pub(crate) fn show_config(&self) -> &ShowConfig {
        &self.config.show
    }

    fn begin_frame(&mut self, view: &View, now: Duration, present: Option<f64>) -> Option<Moment> {
        let playback = self.clock.as_mut()?.advance(now)?;
        self.moment = Some(Moment {
            playback,
            present: present.unwrap_or(playback).max(playback),
            now,
            tick_seconds: interval(view).as_secs_f64(),
        });
        self.moment
    }

    fn shown<T: State + 'static>(&mut self, view: &View, entity: EntityHandle) -> Option<T> {
        let Some(moment) = self.moment else {
            return view.get(entity);
        };
        // A tick that no entity can have is none.
        let playback = Tick(moment.playback.max(0.0) as u64);
        let (_, sample) = view.sample_at::<T>(entity, playback)?;
        let Some(Tracks { layout, tracks }) = self.tracks::<T>() else {
            return Some(sample);
        };
        let track = tracks.entry(entity).or_insert_with(|| Track::new(layout));
        let newest = track.newest().map(Tick);
        if newest < view.tick_of(entity, 0) {
            let samples = view.samples::<T>(entity).rev();
            let missing = samples.take_while(|(tick, _)| Some(*tick) > newest);
            let missing: Vec<(Tick, T)> = missing.take(MAX_MISSING).collect();
            for (tick, sample) in missing.into_iter().rev() {
                // They are newer, by the condition above.
                let _ = track.push(layout, tick.0, sample);
            }
        }
        Some(track.shown(layout, sample, &moment))
    }

    fn tracks<T: State + 'static>(&mut self) -> Option<&mut Tracks<T>> {
        let id = TypeId::of::<T>();
        if !self.types.contains_key(&id) {
            // A type that is not sound has no entities.
            let layout = Layout::<T>::new(&self.config.show).ok()?;
            let tracks = BTreeMap::new();
            self.types.insert(id, Box::new(Tracks { layout, tracks }));
        }
        let tracks: &mut dyn Any = self.types.get_mut(&id)?.as_mut();
        tracks.downcast_mut()
    }
}

impl Client {
    /// Begins a frame, and returns the ticks that it shows; `None` before the first state. Call it
    /// once per frame, after [`poll`](Self::poll)ing; then [`shown`](Self::shown) is smooth.
    ///
    /// Entities are shown a little later than they arrive, so that there is a newer sample to draw
    /// towards: about a tick, and more over a link with jitter or loss, whose measure is
    /// [`playback`](Self::playback).
    pub fn begin_frame(&mut self) -> Option<Moment> {
        let (present, now) = (self.server_tick(), self.play_out_time());
        let (view, play_out) = self.play_out_parts();
        play_out.begin_frame(view, now, present)
    }

    /// An entity's value in its first table, as this frame shows it: every field as its `show`
    /// attribute says, drawn between samples if it says nothing and is a float; and an entity that
    /// this client [predicts](Self::predict) or [simulates](Self::simulate) as that says. `None` if it has another type or is
    /// gone. Before the first [`begin_frame`](Self::begin_frame) it is what [`get`](Self::get)
    /// returns, and so it is for entities that this client has authority over.
    pub fn shown<T: State + 'static>(&mut self, entity: EntityHandle) -> Option<T> {
        if self.has_authority(entity) {
            return self.get(entity);
        }
        let now = self.play_out_time();
        let (view, play_out) = self.play_out_parts();
        if let Some(prediction) = play_out.predictions.get_mut(&entity)
            && let Some(shown) = prediction.shown(now)
        {
            let shown = shown.downcast::<T>();
            return shown.ok().map(|shown| *shown);
        }
        if let Some(moment) = play_out.moment
            && let Some(simulation) = play_out.simulations.get_mut(&entity)
            && let Some(shown) = simulation.shown(view, entity, &moment)
        {
            let shown = shown.downcast::<T>();
            return shown.ok().map(|shown| *shown);
        }
        play_out.shown(view, entity)
    }

    /// The playback clock's measures; `None` before the first state.
    pub fn playback(&mut self) -> Option<PlaybackStatistics> {
        let (_, play_out) = self.play_out_parts();
        play_out.clock.as_ref().map(PlaybackClock::statistics)
    }

    /// Sets how entities are shown. What was measured and shown before is forgotten, and so are
    /// predictions.
    pub fn set_play_out(&mut self, config: PlayOutConfig) -> Result<(), ConfigError> {
        config.check()?;
        let (_, play_out) = self.play_out_parts();
        play_out.config = config;
        play_out.reset();
        Ok(())
    }
}

fn interval(view: &View) -> Duration {
    let told = view.clock().map(|clock| clock.interval_micros);
    let micros = told
        .filter(|&micros| micros > 0)
        .unwrap_or(DEFAULT_TICK_MICROS);
    Duration::from_micros(micros.into())
}

/// Until the server tells, and if it never does: a thirtieth of a second, as its default is.
const DEFAULT_TICK_MICROS: u32 = 33_333;
/// Samples of an entity that has not been shown for a while.
const MAX_MISSING: usize = 16;
