//! Why there is no server, or no client.

use prescient_net::{AddressError, OpenError};
use prescient_replication::{SettingsMismatch, WorldError};
use prescient_schema::Difference;
use prescient_transport::CloseReason;
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
    /// The server let us in, and then out again.
    #[error("the server closed the connection: {0}")]
    Closed(CloseReason),
    /// The server let us in and then said nothing for the time that joining may take.
    #[error("the server let us in and does not answer: it hangs, or is another program; try later")]
    NoAnswer,
    /// The program did not want to wait any longer.
    #[error("cancelled before the server was joined")]
    Cancelled,
    /// The server's schema is another, in what this names; *here* is the server.
    #[error("the server's schema is another: {}", Difference::list(.0))]
    OtherSchema(Vec<Difference>),
    /// The server is set up in a way that this client cannot take over.
    #[error(transparent)]
    OtherSettings(SettingsMismatch),
    /// The schema cannot be used.
    #[error(transparent)]
    World(#[from] WorldError),
}
