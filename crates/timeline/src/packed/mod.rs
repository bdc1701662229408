//! Keyframes in few bytes: packed per interval, and entropy-coded by the codec.
//!
//! The [keyframe protocol](crate::protocol) of the document sends every keyframe in a packet of its own,
//! 80 bytes with headers. Here a [`Sender`] collects the operations of an interval, rounds times and values
//! to declared steps, and writes one message per interval, in which a keyframe takes a few bytes; urgent
//! operations are sent at once. Messages travel over a channel that delivers them once and in order, such as
//! the events of a server. A [`Receiver`] that misses one asks for it. A [`Broadcast`] sends the same curves
//! to any number of receivers.
//!
//! # Order of calls
//!
//! 1. Both ends: the same [`PackedConfig`]. The receiver's first [`poll_transmit`](Receiver::poll_transmit)
//!    asks for everything the sender has: a late joiner gets the history.
//! 2. Sender: [`apply`](Sender::apply) operations, [`flush`](Sender::flush) after urgent ones,
//!    [`handle_timeout`](Sender::handle_timeout) at [`next_timeout`](Sender::next_timeout), and send what
//!    [`poll_transmit`](Sender::poll_transmit) returns.
//! 3. Receiver: [`handle`](Receiver::handle) messages, send what [`poll_transmit`](Receiver::poll_transmit)
//!    returns, and look up values in [`timeline`](Receiver::timeline).
//!
//! Both ends can send: a client that plans a path has a sender of its own, and the server a receiver.
//!
//! Keyframes may be any time ahead, so that they arrive before they are needed. Times in a message are
//! relative to a base time that moves with every message, so games may last for years.
//!
//! ```
//! use prescient_timeline::packed::{PackedConfig, Receiver, Sender};
//! use prescient_timeline::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = PackedConfig::new(0.01)?.interval(Span::from_millis(250));
//! let mut sender = Sender::<[f64; 2]>::new(config.clone());
//! let mut receiver = Receiver::<[f64; 2]>::new(config);
//! let add = |time, value| Operation {
//!     property: PropertyId(7),
//!     edit: Edit::Add(Keyframe::new(Time::from_millis(time), value)),
//! };
//! sender.apply(&add(0, [0.0, 5.0]))?;
//! sender.apply(&add(4000, [12.0, 5.0]))?;
//! while let Some(request) = receiver.poll_transmit() {
//!     sender.handle(&request)?;
//! }
//! sender.handle_timeout(Time::from_millis(250));
//! while let Some(message) = sender.poll_transmit() {
//!     receiver.handle(&message)?;
//! }
//! let shown = receiver.timeline().at(PropertyId(7), Time::from_millis(1000));
//! assert_eq!(shown, Some([3.0, 5.0]));
//! # Ok(())
//! # }
//! ```
//!
//! The bytes are in `docs/wire/keyframes.md`.

mod coder;
mod message;
mod receiver;
mod sender;
mod source;
mod steps;
mod stream;

pub use receiver::{ReceiveError, Receiver};
pub use sender::{Broadcast, SendError, Sender};
pub use steps::{PackedConfig, PackedConfigError};
