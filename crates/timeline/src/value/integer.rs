//! Integers. Look-ups use integer arithmetic, rounded once, to the nearest, halves up.

use super::sealed::Arithmetic;
use super::{Fraction, Neighbour, ValueError};
use crate::curve::Interpolation;

impl Arithmetic for i64 {
    /// In halves of a millionth: integrals of ramps over microseconds are whole then.
    type Sum = i128;

    const COMPONENTS: usize = 1;
    const STRAIGHT: bool = true;

    fn check(&self) -> Result<(), ValueError> {
        Ok(())
    }

    fn supports(interpolation: Interpolation) -> bool {
        interpolation != Interpolation::Spherical
    }

    #[inline]
    fn linear(from: Self, to: Self, at: Fraction) -> Self {
        let rise = (i128::from(to) - i128::from(from)) * i128::from(at.elapsed);
        narrow(i128::from(from) + rounded(rise, i128::from(at.length)))
    }

    fn smooth(
        before: Neighbour<Self>,
        from: Self,
        to: Self,
        after: Neighbour<Self>,
        at: Fraction,
    ) -> Self {
        let rise = i128::from(to) - i128::from(from);
        let length = i128::from(at.length);
        let start = before.map_or(rise, |(value, length_before)| {
            tangent(
                i128::from(from) - i128::from(value),
                length_before,
                rise,
                length,
            )
        });
        let end = after.map_or(rise, |(value, length_after)| {
            tangent(
                i128::from(value) - i128::from(to),
                length_after,
                rise,
                length,
            )
        });
        let fraction = (i128::from(at.elapsed) << 32) / length;
        let times_fraction = |value: i128| (value * fraction + (1 << 31)) >> 32;
        let cubic = start + end - 2 * rise;
        let square = 3 * rise - 2 * start - end;
        let height = times_fraction(times_fraction(times_fraction(cubic) + square) + start);
        let value = i128::from(from) + height;
        narrow(value.clamp(i128::from(from.min(to)), i128::from(from.max(to))))
    }

    fn spherical(from: Self, _: Self, _: Fraction) -> Self {
        from
    }

    fn zero_sum() -> i128 {
        0
    }

    fn sum_of(value: Self) -> i128 {
        i128::from(value) * HALF_MICROS
    }

    fn value_of(sum: i128) -> Self {
        narrow(rounded(sum, HALF_MICROS))
    }

    fn integrate(sum: i128, from: Self, to: Self, at: Fraction) -> i128 {
        let (elapsed, length) = (i128::from(at.elapsed), i128::from(at.length));
        let change = (i128::from(to) - i128::from(from)) * elapsed;
        // change * elapsed / length in two parts, because the product does not fit.
        let (whole, rest) = (change / length, change % length);
        sum + 2 * i128::from(from) * elapsed + whole * elapsed + rest * elapsed / length
    }

    fn distance(self, other: Self) -> f64 {
        self.abs_diff(other) as f64
    }

    fn passes(from: Self, to: Self, at: Fraction, value: Self, error: f64) -> bool {
        let (elapsed, length) = (i128::from(at.elapsed), i128::from(at.length));
        let off = (i128::from(to) - i128::from(from)) * elapsed
            + (i128::from(from) - i128::from(value)) * length;
        // Rounded down: lines within a whole number of each other round to values within it.
        let allowed = error.min(2f64.powi(62)) as i64;
        off.abs() <= i128::from(allowed) * length
    }

    fn component(&self, _: usize) -> f64 {
        *self as f64
    }

    fn from_components(components: &[f64]) -> Self {
        components[0].round() as i64
    }

    fn error_per_component(error: f64) -> f64 {
        error
    }

    fn aligned_with(self, _: Self) -> Self {
        self
    }
}

/// The slope at a keyframe between two segments, as the rise over the segment of `length` (Steffen's
/// choice): that of the parabola through the three keyframes, limited so that the curve does not overshoot,
/// and zero at a turning point.
fn tangent(rise_beside: i128, length_beside: i64, rise: i128, length: i128) -> i128 {
    let length_beside = i128::from(length_beside);
    let beside = rise_beside * length / length_beside;
    if beside.signum() * rise.signum() <= 0 {
        return 0;
    }
    // If this saturates, it is not the smallest of the three.
    let weighted = beside
        .saturating_mul(length)
        .saturating_add(rise * length_beside);
    let parabola = weighted / (length + length_beside);
    let steepest = beside.abs().min(rise.abs()).saturating_mul(2);
    rise.signum() * steepest.min(parabola.abs())
}

#[inline]
fn rounded(numerator: i128, denominator: i128) -> i128 {
    (2 * numerator + denominator).div_euclid(2 * denominator)
}

#[inline]
fn narrow(value: i128) -> i64 {
    value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

const HALF_MICROS: i128 = 2_000_000;
