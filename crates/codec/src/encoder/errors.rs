//! Why an encoder refuses.

use core::fmt;

use crate::units::{Sequence, Tick};

/// Why nothing was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// Nothing was captured yet.
    EmptyArchive,
    /// The newest tick was sent already.
    NothingNew(Tick),
    /// The archive has another schema than the connection.
    WrongSchema,
    /// 2³² − 1 packets were sent; the connection has to be made anew.
    Exhausted,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyArchive => write!(f, "capture a tick before encoding"),
            Self::NothingNew(tick) => write!(f, "tick {} was encoded already", tick.0),
            Self::WrongSchema => write!(f, "the archive's schema is not the connection's"),
            Self::Exhausted => write!(f, "all packet numbers are used; reconnect"),
        }
    }
}

impl core::error::Error for EncodeError {}

/// Why an acknowledgement was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AckError {
    /// It names a packet that was never sent: the peer is broken or lies.
    NeverSent(Sequence),
    /// It does not name its own newest packet as applied.
    Contradiction,
}

impl fmt::Display for AckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverSent(sequence) => write!(f, "packet {} was never sent", sequence.0),
            Self::Contradiction => write!(f, "the acknowledgement contradicts itself"),
        }
    }
}

impl core::error::Error for AckError {}
