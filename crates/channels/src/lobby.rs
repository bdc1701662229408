//! The lobby: introductions, loading and the roster.
//!
//! This module has the lobby's messages, for a reliable ordered channel, and a machine for each end
//! that checks their order. The client sends its info and receives the server's; it loads what it
//! needs and reports that; the server welcomes it. After a reset by the server the client loads
//! again.
//!
//! Types limit the length of texts and bytes, so that every value that can be constructed can be
//! sent.

mod bounded;
mod client;
mod message;
mod roster;
mod roster_server;
mod server;
pub(crate) mod stage;

pub use bounded::{Bytes, Text, TooLong};
pub use client::{ClientLobbyEvent, LobbyClient, LobbyViolation};
pub use message::{ClientInfo, ClientMessage, MalformedMessage, ServerInfo, ServerMessage};
pub use roster::{Latency, MAX_PLAYERS, Player, PlayerId, Roster, RosterError, RosterUpdate};
pub use server::{LobbyFault, LobbyPeer, LobbyServer, ServerLobbyEvent};
