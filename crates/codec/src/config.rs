//! Settings that must be the same at both ends.

use crate::model::context_model::Learning;

/// When a connection learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// From a packet as soon as both ends know that it was applied. For datagrams.
    #[default]
    Confirmed,
    /// From every packet at once. For streams and recordings, where nothing is lost.
    Immediate,
    /// Never: every packet can be decoded by any receiver, by itself or with the base that it
    /// names ([`Encoder::make_base`](crate::Encoder::make_base)). For named data, spectators and
    /// recordings.
    Stateless,
}

/// The trade between packet size and speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Two contexts per decision.
    #[default]
    Default,
    /// Five contexts per decision: smaller and slower.
    Best,
}

impl Profile {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Default => "default",
            Profile::Best => "best",
        }
    }

    /// Binary logarithm of the most cells of a page.
    pub(crate) const fn page_bits(self) -> u32 {
        match self {
            Profile::Default => 14,
            Profile::Best => 16,
        }
    }

    /// Contexts per decision.
    pub(crate) const fn contexts(self) -> usize {
        match self {
            Profile::Default => DEFAULT_CONTEXTS,
            Profile::Best => BEST_CONTEXTS,
        }
    }
}

/// Contexts per decision of [`Profile::Default`].
pub(crate) const DEFAULT_CONTEXTS: usize = 2;
/// Contexts per decision of [`Profile::Best`].
pub(crate) const BEST_CONTEXTS: usize = 5;

/// The settings of a connection, which must be the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// When the connection learns.
    pub policy: Policy,
    /// The trade between packet size and speed.
    pub profile: Profile,
    /// If `false`, probabilities and choices of predictors stay as they are at the start.
    pub learning: bool,
    /// Entities that a receiver holds at most; it refuses ids from this number on.
    pub max_entities: usize,
}

impl Config {
    pub(crate) fn context_learning(&self) -> Learning {
        match self.policy {
            _ if !self.learning => Learning::Off,
            Policy::Stateless => Learning::Inside,
            Policy::Confirmed | Policy::Immediate => Learning::Folds,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            profile: Profile::default(),
            learning: true,
            max_entities: 1 << 20,
        }
    }
}
