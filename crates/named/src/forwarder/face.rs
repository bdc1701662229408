//! Faces: the neighbours and applications that a forwarder talks to.

use std::fmt;

use crate::link::{MIN_MTU, Reassembly};
use crate::tlv::MAX_PACKET;

/// The number of a face. It is never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaceId(pub(crate) u64);

impl FaceId {
    /// The number that management commands know it by.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "face {}", self.0)
    }
}

/// The properties of a face.
#[derive(Clone, Debug)]
pub struct FaceConfig {
    is_local: bool,
    may_register: bool,
    mtu: usize,
}

impl FaceConfig {
    /// An application on this machine: it may use names that start with `/localhost`, and register
    /// prefixes.
    pub fn local() -> Self {
        Self {
            is_local: true,
            may_register: true,
            mtu: MAX_PACKET,
        }
    }

    /// A neighbour on another machine. It may not register prefixes unless it is
    /// [let](Self::registration).
    pub fn remote() -> Self {
        Self {
            is_local: false,
            may_register: false,
            mtu: MAX_PACKET,
        }
    }

    /// Whether commands to register and unregister prefixes are taken from here, for this face only
    /// if it is a remote one.
    pub fn registration(mut self, may_register: bool) -> Self {
        self.may_register = may_register;
        self
    }

    /// The longest datagram of the link; longer packets are cut into fragments. `None` if it is not
    /// [`MIN_MTU`] to [`MAX_PACKET`](crate::MAX_PACKET), which is the default.
    pub fn mtu(mut self, mtu: usize) -> Option<Self> {
        self.mtu = mtu;
        (MIN_MTU..=MAX_PACKET).contains(&mtu).then_some(self)
    }
}

/// A face as the forwarder keeps it.
#[derive(Debug)]
pub(crate) struct Face {
    pub(crate) is_local: bool,
    pub(crate) may_register: bool,
    pub(crate) mtu: usize,
    pub(crate) reassembly: Reassembly,
    /// The sequence of the next fragment of a packet.
    pub(crate) sequence: u64,
    /// Interests of this face that wait for Data.
    pub(crate) pending: usize,
    /// Routes to this face.
    pub(crate) routes: usize,
    pub(crate) statistics: FaceStatistics,
}

impl Face {
    pub(crate) fn new(config: &FaceConfig, sequence: u64) -> Self {
        Self {
            is_local: config.is_local,
            may_register: config.may_register,
            mtu: config.mtu,
            reassembly: Reassembly::default(),
            sequence,
            pending: 0,
            routes: 0,
            statistics: FaceStatistics::default(),
        }
    }
}

/// What went over one face.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaceStatistics {
    /// Interests that came from it.
    pub interests_in: u64,
    /// Interests that went to it.
    pub interests_out: u64,
    /// Data that came from it.
    pub data_in: u64,
    /// Data that went to it.
    pub data_out: u64,
    /// Nacks that came from it.
    pub nacks_in: u64,
    /// Nacks that went to it.
    pub nacks_out: u64,
    /// Bytes that came from it.
    pub bytes_in: u64,
    /// Bytes that went to it.
    pub bytes_out: u64,
    /// What came from it and was not understood.
    pub malformed: u64,
}
