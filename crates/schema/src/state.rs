//! Types that are classes.
//!
//! `#[derive(State)]` makes a [`Value`] of a struct or enumeration, and a [`State`] of a struct.
//! A state may have several *tables*: views of the same type with different columns, such as
//! what its owner sees and what everybody sees. Each table is a class of its own.

use alloc::vec::Vec;

use crate::{Class, Declaration, Library, Parcel, ReadError, SchemaError, Source, Value};

/// A struct that entities can be made of.
pub trait State: Value {
    /// The names of its tables; the class of the first is named like the type, that of another
    /// like type and table (`car.private`). A type that declares none has one, `default`.
    const TABLES: &'static [&'static str];

    /// The name of its first table's class.
    const NAME: &'static str;

    /// The class of a table.
    fn class(table: &str) -> Result<Class, SchemaError>;

    /// The integers of this state in a table's columns. Of a container only the cell;
    /// [`to_parcel`](State::to_parcel) has what it holds as well.
    fn to_row(&self, table: &str) -> Vec<i64> {
        let mut row = Vec::with_capacity(Self::width(&Declaration::PLAIN, table));
        self.write(&Declaration::PLAIN, table, &mut row);
        row
    }

    /// This state in a table's columns, with what its containers hold.
    fn to_parcel(&self, table: &str) -> Parcel {
        let mut parcel = Parcel::default();
        self.write(&Declaration::PLAIN, table, &mut parcel);
        parcel
    }

    /// The state of a row; fields that the table has not are at their default. Containers that
    /// are not empty need [`from_row_in`](State::from_row_in).
    fn from_row(table: &str, row: &[i64]) -> Result<Self, ReadError> {
        finish::<Self>(table, Source::new(row))
    }

    /// The state of a row whose containers hold what the library has.
    fn from_row_in(table: &str, row: &[i64], library: &dyn Library) -> Result<Self, ReadError> {
        finish::<Self>(table, Source::with(row, library))
    }
}

fn finish<T: State>(table: &str, mut source: Source<'_>) -> Result<T, ReadError> {
    let state = T::read(&Declaration::PLAIN, table, &mut source)?;
    source.finish()?;
    Ok(state)
}

/// Runs a user's prediction on a row: what the derive macro turns `predict_with` into.
///
/// The prediction sees empty containers, and what it does to them is not looked at: they are
/// predicted to stay as they are.
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
    match finish::<T>(table, Source::blank(row)) {
        Ok(state) => {
            predict(&state, ticks).write(&Declaration::PLAIN, table, &mut out.iter_mut());
        }
        Err(_) => out.iter_mut().zip(row).for_each(|(to, from)| *to = *from),
    }
}
