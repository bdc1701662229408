//! The settings of a server and of a client.

use prescient_codec::{Config, HISTORY, HistoryDepth, Prior};
use prescient_schema::Tolerance;
use thiserror::Error;

use crate::settings::Settings;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub(crate) codec: Config,
    pub(crate) prior: Option<Prior>,
    pub(crate) relevance_interval: u32,
    pub(crate) grid_cell: f64,
    pub(crate) tolerance: Tolerance,
    pub(crate) resync_every: u32,
    pub(crate) probe_every: u32,
    pub(crate) max_event_bytes: usize,
    pub(crate) report_memory: usize,
    pub(crate) max_newcomers: usize,
    pub(crate) history: HistoryDepth,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            codec: Config::default(),
            prior: None,
            relevance_interval: 4,
            grid_cell: 32.0,
            tolerance: Tolerance::Exact,
            resync_every: 30,
            probe_every: 10,
            max_event_bytes: 1 << 20,
            report_memory: 16 << 20,
            max_newcomers: 16,
            history: HistoryDepth::default(),
        }
    }
}

impl ServerConfig {
    /// Sets how values are coded, [`Config::default`] unless this is called. Clients are sent these
    /// settings and use the same.
    pub fn with_codec(mut self, codec: Config) -> Self {
        self.codec = codec;
        self
    }

    /// How values are coded.
    pub fn codec(&self) -> Config {
        self.codec
    }

    /// Sets the prior from which the models of all connections start; none by default. Clients need
    /// the same ([`ClientConfig::with_prior`]): its fingerprint is part of the welcome, and one that
    /// has another refuses by name ([`SettingsMismatch::Prior`](crate::SettingsMismatch::Prior)).
    pub fn with_prior(mut self, prior: Prior) -> Self {
        self.prior = Some(prior);
        self
    }

    /// The prior from which models start.
    pub fn prior(&self) -> Option<&Prior> {
        self.prior.as_ref()
    }

    /// Sets the interval in ticks between evaluations of distances per peer, at least 1; 4 by
    /// default. Peers take turns. Entities that come near and entities that go away are shown and
    /// hidden with the same delay, less than this interval; 1 means without delay, at the cost of
    /// evaluating every peer in every tick. It applies to policies with a
    /// [`reach`](crate::Relevance::reach).
    pub fn with_relevance_interval(mut self, ticks: u32) -> Self {
        self.relevance_interval = ticks;
        self
    }

    /// The interval in ticks between evaluations of distances per peer.
    pub fn relevance_interval(&self) -> u32 {
        self.relevance_interval
    }

    /// Sets the size of the cells of the grid that finds near entities, in units of positions, more
    /// than 0; 32 by default. About half the view distance is a good value.
    pub fn with_grid_cell(mut self, size: f64) -> Self {
        self.grid_cell = size;
        self
    }

    /// Sets whether clients with other schemas are accepted, as far as they are compatible;
    /// [`Tolerance::Exact`] by default.
    pub fn with_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Sets the minimum ticks between two resyncs that a peer requests; 30 by default. About a
    /// second is a good value.
    pub fn with_resync_every(mut self, ticks: u32) -> Self {
        self.resync_every = ticks;
        self
    }

    /// Sets the ticks between two packets for a peer that stopped acknowledging what it is sent, at
    /// least 1; 10 by default. About a third of a second is a good value.
    ///
    /// After three times this long without an acknowledgement, packets to the peer become rarer
    /// until they have this interval. After 20 seconds, or if the peer never acknowledged anything,
    /// it gets only empty packets, one per second.
    pub fn with_probe_every(mut self, ticks: u32) -> Self {
        self.probe_every = ticks;
        self
    }

    /// The ticks between two packets for a peer that stopped acknowledging.
    pub fn probe_every(&self) -> u32 {
        self.probe_every
    }

    /// Sets the maximum bytes of events that may wait for a peer; 1 MiB by default. Beyond that the
    /// peer is overrun: see [`PeerStatistics::overrun`](crate::PeerStatistics::overrun).
    pub fn with_max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// Sets the maximum bytes that the server holds for a peer's authority reports; 16 MiB by
    /// default. Reports that need more are refused, as if they were lost.
    pub fn with_report_memory(mut self, bytes: usize) -> Self {
        self.report_memory = bytes;
        self
    }

    /// Sets the maximum number of peers per tick that are sent full packets before they ever
    /// acknowledged one, at least 1; 16 by default. The first packets of a peer are the most
    /// expensive; with this limit, a crowd that joins at once delays itself and not the others.
    pub fn with_max_newcomers(mut self, peers: usize) -> Self {
        self.max_newcomers = peers;
        self
    }

    /// Sets how many ticks before the newest one the world keeps for
    /// [`World::samples`](crate::World::samples), 128 by default.
    pub fn with_history(mut self, history: HistoryDepth) -> Self {
        self.history = history;
        self
    }

    /// How many ticks before the newest one the world keeps.
    pub fn history(&self) -> HistoryDepth {
        self.history
    }

    /// The settings that clients are sent.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            config: self.codec,
            prior: self.prior.as_ref().map(Prior::fingerprint),
        }
    }

    /// Checks the values.
    pub fn check(&self) -> Result<(), ConfigError> {
        let profile = self.prior.as_ref().map(Prior::profile);
        ConfigError::first(&[
            (
                profile.is_none_or(|profile| profile == self.codec.profile()),
                "prior",
                "trained for the profile of the codec",
            ),
            (
                self.codec.max_entities() > 0,
                "codec.max_entities",
                AT_LEAST_1,
            ),
            (
                self.codec.history() == HISTORY,
                "codec.history",
                "the default, because clients are not told another",
            ),
            (
                self.relevance_interval > 0,
                "relevance_interval",
                AT_LEAST_1,
            ),
            (
                self.grid_cell.is_finite() && self.grid_cell > 0.0,
                "grid_cell",
                "finite and more than 0",
            ),
            (self.probe_every > 0, "probe_every", AT_LEAST_1),
            (self.max_newcomers > 0, "max_newcomers", AT_LEAST_1),
        ])
    }
}

/// The settings of a client. The server decides how state is coded.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub(crate) prior: Option<Prior>,
    pub(crate) tolerance: Tolerance,
    pub(crate) max_entities: usize,
    pub(crate) history: HistoryDepth,
    pub(crate) max_state_bytes: usize,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            prior: None,
            tolerance: Tolerance::Exact,
            max_entities: Config::default().max_entities(),
            history: HistoryDepth::default(),
            max_state_bytes: 1 << 28,
        }
    }
}

impl ClientConfig {
    /// Sets the prior from which the models start if the server starts from the same; none by
    /// default. A server without a prior is joined without one.
    pub fn with_prior(mut self, prior: Prior) -> Self {
        self.prior = Some(prior);
        self
    }

    /// Sets whether a server with another schema is accepted, as far as both ends tolerate it;
    /// [`Tolerance::Exact`] by default.
    pub fn with_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Sets the maximum number of entities that it accepts, at least 1; 2^20 by default. A server
    /// that may show more is refused.
    pub fn with_max_entities(mut self, entities: usize) -> Self {
        self.max_entities = entities;
        self
    }

    /// Sets how many ticks before the newest one it keeps for
    /// [`Client::samples`](crate::Client::samples), 128 by default.
    pub fn with_history(mut self, history: HistoryDepth) -> Self {
        self.history = history;
        self
    }

    /// Sets the maximum bytes that it holds of received state, at all ticks that it keeps; 256 MiB by
    /// default. A packet that needs more is refused, as if it were lost.
    pub fn with_max_state_bytes(mut self, bytes: usize) -> Self {
        self.max_state_bytes = bytes;
        self
    }

    /// Checks the values.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::first(&[(self.max_entities > 0, "max_entities", AT_LEAST_1)])
    }
}

/// A setting that cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("the setting `{setting}` must be {rule}")]
pub struct ConfigError {
    setting: &'static str,
    rule: &'static str,
}

prescient_schema::debug_as_display!(ConfigError);

impl ConfigError {
    fn first(rules: &[(bool, &'static str, &'static str)]) -> Result<(), Self> {
        match rules.iter().find(|(holds, ..)| !holds) {
            Some(&(_, setting, rule)) => Err(Self { setting, rule }),
            None => Ok(()),
        }
    }

    /// The name of the setting.
    pub fn setting(&self) -> &'static str {
        self.setting
    }
}

const AT_LEAST_1: &str = "at least 1";
