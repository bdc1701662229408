//! `prescient scenario`: random worlds, networks and faults from a seed, verified.

pub(crate) mod crowd;
pub(crate) mod storm;

use clap::Subcommand;

/// Available scenarios.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Scenario {
    /// Random schemas, worlds, visibility, links and faults. Fails if a client shows a value that
    /// the server never had, misses an event, or receives hidden state.
    Storm(storm::StormOptions),
    /// Large worlds over links of several rates: how long joining takes, compared with what its
    /// bytes take on the link, and how stale state gets in ticks of several packets.
    Crowd(crowd::CrowdOptions),
}

/// Why a scenario did not pass.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// No packet was sent, so nothing was verified.
    #[error("nothing was played: ask for at least one seed")]
    Nothing,
    /// A client did not get everything in time.
    #[error("the client does not show the whole world in time")]
    Unfinished,
    /// The failures are printed above.
    #[error("{failures} of {seeds} seeds failed")]
    Failed {
        /// Seeds that failed.
        failures: u64,
        /// Seeds played.
        seeds: u64,
    },
}

/// Plays a scenario.
pub(crate) fn play(scenario: &Scenario) -> Result<(), ScenarioError> {
    match scenario {
        Scenario::Storm(options) => storm::storm(options),
        Scenario::Crowd(options) => crowd::crowd(options),
    }
}
