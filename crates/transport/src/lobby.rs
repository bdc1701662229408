//! What is said around a game: who is who, when somebody is ready, and who else is there.
//!
//! These are messages for a reliable ordered channel, and small machines that say which of them
//! may come when. A client says who it is, the server says what it is; the client loads what it
//! needs and says so, the server welcomes it. With a reset the server begins something else, and
//! the client loads again.
//!
//! Texts and bytes have limits in their types, so what can be said can be sent.

mod bounded;
mod client;
mod message;
mod roster;
mod roster_server;
mod server;
mod stage;

pub use bounded::{Bytes, Text, TooLong};
pub(crate) use client::{ClientLobbyEvent, LobbyClient};
pub use message::{ClientInfo, ClientMessage, ServerInfo, ServerMessage};
pub use roster::{Latency, MAX_PLAYERS, Player, PlayerId, Roster};
pub(crate) use server::{LobbyFault, LobbyPeer, LobbyServer, ServerLobbyEvent};

#[cfg(feature = "__test_hooks")]
pub use self::{
    message::MalformedMessage,
    roster::{RosterError, RosterUpdate},
    stage::{ClientStage, Reply, ServerStage, UnexpectedMessage},
};
