//! Values as curves over time.
//!
//! A property (a position, a heading, a health) is stored as a curve of few keyframes: values at times, and
//! an interpolation between them. Both ends have the keyframes and look up the value at any time: now,
//! without latency if they were sent ahead of time; a minute ago, to rewind or play backwards; or shortly
//! after the last keyframe.
//!
//! # Order of calls
//!
//! 1. Make a [`Timeline`] for each type of value: `i64`, `f32`, `f64`, vectors as arrays, [`Rotation`].
//!    [`Timeline::configure`] properties that differ from the rest in interpolation ([`Interpolation`]),
//!    extrapolation ([`Extrapolation`]), or memory ([`WhenFull`]).
//! 2. [`apply`](Timeline::apply) the same operations in the same order on both ends: [`Edit::Add`],
//!    [`Edit::Remove`], [`Edit::Move`], [`Edit::MoveWithin`], [`Edit::Clear`]. A refused operation changes
//!    nothing, on either end.
//! 3. Look up values: [`Timeline::at`], or [`Curve::at_cursor`] with a [`Cursor`] for each property that is
//!    played.
//! 4. Drop old keyframes, if the limits of step 1 do not: [`Timeline::drop_before`],
//!    [`Curve::thin_before`].
//!
//! ```
//! use prescient_timeline::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let second = |seconds: i64| Time::from_millis(1000 * seconds);
//! let position = PropertyId(7);
//! let operation = |edit| Operation { property: position, edit };
//!
//! // The server knows the path of a unit in advance, and sends all of it.
//! let mut server = Timeline::<[f32; 2]>::default();
//! let mut client = server.clone();
//! let way = [(10, [4.0, 7.0]), (30, [6.0, 12.0]), (40, [6.0, 30.0])];
//! let way = way.map(|(time, position)| operation(Edit::Add(Keyframe::new(second(time), position))));
//! for step in way {
//!     server.apply(&step)?;
//!     client.apply(&step)?; // sent over any ordered channel
//! }
//! assert_eq!(client.at(position, second(0)), Some([4.0, 7.0]));
//! assert_eq!(client.at(position, second(20)), Some([5.0, 9.5]));
//! assert_eq!(client.at(position, second(60)), Some([6.0, 30.0]));
//!
//! // The unit is delayed for five seconds at its first corner.
//! let held_up = Edit::MoveWithin { from: second(31), to: Time::MAX, by: Span::from_secs(5) };
//! let waits = Edit::Add(Keyframe::new(second(35), [6.0, 12.0]));
//! for step in [operation(held_up), operation(waits)] {
//!     server.apply(&step)?;
//!     client.apply(&step)?;
//! }
//! assert_eq!(client, server);
//!
//! // A cursor avoids the search while playing, in either direction.
//! let curve = client.curve(position).expect("it has keyframes");
//! let mut cursor = Cursor::default();
//! for frame in (0..600).rev() {
//!     curve.at_cursor(&mut cursor, Time::from_millis(100 * frame));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Sources of keyframes
//!
//! - From simulated values: a [`Fitter`] per property takes samples and returns the few keyframes that stay
//!   within a declared error, a bounded number of samples late.
//! - From a known future, such as a path: [`plan`] returns the edits that make the curve follow it, or that
//!   correct the curve when the path changes, and leaves the past unchanged.
//! - [`break_even`] computes up to how many keyframes per second this is cheaper than sending every value at
//!   a constant rate.
//!
//! ```
//! use prescient_timeline::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Ten minutes of a patrol between two posts, 30 samples per second, within a centimetre. Because of the
//! // look-ahead of five seconds, every leg of ten seconds has two keyframes more.
//! let mut fitter = Fitter::new(0.01, 150)?;
//! let mut curve = Curve::new(CurveConfig::default());
//! let patrol = |tick: i64| [(tick % 600 - 300).abs() as f64 * 0.05, 2.0];
//! for tick in 0..18_000 {
//!     fitter.push(Time::from_micros(33_333 * tick), patrol(tick))?;
//!     while let Some(keyframe) = fitter.poll_keyframe() {
//!         curve.add(keyframe)?; // and send it
//!     }
//! }
//! assert!(curve.len() < 200);
//! let [x, _] = curve.at(Time::from_micros(33_333 * 1000)).expect("it has keyframes");
//! assert!((x - patrol(1000)[0]).abs() <= 0.01);
//! # Ok(())
//! # }
//! ```
//!
//! # What both ends agree on
//!
//! Times are integers. Look-ups of integers use integer arithmetic and yield the same bits on every machine.
//! Look-ups of floats agree except for the sines of spherical interpolation, which may differ in their last
//! bits. The crate does no IO and reads no clock.
//!
//! # On the wire
//!
//! [`packed`] sends operations in few bytes, by the codec; [`protocol`] sends them as the keyframe
//! protocol's document defines, for other implementations of it.

pub mod break_even;
mod curve;
mod fit;
pub mod packed;
mod plan;
pub mod protocol;
mod time;
mod timeline;
mod value;

pub use curve::{
    Cursor, Curve, CurveConfig, CurveConfigError, Edit, EditError, Extrapolation, Interpolation,
    Keyframe, WhenFull,
};
pub use fit::{FitError, Fitter, MAX_LOOK_AHEAD};
pub use plan::{PlanError, plan};
pub use time::{Span, Time};
pub use timeline::{Operation, PropertyId, Timeline, TimelineConfig};
pub use value::{MAX_MAGNITUDE, Rotation, RotationError, Value, ValueError};
