//! Rust types as columns of integers.
//!
//! [`Value`] describes, writes and reads a type in one fixed order. Scalars are one column;
//! everything else is the concatenation of its parts. With these traits the derive macro does not
//! depend on types: `step` works on an array of options of vectors.

mod container;
#[cfg(feature = "glam")]
mod glam;
mod scalar;
mod sequence;

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use crate::{ClassBuilder, Content, Declaration, Library, NumberVisitor, Parcel};

/// A type that is flattened to columns.
///
/// `write` appends and `read` takes exactly [`width`](Value::width) integers, in the order in which
/// `describe` adds the fields. `table` names the table (see [`State`](crate::State)); only derived
/// structs use it, everything else passes it on.
pub trait Value: Sized {
    /// Adds this type's fields to a class.
    fn describe(name: &str, how: &Declaration, table: &str, class: &mut ClassBuilder);

    /// Number of columns.
    fn width(how: &Declaration, table: &str) -> usize;

    /// Appends this value's integers.
    fn write(&self, how: &Declaration, table: &str, row: &mut impl Sink);

    /// Takes the next value from a row.
    fn read(how: &Declaration, table: &str, row: &mut Source<'_>) -> Result<Self, ReadError>;

    /// Lets a visitor read and replace the numbers that clients show between samples. It visits
    /// [`width`](Value::width) columns; a type without such numbers skips them all.
    fn visit_numbers(&mut self, how: &Declaration, table: &str, visitor: &mut impl NumberVisitor) {
        visitor.skip(Self::width(how, table));
    }
}

/// Types made of floats, on which `step` and `float` may be declared.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made of floats",
    label = "`step`, `exact` and `float` are for `f32`, `f64`, and arrays, options, vectors and lists of them"
)]
pub trait Real: Numeric {}

/// Types made of numbers, on which `bits` may be declared.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made of numbers",
    label = "this is for integers, floats, and arrays, options, vectors and lists of them"
)]
pub trait Numeric: Value {}

/// Types made of numbers with columns of their own (items of containers have none), on which
/// `levels` and `velocity_of` may be declared.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made of numbers with columns of their own",
    label = "this is for integers, floats, and arrays, options and vectors of them"
)]
pub trait Gradual: Numeric {}

/// Types on which `bytes` may be declared.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no byte buffer",
    label = "`bytes` is for `Vec<u8>` and options of it"
)]
pub trait Buffer: Value {}

/// Types on which `keys` may be declared; each bit is a key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no room for keys",
    label = "`keys` is for `u8`, `u16`, `u32` and `u64`, of which each bit is a key"
)]
pub trait Bits: Numeric {}

/// Types on which `table` may be declared: an entity lacks the table while the field is `None`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be absent",
    label = "`table` is for `Option<T>`: an entity lacks the table while the field is `None`"
)]
pub trait Part {
    /// The values of a row of the table.
    type Value: Value;

    /// The value, if the entity has the table.
    fn value(&self) -> Option<&Self::Value>;

    /// The field of an entity that has the table.
    fn present(value: Self::Value) -> Self;

    /// The field of an entity that lacks the table.
    fn absent() -> Self;
}

/// The destination of a row.
pub trait Sink {
    /// Appends one integer.
    fn put(&mut self, value: i64);

    /// Appends the cell of a container's content. Implementations that keep contents store it.
    fn put_content(&mut self, content: Content) {
        self.put(content.cell());
    }

    /// Notes that the value which is put next was changed to fit its field. If the field does not
    /// [`saturate`](Declaration::saturate), the row is not to be used. Implementations that only
    /// convert ignore this.
    fn note_misfit(&mut self, misfit: Misfit, saturate: bool) {
        let _ = (misfit, saturate);
    }
}

/// Why a value does not fit its field. Rounding a float to its step or format is no misfit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Misfit {
    /// NaN in a field that is counted in steps.
    NotANumber,
    /// A number beyond the width of the field.
    OutOfRange,
    /// A text or container longer than `max_len`.
    TooLong,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "NaN is not a number of steps",
            Self::OutOfRange => "the number is beyond the width of the field",
            Self::TooLong => "it is longer than `max_len`",
        })
    }
}

impl Sink for Vec<i64> {
    fn put(&mut self, value: i64) {
        self.push(value);
    }
}

/// Stores the contents beside the row.
impl Sink for Parcel {
    fn put(&mut self, value: i64) {
        self.row.push(value);
    }

    fn put_content(&mut self, content: Content) {
        self.row.push(content.cell());
        if !content.is_empty() {
            self.contents.push(content);
        }
    }
}

/// Overwrites the cells of an existing row except those of containers; values beyond its end are
/// dropped.
impl Sink for core::slice::IterMut<'_, i64> {
    fn put(&mut self, value: i64) {
        if let Some(cell) = self.next() {
            *cell = value;
        }
    }

    fn put_content(&mut self, _: Content) {
        self.next();
    }
}

/// The source of a row.
#[derive(Clone)]
pub struct Source<'a> {
    row: &'a [i64],
    column: usize,
    contents: Contents<'a>,
}

/// How a source resolves contents.
#[derive(Clone, Copy)]
enum Contents<'a> {
    Nothing,
    /// Every container reads as empty.
    Blank,
    In(&'a dyn Library),
}

impl<'a> Source<'a> {
    /// Starts at the first column. Containers that are not empty cannot be read.
    pub fn new(row: &'a [i64]) -> Self {
        Self {
            row,
            column: 0,
            contents: Contents::Nothing,
        }
    }

    /// Resolves the contents of containers in a library.
    pub fn with(row: &'a [i64], library: &'a dyn Library) -> Self {
        Self {
            contents: Contents::In(library),
            ..Self::new(row)
        }
    }

    /// Reads all containers as empty.
    pub fn blank(row: &'a [i64]) -> Self {
        Self {
            contents: Contents::Blank,
            ..Self::new(row)
        }
    }

    /// Converts the content of the container at the next column by `accept`; `None` if it is empty.
    pub fn take_content<T>(
        &mut self,
        accept: impl FnOnce(&Content) -> Option<T>,
    ) -> Result<Option<T>, ReadError> {
        let contents = self.contents;
        let fail = |fault| ReadError {
            column: self.column,
            fault,
        };
        let unread = fail(ReadFault::UnknownContent);
        let wrong = fail(ReadFault::WrongContent);
        let cell = self.take(|cell| (cell >= 0).then_some(cell))?;
        let content = match contents {
            _ if cell == 0 => return Ok(None),
            Contents::Blank => return Ok(None),
            Contents::Nothing => return Err(unread),
            Contents::In(library) => library.content(cell).ok_or(unread)?,
        };
        accept(content).map(Some).ok_or(wrong)
    }

    /// Whether no columns are left.
    pub(crate) fn is_done(&self) -> bool {
        self.column >= self.row.len()
    }

    /// Whether another source of the same row is at the same column.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        self.column == other.column
    }

    /// Converts the next integer by `accept`.
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

    /// The error of reading a whole value from a row of an optional table.
    #[doc(hidden)]
    pub fn only_a_part(&self) -> ReadError {
        ReadError {
            column: self.column,
            fault: ReadFault::OptionalTable,
        }
    }

    /// Skips columns without validating them.
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
    /// The column with the error.
    pub column: usize,
    /// The error.
    pub fault: ReadFault,
}

/// The errors a row can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadFault {
    /// The row ends before this column.
    TooShort,
    /// The row continues at this column.
    TooLong,
    /// The type has no such value.
    OutOfRange(i64),
    /// The library does not have the container's content.
    UnknownContent,
    /// The container's content is not valid for the type.
    WrongContent,
    /// The row is of an optional table, which holds a part of the type only.
    OptionalTable,
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
            ReadFault::UnknownContent => {
                write!(
                    f,
                    "the content of the container at column {column} is unknown"
                )
            }
            ReadFault::WrongContent => {
                write!(
                    f,
                    "the content of the container at column {column} is invalid"
                )
            }
            ReadFault::OptionalTable => {
                f.write_str("an optional table has only a part of the type")
            }
        }
    }
}

impl core::error::Error for ReadError {}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Source");
        debug.field("row", &self.row).field("column", &self.column);
        debug.finish_non_exhaustive()
    }
}

/// The name of a part: `body` and `x` make `body.x`.
pub fn join(container: &str, part: &str) -> String {
    if container.is_empty() {
        part.into()
    } else {
        format!("{container}.{part}")
    }
}
