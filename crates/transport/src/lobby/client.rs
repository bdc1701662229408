//! The client's side of the lobby.

use super::message::{ClientInfo, ClientMessage, ServerInfo, ServerMessage};
use super::roster::{PlayerId, Roster};
use super::stage::ClientStage;

/// The client's stage, and its copy of the roster.
#[derive(Default)]
pub(crate) struct LobbyClient {
    /// The player's info; `None` if the client does not take part in the lobby.
    info: Option<ClientInfo>,
    stage: ClientStage,
    roster: Roster,
}

/// What a lobby message of the server means for the game.
pub(crate) enum ClientLobbyEvent {
    Info(ServerInfo),
    Welcome(PlayerId),
    Reset(ServerInfo),
    Roster,
}

/// The server sent a lobby message that it must not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LobbyViolation;

impl LobbyClient {
    /// Replaces the player's info.
    pub(crate) fn set_info(&mut self, info: ClientInfo) {
        self.info = Some(info);
    }

    /// The message with the player's info, if there is any.
    pub(crate) fn introduction(&self) -> Option<ClientMessage> {
        self.info.clone().map(ClientMessage::Info)
    }

    /// Reports that everything is loaded: the message to send, if the server waits for it.
    pub(crate) fn loaded(&mut self) -> Option<ClientMessage> {
        self.stage.loaded()
    }

    /// Handles a lobby message of the server.
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
