//! Faces: a forwarder's connections to neighbours and applications.

use std::fmt;

use crate::link::{MIN_MTU, Reassembly};
use crate::tlv::MAX_PACKET;

/// The number of a face. It is not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaceId(pub(crate) u64);

impl FaceId {
    /// The number, as in management commands.
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
    /// An application on this machine. It may use names under `/localhost`, and register prefixes.
    pub fn local() -> Self {
        Self {
            is_local: true,
            may_register: true,
            mtu: MAX_PACKET,
        }
    }

    /// A neighbour on another machine. It may register prefixes only if
    /// [`registration`](Self::registration) allows it.
    pub fn remote() -> Self {
        Self {
            is_local: false,
            may_register: false,
            mtu: MAX_PACKET,
        }
    }

    /// Whether it may register and unregister prefixes. A remote face may do so for itself only.
    pub fn registration(mut self, may_register: bool) -> Self {
        self.may_register = may_register;
        self
    }

    /// The longest datagram of the link; longer packets are sent as fragments.
    /// [`MAX_PACKET`](crate::MAX_PACKET) by default. `None` if it is above that or below [`MIN_MTU`].
    pub fn mtu(mut self, mtu: usize) -> Option<Self> {
        self.mtu = mtu;
        (MIN_MTU..=MAX_PACKET).contains(&mtu).then_some(self)
    }
}

/// A face's state in the forwarder.
#[derive(Debug)]
pub(crate) struct Face {
    pub(crate) is_local: bool,
    pub(crate) may_register: bool,
    pub(crate) mtu: usize,
    pub(crate) reassembly: Reassembly,
    /// The sequence number of the next fragment.
    pub(crate) sequence: u64,
    /// The bytes that its pending Interests count.
    pub(crate) pending: usize,
    /// The number of routes to it.
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

/// Counts of one face.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaceStatistics {
    /// Received Interests.
    pub interests_in: u64,
    /// Sent Interests.
    pub interests_out: u64,
    /// Received Data packets.
    pub data_in: u64,
    /// Sent Data packets.
    pub data_out: u64,
    /// Received Nacks.
    pub nacks_in: u64,
    /// Sent Nacks.
    pub nacks_out: u64,
    /// Received bytes.
    pub bytes_in: u64,
    /// Sent bytes.
    pub bytes_out: u64,
    /// Received packets that were malformed.
    pub malformed: u64,
}
