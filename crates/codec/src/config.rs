//! What both ends must be told alike.

use crate::model::context_model::Learning;

/// How a connection learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// A packet teaches once both ends know that it was applied. For datagrams.
    #[default]
    Confirmed,
    /// Every packet teaches at once. For streams and recordings, where nothing is lost.
    Immediate,
    /// Nothing outlives its packet: each is complete and serves anybody. For named data.
    Stateless,
}

/// How much is spent on modelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Two contexts a decision.
    #[default]
    Default,
    /// Five contexts a decision: smaller and slower.
    Best,
}

impl Profile {
    /// What it is called on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Default => "default",
            Profile::Best => "best",
        }
    }

    /// Binary logarithm of the cells that a field may have.
    pub(crate) const fn page_bits(self) -> u32 {
        match self {
            Profile::Default => 14,
            Profile::Best => 16,
        }
    }

    /// Contexts that are mixed for a decision.
    pub(crate) const fn contexts(self) -> usize {
        match self {
            Profile::Default => DEFAULT_CONTEXTS,
            Profile::Best => BEST_CONTEXTS,
        }
    }
}

/// Contexts that [`Profile::Default`] mixes.
pub(crate) const DEFAULT_CONTEXTS: usize = 2;
/// Contexts that [`Profile::Best`] mixes.
pub(crate) const BEST_CONTEXTS: usize = 5;

/// The settings of a connection. Both ends need the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How the connection learns.
    pub policy: Policy,
    /// How much is spent on modelling.
    pub profile: Profile,
    /// Off: probabilities and predictor choices stay what they are at the start.
    pub learning: bool,
    /// Entities a receiver is willing to hold.
    pub max_entities: usize,
}

impl Config {
    /// When probabilities move.
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
