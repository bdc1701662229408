//! `prescient scenario`: worlds, networks and faults that are made up from a seed, and checked.

pub mod storm;

use clap::Subcommand;

/// What is played.
#[derive(Clone, Debug, Subcommand)]
pub enum Scenario {
    /// Random schemas, worlds, views, links and faults: nobody may see what was never true, miss an
    /// event, or learn of what is hidden.
    Storm(storm::StormOptions),
}

/// Why a scenario did not pass.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Nobody was sent anything, which shows nothing.
    #[error("nothing was played: ask for at least one seed")]
    Nothing,
    /// What went wrong is printed above.
    #[error("{failures} of {seeds} seeds failed")]
    Failed {
        /// Seeds with anything wrong.
        failures: u64,
        /// All of them.
        seeds: u64,
    },
}

/// Plays a scenario.
pub fn play(scenario: &Scenario) -> Result<(), ScenarioError> {
    match scenario {
        Scenario::Storm(options) => storm::storm(options),
    }
}
