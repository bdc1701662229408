//! What a player sees: smooth, immediate and right.
//!
//! A client knows what things were at some past ticks. This crate turns that into what is drawn now,
//! in whatever engine: it knows no sockets, clocks or screens, only samples of
//! [`State`](prescient_schema::State)s and times. Results are for display, so floats are fine here,
//! and nothing that both ends must agree on depends on them; still, the same calls return the same
//! values everywhere.
//!
//! | a player wants | by | and pays with |
//! |---|---|---|
//! | others to move smoothly | a [`PlaybackClock`] and a [`Track`] per entity: drawing between samples, as late as the link needs | seeing them late |
//! | others to be where they are | a [`Track`] of fields with `show = "velocity"`, a [`SimulatedEntity`], or [`PhysicsRewind`] | wrong guesses, mended by [`Converge`](prescient_schema::Converge) |
//! | to move at once | a [`PredictedEntity`], or a [`Predictor`] of a whole physics world | rollbacks |
//! | to see the shot leave at once | [`PreSpawns`] | shots that the server did not agree to |
//! | to hit what is aimed at | [`SeenTick`] and [`RewindLimits`], at the server | being hit behind cover |
//! | others to see even movement | an [`InputBuffer`] at the server, and a [`TickRate`] at the client | a tick of delay |
//!
//! The facade `prescient` calls all of this; use the crate itself with another source of samples.
//!
//! # Order of calls
//!
//! 1. [`PlaybackClock::handle_state`] for every state that arrives, and [`Track::push`] for every
//!    entity in it.
//! 2. [`PlaybackClock::advance`] once per frame; its tick is [`Moment::playback`].
//! 3. [`Track::shown`] for every entity that is drawn.
//!
//! ```
//! use std::time::Duration;
//!
//! use prescient_playout::{Layout, Moment, PlaybackClock, PlaybackConfig, ShowConfig, Track};
//! use prescient_schema::State;
//!
//! #[derive(State, Clone)]
//! struct Ball {
//!     #[state(step = 0.01, show = "linear")]
//!     height: f64,
//! }
//!
//! let tick = Duration::from_millis(50);
//! let layout = Layout::<Ball>::new(&ShowConfig::default())?;
//! let mut track = Track::new(&layout);
//! let mut clock = PlaybackClock::new(PlaybackConfig::default(), tick)?;
//! for number in 1..=3 {
//!     let now = tick * number + Duration::from_millis(80);
//!     clock.handle_state(number.into(), now)?;
//!     track.push(&layout, number.into(), Ball { height: f64::from(number) })?;
//! }
//! let now = Duration::from_millis(240);
//! let playback = clock.advance(now).expect("states arrived");
//! let moment = Moment { playback, present: 4.8, now, tick_seconds: 0.05 };
//! let shown = track.shown(&layout, Ball { height: 2.0 }, &moment);
//! assert!((shown.height - playback).abs() < 1e-9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Bad input
//!
//! Nothing panics. Time that goes backwards counts as standing still, and a frame of the past shows
//! the past without mending anything. Samples and states that are not newer are errors and change
//! nothing. A number that is not finite is not interpolated: the sample before it is shown. A step
//! of the program that returns one is an error and counts as no step. A history that is shorter than
//! asked for shows its oldest sample.

mod converge;
mod derivative;
mod error;
mod input_buffer;
mod interpolate;
mod interval;
mod lag;
mod layout;
mod mending;
mod moment;
mod physics_rewind;
mod playback;
mod pre_spawn;
mod predict;
mod predicted;
mod samples;
mod simulated;
mod track;

pub use converge::{Correction, Pace, average};
pub use error::{ConfigError, PlaybackError, PredictError, RewindError, TrackError};
pub use input_buffer::{
    BufferedInput, InputBuffer, InputBufferConfig, InputBufferError, Nudge, TickRate,
};
pub use interpolate::{hermite, linear, slerp, unit};
pub use interval::IntervalEstimate;
pub use lag::{RewindLimits, SeenTick, between};
pub use layout::{Layout, ShowConfig};
pub use moment::Moment;
pub use physics_rewind::{Physics, PhysicsRewind, Rewound};
pub use playback::{PlaybackClock, PlaybackConfig, PlaybackStatistics};
pub use pre_spawn::{PreSpawns, TooManyPreSpawns};
pub use predict::{Confirmation, PredictionStatistics, Predictor, Simulated};
pub use predicted::{Predicted, PredictedEntity};
pub use simulated::SimulatedEntity;
pub use track::Track;
