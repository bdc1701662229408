//! `prescient scenario`: random worlds, networks and faults from a seed, verified.

pub(crate) mod crowd;
pub(crate) mod links;
mod plot;
pub(crate) mod predict;
pub(crate) mod shoot;
pub(crate) mod smooth;
pub(crate) mod squeeze;
pub(crate) mod storm;
mod virtual_link;

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
    /// Balls and players over links of several latencies, jitters and losses: how smoothly and how
    /// correctly a client shows them, by method.
    Smooth(smooth::SmoothOptions),
    /// A client that moves at once: how often, and how far, the server corrects it.
    Predict(predict::PredictOptions),
    /// A player who aims perfectly at what they see: how often they hit, with and without lag
    /// compensation.
    Shoot(shoot::ShootOptions),
    /// Congestion control on recorded and constant links: queue delay, use, back-off, fairness, and
    /// the share against a flow that behaves like TCP.
    Links(links::LinksOptions),
    /// 98 roaming units over a bottleneck that becomes too narrow for them, with adaptation and
    /// without: errors by priority, reaction, recovery and queue delay.
    Squeeze(squeeze::SqueezeOptions),
}

/// Why a scenario did not pass.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// No packet was sent, so nothing was verified.
    #[error("nothing was played: ask for at least one seed")]
    Nothing,
    /// The run would be over before anything was measured.
    #[error("a run needs at least 10 seconds")]
    TooShort,
    /// A plot could not be written.
    #[error("a plot cannot be written: {0}")]
    Plot(#[from] std::io::Error),
    /// A client did not get everything in time.
    #[error("the client does not show the whole world in time")]
    Unfinished,
    /// There is no congestion control policy of that name.
    #[error("no controller is called {0:?}: there are delay, aimd and fixed")]
    NoSuchController(String),
    /// A recorded link cannot be read.
    #[error("{file}: {error}")]
    Link {
        /// Its file.
        file: String,
        /// What is wrong with it.
        error: prescient_sim::link::RecordedLinkError,
    },
    /// The page cannot be written.
    #[error("cannot write {file}: {error}")]
    Page {
        /// Its file.
        file: String,
        /// Why.
        error: std::io::Error,
    },
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
        Scenario::Smooth(options) => smooth::smooth(options),
        Scenario::Predict(options) => predict::predict(options),
        Scenario::Shoot(options) => shoot::shoot(options),
        Scenario::Links(options) => links::links(options),
        Scenario::Squeeze(options) => squeeze::squeeze(options),
    }
}
