//! Events of a server.

use std::net::SocketAddr;

use prescient_channels::{ClientId, CloseReason, ConnectionId, Received};

use prescient_channels::lobby::{ClientInfo, PlayerId};

/// An event of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A client connected: it holds a valid token, and its address is validated.
    Connected {
        /// The new connection.
        connection: ConnectionId,
        /// The client's account id from the token.
        client: ClientId,
        /// The client's address.
        address: SocketAddr,
        /// The data that the backend put into the token.
        data: Vec<u8>,
    },
    /// A message of a client, or the outcome of a request or blob.
    Received {
        /// The client's connection.
        connection: ConnectionId,
        /// The message or outcome.
        received: Received,
    },
    /// A client sent its player's info, for the first time or again.
    Info {
        /// The client's connection.
        connection: ConnectionId,
        /// The player's info.
        info: ClientInfo,
    },
    /// A client has loaded everything and is in the game, as this player. Reported again after each
    /// reset.
    Plays {
        /// The client's connection.
        connection: ConnectionId,
        /// The player's id in the roster.
        player: PlayerId,
    },
    /// A client changed its address, and the new path is validated.
    Moved {
        /// The client's connection.
        connection: ConnectionId,
        /// The new address.
        address: SocketAddr,
    },
    /// No packet of a client arrived for a while. It may recover; what is sent meanwhile may be
    /// lost.
    Silent {
        /// The client's connection.
        connection: ConnectionId,
    },
    /// Packets of a silent client arrive again.
    Resumed {
        /// The client's connection.
        connection: ConnectionId,
    },
    /// A connection that was [`Connected`](Self::Connected) has ended; reported exactly once.
    Closed {
        /// The connection that ended.
        connection: ConnectionId,
        /// Why it ended.
        reason: CloseReason,
    },
}
