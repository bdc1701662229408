//! Carriers: how messages travel between a server and its clients.

use std::error::Error;
use std::time::Duration;

use crate::blob::{BlobError, BlobId};
use crate::channel::ChannelId;
use crate::error::{CloseReason, ConnectError, SendError};
use crate::events::Received;
use crate::input::{Input, InputError, InputTick};
use crate::packet_buffer::PacketBuffer;
use crate::request::RequestId;
use crate::statistics::Statistics;
use crate::time::Time;

/// A connection of a carrier; at a server also the connection id in the client's packets. Never
/// reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    /// The only connection of a client's carrier.
    pub const SERVER: Self = Self(0);
}

/// A client's account id, given by the backend. A client has one connection to a server: when it
/// connects again, its older connection is closed as [`Replaced`](CloseReason::Replaced). Clients
/// with id 0 are anonymous; any number of them may be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

impl ClientId {
    /// The id of clients without an account.
    pub const ANONYMOUS: Self = Self(0);
}

/// Carries messages between one end and others: over sockets, or inside a process.
///
/// A server's carrier has a connection per client. A client's carrier has one,
/// [`ConnectionId::SERVER`]. The layers above do not distinguish carriers, so a new kind of
/// connection is an implementation of this trait and nothing else.
pub trait Carrier: Send {
    /// The carrier's clock.
    fn now(&self) -> Time;

    /// The next event, if any.
    fn poll(&mut self) -> Option<CarrierEvent>;

    /// Like [`poll`](Self::poll), but may block until there is an event or the deadline passes.
    fn wait_until(&mut self, deadline: Time) -> Option<CarrierEvent>;

    /// Sends a message, at the latest when [`flush`](Self::flush) is called.
    fn send(
        &mut self,
        connection: ConnectionId,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError>;

    /// Like [`send`](Self::send), with a message that may become the end of its packet in the same
    /// buffer. A carrier that copies messages anyway need not do anything.
    fn send_buffer(
        &mut self,
        connection: ConnectionId,
        channel: ChannelId,
        message: PacketBuffer,
    ) -> Result<(), SendError> {
        self.send(connection, channel, &message)
    }

    /// Sends the player's input; `tick` must be later than all before. Only a client does so.
    fn push_input(&mut self, tick: InputTick, input: Input) -> Result<(), InputError>;

    /// Sends what waits.
    fn flush(&mut self);

    /// Closes a connection. Reports its [`Closed`](CarrierEvent::Closed) as if the other end had
    /// closed it.
    fn close(&mut self, connection: ConnectionId, reason: CloseReason);

    /// Closes all connections, and returns when the other ends were notified, or after a second.
    fn shut_down(&mut self, reason: CloseReason);

    /// How much can be sent to the other end now. What exceeds it waits.
    fn capacity(&mut self, _connection: ConnectionId) -> Capacity {
        Capacity::UNLIMITED
    }

    /// Stops or resumes receiving messages and inputs of a connection. A carrier that bounds what
    /// it holds need not do anything.
    fn pause(&mut self, _connection: ConnectionId, _is_paused: bool) {}

    /// Offers the other end a blob, with a label of up to 64 bytes that describes it. What becomes of
    /// it is [`Received`].
    fn offer_blob(
        &mut self,
        _connection: ConnectionId,
        _label: &[u8],
        _bytes: Vec<u8>,
    ) -> Result<BlobId, BlobError> {
        Err(BlobError::Unsupported)
    }

    /// Accepts a blob that the other end offered.
    fn accept_blob(&mut self, _connection: ConnectionId, _blob: BlobId) -> Result<(), BlobError> {
        Err(BlobError::Unsupported)
    }

    /// Refuses or stops an incoming blob, or withdraws an outgoing one.
    fn cancel_blob(&mut self, _connection: ConnectionId, _blob: BlobId) -> Result<(), BlobError> {
        Err(BlobError::Unsupported)
    }

    /// Sends a request; exactly one [`Answer`](Received::Answer) follows, within `timeout`.
    fn request(
        &mut self,
        _connection: ConnectionId,
        _message: &[u8],
        _timeout: Duration,
    ) -> Result<RequestId, SendError> {
        Err(SendError::Unsupported)
    }

    /// Answers a [`Request`](Received::Request) of the other end. Only the first answer counts.
    fn respond(
        &mut self,
        _connection: ConnectionId,
        _request: RequestId,
        _message: &[u8],
    ) -> Result<(), SendError> {
        Err(SendError::Unsupported)
    }

    /// Bans a client or lifts its ban. A carrier that cannot tell clients apart before they are
    /// connected need not do anything.
    fn set_banned(&mut self, _client: ClientId, _is_banned: bool) {}

    /// Statistics of a connection; `None` if the carrier measures nothing.
    fn statistics(&self, _connection: ConnectionId) -> Option<Statistics> {
        None
    }

    /// The present time on the other end's clock; `None` if it is not known yet.
    fn remote_time(&mut self, _connection: ConnectionId) -> Option<Time> {
        None
    }

    /// Traffic of the carrier's socket.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    /// Explains why there is no connection, with what the carrier knows about it.
    fn explain(&self, error: ConnectError) -> Box<dyn Error + Send + Sync> {
        Box::new(error)
    }

    /// The socket, for programs that wait for several carriers at once.
    #[cfg(unix)]
    fn socket(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }
}

/// How much a connection can be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The longest unreliable message that travels in one packet; a longer one is lost if any of
    /// its packets is.
    pub message: usize,
    /// Bytes of such messages that do not have to wait for longer than about a tick, besides those
    /// that wait already.
    pub total: usize,
}

impl Capacity {
    /// Nothing can be sent.
    pub const NONE: Self = Self {
        message: 0,
        total: 0,
    };

    /// Of a connection without packets that never makes messages wait.
    pub const UNLIMITED: Self = Self {
        message: usize::MAX,
        total: usize::MAX,
    };
}

/// An event of a carrier.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CarrierEvent {
    /// A connection was established.
    Connected {
        /// The connection.
        connection: ConnectionId,
        /// The client's account id; 0 at a client.
        client: ClientId,
        /// The data that the backend put into the client's token.
        data: Vec<u8>,
    },
    /// A message or input of the other end arrived, or the outcome of a request or blob.
    Received {
        /// The connection.
        connection: ConnectionId,
        /// The message or outcome.
        received: Received,
    },
    /// Nothing of the other end arrived for a while. It may recover.
    Silent(ConnectionId),
    /// The silent end is responsive again.
    Resumed(ConnectionId),
    /// A connection that was established has ended; reported exactly once.
    Closed {
        /// The connection.
        connection: ConnectionId,
        /// Why it ended.
        reason: CloseReason,
    },
    /// A client could not connect. This is its carrier's last event.
    Failed(ConnectError),
}

/// Traffic of a socket, without IP and UDP headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Packets sent.
    pub packets_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Packets received, valid or not.
    pub packets_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
}

impl std::ops::Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            packets_sent: self.packets_sent + other.packets_sent,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            packets_received: self.packets_received + other.packets_received,
            bytes_received: self.bytes_received + other.bytes_received,
        }
    }
}
