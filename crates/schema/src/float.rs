//! Floating-point numbers as integers that sort like the numbers.
//!
//! *Exact* floats keep every bit of an `f32` or `f64`. *Custom* floats (B6) have a chosen mantissa,
//! exponent and bias for each of the four precision levels, with subnormals, so that a small range
//! of magnitudes costs few bits near zero and far from it alike. All rounding is done on integers
//! taken from the bit patterns, so it cannot differ between platforms.

use core::fmt;

use crate::{Level, Misfit};

/// A binary floating-point format with one sign bit, in IEEE 754's layout.
///
/// A stored exponent of all zeros means zero and subnormals, all ones mean infinity and NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatFormat {
    mantissa: u8,
    exponent: u8,
    bias: i16,
}

impl FloatFormat {
    /// Half precision.
    pub const BINARY16: Self = Self::raw(10, 5, 15);
    /// The upper half of single precision.
    pub const BFLOAT16: Self = Self::raw(7, 8, 127);
    /// `f32`.
    pub const BINARY32: Self = Self::raw(23, 8, 127);
    /// `f64`.
    pub const BINARY64: Self = Self::raw(52, 11, 1023);

    const fn raw(mantissa: u8, exponent: u8, bias: i16) -> Self {
        Self {
            mantissa,
            exponent,
            bias,
        }
    }

    /// `None` unless every number of the format is also an `f64`: 1 to 52 bits of mantissa, 1 to
    /// 11 of exponent, and a bias that keeps the range within that of `f64`.
    pub const fn new(mantissa: u8, exponent: u8, bias: i16) -> Option<Self> {
        if mantissa == 0 || mantissa > 52 || exponent == 0 || exponent > 11 {
            return None;
        }
        let format = Self::raw(mantissa, exponent, bias);
        if Self::BINARY64.contains(format) {
            Some(format)
        } else {
            None
        }
    }

    /// Bits of the mantissa, without the implied one.
    pub const fn mantissa(self) -> u8 {
        self.mantissa
    }

    /// Bits of the exponent.
    pub const fn exponent(self) -> u8 {
        self.exponent
    }

    /// The number added to the exponent before it is stored.
    pub const fn bias(self) -> i16 {
        self.bias
    }

    /// Width including the sign bit.
    pub const fn bits(self) -> u8 {
        1 + self.exponent + self.mantissa
    }

    /// Whether every finite number of `other` is also a number of this format.
    pub const fn contains(self, other: Self) -> bool {
        other.mantissa <= self.mantissa
            && other.largest_exponent() <= self.largest_exponent()
            && other.smallest_quantum() >= self.smallest_quantum()
    }

    /// The integer of the number nearest to `value`, ties to the even mantissa.
    ///
    /// Finite numbers beyond the range saturate at the largest finite one, because an infinite
    /// position is worse than a clamped one. Infinities remain infinite, the sign of zero is kept,
    /// and every NaN becomes the same NaN.
    pub fn from_f64(self, value: f64) -> i64 {
        if value.is_nan() {
            return (self.infinity() + 1) as i64;
        }
        let bits = value.abs().to_bits();
        let magnitude = if value.is_infinite() {
            self.infinity()
        } else {
            let (significand, exponent) = Self::BINARY64.parts(bits);
            self.nearest(significand, exponent)
        };
        signed(magnitude, value.is_sign_negative())
    }

    /// The same, and whether that is not the value: a finite number beyond the range.
    pub(crate) fn fit(self, value: f64) -> (i64, Option<Misfit>) {
        let nearest = self.from_f64(value);
        let largest = self.to_f64((self.infinity() - 1) as i64);
        let fits = !value.is_finite() || value.abs() <= largest;
        (nearest, (!fits).then_some(Misfit::OutOfRange))
    }

    /// The number of an integer returned by [`from_f64`](Self::from_f64); exact.
    pub fn to_f64(self, integer: i64) -> f64 {
        let (magnitude, negative) = unsigned(integer);
        let positive = if magnitude > self.infinity() {
            return f64::NAN;
        } else if magnitude == self.infinity() {
            f64::INFINITY
        } else {
            let (significand, exponent) = self.parts(magnitude);
            f64::from_bits(Self::BINARY64.nearest(significand, exponent))
        };
        if negative { -positive } else { positive }
    }

    /// The pattern of infinity; patterns above it are NaN, below it finite.
    const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    const fn smallest_exponent(self) -> i32 {
        1 - self.bias as i32
    }

    const fn largest_exponent(self) -> i32 {
        (1 << self.exponent) - 2 - self.bias as i32
    }

    /// Exponent of the distance between neighbouring subnormals.
    const fn smallest_quantum(self) -> i32 {
        self.smallest_exponent() - self.mantissa as i32
    }

    /// Significand and exponent of a finite pattern: the number is `s * 2^e`.
    fn parts(self, magnitude: u64) -> (u64, i32) {
        let stored = (magnitude >> self.mantissa) as i32;
        let fraction = magnitude & ((1 << self.mantissa) - 1);
        if stored == 0 {
            (fraction, self.smallest_quantum())
        } else {
            let quantum = self.smallest_quantum() + stored - 1;
            (fraction | 1 << self.mantissa, quantum)
        }
    }

    /// The finite pattern nearest to `significand * 2^exponent`; the significand is below 2^53.
    fn nearest(self, significand: u64, exponent: i32) -> u64 {
        if significand == 0 {
            return 0;
        }
        let largest = self.infinity() - 1;
        let top = exponent + significand.ilog2() as i32;
        if top > self.largest_exponent() {
            return largest;
        }
        let binade = (top - self.smallest_exponent()).max(0);
        let quantum = self.smallest_quantum() + binade;
        let rounded = if exponent >= quantum {
            significand << (exponent - quantum)
        } else {
            halve(significand, (quantum - exponent) as u32)
        };
        // A carry out of the mantissa moves the pattern to the next exponent by itself; so does
        // one from the subnormals to the normals.
        (((binade as u64) << self.mantissa) + rounded).min(largest)
    }
}

impl fmt::Display for FloatFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.mantissa, self.exponent, self.bias)
    }
}

/// The formats of a field at the four precision levels.
///
/// The integer of a value is always in the format of level 0, so a row has the same meaning at
/// every level; coarser levels only use fewer of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CustomFloat {
    formats: [FloatFormat; 4],
}

impl CustomFloat {
    /// `None` if a level has numbers that level 0 does not have.
    pub const fn new(formats: [FloatFormat; 4]) -> Option<Self> {
        let mut level = 1;
        while level < 4 {
            if !formats[0].contains(formats[level]) {
                return None;
            }
            level += 1;
        }
        Some(Self { formats })
    }

    /// One format at all levels.
    pub const fn uniform(format: FloatFormat) -> Self {
        Self {
            formats: [format; 4],
        }
    }

    /// The format at a level.
    pub const fn format(&self, level: Level) -> FloatFormat {
        self.formats[level.index()]
    }

    /// Whether all levels are the same.
    pub fn is_uniform(&self) -> bool {
        self.formats.iter().all(|format| *format == self.formats[0])
    }

    /// The integer (in level 0's format) of the nearest number that `level` can represent.
    pub fn at_level(&self, level: Level, integer: i64) -> i64 {
        let (fine, coarse) = (self.formats[0], self.format(level));
        let (magnitude, negative) = unsigned(integer);
        if fine == coarse || magnitude >= fine.infinity() {
            return integer;
        }
        let (significand, exponent) = fine.parts(magnitude);
        let (significand, exponent) = coarse.parts(coarse.nearest(significand, exponent));
        signed(fine.nearest(significand, exponent), negative)
    }
}

/// The integer of an `f32` with all bits, including NaN payloads and the sign of zero.
pub fn exact_from_f32(value: f32) -> i64 {
    let bits = value.to_bits();
    signed(u64::from(bits & 0x7fff_ffff), bits >> 31 == 1)
}

/// The `f32` of an integer returned by [`exact_from_f32`].
pub fn exact_to_f32(integer: i64) -> f32 {
    let (magnitude, negative) = unsigned(integer);
    f32::from_bits(magnitude as u32 & 0x7fff_ffff | u32::from(negative) << 31)
}

/// The integer of an `f64` with all bits, including NaN payloads and the sign of zero.
pub fn exact_from_f64(value: f64) -> i64 {
    let bits = value.to_bits();
    signed(bits & (u64::MAX >> 1), bits >> 63 == 1)
}

/// The `f64` of an integer returned by [`exact_from_f64`].
pub fn exact_to_f64(integer: i64) -> f64 {
    let (magnitude, negative) = unsigned(integer);
    f64::from_bits(magnitude | u64::from(negative) << 63)
}

/// Minus zero becomes -1, so that both zeros are distinct and the order is kept.
fn signed(magnitude: u64, negative: bool) -> i64 {
    if negative {
        !(magnitude as i64)
    } else {
        magnitude as i64
    }
}

fn unsigned(integer: i64) -> (u64, bool) {
    if integer < 0 {
        (!integer as u64, true)
    } else {
        (integer as u64, false)
    }
}

/// `value / 2^shift`, ties to even.
fn halve(value: u64, shift: u32) -> u64 {
    if shift > 63 {
        return 0;
    }
    let whole = value >> shift;
    let rest = value - (whole << shift);
    let half = 1 << (shift - 1);
    whole + u64::from(rest > half || rest == half && whole & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_matches_its_published_patterns() {
        let half = FloatFormat::BINARY16;
        for (value, pattern) in [
            (0.0, 0x0000),
            (1.0, 0x3c00),
            (1.0 + 1.0 / 1024.0, 0x3c01),
            (65504.0, 0x7bff),
            (1e9, 0x7bff),
            (f64::INFINITY, 0x7c00),
            (6.103515625e-5, 0x0400),
            (6.097555160522461e-5, 0x03ff),
            (5.960464477539063e-8, 0x0001),
            (1.0 / 3.0, 0x3555),
            // Ties to even: half a unit above 1, one and a half units above 1.
            (1.0 + 0.5 / 1024.0, 0x3c00),
            (1.0 + 1.5 / 1024.0, 0x3c02),
            // Half of the smallest subnormal is a tie between 0 and 1: even is 0.
            (2.980232238769531e-8, 0x0000),
            (3e-8, 0x0001),
        ] {
            assert_eq!(half.from_f64(value), pattern, "{value}");
            assert_eq!(half.from_f64(-value), !pattern, "-{value}");
        }
        assert!(half.to_f64(half.from_f64(f64::NAN)).is_nan());
        assert_eq!(half.to_f64(0x3555), 0.333251953125);
        assert!(half.to_f64(-1).is_sign_negative() && half.to_f64(-1) == 0.0);
    }

    #[test]
    fn every_half_survives_the_round_trip() {
        let half = FloatFormat::BINARY16;
        for integer in 0..=half.infinity() as i64 {
            assert_eq!(half.from_f64(half.to_f64(integer)), integer);
            assert_eq!(half.from_f64(half.to_f64(!integer)), !integer);
        }
    }

    #[test]
    fn a_format_beyond_double_precision_is_refused() {
        assert_eq!(FloatFormat::new(0, 5, 15), None);
        assert_eq!(FloatFormat::new(53, 11, 1023), None);
        assert_eq!(FloatFormat::new(10, 12, 1023), None);
        assert_eq!(FloatFormat::new(10, 8, 1100), None);
        assert_eq!(FloatFormat::new(10, 8, -900), None);
        assert!(FloatFormat::new(10, 8, 1060).is_some());
    }

    #[test]
    fn levels_must_be_subsets_of_level_zero() {
        let fine = FloatFormat::new(10, 5, 15).unwrap();
        let longer = FloatFormat::new(11, 5, 15).unwrap();
        let wider = FloatFormat::new(4, 6, 31).unwrap();
        assert!(CustomFloat::new([fine, longer, fine, fine]).is_none());
        assert!(CustomFloat::new([fine, fine, wider, fine]).is_none());
    }
}
