//! What is said around a game: who is who, when somebody is ready, and who else is there.
//!
//! These are messages for a reliable ordered channel, and small machines that say which of them
//! may come when. A client says who it is, the server says what it is; the client loads what it
//! needs and says so, the server welcomes it. With a reset the server begins something else, and
//! the client loads again.
//!
//! Texts and bytes have limits in their types, so what can be said can be sent.

mod attendance;
mod bounded;
mod host;
mod message;
mod roster;
mod stage;
mod visit;

pub use bounded::{Bytes, Text, TooLong};
pub(crate) use host::{Guest, Heard, Host, Unwelcome};
pub use message::{ClientInfo, ClientMessage, ServerInfo, ServerMessage};
pub use roster::{Latency, MAX_PLAYERS, Player, PlayerNumber, Roster};
pub(crate) use visit::{Told, Visit};

#[cfg(feature = "rogue")]
pub use self::{
    message::MalformedMessage,
    roster::{RosterError, RosterUpdate},
    stage::{ClientStage, OutOfTurn, Owed, ServerStage},
};
