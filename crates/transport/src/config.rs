//! Configuration of clients and servers. The defaults suit a game of a few hundred players.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::{ConfigError, ExchangeConfig};

use crate::packet_protection::Rekeying;
use crate::token::{ProtocolId, TokenKey};
use prescient_channels::lobby::ServerInfo;

/// How one end treats its connections; the two ends need not agree, except on the channels. What
/// cannot work is refused where the configuration is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    pub(crate) connect_timeout: Duration,
    pub(crate) quiet: Duration,
    pub(crate) timeout: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) retry: Duration,
    pub(crate) packets_per_key: u64,
    pub(crate) key_lifetime: Duration,
    pub(crate) outbox: usize,
    pub(crate) inbox: usize,
    pub(crate) inbox_bytes: usize,
    pub(crate) exchange: ExchangeConfig,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            quiet: Duration::from_secs(3),
            timeout: Duration::from_secs(60),
            keep_alive: Duration::from_secs(1),
            retry: Duration::from_millis(125),
            packets_per_key: 1 << 20,
            key_lifetime: Duration::from_secs(600),
            outbox: 4096,
            inbox: 4096,
            inbox_bytes: 16 << 20,
            exchange: ExchangeConfig::default(),
        }
    }
}

impl LinkConfig {
    /// How long a client tries each server of its token, and how long either end waits for the
    /// other's first sealed packet; 10 seconds by default.
    #[must_use]
    pub fn with_connect_timeout(mut self, span: Duration) -> Self {
        self.connect_timeout = span;
        self
    }

    /// After this long without a packet the peer is reported as silent; it may recover. At least
    /// three keep-alives; 3 seconds by default.
    #[must_use]
    pub fn with_quiet(mut self, span: Duration) -> Self {
        self.quiet = span;
        self
    }

    /// After this long without a packet the connection is closed; a minute by default.
    #[must_use]
    pub fn with_timeout(mut self, span: Duration) -> Self {
        self.timeout = span;
        self
    }

    /// After this long without sending, a keep-alive is sent; a second by default.
    #[must_use]
    pub fn with_keep_alive(mut self, span: Duration) -> Self {
        self.keep_alive = span;
        self
    }

    /// How long to wait for the answer to a handshake packet before repeating it; 125 ms by
    /// default.
    #[must_use]
    pub fn with_retry(mut self, span: Duration) -> Self {
        self.retry = span;
        self
    }

    /// A key is replaced after this many packets, 2^20 by default, or after its lifetime, whichever
    /// is first.
    #[must_use]
    pub fn with_packets_per_key(mut self, packets: u64) -> Self {
        self.packets_per_key = packets;
        self
    }

    /// A key is replaced after this long, 10 minutes by default, or after its number of packets,
    /// whichever is first.
    #[must_use]
    pub fn with_key_lifetime(mut self, span: Duration) -> Self {
        self.key_lifetime = span;
        self
    }

    /// How many handshake and control datagrams may wait to be polled, 4096 by default; more are
    /// dropped. Datagrams with messages are not counted: they are built when they are polled.
    #[must_use]
    pub fn with_outbox(mut self, datagrams: usize) -> Self {
        self.outbox = datagrams;
        self
    }

    /// How many events may wait to be polled, 4096 by default. While that many wait, incoming
    /// datagrams are dropped, as by a full socket buffer.
    #[must_use]
    pub fn with_inbox(mut self, events: usize) -> Self {
        self.inbox = events;
        self
    }

    /// How many bytes of events may wait to be polled; 16 MiB by default.
    #[must_use]
    pub fn with_inbox_bytes(mut self, bytes: usize) -> Self {
        self.inbox_bytes = bytes;
        self
    }

    /// Channels, rates and limits of the messages on a connection, [`ExchangeConfig::default`] unless
    /// this is called.
    #[must_use]
    pub fn with_exchange(mut self, exchange: ExchangeConfig) -> Self {
        self.exchange = exchange;
        self
    }

    /// How long a client tries each server of its token.
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// Channels, rates and limits of the messages on a connection.
    pub fn exchange(&self) -> &ExchangeConfig {
        &self.exchange
    }

    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let max_retry = self.keep_alive.max(MAX_RETRY);
        let at_least = |span: Duration| span >= MIN_SPAN;
        let rules = [
            (
                at_least(self.connect_timeout),
                "connect_timeout",
                "at least 1 ms",
            ),
            (at_least(self.timeout), "timeout", "at least 1 ms"),
            (at_least(self.keep_alive), "keep_alive", "at least 1 ms"),
            (
                self.quiet >= self.keep_alive.saturating_mul(3),
                "quiet",
                "at least three times `keep_alive`",
            ),
            (
                (MIN_SPAN..=max_retry).contains(&self.retry),
                "retry",
                "at least 1 ms, and at most a second or `keep_alive`",
            ),
            (self.packets_per_key > 0, "packets_per_key", "at least 1"),
            (at_least(self.key_lifetime), "key_lifetime", "at least 1 ms"),
            (self.outbox > 0, "outbox", "at least 1"),
            (self.inbox > 0, "inbox", "at least 1"),
            (self.inbox_bytes > 0, "inbox_bytes", "at least 1"),
        ];
        ConfigError::first(&rules)?;
        self.exchange.check()
    }

    /// The longest step between two calls of a caller that obeys
    /// [`next_timeout`](crate::Client::next_timeout); a longer step means that the process was
    /// suspended. Together with one pending keep-alive it is shorter than three keep-alives, so
    /// resuming does not report peers as silent.
    pub(crate) fn max_step(&self) -> Duration {
        self.keep_alive.saturating_mul(2).clamp(
            Duration::from_secs(1),
            self.timeout.max(Duration::from_secs(1)),
        )
    }

    pub(crate) fn rekeying(&self) -> Rekeying {
        Rekeying {
            packets: self.packets_per_key,
            lifetime: self.key_lifetime,
        }
    }
}

/// Limits of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub(crate) connections: usize,
    pub(crate) connections_per_address: usize,
    pub(crate) handshakes_per_address: u32,
    pub(crate) resets_per_second: u32,
    pub(crate) memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            connections_per_address: 32,
            handshakes_per_address: 10,
            resets_per_second: 4096,
            memory: 1 << 16,
        }
    }
}

impl Limits {
    /// Connections in all; 1024 by default.
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Connections from one address, 32 by default; an IPv6 /64 network counts as one address.
    /// Connections that are [silent](LinkConfig::with_quiet) do not count, nor does the connection
    /// that a client replaces. Loopback addresses are not limited.
    #[must_use]
    pub fn with_connections_per_address(mut self, connections: usize) -> Self {
        self.connections_per_address = connections;
        self
    }

    /// Handshakes per second from one validated address; 10 by default.
    #[must_use]
    pub fn with_handshakes_per_address(mut self, handshakes: u32) -> Self {
        self.handshakes_per_address = handshakes;
        self
    }

    /// Stateless resets per second in all, 4096 by default. They answer packets of unknown
    /// connections, so that clients learn that the server was restarted. Packets beyond this limit
    /// are not answered; with 0, none is.
    #[must_use]
    pub fn with_resets_per_second(mut self, resets: u32) -> Self {
        self.resets_per_second = resets;
        self
    }

    /// The capacity of each of three tables, 65,536 by default: used tokens, addresses with
    /// handshake allowances, and banned clients.
    #[must_use]
    pub fn with_memory(mut self, entries: usize) -> Self {
        self.memory = entries;
        self
    }

    /// Refuses limits by which no client could ever connect.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::first(&[
            (self.connections > 0, "connections", "at least 1"),
            (
                self.connections_per_address > 0,
                "connections_per_address",
                "at least 1",
            ),
            (
                self.handshakes_per_address > 0,
                "handshakes_per_address",
                "at least 1",
            ),
            (self.memory > 0, "memory", "at least 1"),
        ])
    }
}

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub(crate) key: TokenKey,
    pub(crate) protocol: ProtocolId,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) limits: Limits,
    pub(crate) link: LinkConfig,
    pub(crate) info: ServerInfo,
}

impl ServerConfig {
    /// Default settings for the key that the backend seals tokens with, the protocol that clients
    /// must have, and this server's public addresses, as tokens name them.
    pub fn new(key: TokenKey, protocol: ProtocolId, addresses: Vec<SocketAddr>) -> Self {
        Self {
            key,
            protocol,
            addresses,
            limits: Limits::default(),
            link: LinkConfig::default(),
            info: ServerInfo::default(),
        }
    }

    /// Other public addresses, as tokens name them; none by default.
    #[must_use]
    pub fn with_addresses(mut self, addresses: Vec<SocketAddr>) -> Self {
        self.addresses = addresses;
        self
    }

    /// Limits of this server, [`Limits::default`] unless this is called.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Settings of every connection, [`LinkConfig::default`] unless this is called.
    #[must_use]
    pub fn with_link(mut self, link: LinkConfig) -> Self {
        self.link = link;
        self
    }

    /// The info that clients receive in return for their [`ClientInfo`](crate::ClientInfo), empty by
    /// default.
    #[must_use]
    pub fn with_info(mut self, info: ServerInfo) -> Self {
        self.info = info;
        self
    }

    /// This server's public addresses.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Settings of every connection.
    pub fn link(&self) -> &LinkConfig {
        &self.link
    }

    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let update_period = u64::try_from(self.info.update_period.as_micros());
        ConfigError::first(&[
            (!self.addresses.is_empty(), "addresses", "at least 1"),
            (
                update_period.is_ok(),
                "update_period",
                "less than 2^64 microseconds",
            ),
        ])?;
        self.limits.check()?;
        self.link.check()
    }
}

const MIN_SPAN: Duration = Duration::from_millis(1);
const MAX_RETRY: Duration = Duration::from_secs(1);
