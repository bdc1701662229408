//! Floats and vectors of them.

use super::sealed::Arithmetic;
use super::{Fraction, MAX_MAGNITUDE, Neighbour, ValueError};
use crate::curve::Interpolation;

macro_rules! scalar {
    ($float:ty) => {
        impl Arithmetic for $float {
            type Sum = [f64; 1];

            const COMPONENTS: usize = 1;
            const STRAIGHT: bool = true;

            fn check(&self) -> Result<(), ValueError> {
                [*self].check()
            }

            fn supports(interpolation: Interpolation) -> bool {
                <[$float; 1]>::supports(interpolation)
            }

            #[inline]
            fn linear(from: Self, to: Self, at: Fraction) -> Self {
                <[$float; 1]>::linear([from], [to], at)[0]
            }

            fn smooth(
                before: Neighbour<Self>,
                from: Self,
                to: Self,
                after: Neighbour<Self>,
                at: Fraction,
            ) -> Self {
                let wrap =
                    |neighbour: Neighbour<Self>| neighbour.map(|(value, length)| ([value], length));
                <[$float; 1]>::smooth(wrap(before), [from], [to], wrap(after), at)[0]
            }

            fn spherical(from: Self, to: Self, at: Fraction) -> Self {
                angle(f64::from(from), f64::from(to), at.ratio()) as $float
            }

            fn zero_sum() -> Self::Sum {
                [0.0]
            }

            fn sum_of(value: Self) -> Self::Sum {
                [f64::from(value)]
            }

            fn value_of(sum: Self::Sum) -> Self {
                <[$float; 1]>::value_of(sum)[0]
            }

            fn integrate(sum: Self::Sum, from: Self, to: Self, at: Fraction) -> Self::Sum {
                <[$float; 1]>::integrate(sum, [from], [to], at)
            }

            fn distance(self, other: Self) -> f64 {
                [self].distance([other])
            }

            fn passes(from: Self, to: Self, at: Fraction, value: Self, error: f64) -> bool {
                <[$float; 1]>::passes([from], [to], at, [value], error)
            }

            fn component(&self, _: usize) -> f64 {
                f64::from(*self)
            }

            fn from_components(components: &[f64]) -> Self {
                <[$float; 1]>::from_components(components)[0]
            }

            fn error_per_component(error: f64) -> f64 {
                error
            }

            fn aligned_with(self, _: Self) -> Self {
                self
            }
        }

        impl<const N: usize> Arithmetic for [$float; N] {
            type Sum = [f64; N];

            const COMPONENTS: usize = N;
            const STRAIGHT: bool = true;

            fn check(&self) -> Result<(), ValueError> {
                for &number in self {
                    if !number.is_finite() {
                        return Err(ValueError::NotFinite);
                    }
                    if f64::from(number).abs() > MAX_MAGNITUDE {
                        return Err(ValueError::TooLarge);
                    }
                }
                Ok(())
            }

            fn supports(_: Interpolation) -> bool {
                true
            }

            #[inline]
            fn linear(from: Self, to: Self, at: Fraction) -> Self {
                narrow(linear(from.map(f64::from), to.map(f64::from), at.ratio()))
            }

            fn smooth(
                before: Neighbour<Self>,
                from: Self,
                to: Self,
                after: Neighbour<Self>,
                at: Fraction,
            ) -> Self {
                let widen = |neighbour: Neighbour<Self>| {
                    neighbour.map(|(value, length)| (value.map(f64::from), length))
                };
                let (from, to) = (from.map(f64::from), to.map(f64::from));
                narrow(smooth(widen(before), from, to, widen(after), at))
            }

            fn spherical(from: Self, to: Self, at: Fraction) -> Self {
                narrow(direction(
                    from.map(f64::from),
                    to.map(f64::from),
                    at.ratio(),
                ))
            }

            fn zero_sum() -> Self::Sum {
                [0.0; N]
            }

            fn sum_of(value: Self) -> Self::Sum {
                value.map(f64::from)
            }

            fn value_of(sum: Self::Sum) -> Self {
                narrow(sum)
            }

            fn integrate(sum: Self::Sum, from: Self, to: Self, at: Fraction) -> Self::Sum {
                let seconds = at.elapsed as f64 / 1e6;
                let ratio = at.ratio();
                std::array::from_fn(|index| {
                    let (from, to) = (f64::from(from[index]), f64::from(to[index]));
                    sum[index] + seconds * (from + (to - from) * (0.5 * ratio))
                })
            }

            fn distance(self, other: Self) -> f64 {
                distance(self.map(f64::from), other.map(f64::from))
            }

            fn passes(from: Self, to: Self, at: Fraction, value: Self, error: f64) -> bool {
                let line = linear(from.map(f64::from), to.map(f64::from), at.ratio());
                distance(line, value.map(f64::from)) <= error
            }

            fn component(&self, index: usize) -> f64 {
                f64::from(self[index])
            }

            fn from_components(components: &[f64]) -> Self {
                narrow(std::array::from_fn(|index| components[index]))
            }

            fn error_per_component(error: f64) -> f64 {
                error / (N.max(1) as f64).sqrt()
            }

            fn aligned_with(self, _: Self) -> Self {
                self
            }
        }

        impl<const N: usize> Narrow<N> for [$float; N] {
            #[inline]
            fn narrow(numbers: [f64; N]) -> Self {
                numbers.map(|number| (number as $float).clamp(<$float>::MIN, <$float>::MAX))
            }
        }
    };
}

scalar!(f32);
scalar!(f64);

/// Converts from `f64`; saturates at the range of `f32`.
trait Narrow<const N: usize> {
    fn narrow(numbers: [f64; N]) -> Self;
}

#[inline]
fn narrow<const N: usize, V: Narrow<N>>(numbers: [f64; N]) -> V {
    V::narrow(numbers)
}

#[inline]
pub(super) fn linear<const N: usize>(from: [f64; N], to: [f64; N], ratio: f64) -> [f64; N] {
    std::array::from_fn(|index| {
        let (from, to) = (from[index], to[index]);
        let value = from + (to - from) * ratio;
        if (0.0..=1.0).contains(&ratio) {
            between(value, from, to)
        } else {
            value
        }
    })
}

pub(super) fn smooth<const N: usize>(
    before: Neighbour<[f64; N]>,
    from: [f64; N],
    to: [f64; N],
    after: Neighbour<[f64; N]>,
    at: Fraction,
) -> [f64; N] {
    let length = at.length as f64;
    let ratio = at.ratio();
    std::array::from_fn(|index| {
        let (from, to) = (from[index], to[index]);
        let rise = to - from;
        let start = before.map_or(rise, |(value, length_before)| {
            tangent(from - value[index], length_before as f64, rise, length)
        });
        let end = after.map_or(rise, |(value, length_after)| {
            tangent(value[index] - to, length_after as f64, rise, length)
        });
        let cubic = start + end - 2.0 * rise;
        let square = 3.0 * rise - 2.0 * start - end;
        between(
            from + ratio * (start + ratio * (square + ratio * cubic)),
            from,
            to,
        )
    })
}

/// As in [`super::integer`].
fn tangent(rise_beside: f64, length_beside: f64, rise: f64, length: f64) -> f64 {
    let beside = rise_beside * (length / length_beside);
    if beside == 0.0 || rise == 0.0 || (beside > 0.0) != (rise > 0.0) {
        return 0.0;
    }
    let parabola = (beside * length + rise * length_beside) / (length + length_beside);
    let steepest = 2.0 * beside.abs().min(rise.abs());
    rise.signum() * steepest.min(parabola.abs())
}

/// Interpolates an angle in radians the shorter way.
fn angle(from: f64, to: f64, ratio: f64) -> f64 {
    use std::f64::consts::{PI, TAU};
    let mut turn = (to - from).rem_euclid(TAU);
    if turn > PI {
        turn -= TAU;
    }
    from + turn * ratio
}

/// Turns the direction at a constant rate and changes the length linearly. Opposite directions have no
/// shorter way and are interpolated linearly.
fn direction<const N: usize>(from: [f64; N], to: [f64; N], ratio: f64) -> [f64; N] {
    let (length_from, length_to) = (length(from), length(to));
    if length_from == 0.0 || length_to == 0.0 {
        return linear(from, to, ratio);
    }
    let cosine = from
        .iter()
        .zip(to)
        .map(|(a, b)| (a / length_from) * (b / length_to))
        .sum::<f64>();
    let Some([part_from, part_to]) = arc(cosine, ratio) else {
        return linear(from, to, ratio);
    };
    let length = (length_from + (length_to - length_from) * ratio).max(0.0);
    std::array::from_fn(|index| {
        length * (part_from * from[index] / length_from + part_to * to[index] / length_to)
    })
}

/// The weights of two unit vectors for a point on the arc between them; `None` if they are nearly equal or
/// opposite.
pub(super) fn arc(cosine: f64, ratio: f64) -> Option<[f64; 2]> {
    let angle = cosine.clamp(-1.0, 1.0).acos();
    let sine = angle.sin();
    (sine > 1e-6).then(|| {
        let part = |share: f64| (share * angle).sin() / sine;
        [part(1.0 - ratio), part(ratio)]
    })
}

fn length<const N: usize>(vector: [f64; N]) -> f64 {
    vector
        .iter()
        .map(|number| number * number)
        .sum::<f64>()
        .sqrt()
}

pub(super) fn distance<const N: usize>(one: [f64; N], other: [f64; N]) -> f64 {
    length::<N>(std::array::from_fn(|index| one[index] - other[index]))
}

/// Limits a value to the range of both ends, which rounding may exceed.
#[inline]
fn between(value: f64, from: f64, to: f64) -> f64 {
    value.clamp(from.min(to), from.max(to))
}
