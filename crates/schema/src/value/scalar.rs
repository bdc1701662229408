//! Integers, booleans and floats: one column each.

use super::{Bits, Gradual, Misfit, Numeric, ReadError, Real, Sink, Source, Value};
use crate::float::{exact_from_f32, exact_from_f64, exact_to_f32, exact_to_f64};
use crate::{ClassBuilder, Declaration, FieldKind, Form, Level};

macro_rules! integers {
    ($($integer:ty, $signed:literal;)*) => {$(
        impl Value for $integer {
            fn describe(name: &str, how: &Declaration, _: &str, class: &mut ClassBuilder) {
                let bits = how.bits.unwrap_or(<$integer>::BITS as u8);
                class.field(how.column(name, FieldKind::Int { bits, signed: $signed }));
            }

            fn width(_: &Declaration, _: &str) -> usize {
                1
            }

            fn write(&self, how: &Declaration, _: &str, row: &mut impl Sink) {
                let narrow = how.bits.filter(|&bits| u32::from(bits) < <$integer>::BITS);
                let nearest = narrow.map_or(*self, |bits| {
                    // `bits` is 0 only in a class that has not been validated.
                    let spare = <$integer>::BITS - u32::from(bits.max(1));
                    (*self).clamp(<$integer>::MIN >> spare, <$integer>::MAX >> spare)
                });
                if nearest != *self {
                    row.note_misfit(Misfit::OutOfRange, how.saturate);
                }
                row.put(nearest as i64);
            }

            fn read(_: &Declaration, _: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
                // A `u64` above `i64::MAX` is stored as the negative number of the same bits.
                row.take(|value| {
                    let narrow = value as $integer;
                    (narrow as i64 == value).then_some(narrow)
                })
            }
        }

        impl Numeric for $integer {}
        impl Gradual for $integer {}
    )*};
}

integers! {
    i8, true;
    i16, true;
    i32, true;
    i64, true;
    u8, false;
    u16, false;
    u32, false;
    u64, false;
}

impl Bits for u8 {}
impl Bits for u16 {}
impl Bits for u32 {}
impl Bits for u64 {}

impl Value for bool {
    fn describe(name: &str, how: &Declaration, _: &str, class: &mut ClassBuilder) {
        class.field(how.column(name, FieldKind::Bool));
    }

    fn width(_: &Declaration, _: &str) -> usize {
        1
    }

    fn write(&self, _: &Declaration, _: &str, row: &mut impl Sink) {
        row.put(i64::from(*self));
    }

    fn read(_: &Declaration, _: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
        row.take(|value| match value {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        })
    }
}

macro_rules! floats {
    ($($float:ty, $exact:expr, $bits:literal, $from:ident, $to:ident;)*) => {$(
        impl Value for $float {
            fn describe(name: &str, how: &Declaration, _: &str, class: &mut ClassBuilder) {
                class.field(how.column(name, kind(how, $exact, $bits)));
            }

            fn width(_: &Declaration, _: &str) -> usize {
                1
            }

            fn write(&self, how: &Declaration, _: &str, row: &mut impl Sink) {
                let number = f64::from(*self);
                let (cell, misfit) = match how.form {
                    Form::Natural => ($from(*self), None),
                    Form::Step(step) => step.fit(number, how.bits.unwrap_or($bits)),
                    Form::Custom(float) => float.format(Level::EXACT).fit(number),
                };
                if let Some(misfit) = misfit {
                    row.note_misfit(misfit, how.saturate);
                }
                row.put(cell);
            }

            fn read(how: &Declaration, _: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
                let kind = kind(how, $exact, $bits);
                let value = row.take(|value| kind.admits(value).then_some(value))?;
                Ok(match how.form {
                    Form::Natural => $to(value),
                    Form::Step(step) => step.value(value) as $float,
                    Form::Custom(float) => float.format(Level::EXACT).to_f64(value) as $float,
                })
            }
        }

        impl Numeric for $float {}
        impl Gradual for $float {}
    )*};
}

floats! {
    f32, FieldKind::F32, 32, exact_from_f32, exact_to_f32;
    f64, FieldKind::F64, 64, exact_from_f64, exact_to_f64;
}

impl Real for f32 {}
impl Real for f64 {}

fn kind(how: &Declaration, exact: FieldKind, bits: u8) -> FieldKind {
    match how.form {
        Form::Natural => exact,
        Form::Step(step) => FieldKind::Step {
            step,
            bits: how.bits.unwrap_or(bits),
        },
        Form::Custom(float) => FieldKind::Custom(float),
    }
}
