//! Gives every peer the best that its connection can carry.
//!
//! A loop of three leaves, once per tick and peer: the [`LinkEstimate`] becomes the bytes of the next
//! packet (the allowance), the plan chooses how coarse and how rare entities of each priority are so
//! that what is to be sent fits, and the codec's [`Selection`] fills the packet with what helps most
//! per bit. Entities of priority 0 are never degraded.
//!
//! The plan follows the rate that congestion control allows, not losses: a loss that a lower rate
//! would not avoid degrades nothing.

mod allowance;
mod plan;

use prescient_codec::{Quality, Selection, Tick};

pub(crate) use allowance::Allowance;
pub(crate) use plan::Plan;

/// How peers are adapted to their connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptation {
    selection: Selection,
    degrades: bool,
    min_message: usize,
}

impl Default for Adaptation {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            degrades: true,
            min_message: 64,
        }
    }
}

impl Adaptation {
    /// How entities are selected when a packet cannot hold all; by default, as
    /// [`Selection::default`] says.
    #[must_use]
    pub fn with_selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Whether precision and rate are reduced, as they are by default. If not, only the selection adapts, and
    /// [`Server::set_quality`](crate::Server::set_quality) stays with the program.
    #[must_use]
    pub fn with_degradation(mut self, degrades: bool) -> Self {
        self.degrades = degrades;
        self
    }

    /// The least bytes of a message of state, without headers; at lower rates ticks are skipped, so
    /// that headers do not take most of the rate. 64 by default.
    #[must_use]
    pub fn with_min_message(mut self, bytes: usize) -> Self {
        self.min_message = bytes;
        self
    }

    /// How entities are selected.
    pub fn selection(&self) -> Selection {
        self.selection
    }
}

/// What is known about the connection to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkEstimate {
    /// The rate that congestion control and all caps allow now.
    pub bytes_per_second: u64,
    /// The bytes that a packet adds to a message, as far as they count towards that rate.
    pub overhead: usize,
    /// The time of this estimate in microseconds, on any clock that does not run backwards.
    pub micros: u64,
}

/// What a peer gets, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AdaptationReport {
    /// The estimate of the connection.
    pub estimate: LinkEstimate,
    /// The bytes that the next message of state may have.
    pub message_bytes: usize,
    /// The bytes that the last tick would have needed at the present quality.
    pub demand_bytes: usize,
    /// How precisely and how often entities are sent.
    pub quality: Quality,
    /// How many steps of the plan are taken; 0 if nothing is degraded.
    pub plan_step: usize,
    /// How many entities there are of each priority.
    pub entities: [u32; 4],
    /// By priority, how far entities are from where they were when they were last sent: the mean, in
    /// steps of their positions.
    pub error_steps: [f64; 4],
    /// By priority, the most ticks since an entity was last sent.
    pub stalest_ticks: [u32; 4],
}

/// The state of the loop of one peer.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) config: Adaptation,
    pub(crate) allowance: Allowance,
    pub(crate) plan: Plan,
    /// Whether the program was told of the present quality.
    pub(crate) is_told: bool,
}

impl Loop {
    pub(crate) fn new(config: Adaptation) -> Self {
        Self {
            config,
            allowance: Allowance::default(),
            plan: Plan::default(),
            is_told: true,
        }
    }

    pub(crate) fn min_message(&self) -> usize {
        self.config.min_message
    }

    /// Adjusts the plan to what the last tick needed; `Some` if the quality is another one now.
    pub(crate) fn adjust(&mut self, demand: usize, now: Tick) -> Option<Quality> {
        if !self.config.degrades {
            return None;
        }
        let changed = self
            .plan
            .adjust(demand, self.allowance.typical_message(), now);
        if changed {
            self.is_told = false;
        }
        changed.then(|| self.plan.quality())
    }
}
