//! How much the entities of one receiver are degraded, by their priority.

use core::fmt;

use prescient_schema::Priority;

/// How precisely and how often a receiver gets entities, for each of the four priorities. Entities
/// of priority 0 are never degraded.
///
/// ```
/// use prescient_codec::Quality;
/// use prescient_schema::Priority;
///
/// let last = Priority::new(3).expect("below 4");
/// // Two levels coarser, and in one of four packets.
/// let quality = Quality::FULL.with_level_bias(last, 2).with_rate_divisor(last, 4);
/// assert_eq!(quality.check(), Ok(()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quality {
    level_bias: [u8; 4],
    rate_divisor: [u8; 4],
}

impl Quality {
    /// Nothing is degraded.
    pub const FULL: Self = Self {
        level_bias: [0; 4],
        rate_divisor: [1; 4],
    };

    /// Sets by how many levels entities of a priority are sent coarser than their visibility says,
    /// up to the coarsest level: 0 to 3, 0 by default.
    pub fn with_level_bias(mut self, priority: Priority, levels: u8) -> Self {
        self.level_bias[usize::from(priority.get())] = levels;
        self
    }

    /// Sets that changes of an entity of a priority are sent once in so many packets, counting the
    /// packets of one tick as one: 1, the default, to [`MAX_RATE_DIVISOR`]. Entities take turns, so that every
    /// packet has as many of them. Appearing and disappearing are not delayed.
    pub fn with_rate_divisor(mut self, priority: Priority, divisor: u8) -> Self {
        self.rate_divisor[usize::from(priority.get())] = divisor;
        self
    }

    /// The levels by which entities of a priority are coarser.
    pub fn level_bias(&self, priority: Priority) -> u8 {
        self.level_bias[usize::from(priority.get())]
    }

    /// The number of packets in which an entity of a priority is once.
    pub fn rate_divisor(&self, priority: Priority) -> u8 {
        self.rate_divisor[usize::from(priority.get())]
    }

    /// Checks the values.
    pub fn check(&self) -> Result<(), QualityError> {
        if self.level_bias[0] != 0 || self.rate_divisor[0] != 1 {
            return Err(QualityError::PriorityZero);
        }
        if let Some(&bias) = self.level_bias.iter().find(|&&bias| bias > 3) {
            return Err(QualityError::LevelBias(bias));
        }
        let is_possible = |divisor: &&u8| !(1..=MAX_RATE_DIVISOR).contains(*divisor);
        match self.rate_divisor.iter().find(is_possible) {
            Some(&divisor) => Err(QualityError::RateDivisor(divisor)),
            None => Ok(()),
        }
    }

    pub(crate) fn has_divisors(&self) -> bool {
        self.rate_divisor != Self::FULL.rate_divisor
    }

    pub(crate) fn has_other_levels(&self, other: &Self) -> bool {
        self.level_bias != other.level_bias
    }
}

impl Default for Quality {
    fn default() -> Self {
        Self::FULL
    }
}

/// The largest rate divisor. An entity that is sent more rarely would leave the history from which
/// its values are predicted.
pub const MAX_RATE_DIVISOR: u8 = 32;

/// Why a [`Quality`] is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QualityError {
    /// Priority 0 is never degraded.
    PriorityZero,
    /// There are four levels, so a bias is at most 3.
    LevelBias(u8),
    /// A rate divisor is from 1 to [`MAX_RATE_DIVISOR`].
    RateDivisor(u8),
}

prescient_schema::debug_as_display!(QualityError);

impl fmt::Display for QualityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PriorityZero => f.write_str("entities of priority 0 are never degraded"),
            Self::LevelBias(bias) => write!(f, "a level bias of {bias}; it is at most 3"),
            Self::RateDivisor(divisor) => {
                write!(
                    f,
                    "a rate divisor of {divisor}; it is from 1 to {MAX_RATE_DIVISOR}"
                )
            }
        }
    }
}

impl core::error::Error for QualityError {}

/// How an entity can be degraded, and whether it is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grade(u8);

impl Grade {
    /// `has_levels` states whether the class of the entity has coarser levels.
    pub(crate) fn new(priority: Priority, has_levels: bool) -> Self {
        Self(priority.get() | if has_levels { HAS_LEVELS } else { 0 })
    }

    /// The level at which an entity is sent whose own level is this.
    #[inline]
    pub(crate) fn level(self, own: u8, quality: &Quality) -> u8 {
        if self.0 & HAS_LEVELS == 0 {
            return own;
        }
        let bias = quality.level_bias[usize::from(self.0 & PRIORITY)];
        own.saturating_add(bias).min(COARSEST)
    }

    #[inline]
    pub(crate) fn divisor(self, quality: &Quality) -> u32 {
        u32::from(quality.rate_divisor[usize::from(self.0 & PRIORITY)]).max(1)
    }

    #[inline]
    pub(crate) fn priority(self) -> usize {
        usize::from(self.0 & PRIORITY)
    }

    #[inline]
    pub(crate) fn is_due(self) -> bool {
        self.0 & DUE != 0
    }

    #[inline]
    pub(crate) fn set_due(&mut self, is_due: bool) {
        self.0 = self.0 & !DUE | if is_due { DUE } else { 0 };
    }
}

const PRIORITY: u8 = 3;
const HAS_LEVELS: u8 = 4;
const DUE: u8 = 8;
/// The coarsest level.
const COARSEST: u8 = 3;
