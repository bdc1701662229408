//! Arrays and options: the columns of their parts.

use alloc::format;

use super::{Buffer, Gradual, Numeric, Part, ReadError, Real, Sink, Source, Value, join};
use crate::{ClassBuilder, Declaration, FieldKind, NumberVisitor};

/// `wheels[0]`, `wheels[1]`, …
impl<T: Value, const N: usize> Value for [T; N] {
    fn describe(name: &str, how: &Declaration, table: &str, class: &mut ClassBuilder) {
        for index in 0..N {
            T::describe(&format!("{name}[{index}]"), how, table, class);
        }
    }

    fn width(how: &Declaration, table: &str) -> usize {
        N * T::width(how, table)
    }

    fn write(&self, how: &Declaration, table: &str, row: &mut impl Sink) {
        for part in self {
            part.write(how, table, row);
        }
    }

    fn read(how: &Declaration, table: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
        let mut parts = [const { None }; N];
        for part in &mut parts {
            *part = Some(T::read(how, table, row)?);
        }
        Ok(parts.map(|part| part.expect("the loop above filled every part")))
    }

    fn visit_numbers(&mut self, how: &Declaration, table: &str, visitor: &mut impl NumberVisitor) {
        for part in self {
            part.visit_numbers(how, table, visitor);
        }
    }
}

impl<T: Numeric, const N: usize> Numeric for [T; N] {}
impl<T: Gradual, const N: usize> Gradual for [T; N] {}
impl<T: Real, const N: usize> Real for [T; N] {}

/// A boolean `name.some`, then the value's own columns, which are 0 if it is absent: columns that
/// do not change cost nothing. The value keeps the option's name, so an optional velocity is
/// matched with its position; an option directly in an option is refused when its class is built.
impl<T: Value> Value for Option<T> {
    fn describe(name: &str, how: &Declaration, table: &str, class: &mut ClassBuilder) {
        class.field(how.column(join(name, "some"), FieldKind::Bool));
        T::describe(name, how, table, class);
    }

    fn width(how: &Declaration, table: &str) -> usize {
        1 + T::width(how, table)
    }

    fn write(&self, how: &Declaration, table: &str, row: &mut impl Sink) {
        match self {
            Some(value) => {
                row.put(1);
                value.write(how, table, row);
            }
            None => (0..Self::width(how, table)).for_each(|_| row.put(0)),
        }
    }

    fn read(how: &Declaration, table: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
        if bool::read(how, table, row)? {
            return T::read(how, table, row).map(Some);
        }
        row.skip(T::width(how, table))?;
        Ok(None)
    }

    fn visit_numbers(&mut self, how: &Declaration, table: &str, visitor: &mut impl NumberVisitor) {
        visitor.skip(1);
        match self {
            Some(value) => value.visit_numbers(how, table, visitor),
            None => visitor.skip(T::width(how, table)),
        }
    }
}

impl<T: Value> Part for Option<T> {
    type Value = T;

    fn value(&self) -> Option<&T> {
        self.as_ref()
    }

    fn present(value: T) -> Self {
        Some(value)
    }

    fn absent() -> Self {
        None
    }
}

impl<T: Numeric> Numeric for Option<T> {}
impl<T: Gradual> Gradual for Option<T> {}
impl<T: Buffer> Buffer for Option<T> {}
impl<T: Real> Real for Option<T> {}
