//! The options of a server.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_replication::ServerConfig;
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
    pub public: Vec<SocketAddr>,
    /// Maximum bytes of events that may wait for one client. A client with more is closed as
    /// [`Stalled`](crate::CloseReason::Stalled).
    pub backlog: usize,
    /// How long a responsive client may be sent state without applying any; then it is closed as
    /// [`NotApplying`](crate::CloseReason::NotApplying). Time in which the client is silent does
    /// not count: that has a limit of its own
    /// ([`LinkConfig::timeout`](crate::LinkConfig::timeout)).
    pub apply_timeout: Duration,
    /// Settings of the replication: coding, relevance, schema tolerance and limits.
    pub replication: ServerConfig,
    /// How many connections and handshakes are accepted.
    pub limits: Limits,
    /// The server's side of every connection.
    pub link: LinkConfig,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            packet: 1100,
            public: Vec::new(),
            backlog: 1 << 20,
            apply_timeout: Duration::from_secs(20),
            replication: ServerConfig::default(),
            limits: Limits::default(),
            link: LinkConfig::default(),
        }
    }
}
