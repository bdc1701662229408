//! The lobby: introductions, loading and the roster.
//!
//! This module has the lobby's messages, which use a reliable ordered channel, and state machines
//! that check their order. The client sends its info and receives the server's; it loads what it
//! needs and reports that; the server welcomes it. After a reset by the server the client loads
//! again.
//!
//! Types limit the length of texts and bytes, so that every value that can be constructed can be
//! sent.
#![allow(
    unreachable_pub,
    reason = "tests and fuzzers reach it through the feature `__test_hooks`"
)]

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
