//! Errors of handling a server's messages.

use prescient_codec::{DecodeError, MalformedRow};
use prescient_schema::Difference;
use thiserror::Error;

use crate::settings::SettingsMismatch;

/// Why a message was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The bytes are not a message of a server.
    #[error("not a message of a server; it runs another program or is hostile")]
    Malformed,
    /// A packet could not be applied. Late packets are normal; other errors heal by themselves,
    /// too.
    #[error(transparent)]
    State(#[from] DecodeError),
    /// State arrived before the settings with which it is coded. Later packets make up for it.
    #[error("state arrived before the settings to decode it")]
    Early,
    /// The schemas differ and are incompatible. In each [`Difference`], `here` is the server's
    /// side.
    #[error("the server's schema differs: {}", Difference::list(.0))]
    Schema(Vec<Difference>),
    /// The server has settings that this client cannot adopt.
    #[error(transparent)]
    Settings(#[from] SettingsMismatch),
    /// An event is not what the server's schema says, or an event before it was lost. Events in order
    /// are refused from there on.
    #[error("not an event of the schema: {0}")]
    Event(MalformedRow),
    /// A megabyte of events waits to be polled. Poll, then handle this message again.
    #[error("too many events wait: poll changes, then handle this message again")]
    Full,
    /// The server requested an audit while another is being answered. Only that one is.
    #[error("the server requested an audit while another is being answered")]
    AuditInProgress,
}
