//! The recent surprises of one field of one entity. They choose its predictor and are contexts of
//! its decisions.

use crate::{
    log::Surprise,
    predict::{ALL, Costs, Predictor},
};

/// The recent surprises of one field of one entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldState {
    /// Bit `k` states whether it had a part in the entity's `k`-th last surprise.
    pub surprised: u8,
    /// Bit `k` states whether it surprised in the fold `k` before the entity's last surprise.
    pub history: u32,
    /// The period, in folds, at which `history` repeats best, and above these bits the best
    /// predictor.
    pub(super) period_and_predictor: u8,
    /// Bit length of the last residual, and its sign in bit 7.
    pub last: u8,
    /// The residuals of this field in the entity's last two surprises as
    /// [buckets](residual_bucket): the newest in the upper half, the one before in the lower.
    pub recent: u8,
    pub costs: Costs,
}

impl FieldState {
    /// A field without surprises.
    pub(crate) const NEW: Self = Self {
        surprised: 0,
        history: 0,
        period_and_predictor: 0,
        last: 0,
        recent: 0,
        costs: Costs([0; 4]),
    };

    /// Shifts the histories for a surprise of the entity, `passed` folds after the one before.
    #[inline]
    pub(super) fn age(&mut self, passed: u32) {
        self.surprised <<= 1;
        self.history = self.history.checked_shl(passed).unwrap_or(0);
        self.recent >>= 4;
    }

    /// Records that this field had a part in the surprise.
    #[inline]
    pub(super) fn surprise(&mut self, surprise: &Surprise) {
        self.surprised |= 1;
        self.history |= 1;
        self.last = surprise.last;
        self.recent |= residual_bucket(surprise.last) << 4;
        if let Some(costs) = &surprise.costs {
            self.costs.learn(costs);
            self.period_and_predictor =
                self.period_and_predictor & PERIOD | (self.costs.best(ALL) as u8) << PERIOD_BITS;
        }
    }

    /// Searches for another period if the history no longer repeats at the present one.
    #[inline]
    pub(super) fn update_period(&mut self) {
        let history = self.history;
        let old = self.period_and_predictor & PERIOD;
        if old == 0 || (history ^ history >> old) & 1 == 1 {
            self.period_and_predictor = self.period_and_predictor & !PERIOD | period(history);
        }
    }

    /// The predictor with the lowest average cost.
    #[inline]
    pub(crate) fn best_predictor(&self) -> Predictor {
        Predictor::from_number(self.period_and_predictor >> PERIOD_BITS)
    }

    /// Whether the field surprises now if its history, which is `behind` folds old, goes on
    /// repeating, and for how many folds it has repeated so far.
    #[inline]
    pub(crate) fn periodic_guess(&self, behind: u32) -> (bool, u32) {
        let history = self.history.checked_shl(behind).unwrap_or(0);
        let period = u32::from(self.period_and_predictor & PERIOD).max(1);
        let run = (history ^ history >> period).trailing_zeros();
        (history >> (period - 1) & 1 == 1, run)
    }
}

/// Maps the bit length and sign of a residual to 0 for none, 1 and 2 for ±1, 3 and 4 for ±2 or ±3,
/// 5 and 6 for larger ones.
#[inline]
fn residual_bucket(residual: u8) -> u8 {
    let size = (residual & 0x7F).min(3);
    2 * size - u8::from(residual < 0x80 && size > 0)
}

/// The period at which a history repeats for longest.
#[cold]
fn period(history: u32) -> u8 {
    let run = |period: u32| {
        (history ^ history >> period)
            .trailing_zeros()
            .min(32 - period)
    };
    let longest = (1..=MAX_PERIOD).rev().max_by_key(|&period| run(period));
    longest.unwrap_or(1) as u8
}

const MAX_PERIOD: u32 = 20;
/// The part of [`FieldState::period_and_predictor`] that is the period.
const PERIOD: u8 = (1 << PERIOD_BITS) - 1;
pub(super) const PERIOD_BITS: u32 = 5;
