//! What sockets and names do wrong, and what whoever sees it can do.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use prescient_transport::{Denial, TokenError};
use thiserror::Error;

/// Why there is no socket.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Somebody else has the port.
    #[error("another program uses {address}: end it, or choose another port")]
    InUse {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The system refuses this address to this user.
    #[error("the system does not let this user have {address}: choose a port of 1024 or more")]
    Forbidden {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The address belongs to another machine, or to none.
    #[error("{address} is not an address of this machine: choose one that is, or 0.0.0.0 for all")]
    Elsewhere {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The system does not know this kind of address.
    #[error("this machine cannot use {address}: it has no addresses of that kind; try IPv4")]
    Unsupported {
        /// What was asked for.
        address: SocketAddr,
    },
    /// Everything else that a system can say.
    #[error("cannot open a socket at {address}: {error}")]
    Other {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// Keys cannot be made without it.
    #[error("the system has no randomness: {0}; start this program later, or on another system")]
    Randomness(String),
    /// A socket of tokio was wanted where there is no tokio.
    #[error("there is no tokio runtime here: call this from inside one that has IO and time")]
    NoRuntime,
}

impl OpenError {
    pub(crate) fn new(address: SocketAddr, error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::AddrInUse => Self::InUse { address },
            ErrorKind::PermissionDenied => Self::Forbidden { address },
            ErrorKind::AddrNotAvailable => Self::Elsewhere { address },
            _ if has_no_family(&error) => Self::Unsupported { address },
            _ => Self::Other { address, error },
        }
    }
}

/// Why a client is not connected.
///
/// Only what the server says ends an attempt at once. That nobody listens or that there is no route
/// may pass, and anybody on the way can make it look so; it is what is said when the client's
/// patience, [`connect_timeout`](prescient_transport::LinkConfig::connect_timeout), is over.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// There is no socket to ask with.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The server said no, or the token is for another protocol.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// Its machine says that nobody has this port. Not every system tells.
    #[error("nobody listens at {server}: is the server running, and is this its port?")]
    NobodyListens {
        /// Who was asked last.
        server: SocketAddr,
    },
    /// Datagrams do not find their way there.
    #[error("there is no route to {server}: is this machine online, and is the address right?")]
    NoRoute {
        /// Who was asked last.
        server: SocketAddr,
    },
    /// This machine does not let them out.
    #[error("this machine forbids sending to {server}: let this program through its firewall")]
    Forbidden {
        /// Who was asked last.
        server: SocketAddr,
    },
    /// Nothing came back.
    #[error(
        "no answer from {server}: check that the server runs there, and that its firewall lets \
         UDP datagrams of 1200 bytes through"
    )]
    TimedOut {
        /// Who was asked last.
        server: SocketAddr,
    },
    /// The program itself gave up.
    #[error("closed before the connection was made")]
    Closed,
}

/// What stood in the way of datagrams to the present peer, as far as the system told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendFailure {
    NobodyListens,
    NoRoute,
    Forbidden,
}

impl SendFailure {
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        match error.kind() {
            // Windows says that a connection was reset where there is none.
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Some(Self::NobodyListens),
            ErrorKind::PermissionDenied => Some(Self::Forbidden),
            // The last is what Linux says of a way out of loopback.
            ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::AddrNotAvailable
            | ErrorKind::InvalidInput => Some(Self::NoRoute),
            _ if has_no_family(error) => Some(Self::NoRoute),
            _ => None,
        }
    }
}

/// Why a text is no address.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Every server has its own port, so there is none to assume.
    #[error("{0:?} has no port: write it as host:port, an IPv6 address as [address]:port")]
    NoPort(String),
    /// Nobody knows this name.
    #[error(
        "{name:?} does not resolve ({reason}): check its spelling, and that this machine is online"
    )]
    Unknown {
        /// The text.
        name: String,
        /// What the system said.
        reason: String,
    },
    /// The mode without a backend is for one machine.
    #[error(
        "{0:?} is not on this machine, and without a token only this machine can be joined: get a token"
    )]
    NeedsToken(String),
    /// There is no randomness to make a token of.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Why a text is no token or no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextError {
    /// It is cut off, or something else entirely.
    #[error("this text is no token: copy all of it, from its first letter to its last")]
    NoToken,
    /// The text is sound, its content is not.
    #[error("this token cannot be used ({0}): get one that was made by this version")]
    Token(TokenError),
    /// It is cut off, or something else entirely.
    #[error("this text is no key: `prescient token --new-key FILE` makes one")]
    NoKey,
    /// The text is sound, the key is not.
    #[error("this key cannot be used: {0}")]
    Key(TokenError),
}

/// Whether the system does not know the kind of an address, for which there is no kind of error.
fn has_no_family(error: &io::Error) -> bool {
    let code = if cfg!(windows) {
        10047
    } else if cfg!(target_os = "linux") || cfg!(target_os = "android") {
        97
    } else {
        47
    };
    error.raw_os_error() == Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What cannot be had on a real socket everywhere: whoever runs tests may be privileged, and a
    /// machine may have everything.
    ///
    /// Fails if `OpenError::new` takes one for the other.
    #[test]
    fn systems_refuse_sockets_for_known_reasons() {
        let address = SocketAddr::from(([0; 4], 80));
        let text = |error| OpenError::new(address, error).to_string();
        assert_eq!(
            text(ErrorKind::PermissionDenied.into()),
            "the system does not let this user have 0.0.0.0:80: choose a port of 1024 or more"
        );
        if cfg!(target_os = "linux") {
            assert_eq!(
                text(io::Error::from_raw_os_error(97)),
                "this machine cannot use 0.0.0.0:80: it has no addresses of that kind; try IPv4"
            );
        }
        let other = text(ErrorKind::OutOfMemory.into());
        assert_eq!(other, "cannot open a socket at 0.0.0.0:80: out of memory");
    }
}
