//! The size of one unit of a stepped float, as an exact ratio.
//!
//! A step is written as a decimal (`0.01`) and must mean the same number on every platform, in
//! every language that builds a schema, and inside the integer ratios that relate a velocity to
//! its position. A binary float cannot hold 0.01, so a step is a reduced ratio of integers.

use alloc::format;
use core::fmt;

use crate::Misfit;

/// A positive rational number; the value of a stepped field is its integer times this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    numerator: u64,
    denominator: u64,
}

impl Step {
    /// One: the unit of plain integers.
    pub const ONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    /// `numerator / denominator`, reduced.
    pub const fn ratio(numerator: u64, denominator: u64) -> Result<Self, StepError> {
        if numerator == 0 || denominator == 0 {
            return Err(StepError::NotPositive);
        }
        let divisor = gcd(numerator as u128, denominator as u128) as u64;
        Ok(Self {
            numerator: numerator / divisor,
            denominator: denominator / divisor,
        })
    }

    /// Reads a decimal (`0.01`, `25`, `1e-3`) or a ratio of two integers (`1/60`).
    pub const fn parse(text: &str) -> Result<Self, StepError> {
        let bytes = text.as_bytes();
        let mut digits = Digits::default();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                byte @ b'0'..=b'9' => {
                    if !digits.push(byte - b'0') {
                        return Err(StepError::OutOfRange);
                    }
                }
                b'.' if digits.point.is_none() => digits.point = Some(0),
                b'_' if digits.any => {}
                b'/' if digits.any && digits.point.is_none() => {
                    return parse_denominator(bytes, at + 1, digits.value);
                }
                b'e' | b'E' if digits.any => return parse_exponent(bytes, at + 1, digits),
                b'-' if at == 0 => return Err(StepError::NotPositive),
                _ => return Err(StepError::NotANumber),
            }
            at += 1;
        }
        digits.scaled(0)
    }

    /// Converts the shortest decimal that parses as `value`: `0.01` becomes exactly one hundredth.
    pub fn from_f64(value: f64) -> Result<Self, StepError> {
        if value.is_nan() {
            Err(StepError::NotANumber)
        } else if value <= 0.0 {
            Err(StepError::NotPositive)
        } else if value.is_infinite() {
            Err(StepError::OutOfRange)
        } else {
            Self::parse(&format!("{value}"))
        }
    }

    /// Numerator of the reduced ratio.
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// Denominator of the reduced ratio.
    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// The step as a float, for display.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// The number of steps nearest to `value`, halves away from zero, saturating at the signed
    /// width `bits`. NaN becomes 0: an invalid number must not become an extreme one.
    pub fn count(self, value: f64, bits: u8) -> i64 {
        self.fit(value, bits).0
    }

    /// The same, and whether that is not the value.
    pub(crate) fn fit(self, value: f64, bits: u8) -> (i64, Option<Misfit>) {
        let exact = value * self.denominator as f64 / self.numerator as f64;
        // `as` truncates towards zero, saturates, and turns NaN into 0.
        let whole = exact as i64;
        let rest = exact - whole as f64;
        let nearest = if rest >= 0.5 {
            whole.saturating_add(1)
        } else if rest <= -0.5 {
            whole.saturating_sub(1)
        } else {
            whole
        };
        let max = i64::MAX >> (64 - u32::from(bits.clamp(1, 64)));
        let count = nearest.clamp(!max, max);
        let misfit = if value.is_nan() {
            Some(Misfit::NotANumber)
        } else if count != nearest || rest.abs() > 1.0 {
            Some(Misfit::OutOfRange)
        } else {
            None
        };
        (count, misfit)
    }

    /// The value of `count` steps.
    pub fn value(self, count: i64) -> f64 {
        count as f64 * self.numerator as f64 / self.denominator as f64
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let float = self.as_f64();
        if Self::from_f64(float) == Ok(*self) {
            write!(f, "{float}")
        } else {
            write!(f, "{}/{}", self.numerator, self.denominator)
        }
    }
}

/// Why a number cannot be a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepError {
    /// Not a decimal or a ratio; also NaN.
    NotANumber,
    /// Zero or negative.
    NotPositive,
    /// The exact ratio does not fit two 64-bit integers; use fewer digits.
    OutOfRange,
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "a step is a decimal such as 0.01 or a ratio such as 1/60",
            Self::NotPositive => "a step must be greater than zero",
            Self::OutOfRange => "the step does not fit a ratio of two 64-bit integers",
        })
    }
}

impl core::error::Error for StepError {}

/// Decimal digits read so far; `point` counts those after the decimal point.
#[derive(Clone, Copy)]
struct Digits {
    value: u64,
    any: bool,
    point: Option<i32>,
}

impl Digits {
    const fn default() -> Self {
        Self {
            value: 0,
            any: false,
            point: None,
        }
    }

    const fn push(&mut self, digit: u8) -> bool {
        self.any = true;
        if let Some(after) = self.point {
            self.point = Some(after + 1);
        }
        match self.value.checked_mul(10) {
            Some(shifted) => match shifted.checked_add(digit as u64) {
                Some(sum) => {
                    self.value = sum;
                    true
                }
                None => false,
            },
            None => false,
        }
    }

    const fn scaled(self, exponent: i32) -> Result<Step, StepError> {
        if !self.any {
            return Err(StepError::NotANumber);
        }
        let after = match self.point {
            Some(after) => after,
            None => 0,
        };
        let exponent = exponent - after;
        let mut numerator = self.value;
        // Trailing zeros first, so that `0.0100000000000000000000` does not overflow.
        let mut left = exponent;
        while left < 0 && numerator != 0 && numerator.is_multiple_of(10) {
            numerator /= 10;
            left += 1;
        }
        let Some(power) = 10u64.checked_pow(left.unsigned_abs()) else {
            return Err(StepError::OutOfRange);
        };
        if left < 0 {
            return Step::ratio(numerator, power);
        }
        match numerator.checked_mul(power) {
            Some(numerator) => Step::ratio(numerator, 1),
            None => Err(StepError::OutOfRange),
        }
    }
}

const fn parse_exponent(bytes: &[u8], from: usize, digits: Digits) -> Result<Step, StepError> {
    let (from, sign) = match bytes.len() > from {
        true if bytes[from] == b'-' => (from + 1, -1),
        true if bytes[from] == b'+' => (from + 1, 1),
        true => (from, 1),
        false => return Err(StepError::NotANumber),
    };
    match parse_integer(bytes, from) {
        Ok(exponent) if exponent < 1000 => digits.scaled(sign * exponent as i32),
        Ok(_) => Err(StepError::OutOfRange),
        Err(error) => Err(error),
    }
}

const fn parse_denominator(bytes: &[u8], from: usize, numerator: u64) -> Result<Step, StepError> {
    match parse_integer(bytes, from) {
        Ok(denominator) => Step::ratio(numerator, denominator),
        Err(error) => Err(error),
    }
}

const fn parse_integer(bytes: &[u8], from: usize) -> Result<u64, StepError> {
    let mut digits = Digits::default();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            byte @ b'0'..=b'9' => {
                if !digits.push(byte - b'0') {
                    return Err(StepError::OutOfRange);
                }
            }
            _ => return Err(StepError::NotANumber),
        }
        at += 1;
    }
    if digits.any {
        Ok(digits.value)
    } else {
        Err(StepError::NotANumber)
    }
}

pub(crate) const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn decimals_are_exact() {
        for (text, numerator, denominator) in [
            ("0.01", 1, 100),
            ("25", 25, 1),
            ("1e-3", 1, 1000),
            ("2.5E+1", 25, 1),
            ("1/60", 1, 60),
            ("0.0078125", 1, 128),
            ("1_000", 1000, 1),
            ("0.01000000000000000", 1, 100),
        ] {
            let step = Step::parse(text).unwrap();
            assert_eq!(
                (step.numerator(), step.denominator()),
                (numerator, denominator),
                "{text}"
            );
        }
        assert_eq!(Step::from_f64(0.01), Step::ratio(1, 100));
        assert_eq!(
            Step::from_f64(0.1f32 as f64).unwrap().to_string(),
            "0.10000000149011612"
        );
    }

    #[test]
    fn what_is_no_step_says_why() {
        for (text, error) in [
            ("", StepError::NotANumber),
            (".", StepError::NotANumber),
            ("x", StepError::NotANumber),
            ("1e", StepError::NotANumber),
            ("1/", StepError::NotANumber),
            ("0.0", StepError::NotPositive),
            ("-1", StepError::NotPositive),
            ("1/0", StepError::NotPositive),
            ("1e-40", StepError::OutOfRange),
            ("99999999999999999999", StepError::OutOfRange),
        ] {
            assert_eq!(Step::parse(text), Err(error), "{text}");
        }
        assert_eq!(Step::from_f64(f64::NAN), Err(StepError::NotANumber));
        assert_eq!(Step::from_f64(f64::INFINITY), Err(StepError::OutOfRange));
        assert_eq!(Step::from_f64(-0.0), Err(StepError::NotPositive));
    }

    #[test]
    fn counts_round_halves_away_and_saturate() {
        let half = Step::parse("0.5").unwrap();
        for (value, count) in [
            (0.25, 1),
            (-0.25, -1),
            (0.24, 0),
            (f64::NAN, 0),
            (f64::INFINITY, 127),
            (f64::NEG_INFINITY, -128),
            (1e300, 127),
        ] {
            assert_eq!(half.count(value, 8), count, "{value}");
        }
        assert_eq!(half.count(f64::MAX, 64), i64::MAX);
        assert_eq!(half.count(f64::MIN, 64), i64::MIN);
    }

    #[test]
    fn ratios_without_a_decimal_are_shown_as_ratios() {
        assert_eq!(Step::parse("1/60").unwrap().to_string(), "1/60");
        assert_eq!(Step::parse("1/100").unwrap().to_string(), "0.01");
    }
}
