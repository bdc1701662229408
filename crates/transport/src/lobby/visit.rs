//! A client's side of the talk around a game.

use super::message::{ClientInfo, ClientMessage, ServerInfo, ServerMessage};
use super::roster::{PlayerNumber, Roster};
use super::stage::ClientStage;

/// What a client knows of the server and of the others there.
#[derive(Default)]
pub(crate) struct Visit {
    /// What to say about the player; none for who does not take part.
    info: Option<ClientInfo>,
    stage: ClientStage,
    roster: Roster,
}

/// What the server said.
pub(crate) enum Told {
    Info(ServerInfo),
    Welcome(PlayerNumber),
    Reset(ServerInfo),
    Roster,
}

/// The server said what none may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nonsense;

impl Visit {
    /// Says something else about the player from now on.
    pub(crate) fn set_info(&mut self, info: ClientInfo) {
        self.info = Some(info);
    }

    /// The message that says who the player is, if it is to be said.
    pub(crate) fn introduction(&self) -> Option<ClientMessage> {
        self.info.clone().map(ClientMessage::Info)
    }

    /// Everything is loaded: the message that says so, if it is the time for it.
    pub(crate) fn loaded(&mut self) -> Option<ClientMessage> {
        self.stage.loaded()
    }

    /// Takes what the server said.
    pub(crate) fn handle(&mut self, message: &[u8]) -> Result<Told, Nonsense> {
        let message = ServerMessage::from_bytes(message).map_err(|_| Nonsense)?;
        self.stage.handle(&message).map_err(|_| Nonsense)?;
        Ok(match message {
            ServerMessage::Info(info) => Told::Info(info),
            ServerMessage::Welcome(player) => Told::Welcome(player),
            ServerMessage::Reset(info) => Told::Reset(info),
            ServerMessage::Roster(update) => {
                self.roster.apply(&update).map_err(|_| Nonsense)?;
                Told::Roster
            }
        })
    }

    pub(crate) fn roster(&self) -> &Roster {
        &self.roster
    }
}
