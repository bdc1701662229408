//! Recordings of replicated worlds.
//!
//! A [`Recorder`] writes the ticks of an [`Archive`](prescient_codec::history::Archive) with the
//! codec, as one stream that learns from everything before, with a snapshot now and then. The schema
//! is inside, so a [`Recording`] opens without the game's code. A [`Player`] shows any tick of it,
//! plays forwards and backwards at any speed, and several players show several recordings, or several
//! ticks of one, at once.
//!
//! Nothing here does IO or reads a clock: a recorder returns bytes to append to a file, and a
//! recording is opened from the bytes of one.
//!
//! # Order of calls
//!
//! 1. [`Recorder::new`]; append [`Recorder::take_bytes`] to the file, now and after every tick.
//! 2. Capture a tick, then [`Recorder::record`] it.
//! 3. In the end append what [`Recorder::finish`] returns. Without it (the program was killed) the
//!    file opens up to its last complete block.
//! 4. [`Recording::open`], a [`Player`], and [`Player::seek`], [`Player::step_forward`],
//!    [`Player::step_back`] or [`Player::play`].
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use prescient_codec::{HISTORY, Tick, history::Archive};
//! use prescient_recording::{Player, Recorder, Recording, RecordingConfig};
//! use prescient_schema::{SchemaBuilder, State};
//!
//! #[derive(State, Debug, PartialEq)]
//! struct Ship {
//!     #[state(step = 0.01, position)]
//!     position: [f32; 2],
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = Arc::new(SchemaBuilder::new().state::<Ship>().build()?);
//! let mut archive = Archive::new(schema.clone(), HISTORY);
//! let config = RecordingConfig::default().with_tick_interval(Duration::from_millis(50));
//! let mut recorder = Recorder::new(schema, config)?;
//! let mut file = recorder.take_bytes();
//! let mut slot = None;
//! for tick in 0..100u8 {
//!     let row = Ship { position: [f32::from(tick), 5.0] }.to_row("default");
//!     let mut capture = archive.begin(Tick(tick.into()))?;
//!     match slot {
//!         None => slot = Some(capture.spawn(0, &row)?),
//!         Some(slot) => capture.write(slot, &row)?,
//!     }
//!     capture.finish();
//!     recorder.record(&archive)?;
//!     file.extend(recorder.take_bytes());
//! }
//! file.extend(recorder.finish());
//!
//! let recording = Arc::new(Recording::open(file)?);
//! let mut player = Player::new(recording);
//! player.seek_time(Duration::from_secs(2))?;
//! let (ship, _) = player.entities().next().expect("there is one");
//! assert_eq!(player.get(ship), Some(Ship { position: [40.0, 5.0] }));
//! player.play(Duration::from_millis(500), -3.0)?;
//! assert_eq!(player.get(ship), Some(Ship { position: [10.0, 5.0] }));
//! # Ok(())
//! # }
//! ```
//!
//! # Size and seeking
//!
//! A recording is as long as what a client that loses nothing would receive, plus snapshots. A
//! snapshot is written when the ticks since the last one take [`DEFAULT_SNAPSHOT_RATIO`] times its
//! bytes, so snapshots take at most a fixed share of any recording. The first seek into a stretch
//! between two snapshots decodes it; a player keeps it as a list of differences, so that later
//! seeks into it, steps back, and playing at any speed do not decode anything.
//! [`Player::load_all`] decodes everything in advance, and
//! [`RecordingConfig::with_max_segment_bytes`] makes segments short.
//!
//! The bytes are in `docs/wire/recording.md`.

mod block;
mod compare;
mod info;
mod player;
mod recorder;
mod recording;
mod track;

pub use compare::{FieldDifference, compare};
pub use info::RecordingInfo;
pub use player::{Player, RecordedEntity};
pub use recorder::{
    DEFAULT_SNAPSHOT_RATIO, FAST_SEEK_BYTES, RecordError, Recorder, RecorderStatistics,
    RecordingConfig, RecordingConfigError,
};
pub use recording::{Damage, Fault, OpenError, Recording};
pub use track::PlayError;

/// The identity of an entity in a recording: the same at all its ticks, and never another's.
///
/// In recordings of a server's world it is the [cell](prescient_schema::EntityRef::cell) of the
/// entity's reference there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordedId(pub u64);
