//! What can go wrong, and what whoever sees it can do.

use thiserror::Error;

use crate::exchange::channel::ChannelId;

/// Why a server turned a client away. Everything but [`Refused`](Self::Refused) is decided here;
/// that one is the game's own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Denial {
    /// The two ends speak different versions of the packets.
    #[error("the server speaks version {server} of the transport: update whichever is older")]
    Version {
        /// What the server speaks.
        server: u8,
    },
    /// The token is for another game, or for another version of it.
    #[error("client and server run different protocols: update the client, then get a new token")]
    Protocol,
    /// The token was altered, or sealed with a key that the server does not have.
    #[error(
        "the server cannot open the token: get a new one, and compare the keys of backend and server"
    )]
    Unreadable,
    /// The token's time is over.
    #[error("the token has expired: get a new one, and compare the clocks of backend and server")]
    Expired,
    /// The token does not name this server.
    #[error("the token is for another server: connect to an address that it names")]
    WrongServer,
    /// A token is good for one session, and this one had it.
    #[error("the token was used before: get a new one for every session")]
    Used,
    /// The server has as many connections as it may.
    #[error("the server is full: try again later or elsewhere")]
    Full,
    /// Too many connections come from the client's address.
    #[error("too many connections from this address: close one first")]
    Crowded,
    /// The game itself said no.
    #[error("the server refused this client (code {0})")]
    Refused(u16),
    /// The server is about to end.
    #[error("the server is closing: try again when it is back, or elsewhere")]
    Closing,
    /// The server does not let this client in, whatever token it has.
    #[error("this client is banned from the server: only who runs it can undo that")]
    Banned,
}

impl Denial {
    pub(crate) fn to_code(self) -> (u8, u16) {
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

    pub(crate) fn from_code(kind: u8, detail: u16) -> Option<Self> {
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

/// Why a connection did not come about. With several servers in the token it is what the last one
/// did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A server answered, and said no.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// No server answered.
    #[error("no answer: check the address, and that datagrams of 1200 bytes get through")]
    TimedOut,
    /// The client itself gave up.
    #[error("closed before the connection was made")]
    Closed,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// It was over.
    #[error("finished")]
    Finished,
    /// The server is going away.
    #[error("the server shuts down")]
    ShuttingDown,
    /// The other end threw us out, or we them.
    #[error("kicked")]
    Kicked,
    /// Nothing was heard of the other end for the configured time. Never travels.
    #[error("the other end fell silent")]
    TimedOut,
    /// The server does not know this connection any more: it was restarted, or it had given us up
    /// and its goodbye got lost. It can be joined again. Never travels; a forger cannot make it up.
    #[error("the server does not know this connection any more: connect again")]
    StatelessReset,
    /// A key has seen all that it may: sequence numbers ran out, or somebody sent 2^36 forgeries
    /// between two changes of the key. A new connection has new keys.
    #[error("the keys of this connection are used up: connect again")]
    Exhausted,
    /// The other end said something that it must not, or we did: one of the two is broken, or they
    /// have different [`Channels`](crate::Channels).
    #[error("an end broke the rules: compare versions and channels of the two")]
    Violation,
    /// The other end was heard of, but acknowledged nothing reliable for the configured time.
    #[error("the other end takes nothing in")]
    Stalled,
    /// The other end was heard of, but applied no state for the configured time.
    #[error("the other end applies no state")]
    NotApplying,
    /// A reason of the game's own.
    #[error("closed (code {0})")]
    Other(u16),
}

impl CloseReason {
    pub(crate) fn to_code(self) -> u32 {
        match self {
            Self::Finished | Self::StatelessReset => 1,
            Self::ShuttingDown => 2,
            Self::Kicked => 3,
            Self::TimedOut => 4,
            Self::Exhausted => 5,
            Self::Violation => 6,
            Self::Stalled => 7,
            Self::NotApplying => 8,
            Self::Other(code) => 1 << 16 | u32::from(code),
        }
    }

    /// Codes that a later version may add end a connection, too.
    pub(crate) fn from_code(code: u32) -> Self {
        match code {
            2 => Self::ShuttingDown,
            3 => Self::Kicked,
            4 => Self::TimedOut,
            5 => Self::Exhausted,
            6 => Self::Violation,
            7 => Self::Stalled,
            8 => Self::NotApplying,
            _ if code >> 16 == 1 => Self::Other(code as u16),
            _ => Self::Finished,
        }
    }
}

/// Why something was not sent. Nothing of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no such connection, not yet or no longer.
    #[error("there is no such connection")]
    NotConnected,
    /// The configuration has no such channel.
    #[error("there is no channel {}", .0.0)]
    NoSuchChannel(ChannelId),
    /// This is a request of our own.
    #[error("there is no such request of the other end")]
    NotAsked,
    /// It is longer than messages may be; a blob has no such limit.
    #[error("{length} bytes are too long for a message, which has room for {limit}: offer a blob")]
    TooLong {
        /// What was to be sent.
        length: usize,
        /// What can be sent.
        limit: usize,
    },
    /// Too much waits to be sent or acknowledged.
    #[error("too much waits for the other end: poll datagrams, or try again later")]
    Backlogged,
}

/// Why a client was not banned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BanError {
    /// There are as many bans as may be remembered.
    #[error(
        "{0} clients are banned, which is all that may be: unban some, or let the backend do it"
    )]
    Full(usize),
}

/// Why a token was not made or understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// A token names 1 to 16 servers.
    #[error("a token names 1 to 16 servers, not {0}")]
    Servers(usize),
    /// What the game adds is too long.
    #[error("{0} bytes are too long for a token, which has room for 256")]
    Data(usize),
    /// These bytes are no token of this version.
    #[error("not a token, or one of another version")]
    Malformed,
    /// The key is the published one of the insecure mode.
    #[error("everybody knows this key; ask for it by name if that is meant")]
    PublicKey,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back_as_what_they_were() {
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
