//! Vectors component by component; rotations by their three smallest components.
//!
//! A unit quaternion and its negative are the same rotation, so the largest component can be made
//! positive and computed from the others. The index of the largest is a symbol of its own
//! (`largest`), because the other three change their meaning with it.

use glam::{
    DQuat, DVec2, DVec3, DVec4, IVec2, IVec3, IVec4, Quat, UVec2, UVec3, UVec4, Vec2, Vec3, Vec3A,
    Vec4,
};

use super::{Gradual, Numeric, ReadError, Real, Sink, Source, Value, join};
use crate::{ClassBuilder, Declaration, FieldKind, Form, Step};

macro_rules! components {
    ($($vector:ty: $scalar:ty, $make:path, $($part:ident)*;)*) => {$(
        impl Value for $vector {
            fn describe(name: &str, how: &Declaration, table: &str, class: &mut ClassBuilder) {
                $(<$scalar>::describe(&join(name, stringify!($part)), how, table, class);)*
            }

            fn width(_: &Declaration, _: &str) -> usize {
                [$(stringify!($part)),*].len()
            }

            fn write(&self, how: &Declaration, table: &str, row: &mut impl Sink) {
                $(self.$part.write(how, table, row);)*
            }

            fn read(
                how: &Declaration,
                table: &str,
                row: &mut Source<'_>,
            ) -> Result<Self, ReadError> {
                $(let $part = <$scalar>::read(how, table, row)?;)*
                Ok($make($($part),*))
            }
        }

        impl Numeric for $vector {}
        impl Gradual for $vector {}
    )*};
}

components! {
    Vec2: f32, Vec2::new, x y;
    Vec3: f32, Vec3::new, x y z;
    Vec3A: f32, Vec3A::new, x y z;
    Vec4: f32, Vec4::new, x y z w;
    DVec2: f64, DVec2::new, x y;
    DVec3: f64, DVec3::new, x y z;
    DVec4: f64, DVec4::new, x y z w;
    IVec2: i32, IVec2::new, x y;
    IVec3: i32, IVec3::new, x y z;
    IVec4: i32, IVec4::new, x y z w;
    UVec2: u32, UVec2::new, x y;
    UVec3: u32, UVec3::new, x y z;
    UVec4: u32, UVec4::new, x y z w;
}

impl Real for Vec2 {}
impl Real for Vec3 {}
impl Real for Vec3A {}
impl Real for Vec4 {}
impl Real for DVec2 {}
impl Real for DVec3 {}
impl Real for DVec4 {}

macro_rules! rotations {
    ($($quaternion:ty, $scalar:ty;)*) => {$(
        /// With a `step`, the three smallest components (`largest`, `a`, `b`, `c`); otherwise `x`,
        /// `y`, `z` and `w` unchanged.
        impl Value for $quaternion {
            fn describe(name: &str, how: &Declaration, table: &str, class: &mut ClassBuilder) {
                if let Form::Step(_) = how.form {
                    class.field(how.column(join(name, "largest"), FieldKind::Enum { values: 4 }));
                    for part in ["a", "b", "c"] {
                        <$scalar>::describe(&join(name, part), how, table, class);
                    }
                } else {
                    for part in ["x", "y", "z", "w"] {
                        <$scalar>::describe(&join(name, part), how, table, class);
                    }
                }
            }

            fn width(_: &Declaration, _: &str) -> usize {
                4
            }

            fn write(&self, how: &Declaration, table: &str, row: &mut impl Sink) {
                let Form::Step(step) = how.form else {
                    return self.to_array().write(how, table, row);
                };
                let (largest, rest) = smallest_three(self.to_array().map(f64::from));
                row.put(largest as i64);
                for part in rest {
                    let bits = how.bits.unwrap_or(<$scalar>::WIDTH);
                    let (count, misfit) = step.fit(part, bits);
                    if let Some(misfit) = misfit {
                        row.note_misfit(misfit, how.saturate);
                    }
                    row.put(count);
                }
            }

            fn read(
                how: &Declaration,
                table: &str,
                row: &mut Source<'_>,
            ) -> Result<Self, ReadError> {
                let Form::Step(step) = how.form else {
                    return <[$scalar; 4]>::read(how, table, row).map(Self::from_array);
                };
                let largest = row.take(|value| usize::try_from(value).ok().filter(|at| *at < 4))?;
                let bits = how.bits.unwrap_or(<$scalar>::WIDTH);
                let kind = FieldKind::Step { step, bits };
                let mut count = || row.take(|count| kind.admits(count).then_some(count));
                let counts = [count()?, count()?, count()?];
                let parts = all_four(largest, counts, step).map(|part| part as $scalar);
                Ok(Self::from_array(parts))
            }
        }

        impl Numeric for $quaternion {}
        impl Gradual for $quaternion {}
        impl Real for $quaternion {}
    )*};
}

rotations! {
    Quat, f32;
    DQuat, f64;
}

/// The default width of a scalar's count.
trait Width {
    const WIDTH: u8;
}

impl Width for f32 {
    const WIDTH: u8 = 32;
}

impl Width for f64 {
    const WIDTH: u8 = 64;
}

/// The index of the largest component (the first of equals), and the others of the normalised
/// rotation in which it is positive. Zero, infinite and NaN quaternions become the identity.
fn smallest_three(parts: [f64; 4]) -> (usize, [f64; 3]) {
    let mut largest = 0;
    for at in 1..4 {
        if parts[at].abs() > parts[largest].abs() {
            largest = at;
        }
    }
    let divisor = parts[largest];
    if divisor == 0.0 || parts.iter().any(|part| !part.is_finite()) {
        return (3, [0.0; 3]);
    }
    let rest = others(largest).map(|at| parts[at] / divisor);
    let length = root(1.0 + rest.iter().map(|part| part * part).sum::<f64>());
    (largest, rest.map(|part| part / length))
}

fn all_four(largest: usize, counts: [i64; 3], step: Step) -> [f64; 4] {
    let rest = counts.map(|count| step.value(count));
    let square = 1.0 - rest.iter().map(|part| part * part).sum::<f64>();
    let mut parts = [0.0; 4];
    for (at, part) in others(largest).into_iter().zip(rest) {
        parts[at] = part;
    }
    parts[largest] = if square > 0.0 { root(square) } else { 0.0 };
    // Counts are rounded, so the length is only nearly one.
    let length = root(parts.iter().map(|part| part * part).sum::<f64>());
    parts.map(|part| part / length)
}

fn others(largest: usize) -> [usize; 3] {
    [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]][largest]
}

/// Newton's square root, because `core` has none and this need not be fast.
fn root(square: f64) -> f64 {
    let mut root = if square > 1.0 { square } else { 1.0 };
    loop {
        let next = (root + square / root) / 2.0;
        // Also ends on NaN and infinity.
        if next >= root || !next.is_finite() {
            return root;
        }
        root = next;
    }
}
