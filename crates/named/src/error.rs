//! Errors of packets, names and signatures.

use thiserror::Error;

/// Why bytes are not a packet. Nothing has changed: drop them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// An element is longer than the rest of its packet.
    #[error("the packet ends within an element")]
    Truncated,
    /// Bytes follow the packet.
    #[error("bytes follow the packet")]
    Trailing,
    /// A type or a length takes more bytes than it needs.
    #[error("a type or length is not in its shortest form")]
    NotShortest,
    /// Types are 1 to 2^32 - 1.
    #[error("there is no such type number")]
    BadType,
    /// An element that is unknown, repeated or out of order and must not be skipped.
    #[error("element {kind:#x} is unknown, repeated or out of order")]
    Unexpected {
        /// Its type.
        kind: u32,
    },
    /// A required element is absent.
    #[error("element {kind:#x} is missing")]
    Missing {
        /// Its type.
        kind: u32,
    },
    /// An element's value has a length that its type does not allow.
    #[error("element {kind:#x} cannot have {length} bytes")]
    BadLength {
        /// Its type.
        kind: u32,
        /// The length of its value.
        length: usize,
    },
    /// An element's value is out of its range.
    #[error("element {kind:#x} has a value out of its range")]
    BadValue {
        /// Its type.
        kind: u32,
    },
    /// The packet exceeds the limit of packets.
    #[error("{length} bytes are too long for a packet, which has room for {limit}")]
    TooLong {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// The name has more components than [`MAX_COMPONENTS`](crate::MAX_COMPONENTS).
    #[error("the name has too many components")]
    TooDeep,
    /// The digest in the name is not that of the Interest's parameters.
    #[error("the digest in the name does not fit the parameters")]
    BadParametersDigest,
}

/// Why a packet was not written. The buffer is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The packet would exceed the limit of packets: use a shorter name or less content.
    #[error("{length} bytes are too long for a packet, which has room for {limit}")]
    TooLong {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// An Interest's name must not be empty.
    #[error("the name of an Interest must have a component")]
    EmptyName,
    /// The name contains a digest of parameters, which `encode` and `sign` add.
    #[error("the name has a digest of parameters already: leave it out")]
    HasParametersDigest,
    /// With the digest of parameters the name would have too many components.
    #[error("the name has too many components")]
    TooDeep,
}

/// Why a name or a text was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameError {
    /// A name has at most [`MAX_COMPONENTS`](crate::MAX_COMPONENTS).
    #[error("the name has too many components")]
    TooDeep,
    /// The name is longer than a packet.
    #[error("the name is too long for a packet")]
    TooLong,
    /// Types of components are 1 to 65535.
    #[error("there is no component of type {0}")]
    BadKind(u32),
    /// Digests have 32 bytes.
    #[error("a digest has 32 bytes, not {0}")]
    BadDigest(usize),
    /// The text is not a name: it must start with a slash, and two hexadecimal digits must follow `%`.
    #[error("not a name: expected /component/component with other bytes as %XX")]
    BadText,
}

/// Why a packet's signature was not accepted. Do not use its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The packet carries no signature.
    #[error("the packet is not signed")]
    Unsigned,
    /// The signature is of another type than the key.
    #[error("the packet is signed with type {found}, the key is for type {expected}")]
    OtherKind {
        /// The packet's signature type.
        found: u64,
        /// The key's signature type.
        expected: u64,
    },
    /// The packet was changed, or signed with another key.
    #[error("the signature does not fit the packet")]
    Invalid,
}
