//! What can be wrong with what a server sends.

use prescient_codec::DecodeError;
use prescient_schema::Difference;
use thiserror::Error;

use crate::settings::SettingsMismatch;

/// Why a message was not taken. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The bytes are not a message of a server.
    #[error("not a message of a server; it runs another program or is hostile")]
    Malformed,
    /// A packet could not be applied. Those that come late are normal; the others heal by
    /// themselves, too.
    #[error(transparent)]
    State(#[from] DecodeError),
    /// State that came before the server said how it is coded. What follows makes up for it.
    #[error("state came before it is known how to read it")]
    Early,
    /// The server's schema is another, and this end cannot read by it. *Here* is the server.
    #[error("the server's schema is another: {}", Difference::list(.0))]
    Schema(Vec<Difference>),
    /// The server codes state in a way that this end cannot take over.
    #[error(transparent)]
    Settings(#[from] SettingsMismatch),
    /// A megabyte of events waits to be polled. Take it again after that.
    #[error("too many events wait: poll what changed, then take this again")]
    Full,
    /// The server asks what is shown before it was told the last time. It is told once.
    #[error("the server asks again before it was answered")]
    AuditInProgress,
}
