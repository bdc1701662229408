//! What a client shows in a frame: [`Client::begin_frame`] and [`Client::shown`].

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use prescient_channels::{Input, InputTick};
use prescient_playout::{
    ConfigError, IntervalEstimate, Layout, Moment, PlaybackClock, PlaybackConfig,
    PlaybackStatistics, ShowConfig, Track,
};
use prescient_replication::{Change, Client as View, EntityHandle, Tick};
use prescient_schema::State;

use crate::client::Client;
use crate::prediction::{AnyPrediction, MAX_AHEAD};
use crate::simulation::AnySimulation;

/// Settings of what a client shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlayOutConfig {
    playback: PlaybackConfig,
    show: ShowConfig,
}

impl PlayOutConfig {
    /// How late entities are drawn, [`PlaybackConfig::default`] unless this is called.
    #[must_use]
    pub fn with_playback(mut self, config: PlaybackConfig) -> Self {
        self.playback = config;
        self
    }

    /// How wrong guesses are mended, [`ShowConfig::default`] unless this is called.
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
    /// Of a server that does not tell its interval.
    estimate: Option<IntervalEstimate>,
    moment: Option<Moment>,
    /// The layout and the tracks of each type that was shown.
    types: BTreeMap<TypeId, Box<dyn AnyTracks>>,
    pub(crate) predictions: BTreeMap<EntityHandle, Box<dyn AnyPrediction>>,
    pub(crate) simulations: BTreeMap<EntityHandle, Box<dyn AnySimulation>>,
    /// Inputs that no state has consumed yet.
    sent: VecDeque<(InputTick, Input)>,
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
        let told = view.clock().map(|clock| clock.interval_micros.into());
        let told = told.filter(|&micros| micros > 0).map(Duration::from_micros);
        let guess = || IntervalEstimate::new(DEFAULT_INTERVAL);
        let estimate = self.estimate.get_or_insert_with(guess);
        let interval = told.unwrap_or_else(|| estimate.handle_state(tick.0, now));
        let clock = match &mut self.clock {
            Some(clock) => clock,
            None => match PlaybackClock::new(self.config.playback.clone(), interval) {
                Ok(clock) => self.clock.insert(clock),
                Err(_) => return,
            },
        };
        // A tick of several packets counts once, and an interval is never zero.
        let _ = match told {
            Some(_) => clock.set_interval(interval),
            None => clock.adjust_interval(interval),
        };
        let _ = clock.handle_state(tick.0, now);
        for (entity, prediction) in &mut self.predictions {
            prediction.confirm(view, *entity, consumed);
        }
        while let Some((sent, _)) = self.sent.front()
            && Some(*sent) <= consumed
        {
            self.sent.pop_front();
        }
    }

    /// Applies an input to everything that is predicted.
    pub(crate) fn act(&mut self, view: &mut View, tick: InputTick, input: Input) {
        for prediction in self.predictions.values_mut() {
            prediction.act(view, tick, &input);
        }
        if self.sent.len() == MAX_AHEAD {
            self.sent.pop_front();
        }
        self.sent.push_back((tick, input));
    }

    /// The inputs after one of them, oldest first.
    pub(crate) fn sent_after(
        &self,
        consumed: Option<InputTick>,
    ) -> impl Iterator<Item = &(InputTick, Input)> {
        self.sent
            .iter()
            .filter(move |(tick, _)| Some(*tick) > consumed)
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

    fn begin_frame(&mut self, now: Duration, present: Option<f64>) -> Option<Moment> {
        let clock = self.clock.as_mut()?;
        let playback = clock.advance(now)?;
        self.moment = Some(Moment {
            playback,
            present: present.unwrap_or(playback).max(playback),
            now,
            tick_seconds: clock.interval().as_secs_f64(),
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
        let present = view.tick_of(entity, 0);
        if newest < present {
            let behind = present.map_or(0.0, |present| present.0 as f64 - moment.playback);
            let samples = view.samples::<T>(entity).rev();
            let missing = samples.take_while(|(tick, _)| Some(*tick) > newest);
            // An entity may not have been shown for a while. `as` turns what is negative into 0.
            let missing: Vec<(Tick, T)> = missing.take(behind as usize + SAMPLES_BEFORE).collect();
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
    /// [`playback`](Self::playback). How long a tick takes, a server tells that uses
    /// [`next_tick`](crate::Server::next_tick); that of another is estimated.
    pub fn begin_frame(&mut self) -> Option<Moment> {
        let (present, now) = (self.server_tick(), self.play_out_time());
        let (_, play_out) = self.play_out_parts();
        play_out.begin_frame(now, present)
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

    /// All visible entities of a type, [as this frame shows them](Self::shown).
    ///
    /// ```
    /// # use prescient::{Everything, Schema, Server, State};
    /// # #[derive(State)]
    /// # struct Tank { #[state(step = 0.01)] x: f32 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut server = Server::offline(Schema::of::<Tank>()?, Everything)?;
    /// # let mut client = server.local_client();
    /// # server.step()?.spawn(&Tank { x: 2.5 })?;
    /// # server.send();
    /// while client.poll().is_some() {}
    /// client.begin_frame();
    /// for (_entity, tank) in client.all_shown::<Tank>() {
    ///     assert_eq!(tank.x, 2.5);
    /// }
    /// # assert_eq!(client.all_shown::<Tank>().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn all_shown<T: State + 'static>(&mut self) -> Vec<(EntityHandle, T)> {
        let entities: Vec<EntityHandle> = self.entities().collect();
        let shown = entities.into_iter();
        shown
            .filter_map(|entity| Some((entity, self.shown(entity)?)))
            .collect()
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

/// Until the server tells, or enough states arrived: a thirtieth of a second, as its default is.
const DEFAULT_INTERVAL: Duration = Duration::from_micros(33_333);
/// Samples up to the shown tick that a curve needs.
const SAMPLES_BEFORE: usize = 4;
