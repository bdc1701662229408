//! Errors of starting a server or a client.

use std::error::Error as StdError;

use prescient_channels::{CloseReason, ConfigError};
#[cfg(feature = "udp")]
use prescient_net::{AddressError, OpenError};
use prescient_replication::{SettingsMismatch, WorldError};
use prescient_schema::Difference;
use thiserror::Error;

/// Why a server could not be started.
#[derive(Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is invalid or does not resolve.
    #[cfg(feature = "udp")]
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The socket could not be opened.
    #[cfg(feature = "udp")]
    #[error(transparent)]
    Socket(#[from] OpenError),
    /// An option cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The schema cannot be used.
    #[error(transparent)]
    World(#[from] WorldError),
}

prescient_schema::debug_as_display!(ServeError);

/// Why a client could not join.
#[derive(Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The address is invalid or does not resolve.
    #[cfg(feature = "udp")]
    #[error(transparent)]
    Address(#[from] AddressError),
    /// An option cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The server could not be reached, or refused the connection.
    #[error(transparent)]
    Connection(Box<dyn StdError + Send + Sync>),
    /// The server accepted the connection, then closed it.
    #[error("the server closed the connection: {0}")]
    Closed(CloseReason),
    /// The server accepted the connection, then sent no world within the time that joining may
    /// take.
    #[error(
        "the server accepted the connection and does not respond: it hangs, or is another program; try later"
    )]
    NoAnswer,
    /// [`Cancel::cancel`](crate::Cancel::cancel) was called.
    #[error("cancelled before the server was joined")]
    Cancelled,
    /// The schemas differ. In each [`Difference`], `here` is the server's side.
    #[error("the server's schema differs: {}", Difference::list(.0))]
    OtherSchema(Vec<Difference>),
    /// The server has settings that this client cannot adopt.
    #[error(transparent)]
    OtherSettings(SettingsMismatch),
    /// The schema cannot be used.
    #[error(transparent)]
    World(#[from] WorldError),
}

prescient_schema::debug_as_display!(JoinError);

#[cfg(feature = "udp")]
impl From<prescient_net::JoinError> for JoinError {
    fn from(error: prescient_net::JoinError) -> Self {
        Self::Connection(Box::new(error))
    }
}
