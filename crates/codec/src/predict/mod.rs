//! What both ends expect of a value before it is known.
//!
//! Four predictors compete for every numeric field of every entity: hold the newest value, extend
//! a line, extend a parabola, or follow what is declared (a user's contract or an explicit rate
//! of change; halfway between hold and line where nothing is declared). Which one is used follows
//! from what each would have cost at recent surprises.

pub mod polynomial;

use prescient_schema::Shape;

use crate::{twin::Samples, units::Tick};

/// One way to guess a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Predictor {
    /// The newest known value.
    Hold,
    /// The line through the two newest.
    Linear,
    /// The parabola through the three newest.
    Quadratic,
    /// A contract, a declared rate of change, or half of the linear step.
    Declared,
}

/// How predictors compare with holding, as a running average of eighths of a bit per surprise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Costs([i8; 3]);

/// What one surprise said about the predictors; see [`Costs`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostSample([i8; 3]);

impl Costs {
    /// The cheapest of the first `count`-sample predictors.
    #[inline]
    pub fn best(self, samples: usize, shape: Shape) -> Predictor {
        if matches!(shape, Shape::Content | Shape::Reference) {
            return Predictor::Hold;
        }
        if matches!(shape, Shape::Symbol { .. }) {
            return if self.0[2] < 0 {
                Predictor::Declared
            } else {
                Predictor::Hold
            };
        }
        let [linear, quadratic, declared] = self.0;
        let (mut best, mut cost) = (Predictor::Hold, 0);
        if declared < cost {
            (best, cost) = (Predictor::Declared, declared);
        }
        if samples >= 2 && linear < cost {
            (best, cost) = (Predictor::Linear, linear);
        }
        if samples >= 3 && quadratic < cost {
            best = Predictor::Quadratic;
        }
        best
    }

    /// Moves towards a sample by 1/2^`slowness` of the way.
    #[inline]
    pub fn learn(&mut self, sample: &CostSample, slowness: u32) {
        for (average, &seen) in self.0.iter_mut().zip(&sample.0) {
            if seen != UNKNOWN {
                let distance = i32::from(seen) - i32::from(*average);
                let step = (distance + (1 << (slowness - 1))) >> slowness;
                *average = (i32::from(*average) + step) as i8;
            }
        }
    }

    pub fn bits(self) -> u64 {
        let [a, b, c] = self.0.map(|cost| u64::from(cost as u8));
        a << 16 | b << 8 | c
    }
}

impl CostSample {
    /// Compares the residuals that each predictor would have left.
    #[inline]
    pub fn new(truth: i64, guesses: &Guesses, shape: Shape) -> Self {
        if matches!(shape, Shape::Content | Shape::Reference) {
            return Self([UNKNOWN; 3]);
        }
        let bits = |guess: i64| i32::from(bit_length(residual(truth, guess, shape)));
        let hold = bits(guesses.hold);
        let compare = |guess: Option<i64>| match guess {
            Some(guess) => (8 * (bits(guess) - hold)).clamp(-120, 120) as i8,
            None => UNKNOWN,
        };
        Self([
            compare(guesses.linear),
            compare(guesses.quadratic),
            compare(guesses.declared),
        ])
    }
}

const UNKNOWN: i8 = i8::MIN;

/// What every predictor says of one field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guesses {
    pub hold: i64,
    pub linear: Option<i64>,
    pub quadratic: Option<i64>,
    pub declared: Option<i64>,
}

impl Guesses {
    /// What the other predictors say about a guess.
    pub fn dissent(&self, guess: i64, shape: Shape) -> Dissent {
        let Some(line) = self.linear else {
            return Dissent::default();
        };
        let curve = self.quadratic.unwrap_or(line);
        let size = |value: i64| u32::from(bit_length(value)).min(15);
        let side = |guessed: i64| match residual(guessed, guess, shape) {
            0 => 0,
            1.. => 1,
            _ => 2,
        };
        let speed = size(residual(line, self.hold, shape));
        let bend = size(residual(curve, line, shape));
        Dissent {
            scale: 256 | bend << 4 | speed,
            side: side(line) * 9 + side(curve) * 3 + side(self.hold),
        }
    }
}

/// How far off a guess may be (as a context number), and to which side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dissent {
    pub scale: u32,
    pub side: usize,
}

/// How far ahead the samples lie, worked out once per set of ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    pub ahead: u32,
    linear: Option<Step>,
    quadratic: Option<Step>,
}

impl Plan {
    pub fn new(now: Tick, samples: &Samples) -> Self {
        let known = &samples.ticks[..samples.count];
        let mut offsets = [0i32; 3];
        for (offset, tick) in offsets.iter_mut().zip(known) {
            *offset = -(now.since(*tick) as i32);
        }
        let step = |count: usize| {
            if samples.count < count {
                return None;
            }
            let weights = polynomial::fit(&offsets[..count], count, 0).ok()?;
            Some(Step {
                first: -weights.numerators.get(1).copied().unwrap_or(0),
                second: -weights.numerators.get(2).copied().unwrap_or(0),
                divisor: weights.denominator,
            })
        };
        Self {
            ahead: (-offsets[0]) as u32,
            linear: step(2),
            quadratic: step(3),
        }
    }

    #[inline]
    pub fn linear(&self, shape: Shape, newest: i64, second: i64) -> Option<i64> {
        let step = self.linear?.apply(residual(newest, second, shape), 0);
        Some(wrap(newest.wrapping_add(step), shape))
    }

    #[inline]
    pub fn quadratic(&self, shape: Shape, newest: i64, second: i64, third: i64) -> Option<i64> {
        let step = self.quadratic?.apply(
            residual(newest, second, shape),
            residual(newest, third, shape),
        );
        Some(wrap(newest.wrapping_add(step), shape))
    }
}

/// `(first · d₁ + second · d₂) / divisor`, where dᵢ is how far the newest sample is from the
/// i-th older one.
#[derive(Clone, Copy, Debug)]
struct Step {
    first: i64,
    second: i64,
    divisor: i64,
}

impl Step {
    #[inline]
    fn apply(self, d1: i64, d2: i64) -> i64 {
        const SMALL: u64 = 1 << 30;
        let small = |x: i64| x.unsigned_abs() < SMALL;
        if small(d1) && small(d2) && small(self.first) && small(self.second) {
            let sum = self.first * d1 + self.second * d2;
            if self.divisor == 1 {
                return sum;
            }
            return (sum + (self.divisor >> 1)).div_euclid(self.divisor);
        }
        let sum =
            i128::from(self.first) * i128::from(d1) + i128::from(self.second) * i128::from(d2);
        divide(sum, i128::from(self.divisor)) as i64
    }
}

/// Rounds to nearest, ties towards +∞.
#[inline]
pub(crate) fn divide(numerator: i128, divisor: i128) -> i128 {
    (2 * numerator + divisor).div_euclid(2 * divisor)
}

/// `truth - guess` at the width of the field.
#[inline]
pub(crate) fn residual(truth: i64, guess: i64, shape: Shape) -> i64 {
    let difference = truth.wrapping_sub(guess);
    match shape {
        Shape::Number { bits, .. } if bits < 64 => {
            let unused = 64 - u32::from(bits);
            difference << unused >> unused
        }
        _ => difference,
    }
}

/// A sum brought back to the width of the field.
#[inline]
pub(crate) fn wrap(value: i64, shape: Shape) -> i64 {
    match shape {
        Shape::Number { bits, signed } if bits < 64 => {
            let unused = 64 - u32::from(bits);
            if signed {
                value << unused >> unused
            } else {
                ((value as u64) << unused >> unused) as i64
            }
        }
        _ => value,
    }
}

/// Bits needed for the magnitude: 0 for 0, 1 for ±1, 2 for ±2 and ±3, …
#[inline]
pub(crate) fn bit_length(value: i64) -> u8 {
    (64 - value.unsigned_abs().leading_zeros()) as u8
}
