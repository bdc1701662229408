//! The acknowledgement of applied packets.

use crate::units::Sequence;

/// Names the newest applied packet and which of the 63 before it were applied, so the next
/// acknowledgement makes up for a lost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The epoch of the packets named here.
    pub epoch: u8,
    /// The newest applied packet.
    pub newest: Sequence,
    /// Bit `k` states that packet `newest - k` was applied; bit 0 is always set.
    pub applied: u64,
    /// The receiver cannot decode any more and requests a new epoch.
    pub resync: bool,
}

impl Ack {
    /// Its length in bytes.
    pub const LEN: usize = 14;

    /// The bytes to send.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = u8::from(self.resync);
        bytes[1] = self.epoch;
        bytes[2..6].copy_from_slice(&self.newest.0.to_le_bytes());
        bytes[6..14].copy_from_slice(&self.applied.to_le_bytes());
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().ok()?;
        if bytes[0] > 1 {
            return None;
        }
        let newest = u32::from_le_bytes(*bytes[2..6].first_chunk()?);
        let applied = u64::from_le_bytes(*bytes[6..14].first_chunk()?);
        Some(Self {
            epoch: bytes[1],
            newest: Sequence(newest),
            applied,
            resync: bytes[0] == 1,
        })
    }
}
