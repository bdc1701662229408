//! Why a trace was refused, with the line, so that whoever wrote it can find the place.

use super::{HeaderError, ID_REST_TICKS};

/// A trace that cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be read or decompressed.
    #[error("line {line}: cannot read: {error}")]
    Io {
        /// The line that was being read.
        line: u64,
        /// What the system said.
        error: std::io::Error,
    },
    /// Line 1 is unusable.
    #[error("line 1: {0}")]
    Header(#[from] HeaderError),
    /// A later line breaks the format.
    #[error("line {line}: {reason}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: LineError,
    },
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The line does not end where any sensible one would have.
    #[error("the line is too long")]
    TooLong,
    /// The line starts with none of `T`, `+`, `=`, `-`.
    #[error("expected a line that starts with T, +, = or -")]
    Unknown,
    /// Something stands before the first `T` line.
    #[error("an entity line before the first T line")]
    BeforeFirstTick,
    /// A part is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A part is not the number it should be.
    #[error("{what} is not a number: {text:?}")]
    Number {
        /// Which part.
        what: &'static str,
        /// What stands there.
        text: String,
    },
    /// There is more than there should be.
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
    /// The id left too recently.
    #[error("entity {id} left at tick {left} and its id is reused within {ID_REST_TICKS} ticks")]
    ReusedTooSoon {
        /// The id.
        id: u64,
        /// When it left.
        left: u64,
    },
}
