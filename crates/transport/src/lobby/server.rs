//! The server's side of the talk around a game: what it is, and who its guests are.

use super::message::{ClientInfo, ClientMessage, ServerInfo, ServerMessage};
use super::roster::{Latency, PlayerId};
use super::roster_server::{RosterServer, RosterServerError};
use super::stage::{Reply, ServerStage};
use crate::time::Time;

/// What a server knows of all its guests together.
pub(crate) struct LobbyServer {
    info: ServerInfo,
    roster_server: RosterServer,
}

/// One client.
#[derive(Default)]
pub(crate) struct LobbyPeer {
    stage: ServerStage,
    info: ClientInfo,
    player: Option<PlayerId>,
}

/// What a guest said, as far as the game cares.
pub(crate) enum ServerLobbyEvent {
    /// Who it is.
    Info(ClientInfo),
    /// It is in the game now.
    Plays(PlayerId),
    /// Something that is not true any more.
    Nothing,
}

/// A guest said what none may say, or there is no room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LobbyFault {
    Violation,
    Full,
}

impl LobbyServer {
    pub(crate) fn new(info: ServerInfo, now: Time) -> Self {
        Self {
            info,
            roster_server: RosterServer::new(now),
        }
    }

    /// Takes what a guest said; what to answer goes to `out`.
    pub(crate) fn handle(
        &mut self,
        lobby_peer: &mut LobbyPeer,
        message: &[u8],
        out: &mut Vec<ServerMessage>,
    ) -> Result<ServerLobbyEvent, LobbyFault> {
        let message = ClientMessage::from_bytes(message).map_err(|_| LobbyFault::Violation)?;
        let reply = lobby_peer.stage.handle(&message);
        match reply.map_err(|_| LobbyFault::Violation)? {
            Reply::Nothing => {}
            Reply::Info => {
                out.push(ServerMessage::Info(self.info.clone()));
                let known = self.roster_server.introduction();
                out.extend(known.into_iter().map(ServerMessage::Roster));
            }
            Reply::Welcome => {
                let player = self.join(lobby_peer)?;
                out.push(ServerMessage::Welcome(player));
                return Ok(ServerLobbyEvent::Plays(player));
            }
        }
        let ClientMessage::Info(info) = message else {
            return Ok(ServerLobbyEvent::Nothing);
        };
        lobby_peer.info = info.clone();
        if let Some(player) = lobby_peer.player
            && let Ok(player) = self.roster_server.player_mut(player)
        {
            player.info = info.clone();
        }
        Ok(ServerLobbyEvent::Info(info))
    }

    /// A guest that plays keeps its number through resets.
    fn join(&mut self, lobby_peer: &mut LobbyPeer) -> Result<PlayerId, LobbyFault> {
        if let Some(player) = lobby_peer.player {
            return Ok(player);
        }
        let joined = self.roster_server.join(lobby_peer.info.clone());
        let player = joined.map_err(|_: RosterServerError| LobbyFault::Full)?;
        lobby_peer.player = Some(player);
        Ok(player)
    }

    /// Everything begins anew, for newcomers as well; what to tell each guest.
    pub(crate) fn reset(&mut self, info: ServerInfo) -> ServerMessage {
        self.info = info;
        ServerMessage::Reset(self.info.clone())
    }

    /// What newcomers are told from now on.
    pub(crate) fn set_info(&mut self, info: ServerInfo) {
        self.info = info;
    }

    /// Notes how long a guest's round trip takes.
    pub(crate) fn note_latency(&mut self, lobby_peer: &LobbyPeer, latency: Option<Latency>) {
        if let Some(player) = lobby_peer.player
            && let Ok(player) = self.roster_server.player_mut(player)
        {
            player.latency = latency;
        }
    }

    /// A guest is gone.
    pub(crate) fn leave(&mut self, lobby_peer: &mut LobbyPeer) {
        if let Some(player) = lobby_peer.player.take() {
            let left = self.roster_server.leave(player);
            debug_assert!(left.is_ok(), "it had a number");
        }
    }

    /// Once a second: what to tell all guests.
    pub(crate) fn poll_updates(&mut self, now: Time) -> Vec<ServerMessage> {
        let updates = self.roster_server.poll_updates(now);
        updates.into_iter().map(ServerMessage::Roster).collect()
    }

    /// When [`poll_updates`](Self::poll_updates) may have something to say.
    pub(crate) fn next_update(&self) -> Time {
        self.roster_server.next_update()
    }
}

impl LobbyPeer {
    /// Whether it was told what the server is.
    pub(crate) fn is_introduced(&self) -> bool {
        self.stage != ServerStage::Waiting
    }

    /// Has to load again; `false` if there is nothing that it has loaded.
    pub(crate) fn reset(&mut self) -> bool {
        self.stage.reset()
    }
}
