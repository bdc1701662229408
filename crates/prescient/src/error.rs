//! Why there is no server, or no client.

use prescient_net::{AddressError, OpenError};
use prescient_replication::WorldError;
use thiserror::Error;

/// Why there is no server.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// There is no socket.
    #[error(transparent)]
    Socket(#[from] OpenError),
    /// The schema cannot be used.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// Why a client is not connected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The address is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The server cannot be reached, or does not let us in.
    #[error(transparent)]
    Connection(#[from] prescient_net::JoinError),
    /// The schema cannot be used.
    #[error(transparent)]
    World(#[from] WorldError),
}
