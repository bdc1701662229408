//! The client's side of the lobby.

use super::message::{ClientInfo, ClientMessage, ServerInfo, ServerMessage};
use super::roster::{PlayerId, Roster};
use super::stage::ClientStage;

/// The client's end: its stage, and its copy of the roster.
#[derive(Default)]
pub struct LobbyClient {
    /// The player's info; `None` if the client does not take part in the lobby.
    info: Option<ClientInfo>,
    stage: ClientStage,
    roster: Roster,
}

/// The effect of a lobby message of the server on the game.
pub enum ClientLobbyEvent {
    /// The server's info; the client is to load what it names.
    Info(ServerInfo),
    /// The client is in the game.
    Welcome(PlayerId),
    /// The server starts over; the client is to load what the info names.
    Reset(ServerInfo),
    /// The roster changed.
    Roster,
}

/// The server sent a lobby message that it must not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LobbyViolation;

impl LobbyClient {
    /// Replaces the player's info.
    pub fn set_info(&mut self, info: ClientInfo) {
        self.info = Some(info);
    }

    /// The message with the player's info, if there is any.
    pub fn introduction(&self) -> Option<ClientMessage> {
        self.info.clone().map(ClientMessage::Info)
    }

    /// Reports that everything is loaded: the message to send, if the server waits for it.
    pub fn loaded(&mut self) -> Option<ClientMessage> {
        self.stage.loaded()
    }

    /// Handles a lobby message of the server.
    pub fn handle(&mut self, message: &[u8]) -> Result<ClientLobbyEvent, LobbyViolation> {
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

    /// Starts over with a new connection; the player's info stays.
    pub fn reconnect(&mut self) {
        self.stage = ClientStage::default();
        self.roster = Roster::new();
    }

    /// The players in the game.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }
}
