//! The keyframe protocol, bit for bit: frames of 14 bytes over a TCP connection, on port 3333.
//!
//! It was defined by Ramon Brand, *Defining a Keyframe Based Protocol for Optimising Network Updates of
//! Large Sets of Entities* (Metropolia University of Applied Sciences, 2019), and this is for
//! programs that speak it. Values are unsigned 32-bit integers, times milliseconds, interpolation is
//! linear. The bytes are in WIRE.md.
//!
//! # Order of calls
//!
//! [`Server`] and [`Client`] are machines without sockets and clocks; with the feature `tcp`, `tcp` has
//! blocking ones with both.
//!
//! 1. The server is made with a base time. For each connection, [`Server::handle_connected`].
//! 2. A [`Client`] is made for each connection and asks for the base time by itself.
//! 3. Whatever arrives goes to `handle_bytes`, in pieces of any size.
//! 4. Then [`poll_transmit`](Server::poll_transmit) until there is nothing more: each frame is to be one
//!    write, on a socket with `TCP_NODELAY`, because the protocol's own implementation reads one frame
//!    at a time. And `poll_event` until there is nothing more.
//! 5. The server adds, removes and moves keyframes; clients follow. Look-ups are those of
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
