//! Limits and spans of time, with defaults that suit a game of a few hundred players.

use std::net::SocketAddr;
use std::time::Duration;

use crate::exchange::channel::Channels;
use crate::lobby::ServerInfo;
use crate::packet_protection::Rekeying;
use crate::statistics::BytesPerSecond;
use crate::token::{ProtocolId, TokenKey};

/// What either end decides for itself about its connections; the two need not agree. Values that
/// would keep a machine busy without end, such as a keep-alive every zero seconds, are raised to
/// the smallest sensible ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// How long a connection may take to be made: how long a client asks each of its servers, and
    /// either end waits for the first sealed packet of the other.
    pub connect_timeout: Duration,
    /// A peer that was silent for this long may be gone or may come back. At least three
    /// keep-alives.
    pub quiet: Duration,
    /// A peer that was silent for this long is dead.
    pub timeout: Duration,
    /// After this long without anything to send, a packet says that we are still here.
    pub keep_alive: Duration,
    /// How long a handshake packet may be unanswered before it is repeated.
    pub retry: Duration,
    /// A key is replaced after that many packets,
    pub packets_per_key: u64,
    /// or after this long, whichever comes first.
    pub key_lifetime: Duration,
    /// How many datagrams of handshakes and the like may wait to be polled; more are dropped. What
    /// messages become is made when it is polled.
    pub outbox: usize,
    /// How many events may wait to be polled; datagrams that come in then are dropped, as a full
    /// socket would.
    pub inbox: usize,
    /// The same for the bytes of these events.
    pub inbox_bytes: usize,
    /// The channels, which must be the same at both ends.
    pub channels: Channels,
    /// The longest message that may be sent, at most 128 KiB; unreliable ones have at most 32 KiB.
    pub max_message: usize,
    /// How many bytes of messages may wait to be sent and acknowledged, for each connection.
    pub backlog: usize,
    /// How many bytes the blobs may have that a connection accepts at a time.
    pub blob_memory: usize,
    /// How fast a connection sends at most, with everything but the headers of IP and UDP.
    pub rate: BytesPerSecond,
    /// How fast it sends when nothing is acknowledged any more.
    pub floor: BytesPerSecond,
    /// How many messages and chunks of blobs a server takes of a client in a second; a quarter of it
    /// may come at once. A packet with more of them counts as lost on the way: it is not
    /// acknowledged, and what must arrive is sent again.
    pub messages_per_second: u32,
    /// How many inputs a server takes of a client in a second, twice as many as the fastest client
    /// makes; a second's may come at once. Of more the oldest are joined: what was pressed in them
    /// is pressed in the next.
    pub inputs_per_second: u32,
    /// A peer that was heard of all that time and acknowledged nothing reliable takes nothing in.
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
    /// The same without what cannot work.
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

    /// A caller who comes when [`next_timeout`](crate::Client::next_timeout) says never lets more
    /// time pass than this between two calls; who does was suspended. With the keep-alive that may
    /// be due it is less than three of them, so waking up is no reason to call anybody silent.
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

/// How much a server takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Connections from one address. Of IPv6 the first 64 bits count, which one customer has.
    pub connections_per_address: usize,
    /// Handshakes per second from one address that has proven to be real.
    pub handshakes_per_address: u32,
    /// Resets per second in all: answers to packets of connections that this server does not know,
    /// which tell their clients that it was restarted. More than that stay without an answer.
    pub resets_per_second: u32,
    /// Tokens remembered as used, addresses remembered for the line above, and clients that are
    /// banned; so many of each.
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

/// What a server is.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The key that the backend seals tokens with.
    pub key: TokenKey,
    /// What both ends must speak.
    pub protocol: ProtocolId,
    /// Where clients reach this server, as tokens name it.
    pub addresses: Vec<SocketAddr>,
    /// How much it takes on.
    pub limits: Limits,
    /// Its side of every connection.
    pub link: LinkConfig,
    /// What it says about itself to clients that say who they are.
    pub info: ServerInfo,
}

impl ServerConfig {
    /// A server with default limits.
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

/// What fits the other end's memory, whatever its configuration.
const MAX_MESSAGE: usize = 128 << 10;
const MIN_SPAN: Duration = Duration::from_millis(1);
const MAX_RETRY: Duration = Duration::from_secs(1);
