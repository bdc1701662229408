//! Predicts values from rows that both ends have.
//!
//! Five predictors compete for every numeric field of every entity: hold the newest value; extend
//! the line through the two newest; extend a line over a wider base (for what moves in jerks or by
//! less than a step); halfway between the line and a parabola; and what is declared (a user's
//! contract or an explicit rate of change; the parabola where nothing is declared). The one with
//! the lowest average cost at recent surprises is used.

pub(crate) mod polynomial;
pub(crate) mod relation;

use prescient_schema::Shape;

use crate::units::Tick;

/// A way to predict a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Predictor {
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
    /// A relation to another field of the entity. It is chosen for all entities of a class, and has
    /// no place among the costs of the others.
    Related,
}

impl Predictor {
    /// The inverse of `as u8`.
    #[inline]
    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Hold,
            1 => Self::Linear,
            2 => Self::Wide,
            3 => Self::Bent,
            _ => Self::Declared,
        }
    }
}

/// Average cost of the other predictors at recent surprises, relative to holding, in eighths of a
/// bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Costs(pub [i8; 4]);

/// The cost of each predictor at one surprise; see [`Costs`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostSample([i8; 4]);

impl Costs {
    /// The cheapest of the `known` predictors.
    #[inline]
    pub(crate) fn best(self, known: u8) -> Predictor {
        let mut best = 0;
        let mut cost = 0;
        for (at, &average) in self.0.iter().enumerate() {
            if average < cost && known >> (at + 1) & 1 == 1 {
                (best, cost) = (at + 1, average);
            }
        }
        Predictor::from_number(best as u8)
    }

    /// Moves towards a sample by 1/16 of the way.
    #[inline]
    pub(crate) fn learn(&mut self, sample: &CostSample) {
        for (average, &seen) in self.0.iter_mut().zip(&sample.0) {
            let seen = if seen == UNKNOWN { *average } else { seen };
            let distance = i32::from(seen) - i32::from(*average);
            *average = (i32::from(*average) + ((distance + 8) >> 4)) as i8;
        }
    }

    pub(crate) fn bits(self) -> u64 {
        u64::from(u32::from_le_bytes(self.0.map(|cost| cost as u8)))
    }
}

impl CostSample {
    /// Compares the residuals that each predictor would have left.
    #[inline]
    pub(crate) fn new(truth: i64, guesses: &Guesses, width: Width) -> Self {
        let bits = guesses
            .values
            .map(|guess| i32::from(bit_length(width.difference(truth, guess))));
        Self(core::array::from_fn(|at| {
            let cost = (8 * (bits[at + 1] - bits[0])).clamp(-120, 120) as i8;
            if guesses.known >> (at + 1) & 1 == 0 {
                UNKNOWN
            } else {
                cost
            }
        }))
    }
}

const UNKNOWN: i8 = i8::MIN;

/// The predictions of all predictors for one field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guesses {
    /// In the order of [`Predictor`], equal to the predictions modulo the width of the field.
    pub values: [i64; 5],
    /// Which of them are valid, as bits.
    pub known: u8,
}

impl Guesses {
    /// How the other predictors differ from one prediction.
    #[inline]
    pub(crate) fn dissent(&self, guess: i64, width: Width) -> Dissent {
        if self.known & LINE == 0 {
            return Dissent::default();
        }
        let [hold, line, wide, bent, _] = self.values;
        let size = |value: i64| u32::from(bit_length(value)).min(15);
        let side = |guessed: i64| {
            let apart = width.difference(guessed, guess);
            usize::from(apart > 0) | usize::from(apart < 0) << 1
        };
        let speed = size(width.difference(line, hold));
        let bend = size(width.difference(bent, line));
        Dissent {
            scale: 256 | bend << 4 | speed,
            side: side(line) * 27 + side(bent) * 9 + side(wide) * 3 + side(hold),
        }
    }
}

/// Contexts for a residual: how far apart the predictors are, and on which side of the prediction.
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
pub(crate) const ALL: u8 = HOLD | LINE | WIDE | BENT | DECLARED;

/// The ticks from which an entity is predicted, newest first: the newest, the one before it, the
/// far end of the wide base, and the middle and far end of the parabola.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Samples {
    pub ticks: [Tick; ROWS],
    /// Where this end has them.
    pub frames: Frames,
    /// The number of known ticks of the entity, at most [`DEPTH`].
    pub count: usize,
}

impl Samples {
    /// Chooses among the newest ticks at which the entity is known, newest first.
    pub(crate) fn pick(now: Tick, known: &[Tick]) -> Self {
        let Some(&newest) = known.first() else {
            return Self::default();
        };
        let last = known.len() - 1;
        let at = |back: usize| known[back.min(last)];
        let (wide, parabola) = distances(now.shortly_since(newest));
        let far = (2 * parabola).min(last);
        Self {
            ticks: [newest, at(1), at(wide), at(far.div_ceil(2)), at(far)],
            frames: Frames::default(),
            count: known.len(),
        }
    }
}

/// The frames of an archive that contain the rows of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frames {
    /// Distinguishes them from others of the same packet.
    pub serial: u32,
    pub oldest: Tick,
    /// The index of each in the archive.
    pub numbers: [u32; ROWS],
    /// For each, the first of them with the same row.
    pub first: [u8; ROWS],
}

impl Frames {
    /// Looks up the ticks of samples, without those that no `known` predictor needs.
    pub(crate) fn new(
        serial: u32,
        samples: &Samples,
        known: u8,
        number: impl Fn(Tick) -> u32,
    ) -> Self {
        let ticks = &samples.ticks;
        let needed = |at: usize| at != WIDE_ROW || known & WIDE != 0;
        let first = |at: usize| {
            let same = (0..at).find(|&before| needed(before) && ticks[before] == ticks[at]);
            same.unwrap_or(if needed(at) { at } else { 0 }) as u8
        };
        Self {
            serial,
            oldest: ticks.iter().copied().min().unwrap_or_default(),
            numbers: ticks.map(number),
            first: core::array::from_fn(first),
        }
    }
}

/// Distances, in samples, from the newest to the far end of the wide base and to the middle of the
/// parabola.
fn distances(ahead: u32) -> (usize, usize) {
    let ahead = ahead.min(8) as usize;
    (ahead.max(3), ahead.div_ceil(2))
}

/// Rows from which an entity is predicted.
pub(crate) const ROWS: usize = 5;
/// The row that only [`Predictor::Wide`] needs.
const WIDE_ROW: usize = 2;
/// Known ticks of an entity that are considered.
pub(crate) const DEPTH: usize = 9;

/// Coefficients of the predictors for one set of ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub ahead: u32,
    /// Which predictors have the samples they need.
    pub known: u8,
    /// The predictors that need only one sample and have it.
    pub declared: u8,
    linear: Increment,
    wide: Increment,
    parabola: Increment,
}

impl Plan {
    /// Only [`Predictor::Hold`].
    pub(crate) const RESTING: Self = Self {
        ahead: 0,
        known: HOLD,
        declared: 0,
        linear: Increment::NONE,
        wide: Increment::NONE,
        parabola: Increment::NONE,
    };

    pub(crate) fn new(now: Tick, samples: &Samples) -> Self {
        let ages = samples.ticks.map(|tick| i64::from(now.shortly_since(tick)));
        let [newest, second, wide, middle, far] = ages;
        let mut plan = Self {
            ahead: now.shortly_since(samples.ticks[0]),
            declared: DECLARED,
            ..Self::RESTING
        };
        if samples.count >= 2 {
            plan.linear = Increment::along_line(newest, second);
            plan.wide = Increment::along_line(newest, wide);
            // For the next tick a wide base gains nothing over the line.
            plan.known |= if plan.ahead > 1 { LINE | WIDE } else { LINE };
            if samples.count >= 3 {
                plan.parabola = Increment::along_parabola([newest, middle, far]);
                plan.known |= BENT | DECLARED;
            }
        }
        plan
    }

    #[inline]
    pub(crate) fn linear(&self, width: Width, newest: i64, second: i64) -> i64 {
        self.linear.apply(width.difference(newest, second), 0)
    }

    /// Whether the line, and the `wide` one if it matters, goes on exactly from any two rows of a
    /// straight line, whatever the width of the field.
    #[inline]
    pub(crate) fn continues_lines(&self, wide: bool) -> bool {
        let wide_too = self.known & WIDE != 0 && self.wide.divisor <= 1;
        self.linear.divisor <= 1 && (!wide || wide_too)
    }

    #[inline]
    pub(crate) fn wide(&self, width: Width, newest: i64, far: i64) -> i64 {
        self.wide.apply(width.difference(newest, far), 0)
    }

    #[inline]
    pub(crate) fn parabola(&self, width: Width, newest: i64, middle: i64, far: i64) -> i64 {
        let middle = width.difference(newest, middle);
        self.parabola.apply(middle, width.difference(newest, far))
    }
}

/// `(first · d₁ + second · d₂) / divisor`, where dᵢ is the difference between the newest sample and
/// the i-th older one.
#[derive(Clone, Copy, Debug)]
struct Increment {
    first: i64,
    second: i64,
    divisor: i64,
}

impl Increment {
    const NONE: Self = Self {
        first: 0,
        second: 0,
        divisor: 0,
    };

    /// The increment along the line through two samples of these ages, in ticks.
    fn along_line(newest: i64, second: i64) -> Self {
        Self::reduced(newest, 0, second - newest)
    }

    /// The increment along the parabola through three samples.
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
        if self.divisor <= 1 {
            let first = self.first.wrapping_mul(d1);
            return first.wrapping_add(self.second.wrapping_mul(d2));
        }
        self.divided(d1, d2)
    }

    fn divided(self, d1: i64, d2: i64) -> i64 {
        const SMALL: u64 = 1 << 30;
        let small = |x: i64| x.unsigned_abs() < SMALL;
        if small(d1) && small(d2) && small(self.first) && small(self.second) {
            let sum = self.first * d1 + self.second * d2;
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

/// The width of a field's values, in bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Width {
    /// Unused bits of an `i64`.
    unused: u8,
    /// The used bits, and the one among them that is the sign.
    mask: i64,
    sign: i64,
}

impl Width {
    pub(crate) fn new(shape: Shape) -> Self {
        let (bits, signed) = match shape {
            Shape::Number { bits, signed } => (bits.clamp(1, 64), signed),
            _ => (64, true),
        };
        let unused = 64 - bits;
        Self {
            unused,
            mask: (u64::MAX >> unused) as i64,
            sign: if signed && unused > 0 {
                1 << (bits - 1)
            } else {
                0
            },
        }
    }

    /// `a - b` at this width.
    #[inline]
    pub(crate) fn difference(self, a: i64, b: i64) -> i64 {
        a.wrapping_sub(b) << self.unused >> self.unused
    }

    /// A sum brought back to this width.
    #[inline]
    pub(crate) fn wrap(self, value: i64) -> i64 {
        ((value & self.mask) ^ self.sign).wrapping_sub(self.sign)
    }
}

/// Bits needed for the magnitude: 0 for 0, 1 for ±1, 2 for ±2 and ±3, …
#[inline]
pub(crate) fn bit_length(value: i64) -> u8 {
    (64 - value.unsigned_abs().leading_zeros()) as u8
}
