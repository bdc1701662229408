//! Rust types as classes.
//!
//! `#[derive(State)]` implements [`Value`] for a struct or enumeration, and [`State`] for a struct.
//! A state may have several *tables*: views of the same type with different columns, such as one
//! for its owner and one for all peers. Each table is a class of its own. An *optional* table holds
//! one field of type `Option`, and an entity has it only while that field is `Some`.

use alloc::vec::Vec;

use crate::{
    Class, ClassBuilder, Declaration, Library, Parcel, ReadError, SchemaError, Source, Value,
};

/// A struct that can be the state of an entity.
pub trait State: Value {
    /// The names of its tables. The class of the first table is named like the type, those of
    /// others like type and table (`car.private`). A type that declares none has one table,
    /// `default`.
    const TABLES: &'static [&'static str];

    /// The name of its first table's class.
    const NAME: &'static str;

    /// The optional ones among its tables, each named like its field.
    const OPTIONAL_TABLES: &'static [&'static str] = &[];

    /// Whether a client moves its own entities of this type at once, by `#[state(predicted)]`.
    const PREDICTED: bool = false;

    /// The class of a table.
    fn class(table: &str) -> Result<Class, SchemaError>;

    /// Whether this state has a table; it can lack only an optional one.
    fn has_table(&self, table: &str) -> bool {
        let _ = table;
        true
    }

    /// Sets the field of an optional table from a row of that table.
    fn read_table(&mut self, table: &str, row: &mut Source<'_>) -> Result<(), ReadError> {
        let _ = table;
        Err(row.only_a_part())
    }

    /// This state as a row of a table. Containers are cells only; [`to_parcel`](State::to_parcel)
    /// returns their contents as well.
    fn to_row(&self, table: &str) -> Vec<i64> {
        let mut row = Vec::with_capacity(Self::width(&Declaration::PLAIN, table));
        self.write(&Declaration::PLAIN, table, &mut row);
        row
    }

    /// This state as a row of a table, with the contents of its containers.
    fn to_parcel(&self, table: &str) -> Parcel {
        let mut parcel = Parcel::default();
        self.write(&Declaration::PLAIN, table, &mut parcel);
        parcel
    }

    /// The state of a row of a table that is not optional; fields that the table does not have are
    /// at their default. Containers that are not empty need [`from_row_in`](State::from_row_in).
    fn from_row(table: &str, row: &[i64]) -> Result<Self, ReadError> {
        finish::<Self>(table, Source::new(row))
    }

    /// The state of a row whose containers have their contents in `library`.
    fn from_row_in(table: &str, row: &[i64], library: &dyn Library) -> Result<Self, ReadError> {
        finish::<Self>(table, Source::with(row, library))
    }
}

fn finish<T: State>(table: &str, mut source: Source<'_>) -> Result<T, ReadError> {
    let state = T::read(&Declaration::PLAIN, table, &mut source)?;
    source.finish()?;
    Ok(state)
}

/// Whether any table of a type has a field of this name, or one that was flattened from something of
/// this name; the derive macro's checks of roles expand to it.
pub fn has_field<T: State>(name: &str) -> bool {
    T::TABLES.iter().any(|table| {
        let mut class = ClassBuilder::new(T::NAME);
        T::describe("", &Declaration::PLAIN, table, &mut class);
        class.has(name)
    })
}

/// Runs a user's prediction on a row; `predict_with` of the derive macro expands to it.
///
/// The prediction gets empty containers, and changes to them are ignored: containers are predicted
/// not to change.
///
/// A row that is not a valid state of the type (only a peer that violates the protocol can cause
/// one) is predicted not to change, so that both ends still agree.
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
