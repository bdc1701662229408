//! Settings that must be the same at both ends.

use crate::{model::context_model::Learning, shared_model::HISTORY};

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
    pub(crate) policy: Policy,
    pub(crate) profile: Profile,
    pub(crate) learning: bool,
    pub(crate) max_entities: usize,
    pub(crate) history: u32,
}

impl Config {
    /// The default settings.
    pub const fn new() -> Self {
        Self {
            policy: Policy::Confirmed,
            profile: Profile::Default,
            learning: true,
            max_entities: 1 << 20,
            history: HISTORY,
        }
    }

    /// Sets when the connection learns; [`Policy::Confirmed`] by default.
    pub const fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// When the connection learns.
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// Sets the trade between packet size and speed; [`Profile::Default`] by default.
    pub const fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// The trade between packet size and speed.
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// Sets whether the connection learns at all; it does by default. Otherwise probabilities and
    /// choices of predictors stay as they are at the start.
    pub const fn with_learning(mut self, learning: bool) -> Self {
        self.learning = learning;
        self
    }

    /// Whether the connection learns at all.
    pub const fn learning(&self) -> bool {
        self.learning
    }

    /// Sets how many entities a receiver holds at most; 2^20 by default. It refuses ids from this
    /// number on.
    pub const fn with_max_entities(mut self, entities: usize) -> Self {
        self.max_entities = entities;
        self
    }

    /// How many entities a receiver holds at most.
    pub const fn max_entities(&self) -> usize {
        self.max_entities
    }

    /// Sets from how many past ticks rows are predicted; [`HISTORY`](crate::HISTORY), the least, by
    /// default. A round trip that takes more ticks makes every packet state every value, so raise it
    /// where ticks are short or round trips long. Archives have to reach back as far.
    pub const fn with_history(mut self, ticks: u32) -> Self {
        self.history = if ticks < HISTORY { HISTORY } else { ticks };
        self
    }

    /// From how many past ticks rows are predicted.
    pub const fn history(&self) -> u32 {
        self.history
    }

    /// Packets that may be unsettled; older ones are never folded.
    pub(crate) fn window(&self) -> u32 {
        self.history.saturating_mul(2)
    }

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
        Self::new()
    }
}
