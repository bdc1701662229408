//! Errors; each tells the caller what can be done about it.

use thiserror::Error;

/// Why a client could not be banned.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BanError {
    /// [`Limits::with_memory`](crate::Limits::with_memory) is reached.
    #[error(
        "{0} clients are banned, which is all that may be: unban some, or let the backend do it"
    )]
    Full(usize),
}

prescient_channels::debug_as_display!(BanError);

/// Why a token could not be issued or read.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// A token names 1 to 16 servers.
    #[error("a token names 1 to 16 servers, not {0}")]
    Servers(usize),
    /// The game's data is too long.
    #[error("{0} bytes are too long for a token, which has room for 256")]
    Data(usize),
    /// Not a token of this version.
    #[error("not a token, or one of another version")]
    Malformed,
    /// The key is the published one of the insecure mode.
    #[error("this key is public; ask for it by name if that is meant")]
    PublicKey,
}

prescient_channels::debug_as_display!(TokenError);
