//! The trace format: what a real simulation's world looked like at every tick, as integers.
//!
//! A trace is compressed text, so that it can be looked at with ordinary tools and written by a
//! ten-line script in any language. Because anybody may have written it, the [`Reader`] trusts
//! nothing and names the line of whatever it refuses.

mod error;
mod header;
mod reader;
mod writer;

pub use error::{LineError, TraceError};
pub use header::{ClassHeader, FieldHeader, FieldType, Header, HeaderError};
pub use reader::Reader;
pub use writer::Writer;

/// A despawned id stays unused for this many ticks.
pub const ID_REST_TICKS: u64 = 1000;
