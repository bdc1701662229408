//! Errors of sockets and addresses; each tells the user what can be done about it.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use prescient_channels::{ConfigError, Denial};
use prescient_transport::TokenError;
use thiserror::Error;

/// Why a socket could not be opened.
#[derive(Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another program uses the port.
    #[error("another program uses {address}: end it, or choose another port")]
    InUse {
        /// The requested address.
        address: SocketAddr,
    },
    /// The user is not permitted to use this address.
    #[error("the system does not let this user have {address}: choose a port of 1024 or more")]
    Forbidden {
        /// The requested address.
        address: SocketAddr,
    },
    /// The address is not one of this host.
    #[error("{address} is not an address of this machine: choose one that is, or 0.0.0.0 for all")]
    Elsewhere {
        /// The requested address.
        address: SocketAddr,
    },
    /// The system does not support this address family.
    #[error("this machine cannot use {address}: it has no addresses of that kind; try IPv4")]
    Unsupported {
        /// The requested address.
        address: SocketAddr,
    },
    /// Any other error of the system.
    #[error("cannot open a socket at {address}: {error}")]
    Other {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The system has no randomness, without which keys cannot be made.
    #[error("the system has no randomness: {0}; start this program later, or on another system")]
    Randomness(String),
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A tokio socket was requested outside of a tokio runtime.
    #[error("there is no tokio runtime here: call this from inside one that has IO and time")]
    NoRuntime,
}

prescient_channels::debug_as_display!(OpenError);

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

/// Why a client could not connect.
///
/// Only an answer of the server ends the attempt at once. Errors such as a closed port or a missing
/// route may be temporary, and can be forged; they are reported after
/// [`connect_timeout`](prescient_transport::LinkConfig::with_connect_timeout).
#[derive(Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The socket could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The server denied the client, or the token is for another protocol.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// The server's host reports that the port is closed. Not every system reports that.
    #[error("nobody listens at {server}: is the server running, and is this its port?")]
    NobodyListens {
        /// The last server that was tried.
        server: SocketAddr,
    },
    /// There is no route to the server.
    #[error("there is no route to {server}: is this machine online, and is the address right?")]
    NoRoute {
        /// The last server that was tried.
        server: SocketAddr,
    },
    /// This host forbids sending to the server.
    #[error("this machine forbids sending to {server}: let this program through its firewall")]
    Forbidden {
        /// The last server that was tried.
        server: SocketAddr,
    },
    /// No answer arrived.
    #[error(
        "no answer from {server}: check that the server runs there, and that its firewall lets \
         UDP datagrams of 1200 bytes through"
    )]
    TimedOut {
        /// The last server that was tried.
        server: SocketAddr,
    },
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The program closed the client first.
    #[error("closed before the connection was made")]
    Closed,
}

prescient_channels::debug_as_display!(JoinError);

/// The last error of sending to the present server, as far as the system reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendFailure {
    NobodyListens,
    NoRoute,
    Forbidden,
}

impl SendFailure {
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        match error.kind() {
            // Windows reports a connection reset on a UDP socket.
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Some(Self::NobodyListens),
            ErrorKind::PermissionDenied => Some(Self::Forbidden),
            // Linux reports `InvalidInput` for a destination outside of loopback.
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

/// Why a text is not a server's address.
#[derive(Error)]
#[non_exhaustive]
pub enum AddressError {
    /// There is no default port.
    #[error("{0:?} has no port: write it as host:port, an IPv6 address as [address]:port")]
    NoPort(String),
    /// The number after the last colon is not that of a port.
    #[error("{text:?}: there is no port {port}; ports are 0 to 65535")]
    NoSuchPort {
        /// The given text.
        text: String,
        /// The part after the last colon.
        port: String,
    },
    /// The name could not be resolved.
    #[error(
        "{name:?} does not resolve ({reason}): check its spelling, and that this machine is online"
    )]
    Unknown {
        /// The given text.
        name: String,
        /// The system's error.
        reason: String,
    },
    /// The insecure mode works on the local host only.
    #[error(
        "{0:?} is not on this machine, and without a token only this machine can be joined: get a token \
         from the operator of that server"
    )]
    NeedsToken(String),
    /// The system has no randomness to make a token with.
    #[error(transparent)]
    Open(#[from] OpenError),
}

prescient_channels::debug_as_display!(AddressError);

/// Why a text is not a token or a key.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextError {
    /// The text is truncated, or not a token at all.
    #[error("this text is no token: copy all of it, from its first letter to its last")]
    NoToken,
    /// The encoding is valid, the token is not.
    #[error("this token cannot be used ({0}): get one that was made by this version")]
    Token(TokenError),
    /// The text is truncated, or not a key at all.
    #[error("this text is no key: `prescient token --new-key FILE` makes one")]
    NoKey,
    /// The encoding is valid, the key is not.
    #[error("this key cannot be used: {0}")]
    Key(TokenError),
}

prescient_channels::debug_as_display!(TextError);

/// Whether the address family is not supported, for which there is no `ErrorKind`.
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

    /// Errors that cannot be provoked with a real socket everywhere: tests may run as a privileged
    /// user, and a host may support everything.
    ///
    /// Fails if `OpenError::new` confuses them.
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
