//! Configuration of clients and servers. The defaults suit a game of a few hundred players.

use std::net::SocketAddr;
use std::time::Duration;

use crate::exchange::channel::Channels;
use crate::lobby::ServerInfo;
use crate::packet_protection::Rekeying;
use crate::statistics::BytesPerSecond;
use crate::token::{ProtocolId, TokenKey};

/// How one end treats its connections; the two ends need not agree. Values that would make it spin,
/// such as a keep-alive every zero seconds, are raised to the smallest sensible ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// How long a client tries each server of its token, and how long either end waits for the
    /// other's first sealed packet.
    pub connect_timeout: Duration,
    /// After this long without a packet the peer is reported as silent; it may recover. At least
    /// three keep-alives.
    pub quiet: Duration,
    /// After this long without a packet the connection is closed.
    pub timeout: Duration,
    /// After this long without sending, a keep-alive is sent.
    pub keep_alive: Duration,
    /// How long to wait for the answer to a handshake packet before repeating it.
    pub retry: Duration,
    /// A key is replaced after this many packets or after `key_lifetime`, whichever is first.
    pub packets_per_key: u64,
    /// See `packets_per_key`.
    pub key_lifetime: Duration,
    /// How many handshake and control datagrams may wait to be polled; more are dropped. Datagrams
    /// with messages are not counted: they are built when they are polled.
    pub outbox: usize,
    /// How many events may wait to be polled. While that many wait, incoming datagrams are dropped,
    /// as by a full socket buffer.
    pub inbox: usize,
    /// The same in bytes of these events.
    pub inbox_bytes: usize,
    /// The channels; both ends must have the same.
    pub channels: Channels,
    /// The longest message that may be sent, at most 128 KiB; unreliable ones are limited to 32
    /// KiB.
    pub max_message: usize,
    /// How many bytes of messages may wait to be sent or acknowledged, per connection.
    pub backlog: usize,
    /// How many bytes of blobs a connection may accept at a time.
    pub blob_memory: usize,
    /// The highest sending rate of a connection, without IP and UDP headers.
    pub rate: BytesPerSecond,
    /// The sending rate while nothing is acknowledged.
    pub floor: BytesPerSecond,
    /// How many messages and blob chunks a server accepts from a client per second; the burst is a
    /// quarter of that. A packet that exceeds it is treated as lost: it is not acknowledged, so its
    /// reliable content is sent again.
    pub messages_per_second: u32,
    /// How many inputs a server accepts from a client per second; the burst is one second's worth.
    /// The default is twice what the fastest client makes. Of more, the oldest are joined: what was
    /// pressed in them is pressed in the next.
    pub inputs_per_second: u32,
    /// A peer whose packets arrived all that time but acknowledged nothing reliable is closed as
    /// [`Stalled`](crate::CloseReason::Stalled).
    pub stalled: Duration,
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
            channels: Channels::default(),
            max_message: 64 << 10,
            backlog: 1 << 20,
            blob_memory: 16 << 20,
            rate: BytesPerSecond(4_000_000),
            floor: BytesPerSecond(8_000),
            messages_per_second: 4096,
            inputs_per_second: 256,
            stalled: Duration::from_secs(20),
        }
    }
}

impl LinkConfig {
    /// Raises or lowers values that cannot work.
    pub(crate) fn sane(self) -> Self {
        let keep_alive = self.keep_alive.max(MIN_SPAN);
        Self {
            connect_timeout: self.connect_timeout.max(MIN_SPAN),
            quiet: self.quiet.max(keep_alive.saturating_mul(3)),
            timeout: self.timeout.max(MIN_SPAN),
            keep_alive,
            retry: self.retry.clamp(MIN_SPAN, keep_alive.max(MAX_RETRY)),
            packets_per_key: self.packets_per_key.max(1),
            key_lifetime: self.key_lifetime.max(MIN_SPAN),
            outbox: self.outbox.max(1),
            inbox: self.inbox.max(1),
            inbox_bytes: self.inbox_bytes.max(1),
            channels: self.channels,
            max_message: self.max_message.min(MAX_MESSAGE),
            backlog: self.backlog.min(usize::MAX / 2),
            blob_memory: self.blob_memory.min(isize::MAX as usize),
            rate: self.rate.max(BytesPerSecond(1)),
            floor: self.floor.max(BytesPerSecond(1)),
            messages_per_second: self.messages_per_second.max(1),
            inputs_per_second: self.inputs_per_second.max(1),
            stalled: self.stalled.max(MIN_SPAN),
        }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Connections from one address; an IPv6 /64 network counts as one address.
    pub connections_per_address: usize,
    /// Handshakes per second from one validated address.
    pub handshakes_per_address: u32,
    /// Stateless resets per second in all. They answer packets of unknown connections, so that
    /// clients learn that the server was restarted. Packets beyond this limit are not answered.
    pub resets_per_second: u32,
    /// The capacity of each of three tables: used tokens, addresses with handshake allowances, and
    /// banned clients.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            connections_per_address: 8,
            handshakes_per_address: 10,
            resets_per_second: 4096,
            memory: 1 << 16,
        }
    }
}

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The key that the backend seals tokens with.
    pub key: TokenKey,
    /// The protocol that clients must have.
    pub protocol: ProtocolId,
    /// This server's public addresses, as tokens name them.
    pub addresses: Vec<SocketAddr>,
    /// Limits of this server.
    pub limits: Limits,
    /// Settings of every connection.
    pub link: LinkConfig,
    /// What clients that sent a [`ClientInfo`](crate::ClientInfo) receive in return.
    pub info: ServerInfo,
}

impl ServerConfig {
    /// Default limits.
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
}

/// Fits the receiver's memory, whatever its configuration is.
const MAX_MESSAGE: usize = 128 << 10;
const MIN_SPAN: Duration = Duration::from_millis(1);
const MAX_RETRY: Duration = Duration::from_secs(1);
