//! What a forwarder has done, and what it holds.

/// Counts since the start, and what is held now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Interests that came, without commands.
    pub interests: u64,
    /// Interests that were answered from the content store.
    pub store_hits: u64,
    /// Interests that were looked up there in vain.
    pub store_misses: u64,
    /// Interests that were added to a pending one and not sent on.
    pub aggregated: u64,
    /// Interests that were sent on, counted for each face.
    pub forwarded: u64,
    /// Interests whose nonce was seen before.
    pub loops: u64,
    /// Interests that came with a hop limit of 0.
    pub hop_limit: u64,
    /// Packets with `/localhost` names from other machines, and ignored messages of routing.
    pub out_of_scope: u64,
    /// Interests that were refused because a limit on pending ones was reached.
    pub refused: u64,
    /// PIT entries that expired.
    pub expired: u64,
    /// Data that satisfied a pending Interest.
    pub data: u64,
    /// Data that its face was not asked for.
    pub unsolicited: u64,
    /// Nacks that came.
    pub nacks: u64,
    /// Commands that were answered.
    pub commands: u64,
    /// Packets that were not sent because too many waited to be.
    pub dropped: u64,

    /// PIT entries.
    pub pending: usize,
    /// What pending Interests are charged with.
    pub pending_bytes: usize,
    /// Packets in the content store.
    pub stored: usize,
    /// What they are counted with.
    pub stored_bytes: usize,
    /// Routes.
    pub routes: usize,
    /// Faces.
    pub faces: usize,
}
