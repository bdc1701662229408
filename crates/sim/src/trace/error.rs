//! Errors of traces, with the line.

use super::{HeaderError, ID_REST_TICKS};

/// A trace that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file could not be read or decompressed.
    #[error("line {line}: cannot read: {error}")]
    Io {
        /// The line being read.
        line: u64,
        /// The cause.
        error: std::io::Error,
    },
    /// Line 1 is invalid.
    #[error("line 1: {0}")]
    Header(#[from] HeaderError),
    /// A later line breaks the format.
    #[error("line {line}: {reason}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// The error.
        reason: LineError,
    },
}

/// Errors of a line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line exceeds the maximum length.
    #[error("the line is too long")]
    TooLong,
    /// The line starts with none of `T`, `+`, `=`, `-`.
    #[error("expected a line that starts with T, +, = or -")]
    Unknown,
    /// An entity line precedes the first `T` line.
    #[error("an entity line before the first T line")]
    BeforeFirstTick,
    /// A word is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A word is not a number.
    #[error("{what} is not a number: {text:?}")]
    Number {
        /// The meaning of the word.
        what: &'static str,
        /// The word.
        text: String,
    },
    /// There are too many words.
    #[error("unexpected {0:?} at the end")]
    Trailing(String),
    /// Ticks must strictly increase.
    #[error("tick {tick} follows tick {previous}")]
    TickOrder {
        /// The new tick.
        tick: u64,
        /// The one before it.
        previous: u64,
    },
    /// The header has no such class.
    #[error("unknown class {0:?}")]
    UnknownClass(String),
    /// The row is too short or too long.
    #[error("class {class:?} has {expected} fields, but {got} values are given")]
    ValueCount {
        /// The class.
        class: String,
        /// Its number of fields.
        expected: usize,
        /// Values on the line.
        got: usize,
    },
    /// The class has no such field.
    #[error("class {class:?} has no field number {field}")]
    NoSuchField {
        /// The class.
        class: String,
        /// The number on the line.
        field: u64,
    },
    /// The value is outside its enumeration.
    #[error("{value} is out of range for the field {field:?}")]
    Range {
        /// The field.
        field: String,
        /// The value.
        value: i64,
    },
    /// The id is alive already.
    #[error("entity {0} is alive already")]
    AlreadyAlive(u64),
    /// The id is not alive.
    #[error("entity {0} is not alive")]
    NotAlive(u64),
    /// The id was despawned too recently.
    #[error("entity {id} left at tick {left} and its id is reused within {ID_REST_TICKS} ticks")]
    ReusedTooSoon {
        /// The id.
        id: u64,
        /// The tick of its despawn.
        left: u64,
    },
}
