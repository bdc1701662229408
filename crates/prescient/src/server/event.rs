//! The events that a server reports.

use prescient_channels::{ClientId, CloseReason, Input, InputTick, RequestError, RequestId};
use prescient_replication::{About, Divergence, PeerId, Quality, Question, Reply, TypedEvent};
use prescient_schema::{Difference, EntityRef};

use crate::blobs::BlobEvent;
use crate::lobby::LobbyEvent;

/// An event that [`Server::poll`](crate::Server::poll) returns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A client joined. It is sent the world from the next [`send`](crate::Server::send) on.
    Joined {
        /// Its id at this server.
        peer: PeerId,
        /// Its account id, from its token.
        client: ClientId,
        /// The data that the backend put into its token.
        data: Vec<u8>,
    },
    /// A client was refused because its schema differs. In each [`Difference`], `here` is the
    /// server's side.
    OtherSchema {
        /// Its account id, from its token.
        client: ClientId,
        /// The differences.
        differences: Vec<Difference>,
    },
    /// A client sent an event.
    Event {
        /// The sender.
        peer: PeerId,
        /// The entity that it is about, if any.
        about: About<EntityRef>,
        /// The sender's bytes.
        payload: Vec<u8>,
    },
    /// A client sent an event of one of the schema's types ([`Client::tell`](crate::Client::tell)).
    Typed {
        /// The sender.
        peer: PeerId,
        /// The event.
        event: TypedEvent,
    },
    /// A client asks ([`Client::ask`](crate::Client::ask)); [`reply`](crate::Server::reply) to it.
    Asked {
        /// The client.
        peer: PeerId,
        /// The question; answer it with [`Server::reply`](crate::Server::reply).
        question: Question,
    },
    /// A client replied to what it was [asked](crate::Server::ask).
    Replied {
        /// The client.
        peer: PeerId,
        /// Its answer.
        reply: Reply,
    },
    /// A part of a state audit ([`Server::audit`](crate::Server::audit)): a client's state was
    /// compared with the server's.
    AuditReport {
        /// The audited client.
        peer: PeerId,
        /// The differences found; empty if the states agree.
        differences: Vec<Divergence>,
        /// Whether this is the last part.
        last: bool,
    },
    /// A player's input of one tick of the client. Inputs arrive once and in order; late ones may
    /// be merged into one, whose `pressed` is the union of theirs.
    Input {
        /// The sender.
        peer: PeerId,
        /// The tick of the client, as [`Client::act`](crate::Client::act) returned it.
        tick: InputTick,
        /// The input.
        input: Input,
    },
    /// Something happened to a blob ([`Server::offer_blob`](crate::Server::offer_blob)).
    Blob {
        /// The client.
        peer: PeerId,
        /// The event of the blob.
        blob: BlobEvent,
    },
    /// A client asks for an answer ([`Server::respond`](crate::Server::respond)).
    Request {
        /// The sender.
        peer: PeerId,
        /// Identifies the request.
        request: RequestId,
        /// The sender's bytes.
        message: Vec<u8>,
    },
    /// The answer to a [`Server::request`](crate::Server::request), or why there is none.
    Answer {
        /// The peer that was asked.
        peer: PeerId,
        /// The request.
        request: RequestId,
        /// The peer's bytes.
        answer: Result<Vec<u8>, RequestError>,
    },
    /// Something happened in the lobby ([`Server::set_info`](crate::Server::set_info)).
    Lobby {
        /// The client.
        peer: PeerId,
        /// The event of the lobby.
        lobby: LobbyEvent,
    },
    /// What a client gets became coarser or rarer, or finer, because its connection changed
    /// ([`ServerOptions::with_adaptation`](crate::ServerOptions::with_adaptation)).
    QualityChanged {
        /// The client.
        peer: PeerId,
        /// Its quality now.
        quality: Quality,
    },
    /// A client has been silent for a while; it may resume.
    Silent(PeerId),
    /// A silent client is responsive again.
    Resumed(PeerId),
    /// A client's connection ended.
    Left {
        /// The client.
        peer: PeerId,
        /// Why it ended.
        reason: CloseReason,
    },
}
