//! Why there is no connection, why one ended, and why nothing was sent.

use thiserror::Error;

use crate::channel::ChannelId;
use crate::config::ConfigError;

/// Why a server denied a client. The carrier decides all of these except
/// [`Refused`](Self::Refused), which is the game's decision.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Denial {
    /// The two ends use different versions of the packet format.
    #[error("the server uses version {server} of the transport: update the older of the two")]
    Version {
        /// The server's version.
        server: u8,
    },
    /// The token is for another game or for another version of this one.
    #[error("client and server run different protocols: update the client, then get a new token")]
    Protocol,
    /// The token was altered, or sealed with a key that the server does not have.
    #[error(
        "the server cannot open the token: get a new one, and compare the keys of backend and server"
    )]
    Unreadable,
    /// The token has expired.
    #[error("the token has expired: get a new one, and compare the clocks of backend and server")]
    Expired,
    /// The token does not name this server.
    #[error(
        "the token names an address that the server does not know as its own: start the server with \
         it (`serve --public ADDRESS`, `ServerOptions::with_public_addresses`)"
    )]
    WrongServer,
    /// A token is good for one session, and this one was used already.
    #[error("the token was used before: get a new one for every session")]
    Used,
    /// The server has as many connections as it may have.
    #[error("the server is full: try again later or elsewhere")]
    Full,
    /// There are as many connections from this address as there may be.
    #[error("too many connections from this address: close one first")]
    Crowded,
    /// The game refused the client, with this code.
    #[error("the server refused this client (code {0})")]
    Refused(u16),
    /// The server is closing all connections.
    #[error("the server is closing: try again when it is back, or elsewhere")]
    Closing,
    /// The client is banned from this server.
    #[error("this client is banned from the server: only its operator can undo that")]
    Banned,
}

crate::debug_as_display!(Denial);

impl Denial {
    /// The code in a denial packet, and its detail.
    pub fn to_code(self) -> (u8, u16) {
        match self {
            Self::Version { server } => (1, server.into()),
            Self::Protocol => (2, 0),
            Self::Unreadable => (3, 0),
            Self::Expired => (4, 0),
            Self::WrongServer => (5, 0),
            Self::Used => (6, 0),
            Self::Full => (7, 0),
            Self::Crowded => (8, 0),
            Self::Refused(code) => (9, code),
            Self::Banned => (10, 0),
            Self::Closing => (11, 0),
        }
    }

    /// The denial of a code; `None` if there is none.
    pub fn from_code(kind: u8, detail: u16) -> Option<Self> {
        let denial = match kind {
            1 => Self::Version {
                server: u8::try_from(detail).ok()?,
            },
            2 => Self::Protocol,
            3 => Self::Unreadable,
            4 => Self::Expired,
            5 => Self::WrongServer,
            6 => Self::Used,
            7 => Self::Full,
            8 => Self::Crowded,
            9 => Self::Refused(detail),
            10 => Self::Banned,
            11 => Self::Closing,
            _ => return None,
        };
        (denial.to_code() == (kind, detail)).then_some(denial)
    }
}

/// Why a connection could not be established. If the token names several servers, this is the error
/// of the last one.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A server denied the client.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// No server answered.
    #[error("no answer: check the address, and that datagrams of 1200 bytes get through")]
    TimedOut,
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The client closed the connection first.
    #[error("closed before the connection was made")]
    Closed,
}

crate::debug_as_display!(ConnectError);

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The session ended normally.
    #[error("finished")]
    Finished,
    /// The server is shutting down.
    #[error("the server shuts down")]
    ShuttingDown,
    /// One end kicked the other.
    #[error("kicked")]
    Kicked,
    /// Nothing was received from the other end for
    /// the configured timeout. Each end decides this locally; it is
    /// not sent.
    #[error("the other end fell silent")]
    TimedOut,
    /// The server has no such connection: it was restarted, or it timed the client out and the
    /// close packets were lost. The client may connect again. Reported on a stateless reset, which
    /// carries a secret token and therefore cannot be forged.
    #[error("the server does not know this connection any more: connect again")]
    StatelessReset,
    /// A key has reached its usage limit: packet numbers ran out, or 2^36 forged packets arrived
    /// under one key. A new connection has new keys.
    #[error("the keys of this connection are used up: connect again")]
    Exhausted,
    /// An end violated the protocol: one of the two has a bug, or their
    /// [`Channels`](crate::Channels) differ.
    #[error("an end violated the protocol: compare versions and channels of the two")]
    Violation,
    /// Packets of the other end arrived, but it acknowledged nothing reliable for
    /// [the configured time](crate::ExchangeConfig::with_stalled).
    #[error("the other end acknowledges nothing reliable")]
    Stalled,
    /// Packets of the other end arrived, but it applied no state for the configured time.
    #[error("the other end applies no state")]
    NotApplying,
    /// The same client connected again, and its new connection replaces this one.
    #[error("the same client connected again")]
    Replaced,
    /// A code of the game.
    #[error("closed (code {0})")]
    Other(u16),
}

crate::debug_as_display!(CloseReason);

impl CloseReason {
    /// The code in a close packet.
    pub fn to_code(self) -> u32 {
        match self {
            Self::Finished | Self::StatelessReset => 1,
            Self::ShuttingDown => 2,
            Self::Kicked => 3,
            Self::TimedOut => 4,
            Self::Exhausted => 5,
            Self::Violation => 6,
            Self::Stalled => 7,
            Self::NotApplying => 8,
            Self::Replaced => 9,
            Self::Other(code) => 1 << 16 | u32::from(code),
        }
    }

    /// The reason of a code. Unknown codes, which a later version may add, read as [`Finished`](Self::Finished).
    pub fn from_code(code: u32) -> Self {
        match code {
            2 => Self::ShuttingDown,
            3 => Self::Kicked,
            4 => Self::TimedOut,
            5 => Self::Exhausted,
            6 => Self::Violation,
            7 => Self::Stalled,
            8 => Self::NotApplying,
            9 => Self::Replaced,
            _ if code >> 16 == 1 => Self::Other(code as u16),
            _ => Self::Finished,
        }
    }
}

/// Why nothing was sent.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The connection does not exist: it is not established yet, or it has ended.
    #[error("there is no such connection")]
    NotConnected,
    /// The configuration has no such channel.
    #[error("there is no channel {}", .0.0)]
    NoSuchChannel(ChannelId),
    /// The other end made no such request.
    #[error("there is no such request of the other end")]
    NotAsked,
    /// The message exceeds [the configured length](crate::ExchangeConfig::with_max_message); send a blob
    /// instead.
    #[error("{length} bytes are too long for a message, which has room for {limit}: offer a blob")]
    TooLong {
        /// The length of the message.
        length: usize,
        /// The longest that can be sent.
        limit: usize,
    },
    /// Too many bytes wait to be sent or acknowledged.
    #[error("too much waits for the other end: poll datagrams, or try again later")]
    Backlogged,
    /// The carrier of this connection has no requests.
    #[error("connections of this kind have no requests")]
    Unsupported,
}

crate::debug_as_display!(SendError);

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two denials or two reasons share a code.
    #[test]
    fn reasons_survive_their_codes() {
        for kind in 0..=u8::MAX {
            for detail in [0, 1, 255, 256, u16::MAX] {
                if let Some(denial) = Denial::from_code(kind, detail) {
                    assert_eq!(denial.to_code(), (kind, detail));
                }
            }
        }
        for code in (0..70_000).chain([1 << 17, u32::MAX]) {
            let reason = CloseReason::from_code(code);
            assert_eq!(CloseReason::from_code(reason.to_code()), reason);
        }
    }
}
