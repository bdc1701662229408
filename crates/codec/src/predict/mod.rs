//! What both ends expect of a value before it is known.
//!
//! Five predictors compete for every numeric field of every entity: hold the newest value, extend
//! the line through the two newest, extend a line over a wider base (what moves in jerks or by
//! less than a step), bend halfway from the line towards a parabola, and follow what is declared
//! (a user's contract or an explicit rate of change; the parabola itself where nothing is
//! declared). Which one is used follows from what each would have cost at recent surprises.

pub mod polynomial;

use prescient_schema::Shape;

use crate::units::Tick;

/// One way to guess a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Predictor {
    /// The newest known value.
    Hold,
    /// The line through the two newest.
    Linear,
    /// The line over a wider base.
    Wide,
    /// The mean of line and parabola.
    Bent,
    /// A contract, a declared rate of change, or the parabola.
    Declared,
}

const PREDICTORS: [Predictor; 5] = [
    Predictor::Hold,
    Predictor::Linear,
    Predictor::Wide,
    Predictor::Bent,
    Predictor::Declared,
];

/// How predictors compare with holding, as a running average of eighths of a bit per surprise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Costs(pub [i8; 4]);

/// What one surprise said about the predictors; see [`Costs`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostSample([i8; 4]);

impl Costs {
    /// The cheapest of the predictors that have a say.
    #[inline]
    pub fn best(self, known: u8) -> Predictor {
        let mut best = 0;
        let mut cost = 0;
        for (at, &average) in self.0.iter().enumerate() {
            if average < cost && known >> (at + 1) & 1 == 1 {
                (best, cost) = (at + 1, average);
            }
        }
        PREDICTORS[best]
    }

    /// Whether anything but holding is ever chosen.
    #[inline]
    pub fn expect_motion(self) -> bool {
        self.0.iter().any(|&cost| cost < 0)
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
        u64::from(u32::from_le_bytes(self.0.map(|cost| cost as u8)))
    }
}

impl CostSample {
    /// Compares the residuals that each predictor would have left.
    #[inline]
    pub fn new(truth: i64, guesses: &Guesses, shape: Shape) -> Self {
        let bits = |guess: i64| i32::from(bit_length(residual(truth, guess, shape)));
        let hold = bits(guesses.values[0]);
        Self(core::array::from_fn(|at| {
            if guesses.known >> (at + 1) & 1 == 0 {
                return UNKNOWN;
            }
            (8 * (bits(guesses.values[at + 1]) - hold)).clamp(-120, 120) as i8
        }))
    }
}

const UNKNOWN: i8 = i8::MIN;

/// What every predictor says of one field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guesses {
    /// In the order of [`Predictor`].
    pub values: [i64; 5],
    /// Which of them mean anything.
    pub known: u8,
}

impl Guesses {
    /// What the other predictors say about a guess.
    #[inline]
    pub fn dissent(&self, guess: i64, shape: Shape) -> Dissent {
        if self.known & LINE == 0 {
            return Dissent::default();
        }
        let [hold, line, wide, bent, _] = self.values;
        let size = |value: i64| u32::from(bit_length(value)).min(15);
        let side = |guessed: i64| match residual(guessed, guess, shape) {
            0 => 0,
            1.. => 1,
            _ => 2,
        };
        let speed = size(residual(line, hold, shape));
        let bend = size(residual(bent, line, shape));
        Dissent {
            scale: 256 | bend << 4 | speed,
            side: side(line) * 27 + side(bent) * 9 + side(wide) * 3 + side(hold),
        }
    }
}

/// How far off a guess may be (as a context number), and to which side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dissent {
    pub scale: u32,
    pub side: usize,
}

/// Bits of [`Guesses::known`].
pub(crate) const HOLD: u8 = 1;
pub(crate) const LINE: u8 = 1 << 1;
pub(crate) const WIDE: u8 = 1 << 2;
pub(crate) const BENT: u8 = 1 << 3;
pub(crate) const DECLARED: u8 = 1 << 4;

/// The ticks from which an entity is predicted, newest first: the newest, the one before it, the
/// far end of the wide base, and the middle and far end of the parabola.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Samples {
    pub ticks: [Tick; ROWS],
    /// How many ticks of the entity are known, at most [`DEPTH`].
    pub count: usize,
}

impl Samples {
    /// Picks from the newest ticks at which an entity is known, newest first.
    pub fn pick(now: Tick, known: &[Tick]) -> Self {
        let Some(&newest) = known.first() else {
            return Self::default();
        };
        let last = known.len() - 1;
        let at = |back: usize| known[back.min(last)];
        let (wide, bow) = reach(now.since(newest));
        let far = (2 * bow).min(last);
        Self {
            ticks: [newest, at(1), at(wide), at(far.div_ceil(2)), at(far)],
            count: known.len(),
        }
    }
}

/// How many samples back the wide base goes, and each half of the parabola.
fn reach(ahead: u32) -> (usize, usize) {
    let ahead = ahead.min(8) as usize;
    (ahead.max(3), ahead.div_ceil(2))
}

/// Rows that predictions are made from.
pub(crate) const ROWS: usize = 5;
/// Ticks of an entity that are looked at.
pub(crate) const DEPTH: usize = 9;

/// How far ahead the samples lie, worked out once per set of ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    pub ahead: u32,
    /// Which predictors have the samples they need.
    pub known: u8,
    linear: Step,
    wide: Step,
    bow: Step,
}

impl Plan {
    /// Nothing but holding.
    pub fn resting() -> Self {
        Self {
            known: HOLD,
            ..Self::default()
        }
    }

    pub fn new(now: Tick, samples: &Samples) -> Self {
        let ages = samples.ticks.map(|tick| i64::from(now.since(tick)));
        let [newest, second, wide, middle, far] = ages;
        let mut plan = Self {
            ahead: now.since(samples.ticks[0]),
            known: HOLD,
            ..Self::default()
        };
        if samples.count >= 2 {
            plan.linear = Step::along_line(newest, second);
            plan.wide = Step::along_line(newest, wide);
            // From one tick to the next, a line over more than that is only one more to choose from.
            plan.known |= if plan.ahead > 1 { LINE | WIDE } else { LINE };
            if samples.count >= 3 {
                plan.bow = Step::along_parabola([newest, middle, far]);
                plan.known |= BENT | DECLARED;
            }
        }
        plan
    }

    #[inline]
    pub fn linear(&self, shape: Shape, newest: i64, second: i64) -> i64 {
        self.linear.apply(residual(newest, second, shape), 0)
    }

    #[inline]
    pub fn wide(&self, shape: Shape, newest: i64, far: i64) -> i64 {
        self.wide.apply(residual(newest, far, shape), 0)
    }

    #[inline]
    pub fn bow(&self, shape: Shape, newest: i64, middle: i64, far: i64) -> i64 {
        self.bow.apply(
            residual(newest, middle, shape),
            residual(newest, far, shape),
        )
    }
}

/// `(first · d₁ + second · d₂) / divisor`, where dᵢ is how far the newest sample is from the
/// i-th older one.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    first: i64,
    second: i64,
    divisor: i64,
}

impl Step {
    /// Along the line through two samples that are this many ticks old.
    fn along_line(newest: i64, second: i64) -> Self {
        Self::reduced(newest, 0, second - newest)
    }

    /// Along the parabola through three.
    fn along_parabola([a, b, c]: [i64; 3]) -> Self {
        let first = a * c * (c - a);
        let second = -a * b * (b - a);
        Self::reduced(first, second, (b - a) * (c - b) * (c - a))
    }

    fn reduced(first: i64, second: i64, divisor: i64) -> Self {
        let common = polynomial::gcd(polynomial::gcd(first.into(), second.into()), divisor.into());
        let common = (common as i64).max(1);
        Self {
            first: first / common,
            second: second / common,
            divisor: divisor / common,
        }
    }

    #[inline]
    fn apply(self, d1: i64, d2: i64) -> i64 {
        const SMALL: u64 = 1 << 30;
        let small = |x: i64| x.unsigned_abs() < SMALL;
        if small(d1) && small(d2) && small(self.first) && small(self.second) {
            let sum = self.first * d1 + self.second * d2;
            if self.divisor <= 1 {
                return sum;
            }
            return (sum + (self.divisor >> 1)).div_euclid(self.divisor);
        }
        let sum =
            i128::from(self.first) * i128::from(d1) + i128::from(self.second) * i128::from(d2);
        divide(sum, i128::from(self.divisor.max(1))) as i64
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
