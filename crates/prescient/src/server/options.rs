//! The options of a server.

use std::time::Duration;

use prescient_replication::ServerConfig;
#[cfg(feature = "udp")]
use prescient_transport::{Limits, LinkConfig};

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Maximum bytes of state per packet. A packet that must be fragmented is lost if any fragment
    /// is.
    pub packet: usize,
    /// The addresses at which clients reach the server, as their tokens name them; a token that
    /// names none of these is refused. If empty, the [bound](crate::Server::bind) address, which
    /// suits a concrete local address but not `0.0.0.0` or a host behind a router.
    #[cfg(feature = "udp")]
    pub public: Vec<std::net::SocketAddr>,
    /// Time between two ticks, by which [`Server::next_tick`](crate::Server::next_tick) waits; a
    /// thirtieth of a second by default.
    pub tick_interval: Duration,
    /// Maximum bytes of events that may wait for one client. A client with more is closed as
    /// [`Stalled`](crate::CloseReason::Stalled).
    pub backlog: usize,
    /// How long a responsive client may be sent state without applying any; then it is closed as
    /// [`NotApplying`](crate::CloseReason::NotApplying). Time in which the client is silent does
    /// not count: that has a limit of its own
    /// ([`LinkConfig::with_timeout`](crate::LinkConfig::with_timeout)).
    pub apply_timeout: Duration,
    /// Settings of the replication: coding, relevance, schema tolerance and limits.
    pub replication: ServerConfig,
    /// How many UDP connections and handshakes are accepted.
    #[cfg(feature = "udp")]
    pub limits: Limits,
    /// The server's side of every UDP connection.
    #[cfg(feature = "udp")]
    pub link: LinkConfig,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            packet: 1100,
            tick_interval: Duration::from_micros(33_333),
            #[cfg(feature = "udp")]
            public: Vec::new(),
            backlog: 1 << 20,
            apply_timeout: Duration::from_secs(20),
            replication: ServerConfig::default(),
            #[cfg(feature = "udp")]
            limits: Limits::default(),
            #[cfg(feature = "udp")]
            link: LinkConfig::default(),
        }
    }
}

impl ServerOptions {
    /// The longest message to a local client; the same as to others, if that is known here.
    #[cfg(feature = "udp")]
    pub(crate) fn max_message(&self) -> usize {
        self.link.exchange().max_message()
    }

    #[cfg(not(feature = "udp"))]
    pub(crate) fn max_message(&self) -> usize {
        prescient_channels::ExchangeConfig::default().max_message()
    }
}
