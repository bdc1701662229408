//! What a server does unless it is told otherwise.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_replication::ServerConfig;
use prescient_transport::{Limits, LinkConfig};

/// What a server does by default.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Bytes of state in a packet at most. One that has to be cut into parts is lost with any of
    /// them.
    pub packet: usize,
    /// Where clients reach the server, as their tokens name it; a token that names none of these is
    /// refused. Empty for where it is [bound](crate::Server::bind), which does for an address of this
    /// machine and not for `0.0.0.0` or behind a router.
    pub public: Vec<SocketAddr>,
    /// Bytes of events that may wait for one client. One for which there are more takes nothing in,
    /// and is thrown out as [`Stalled`](crate::CloseReason::Stalled).
    pub backlog: usize,
    /// How long a client may be sent state and be heard of without applying any of it; then it is
    /// closed as [`NotApplying`](crate::CloseReason::NotApplying). Time in which nothing is heard of
    /// it does not count: that has a limit of its own
    /// ([`LinkConfig::timeout`](crate::LinkConfig::timeout)).
    pub apply_timeout: Duration,
    /// How state is coded and looked at.
    pub replication: ServerConfig,
    /// How many may come.
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
