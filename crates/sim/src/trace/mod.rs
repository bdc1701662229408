//! The trace format: the state of a real simulation at every tick, as integers.
//!
//! A trace is compressed text, so that ordinary tools can show it and a ten-line script in any
//! language can write it. Traces are untrusted: the [`Reader`] validates everything and its errors
//! name the line.

mod error;
mod header;
mod reader;
mod writer;

pub use error::{LineError, TraceError};
pub use header::{ClassHeader, FieldHeader, FieldType, Header, HeaderError};
pub use reader::Reader;
pub use writer::Writer;

/// A despawned id may not be reused for this many ticks.
pub const ID_REST_TICKS: u64 = 1000;
