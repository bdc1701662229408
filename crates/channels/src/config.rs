//! Configuration of an exchange.

use std::time::Duration;

use thiserror::Error;

use crate::channel::Channels;
use crate::congestion::CongestionControl;
use crate::statistics::BytesPerSecond;

/// How one end treats an exchange. The two ends need not agree, except on the channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeConfig {
    pub(crate) channels: Channels,
    pub(crate) max_message: usize,
    pub(crate) backlog: usize,
    pub(crate) blob_memory: usize,
    pub(crate) rate: BytesPerSecond,
    pub(crate) floor: BytesPerSecond,
    pub(crate) min_rate: BytesPerSecond,
    pub(crate) congestion: Option<CongestionControl>,
    pub(crate) messages_per_second: u32,
    pub(crate) inputs_per_second: u32,
    pub(crate) stalled: Duration,
}

impl Default for ExchangeConfig {
    fn default() -> Self {
        Self {
            channels: Channels::default(),
            max_message: 64 << 10,
            backlog: 1 << 20,
            blob_memory: 16 << 20,
            rate: BytesPerSecond(4_000_000),
            floor: BytesPerSecond(8_000),
            min_rate: BytesPerSecond(300),
            congestion: None,
            messages_per_second: 4096,
            inputs_per_second: 256,
            stalled: Duration::from_secs(20),
        }
    }
}

impl ExchangeConfig {
    /// The channels; both ends must have the same. By default there is one of each delivery.
    #[must_use]
    pub fn with_channels(mut self, channels: Channels) -> Self {
        self.channels = channels;
        self
    }

    /// The longest message that may be sent, at most 128 KiB; unreliable ones are limited to 32
    /// KiB. The default is 64 KiB.
    #[must_use]
    pub fn with_max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// How many bytes of messages may wait to be sent or acknowledged; 1 MiB by default.
    #[must_use]
    pub fn with_backlog(mut self, bytes: usize) -> Self {
        self.backlog = bytes;
        self
    }

    /// How many bytes of blobs may be accepted at a time; 16 MiB by default.
    #[must_use]
    pub fn with_blob_memory(mut self, bytes: usize) -> Self {
        self.blob_memory = bytes;
        self
    }

    /// The highest sending rate, without IP and UDP headers; 4 MB/s by default.
    #[must_use]
    pub fn with_rate(mut self, rate: BytesPerSecond) -> Self {
        self.rate = rate;
        self
    }

    /// The sending rate while nothing is acknowledged; 8 kB/s by default.
    #[must_use]
    pub fn with_floor(mut self, floor: BytesPerSecond) -> Self {
        self.floor = floor;
        self
    }

    /// The lowest sending rate that congestion control may choose while packets are acknowledged; 300
    /// B/s by default, enough to notice that a path has recovered.
    #[must_use]
    pub fn with_min_rate(mut self, rate: BytesPerSecond) -> Self {
        self.min_rate = rate;
        self
    }

    /// The congestion control policy; [`CongestionControl::Window`] by default.
    #[must_use]
    pub fn with_congestion(mut self, policy: CongestionControl) -> Self {
        self.congestion = Some(policy);
        self
    }

    /// The congestion control policy unless another one was chosen.
    #[must_use]
    pub fn or_congestion(mut self, policy: CongestionControl) -> Self {
        self.congestion.get_or_insert(policy);
        self
    }

    /// How many messages and blob chunks a server accepts from a client per second, 4096 by
    /// default; the burst is a quarter of that. A packet that exceeds it is treated as lost: it is
    /// not acknowledged, so its reliable content is sent again.
    #[must_use]
    pub fn with_messages_per_second(mut self, messages: u32) -> Self {
        self.messages_per_second = messages;
        self
    }

    /// How many inputs a server accepts from a client per second; the burst is one second's worth.
    /// The default of 256 is twice what the fastest client makes. Of more, the oldest are joined:
    /// what was pressed in them is pressed in the next.
    #[must_use]
    pub fn with_inputs_per_second(mut self, inputs: u32) -> Self {
        self.inputs_per_second = inputs;
        self
    }

    /// A peer whose packets arrived all that time but acknowledged nothing reliable is closed as
    /// [`Stalled`](crate::CloseReason::Stalled); 20 seconds by default.
    #[must_use]
    pub fn with_stalled(mut self, span: Duration) -> Self {
        self.stalled = span;
        self
    }

    /// The longest message that may be sent.
    pub fn max_message(&self) -> usize {
        self.max_message
    }

    /// The highest sending rate.
    pub fn rate(&self) -> BytesPerSecond {
        self.rate
    }

    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let rules = [
            (
                self.max_message <= MAX_MESSAGE,
                "max_message",
                "at most 128 KiB",
            ),
            (self.backlog <= MAX_BYTES, "backlog", "at most 1 GiB"),
            (
                self.blob_memory <= MAX_BYTES,
                "blob_memory",
                "at most 1 GiB",
            ),
            (self.rate.0 > 0, "rate", "at least 1 byte per second"),
            (self.floor.0 > 0, "floor", "at least 1 byte per second"),
            (
                self.min_rate.0 > 0,
                "min_rate",
                "at least 1 byte per second",
            ),
            (
                self.messages_per_second > 0,
                "messages_per_second",
                "at least 1",
            ),
            (
                self.inputs_per_second > 0,
                "inputs_per_second",
                "at least 1",
            ),
            (self.stalled >= MIN_SPAN, "stalled", "at least 1 ms"),
        ];
        ConfigError::first(&rules)
    }
}

/// A setting that cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("the setting `{setting}` must be {rule}")]
pub struct ConfigError {
    setting: &'static str,
    rule: &'static str,
}

crate::debug_as_display!(ConfigError);

impl ConfigError {
    /// The first rule that does not hold: whether it holds, the setting, and what it must be.
    pub fn first(rules: &[(bool, &'static str, &'static str)]) -> Result<(), Self> {
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

/// The format of fragments allows no more.
const MAX_MESSAGE: usize = 128 << 10;
const MAX_BYTES: usize = 1 << 30;
const MIN_SPAN: Duration = Duration::from_millis(1);
