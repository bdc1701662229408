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
    /// Interests that joined one which was asked for already.
    pub aggregated: u64,
    /// Interests that were sent on, counted for each face.
    pub forwarded: u64,
    /// Interests that had been here before.
    pub loops: u64,
    /// Interests that had passed as many forwarders as they may.
    pub hop_limit: u64,
    /// Packets with names that must not leave their machine or link.
    pub out_of_scope: u64,
    /// Interests that there was no room for.
    pub refused: u64,
    /// Names that everybody gave up waiting for.
    pub expired: u64,
    /// Data that answered somebody.
    pub data: u64,
    /// Data that nobody had asked this face for.
    pub unsolicited: u64,
    /// Nacks that came.
    pub nacks: u64,
    /// Commands that were answered.
    pub commands: u64,
    /// Packets that were not sent because too many waited to be.
    pub dropped: u64,

    /// Names that are waited for.
    pub pending: usize,
    /// What they are counted with.
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
