//! A client's side of the talk around a game.

use super::message::{ClientInfo, ClientMessage, ServerInfo, ServerMessage};
use super::roster::{PlayerId, Roster};
use super::stage::ClientStage;

/// What a client knows of the server and of the others there.
#[derive(Default)]
pub(crate) struct LobbyClient {
    /// What to say about the player; none for who does not take part.
    info: Option<ClientInfo>,
    stage: ClientStage,
    roster: Roster,
}

/// What the server said.
pub(crate) enum ClientLobbyEvent {
    Info(ServerInfo),
    Welcome(PlayerId),
    Reset(ServerInfo),
    Roster,
}

/// The server said what none may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LobbyViolation;

impl LobbyClient {
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
    pub(crate) fn handle(&mut self, message: &[u8]) -> Result<ClientLobbyEvent, LobbyViolation> {
        let message = ServerMessage::from_bytes(message).map_err(|_| LobbyViolation)?;
        self.stage.handle(&message).map_err(|_| LobbyViolation)?;
        Ok(match message {
            ServerMessage::Info(info) => ClientLobbyEvent::Info(info),
            ServerMessage::Welcome(player) => ClientLobbyEvent::Welcome(player),
            ServerMessage::Reset(info) => ClientLobbyEvent::Reset(info),
            ServerMessage::Roster(update) => {
                self.roster.apply(&update).map_err(|_| LobbyViolation)?;
                ClientLobbyEvent::Roster
            }
        })
    }

    pub(crate) fn roster(&self) -> &Roster {
        &self.roster
    }
}
