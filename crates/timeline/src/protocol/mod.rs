//! The keyframe protocol, bit for bit: frames of 14 bytes over TCP, port 3333.
//!
//! It was defined by Ramon Brand, *Defining a Keyframe Based Protocol for Optimising Network Updates of
//! Large Sets of Entities* (Metropolia University of Applied Sciences, 2019); this module is for
//! interoperation with other implementations. Values are unsigned 32-bit integers, times are milliseconds,
//! interpolation is linear. `docs/wire/others.md` describes the bytes.
//!
//! # Order of calls
//!
//! [`Server`] and [`Client`] are state machines without sockets and clocks; with the feature `tcp`, the
//! module `tcp` has blocking drivers with sockets.
//!
//! 1. [`Server::new`] with a base time, and [`Server::handle_connected`] for each connection.
//! 2. [`Client::new`] for each connection. It requests the base time by itself.
//! 3. `handle_bytes` with received bytes, in portions of any size.
//! 4. [`poll_transmit`](Server::poll_transmit) until it returns `None`. Write each frame separately, to a
//!    socket with `TCP_NODELAY`, because the protocol's own implementation reads one frame at a time. Then
//!    `poll_event` until it returns `None`.
//! 5. Add, remove and move keyframes at the server; clients receive the changes. Look up values in
//!    [`Server::timeline`] and [`Client::timeline`].
//!
//! ```
//! use prescient_timeline::{PropertyId, Time};
//! use prescient_timeline::protocol::{Client, Server};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let start = 1_552_000_000_000; // milliseconds since 1970
//! let mut server = Server::new(start)?;
//! let mut client = Client::new();
//! let peer = server.handle_connected();
//! while let Some(frame) = client.poll_transmit() {
//!     server.handle_bytes(peer, &frame);
//! }
//! let health = PropertyId(7);
//! server.add(health, Time::from_millis(1_552_000_010_000), 100)?;
//! server.add(health, Time::from_millis(1_552_000_020_000), 50)?;
//! while let Some(frame) = server.poll_transmit(peer) {
//!     client.handle_bytes(&frame);
//! }
//! let between = Time::from_millis(1_552_000_015_000);
//! assert_eq!(client.timeline().at(health, between), Some(75.0));
//! # Ok(())
//! # }
//! ```

mod client;
mod frame;
mod server;
#[cfg(feature = "tcp")]
pub mod tcp;

pub use client::{Client, ClientEvent};
pub use frame::{FRAME_BYTES, Frame, FrameError, KeyframeKey, Range, Reassembly};
pub use server::{Server, ServerError, ServerEvent, StreamId};

/// The port that servers listen on.
pub const PORT: u16 = 3333;
