//! Turns rows of integers into packets and back: predicts values, learns from what both ends have,
//! and codes only the surprises.
//!
//! A server captures its world once per tick into an [`Archive`](history::Archive) and has one
//! [`Encoder`] per client. A client has a [`Decoder`], built from the schema alone. Packets may be
//! lost, late, repeated or damaged: both ends learn only from packets that both know to be applied,
//! so their models stay identical bit for bit.
//!
//! # Order of calls
//!
//! 1. Sender: [`Archive::begin`](history::Archive::begin), write the tick, finish the capture.
//! 2. Sender: [`Encoder::show`] and [`Encoder::hide`] when the visible set changes.
//! 3. Sender: [`Encoder::encode`], with a limit in bytes, and send the packet.
//! 4. Receiver: [`Decoder::decode`] with every packet; an error leaves the decoder unchanged.
//! 5. Receiver: [`Decoder::acknowledgement`], and send it back; any of them may get lost.
//! 6. Sender: [`Encoder::acknowledge`].
//!
//! ```
//! use std::sync::Arc;
//! use prescient_codec::{Config, Decoder, Encoder, HISTORY, Tick, history::Archive};
//! use prescient_schema::{SchemaBuilder, State};
//!
//! #[derive(State)]
//! #[state(rename = "ship", tick_hz = 60)]
//! struct Ship {
//!     #[state(step = 0.01, position)]
//!     position: [f32; 2],
//!     #[state(step = 0.01, velocity_of = "position")]
//!     velocity: [f32; 2],
//!     #[state(only_on_spawn)]
//!     team: u8,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = Arc::new(SchemaBuilder::new().state::<Ship>().build()?);
//! let mut archive = Archive::new(schema.clone(), HISTORY);
//! let mut encoder = Encoder::new(schema.clone(), Config::default());
//! let mut decoder = Decoder::new(schema, Config::default());
//!
//! let mut ship = Ship { position: [0.0, 5.0], velocity: [30.0, 0.0], team: 1 };
//! let mut capture = archive.begin(Tick(0))?;
//! let slot = capture.spawn(0, &ship.to_row("default"))?;
//! capture.finish();
//! let id = encoder.show(slot, &archive).expect("it was just captured");
//!
//! let mut bytes = Vec::new();
//! for tick in 1..=120 {
//!     ship.position[0] += ship.velocity[0] / 60.0;
//!     let mut capture = archive.begin(Tick(tick))?;
//!     capture.write(slot, &ship.to_row("default"))?;
//!     capture.finish();
//!
//!     // With `Some(1200)` no packet is longer than 1200 bytes, unless it is marked `oversize`.
//!     bytes = encoder.encode(&archive, None)?.bytes;
//!     // Send `bytes`; any packet may get lost.
//!     decoder.decode(&bytes)?;
//!     assert_eq!(decoder.row(id), Some(&ship.to_row("default")[..]));
//!     // Send the acknowledgement back; it may get lost, too.
//!     if let Some(ack) = decoder.acknowledgement() {
//!         encoder.acknowledge(&ack, &archive)?;
//!     }
//! }
//! // A byte of header and two of check: everything was as predicted.
//! assert_eq!(bytes.len(), 3);
//! # Ok(())
//! # }
//! ```
//!
//! Why the models cannot diverge, and how the parts work together, is in the book
//! (`book/src/internals/codec.md`); the bytes are in `docs/wire/codec.md`.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod ack;
mod body;
mod budget;
mod buffer;
mod check;
mod chunks;
mod config;
mod container;
mod content_store;
mod coverage;
mod decoder;
mod encoder;
mod entity;
mod header;
pub mod history;
mod kept;
mod known_entities;
mod last_row;
mod layout;
pub mod ledger;
mod log;
mod model;
pub mod numbers;
mod packet_coder;
mod past;
mod population;
mod predict;
mod prior;
mod quality;
mod queue;
mod range;
mod ranking;
mod row_coder;
mod script;
mod shared_model;
mod slot_map;
#[cfg(any(test, feature = "__symbols"))]
pub mod symbols;
mod units;
mod visibility_history;

/// Version of the packet format. Ends of different versions cannot exchange state.
pub const WIRE_VERSION: u8 = 4;

pub use ack::{Ack, AppliedSet};
pub use config::{Config, Policy, Profile};
pub use decoder::{Applied, DecodeError, Decoder};
pub use encoder::{AckError, EncodeError, Encoder, Packet, Selection, ShownErrors, Statistics};
pub use history::{HistoryDepth, HistoryTooShort};
pub use last_row::LastRow;
pub use layout::Layout;
pub use prior::{Prior, PriorError, PriorMismatch, Trainer};
pub use quality::{MAX_RATE_DIVISOR, Quality, QualityError};
pub use row_coder::{DecodedRow, MalformedRow, RowCoder, RowError};
pub use shared_model::HISTORY;
pub use units::{NetEntityId, Sequence, Slot, Tick, Weight};
