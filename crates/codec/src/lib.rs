//! Values to bits and back: predict, learn, and code only the surprises.
//!
//! A server captures its world once per tick into an [`Archive`](history::Archive) of rows of
//! integers and has one [`Encoder`] per client; the client has a [`Decoder`] that is built from
//! the schema alone. Packets may be lost, late, repeated or damaged: both ends learn only from
//! what both know to have been applied, so their models stay identical bit for bit.
//!
//! ```
//! use std::sync::Arc;
//! use prescient_codec::{Config, Decoder, Encoder, HISTORY, Tick, history::Archive};
//! use prescient_schema::{Class, Field, Kind, Schema};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let x = Field::new("x", Kind::Int { bits: 32, signed: true });
//! let schema = Arc::new(Schema { classes: vec![Class::new("cart", vec![x])] });
//! let mut archive = Archive::new(schema.clone(), HISTORY);
//! let mut encoder = Encoder::new(schema.clone(), Config::default());
//! let mut decoder = Decoder::new(schema, Config::default());
//!
//! let mut capture = archive.begin(Tick(1))?;
//! let cart = capture.spawn(0, &[17])?;
//! capture.finish();
//! let id = encoder.show(cart, &archive).expect("it was just captured");
//!
//! let packet = encoder.encode(&archive, None)?;
//! decoder.decode(&packet.bytes)?;
//! assert_eq!(decoder.row(id), Some(&[17][..]));
//! if let Some(ack) = decoder.acknowledgement() {
//!     encoder.acknowledge(&ack, &archive)?;
//! }
//! # Ok(())
//! # }
//! ```
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
mod decoder;
mod encoder;
mod entity;
mod header;
pub mod history;
mod kept;
mod layout;
pub mod ledger;
mod log;
pub mod model;
mod pages;
mod past;
mod population;
pub mod predict;
mod prior;
mod queue;
pub mod range;
mod ranking;
mod roster;
mod script;
mod session;
mod shelf;
mod sighting;
mod twin;
pub mod units;

/// The version of the packets: ends of different versions do not understand each other.
pub const WIRE_VERSION: u8 = 3;

pub use ack::Ack;
pub use config::{Config, Policy, Profile};
pub use decoder::{Applied, DecodeError, Decoder, MAX_BYTES};
pub use encoder::{AckError, EncodeError, Encoder, Packet, Statistics};
pub use prior::{Prior, PriorError, PriorMismatch, Trainer};
pub use twin::HISTORY;
pub use units::{ClientId, Sequence, Slot, Tick, Weight};
