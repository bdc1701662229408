//! What one field of one entity was last seen to do.

use crate::{
    log::Surprise,
    predict::{ALL, Costs, Predictor},
};

/// What one field of one entity was last seen to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldState {
    /// Bit `k` says whether it surprised at the entity's `k`-th last surprise.
    pub surprised: u8,
    /// Bit `k` says whether it surprised at the fold `k` before the entity's last surprise.
    pub history: u32,
    /// After how many folds its history repeats itself, as far as it does, and above that its
    /// favourite predictor.
    pub(super) period_and_predictor: u8,
    /// Bit length of the last residual, and its sign in bit 7.
    pub last: u8,
    /// The residuals of the entity's last two surprises, roughly: the newest in the upper half,
    /// the one before in the lower, each 0 for none, then ±1, ±2 and beyond.
    pub recent: u8,
    pub costs: Costs,
}

impl FieldState {
    /// A field of which nothing was seen.
    pub(crate) const NEW: Self = Self {
        surprised: 0,
        history: 0,
        period_and_predictor: 0,
        last: 0,
        recent: 0,
        costs: Costs([0; 4]),
    };

    /// The entity surprised, `passed` folds after the last time.
    #[inline]
    pub(super) fn age(&mut self, passed: u32) {
        self.surprised <<= 1;
        self.history = self.history.checked_shl(passed).unwrap_or(0);
        self.recent >>= 4;
    }

    /// This field had a part in it.
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

    /// Looks for the period anew if the history no longer repeats itself.
    #[inline]
    pub(super) fn update_period(&mut self) {
        let history = self.history;
        let old = self.period_and_predictor & PERIOD;
        if old == 0 || (history ^ history >> old) & 1 == 1 {
            self.period_and_predictor = self.period_and_predictor & !PERIOD | period(history);
        }
    }

    /// Whether anything but holding is ever chosen.
    #[inline]
    pub(super) fn expects_motion(&self) -> bool {
        self.period_and_predictor >> PERIOD_BITS != Predictor::Hold as u8
    }

    /// The predictor that was cheapest of all that ever had a say.
    #[inline]
    pub(crate) fn best_predictor(&self) -> Predictor {
        Predictor::from_number(self.period_and_predictor >> PERIOD_BITS)
    }

    /// Whether it surprises if its history, now `behind` folds old, goes on repeating itself, and
    /// for how long it has.
    #[inline]
    pub(crate) fn periodic_guess(&self, behind: u32) -> (bool, u32) {
        let history = self.history.checked_shl(behind).unwrap_or(0);
        let period = u32::from(self.period_and_predictor & PERIOD).max(1);
        let run = (history ^ history >> period).trailing_zeros();
        (history >> (period - 1) & 1 == 1, run)
    }
}

/// A residual, of which bit length and sign are given, as a number below 7.
#[inline]
fn residual_bucket(residual: u8) -> u8 {
    let size = (residual & 0x7F).min(3);
    2 * size - u8::from(residual < 0x80 && size > 0)
}

/// The distance at which a history repeats itself for longest.
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
/// The part of [`FieldState::habits`] that is the period.
const PERIOD: u8 = (1 << PERIOD_BITS) - 1;
pub(super) const PERIOD_BITS: u32 = 5;
