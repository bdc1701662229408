//! Linear dependence of one field on another of the same entity: a position follows from a speed, an
//! acceleration from the change of a speed, a time stamp from another one.

use super::Width;
use crate::layout::ClassLayout;

/// What of one field is proportional to what of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The value to the value.
    Value,
    /// The change to the change.
    Change,
    /// The change to the new value, per tick: a position and a speed.
    Integral,
    /// The change to the mean of the old and the new value, per tick.
    Trapezoid,
    /// The value to the change, per tick: an acceleration and a speed.
    Derivative,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Value,
        Self::Change,
        Self::Integral,
        Self::Trapezoid,
        Self::Derivative,
    ];
}

/// How a field follows from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relation {
    /// The field from which it follows; coded before it.
    pub source: u16,
    pub kind: Kind,
    pub fit: Fit,
    /// Average gain over the field's own predictors at surprises of its class, in eighths of a bit.
    pub gain: i16,
}

impl Relation {
    /// The value of the field at `at` that follows from its source: from the row that both ends
    /// know, and the present one.
    #[inline]
    pub(crate) fn guess(
        &self,
        ahead: u32,
        class: &ClassLayout,
        (old, now): (&[i64], &[i64]),
        at: usize,
    ) -> i64 {
        let source = usize::from(self.source);
        let pair = Pair {
            old: old[source],
            now: now[source],
            width: class.widths[source],
        };
        self.kind
            .guess(&self.fit, pair, old[at], class.widths[at], ahead)
    }
}

/// The values of a field at two ticks: the newest that both ends know, and the present one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub old: i64,
    pub now: i64,
    pub width: Width,
}

impl Pair {
    fn change(self) -> i64 {
        self.width.difference(self.now, self.old)
    }
}

impl Kind {
    /// What the coefficient multiplies. `ahead` are the ticks between the values.
    #[inline]
    pub(crate) fn input(self, source: Pair, ahead: u32) -> i64 {
        let ahead = i64::from(ahead);
        match self {
            Self::Value => source.now,
            Self::Change | Self::Derivative => source.change(),
            Self::Integral => source.now.wrapping_mul(ahead),
            Self::Trapezoid => source.now.wrapping_add(source.old).wrapping_mul(ahead),
        }
    }

    /// What the product is compared with.
    #[inline]
    pub(crate) fn output(self, target: Pair, ahead: u32) -> i64 {
        match self {
            Self::Value => target.now,
            Self::Change | Self::Integral | Self::Trapezoid => target.change(),
            Self::Derivative => target.now.wrapping_mul(i64::from(ahead)),
        }
    }

    /// The value of the dependent field; `old` is its newest known one.
    #[inline]
    pub(crate) fn guess(self, fit: &Fit, source: Pair, old: i64, width: Width, ahead: u32) -> i64 {
        let input = self.input(source, ahead);
        let value = match self {
            Self::Value => fit.product(input, 1),
            Self::Derivative => fit.product(input, ahead),
            Self::Change | Self::Integral | Self::Trapezoid => {
                old.wrapping_add(fit.product(input, 1))
            }
        };
        width.wrap(value)
    }
}

/// The coefficient of a relation: the sum of outputs over the sum of inputs, where outputs of
/// negative inputs are negated. A large input counts more than a small one, as it should: what
/// rounding does to its output matters less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fit {
    outputs: i64,
    inputs: i64,
    /// With [`FRACTION`] fractional bits.
    coefficient: i64,
}

impl Fit {
    /// The coefficient of one sample.
    pub(crate) fn of(input: i64, output: i64) -> Self {
        let mut fit = Self::default();
        fit.learn(input, output);
        fit
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inputs == 0
    }

    pub(crate) fn learn(&mut self, input: i64, output: i64) {
        if input.unsigned_abs() > LARGEST || output.unsigned_abs() > LARGEST {
            return;
        }
        if self.inputs > LARGEST as i64 || self.outputs.unsigned_abs() > LARGEST {
            self.inputs >>= 1;
            self.outputs >>= 1;
        }
        self.inputs += input.abs();
        self.outputs += if input < 0 { -output } else { output };
        if self.inputs > 0 {
            let quotient = (i128::from(self.outputs) << FRACTION) / i128::from(self.inputs);
            let most = i128::from(MAX_COEFFICIENT);
            self.coefficient = quotient.clamp(-most, most) as i64;
        }
    }

    /// The product with an input, divided by `divisor` and rounded to nearest, ties towards +∞.
    #[inline]
    fn product(&self, input: i64, divisor: u32) -> i64 {
        let product = i128::from(self.coefficient) * i128::from(input);
        if divisor <= 1 {
            return ((product + (1 << (FRACTION - 1))) >> FRACTION) as i64;
        }
        super::divide(product, i128::from(divisor) << FRACTION) as i64
    }

    /// For digests.
    pub(crate) fn words(&self) -> [u64; 2] {
        [self.outputs as u64, self.inputs as u64]
    }
}

const FRACTION: u32 = 24;
/// Largest input and output that are learned from.
const LARGEST: u64 = 1 << 60;
const MAX_COEFFICIENT: i64 = 1 << 56;
