//! Errors of an encoder.

use core::fmt;

use crate::units::{Sequence, Tick};

/// Why nothing was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The archive has no tick yet.
    EmptyArchive,
    /// The archive's newest tick was encoded already.
    NothingNew(Tick),
    /// The archive's schema is not the encoder's.
    WrongSchema,
    /// A row that the packet would refer to is not in the archive, also in a new epoch.
    MissingRow,
    /// 2³² − 1 packets were sent, and sequence numbers are used up. A new connection is needed.
    Exhausted,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyArchive => write!(f, "capture a tick before encoding"),
            Self::NothingNew(tick) => write!(f, "tick {} was encoded already", tick.0),
            Self::WrongSchema => write!(f, "the archive's schema is not the connection's"),
            Self::MissingRow => write!(f, "the archive lacks a row of an entity that it has"),
            Self::Exhausted => write!(f, "all packet numbers are used; reconnect"),
        }
    }
}

impl core::error::Error for EncodeError {}

/// Why an acknowledgement was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AckError {
    /// It names a packet that was never sent: the peer is broken or hostile.
    NeverSent(Sequence),
}

impl fmt::Display for AckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverSent(sequence) => write!(f, "packet {} was never sent", sequence.0),
        }
    }
}

impl core::error::Error for AckError {}
