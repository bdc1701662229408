//! Types that are classes.
//!
//! `#[derive(State)]` makes a [`Value`] of a struct or enumeration, and a [`State`] of a struct.
//! A state may have several *tables*: views of the same type with different columns, such as
//! what its owner sees and what everybody sees. Each table is a class of its own.

use alloc::vec::Vec;

use crate::{Class, Declaration, ReadError, SchemaError, Source, Value};

/// A struct that entities can be made of.
pub trait State: Value {
    /// The names of its tables; the class of the first is named like the type, that of another
    /// like type and table (`car.private`). A type that declares none has one, `default`.
    const TABLES: &'static [&'static str];

    /// The class of a table.
    fn class(table: &str) -> Result<Class, SchemaError>;

    /// The integers of this state in a table's columns.
    fn to_row(&self, table: &str) -> Vec<i64> {
        let mut row = Vec::with_capacity(Self::width(&Declaration::PLAIN, table));
        self.write(&Declaration::PLAIN, table, &mut row);
        row
    }

    /// The state of a row; fields that the table has not are at their default.
    fn from_row(table: &str, row: &[i64]) -> Result<Self, ReadError> {
        let mut source = Source::new(row);
        let state = Self::read(&Declaration::PLAIN, table, &mut source)?;
        source.finish()?;
        Ok(state)
    }
}

/// Runs a user's prediction on a row: what the derive macro turns `predict_with` into.
///
/// A row that is no state of the type, which only a peer that breaks the protocol can cause, is
/// predicted to stay as it is: both ends then still agree.
pub fn fast_forward<T: State>(
    table: &str,
    row: &[i64],
    ticks: u32,
    out: &mut [i64],
    predict: fn(&T, u32) -> T,
) {
    match T::from_row(table, row) {
        Ok(state) => {
            predict(&state, ticks).write(&Declaration::PLAIN, table, &mut out.iter_mut());
        }
        Err(_) => out.iter_mut().zip(row).for_each(|(to, from)| *to = *from),
    }
}
