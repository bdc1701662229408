//! Counts of a forwarder, and the sizes of its tables.

/// Counts since the start, and the present sizes of the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Received Interests, without commands and messages of routing.
    pub interests: u64,
    /// Interests that were answered from the content store.
    pub store_hits: u64,
    /// Interests without an answer in the content store.
    pub store_misses: u64,
    /// Interests that joined a pending one and were not forwarded.
    pub aggregated: u64,
    /// Forwarded Interests, counted once per face.
    pub forwarded: u64,
    /// Interests with a nonce that was seen before.
    pub loops: u64,
    /// Interests that arrived with a hop limit of 0.
    pub hop_limit: u64,
    /// Packets with `/localhost` names from other machines, and ignored messages of routing.
    pub out_of_scope: u64,
    /// Interests that were refused because of a limit on pending ones.
    pub refused: u64,
    /// PIT entries that expired.
    pub expired: u64,
    /// Data that satisfied a pending Interest.
    pub data: u64,
    /// Data from a face to which no matching Interest was sent.
    pub unsolicited: u64,
    /// Received Nacks.
    pub nacks: u64,
    /// Commands that were answered.
    pub commands: u64,
    /// Packets that were dropped because the send queue was full.
    pub dropped: u64,

    /// PIT entries.
    pub pending: usize,
    /// The bytes that pending Interests count.
    pub pending_bytes: usize,
    /// Packets in the content store.
    pub stored: usize,
    /// The bytes that they count.
    pub stored_bytes: usize,
    /// Routes.
    pub routes: usize,
    /// Faces.
    pub faces: usize,
}
