//! What happened to a server.

use std::net::SocketAddr;

use crate::error::CloseReason;
use crate::exchange::Received;
use crate::lobby::{ClientInfo, PlayerId};
use crate::token::ClientId;

/// A connection of a server, as the packets of its client name it, too. Not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// What happened to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A client is there, and has proven that it holds its token and its address.
    Connected {
        /// What to call it from now on.
        connection: ConnectionId,
        /// Who it is to the backend.
        client: ClientId,
        /// Where it is.
        address: SocketAddr,
        /// What the backend put into the token for us.
        data: Vec<u8>,
    },
    /// Something came from a client, or became of what went there.
    Received {
        /// Which client.
        connection: ConnectionId,
        /// What.
        received: Received,
    },
    /// A client said who its player is, for the first time or anew.
    Info {
        /// Which client.
        connection: ConnectionId,
        /// What it said.
        info: ClientInfo,
    },
    /// A client has loaded what it was asked to and is in the game, as this player. Said again after
    /// each reset.
    Plays {
        /// Who.
        connection: ConnectionId,
        /// What all call it.
        player: PlayerId,
    },
    /// A client has another address now, and has proven that, too.
    Moved {
        /// Who.
        connection: ConnectionId,
        /// Where it is.
        address: SocketAddr,
    },
    /// Nothing was heard of a client for a while. It may come back; what is sent to it meanwhile
    /// may not arrive.
    Silent {
        /// Of whom.
        connection: ConnectionId,
    },
    /// A silent client is heard of again.
    Resumed {
        /// Who.
        connection: ConnectionId,
    },
    /// A connection that was [`Connected`](Self::Connected) is over; said once of each.
    Closed {
        /// Which.
        connection: ConnectionId,
        /// Why.
        reason: CloseReason,
    },
}
