//! Rust types as columns of integers.
//!
//! [`Value`] describes, writes and reads a type in one fixed order. Scalars are one column;
//! everything else is the concatenation of its parts. The traits exist so that the derive macro
//! needs to know nothing about types: `step` on an array of options of vectors simply works.

mod container;
#[cfg(feature = "glam")]
mod glam;
mod scalar;

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use crate::{ClassBuilder, Declaration};

/// A type that is flattened to columns.
///
/// `write` puts and `read` takes exactly [`width`](Value::width) integers, in the order in which
/// `describe` adds the fields. `table` names the view (see [`State`](crate::State)) and is only
/// handed through by everything but derived structs.
pub trait Value: Sized {
    /// Adds this type's fields to a class.
    fn describe(name: &str, how: &Declaration, table: &str, class: &mut ClassBuilder);

    /// Number of columns.
    fn width(how: &Declaration, table: &str) -> usize;

    /// Appends this value's integers.
    fn write(&self, how: &Declaration, table: &str, row: &mut impl Sink);

    /// Takes the next value from a row.
    fn read(how: &Declaration, table: &str, row: &mut Source<'_>) -> Result<Self, ReadError>;
}

/// Types made of floats: those that `step` and `float` may be declared on.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made of floats",
    label = "`step`, `exact` and `float` are for `f32`, `f64`, and arrays, options and vectors of them"
)]
pub trait Real: Numeric {}

/// Types made of numbers: those that `bits`, `levels` and `velocity_of` may be declared on.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made of numbers",
    label = "this is for integers, floats, and arrays, options and vectors of them"
)]
pub trait Numeric: Value {}

/// Where a row is written to.
pub trait Sink {
    /// Appends one integer.
    fn put(&mut self, value: i64);
}

impl Sink for Vec<i64> {
    fn put(&mut self, value: i64) {
        self.push(value);
    }
}

/// Overwrites the cells of an existing row; what does not fit is dropped.
impl Sink for core::slice::IterMut<'_, i64> {
    fn put(&mut self, value: i64) {
        if let Some(cell) = self.next() {
            *cell = value;
        }
    }
}

/// Where a row is read from.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    row: &'a [i64],
    column: usize,
}

impl<'a> Source<'a> {
    /// Starts at the first column.
    pub fn new(row: &'a [i64]) -> Self {
        Self { row, column: 0 }
    }

    /// The next integer, as whatever `accept` makes of it.
    pub fn take<T>(&mut self, accept: impl FnOnce(i64) -> Option<T>) -> Result<T, ReadError> {
        let fail = |fault| ReadError {
            column: self.column,
            fault,
        };
        let Some(value) = self.row.get(self.column).copied() else {
            return Err(fail(ReadFault::TooShort));
        };
        let Some(accepted) = accept(value) else {
            return Err(fail(ReadFault::OutOfRange(value)));
        };
        self.column += 1;
        Ok(accepted)
    }

    /// Passes over columns without looking at them.
    pub fn skip(&mut self, columns: usize) -> Result<(), ReadError> {
        (0..columns).try_for_each(|_| self.take(Some).map(drop))
    }

    /// Fails if columns are left.
    pub fn finish(self) -> Result<(), ReadError> {
        if self.column == self.row.len() {
            return Ok(());
        }
        Err(ReadError {
            column: self.column,
            fault: ReadFault::TooLong,
        })
    }
}

/// Why a row is not a value of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The column at fault.
    pub column: usize,
    /// What is wrong with it.
    pub fault: ReadFault,
}

/// One way not to be a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFault {
    /// The row ends before this column.
    TooShort,
    /// The row goes on from this column.
    TooLong,
    /// The type has no such value.
    OutOfRange(i64),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column;
        match self.fault {
            ReadFault::TooShort => write!(f, "the row ends before column {column}"),
            ReadFault::TooLong => write!(f, "the row should end before column {column}"),
            ReadFault::OutOfRange(value) => {
                write!(f, "column {column} cannot have the value {value}")
            }
        }
    }
}

impl core::error::Error for ReadError {}

/// The name of a part of something: `body` and `x` make `body.x`.
pub fn join(container: &str, part: &str) -> String {
    if container.is_empty() {
        part.into()
    } else {
        format!("{container}.{part}")
    }
}
