//! What a server has to say.

use prescient_replication::{About, Divergence, PeerId};
use prescient_schema::{Difference, EntityRef};
use prescient_transport::{ClientId, CloseReason, Input};

/// What happened at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// Somebody joined, and is shown the world from the next [`send`](crate::Server::send) on.
    Joined {
        /// What to call it.
        peer: PeerId,
        /// Who it is to the backend.
        client: ClientId,
        /// What the backend put into the token.
        data: Vec<u8>,
    },
    /// Somebody was turned away because its schema is another, in what this names; *here* is the
    /// server.
    OtherSchema {
        /// Who it is to the backend.
        client: ClientId,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// A client said something.
    Event {
        /// Who.
        peer: PeerId,
        /// About which of the entities that it is shown.
        about: About<EntityRef>,
        /// What.
        payload: Vec<u8>,
    },
    /// A part of what a client shows was compared with the world, as
    /// [requested](crate::Server::audit).
    AuditReport {
        /// Who.
        peer: PeerId,
        /// What was not true; empty if all is well.
        differences: Vec<Divergence>,
        /// Whether that was all.
        last: bool,
    },
    /// A player did something, in one tick of his own. Each comes once and in order; of those that
    /// were long under way several may have become one, in which everything is pressed that was.
    Input {
        /// Who.
        peer: PeerId,
        /// What.
        input: Input,
    },
    /// Nothing was heard of a client for a while; it may come back.
    Silent(PeerId),
    /// It came back.
    Resumed(PeerId),
    /// Somebody left.
    Left {
        /// Who.
        peer: PeerId,
        /// Why.
        reason: CloseReason,
    },
}
