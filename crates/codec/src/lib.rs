//! Values to bits and back: predict, learn, and code only the surprises.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod ack;
mod body;
mod budget;
mod check;
mod config;
mod decoder;
mod encoder;
mod entity;
mod header;
pub mod history;
pub mod ledger;
mod log;
pub mod model;
pub mod predict;
pub mod range;
mod session;
mod twin;
pub mod units;

pub use ack::Ack;
pub use config::{Config, Policy, Profile};
pub use decoder::{Applied, DecodeError, Decoder};
pub use encoder::{AckError, EncodeError, Encoder, Packet, Statistics};
pub use twin::HISTORY;
pub use units::{ClientId, Sequence, Slot, Tick};
