//! A 128-bit hash that identifies a schema.
//!
//! Peers compare it before anything else. It detects mistakes, not attacks (the handshake
//! authenticates), so FNV-1a over the schema's canonical bytes is enough, needs no dependency, and
//! is the same on every platform and in every language.

use core::fmt;

use crate::Schema;

/// The 128-bit hash of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// The hash of any bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mix = |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
        Self(bytes.iter().fold(OFFSET, mix))
    }

    /// Its bytes on the wire.
    pub fn to_be_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Reads its bytes from the wire.
    pub fn from_be_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Schema {
    /// The fingerprint of [`to_bytes`](Schema::to_bytes).
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_bytes(&self.to_bytes())
    }
}

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn it_is_fnv_1a() {
        let hex = |text: &str| Fingerprint::of_bytes(text.as_bytes()).to_string();
        assert_eq!(hex(""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(hex("a"), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(hex("foobar"), "343e1662793c64bf6f0d3597ba446f18");
    }
}
