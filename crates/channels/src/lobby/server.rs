//! The server's side of the lobby.

use crate::time::Time;

use super::message::{ClientInfo, ClientMessage, ServerInfo, ServerMessage};
use super::roster::{Latency, Player, PlayerId};
use super::roster_server::{RosterServer, RosterServerError};
use super::stage::{Reply, ServerStage};

/// The server's end: its info and the roster.
pub struct LobbyServer {
    info: ServerInfo,
    roster_server: RosterServer,
}

/// One client in the lobby.
#[derive(Default)]
pub struct LobbyPeer {
    stage: ServerStage,
    info: ClientInfo,
    player: Option<PlayerId>,
}

/// The effect of a lobby message of a client on the game.
pub enum ServerLobbyEvent {
    /// The client sent its info.
    Info(ClientInfo),
    /// The client is in the game now.
    Plays(PlayerId),
    /// The message was outdated by a reset.
    Nothing,
}

/// The client sent a lobby message that it must not send, or the roster is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LobbyFault {
    /// The client violated the protocol.
    Violation,
    /// The roster has no room.
    Full,
}

impl LobbyServer {
    /// A server with an empty roster.
    pub fn new(info: ServerInfo, now: Time) -> Self {
        Self {
            info,
            roster_server: RosterServer::new(now),
        }
    }

    /// Handles a lobby message of a client; answers are added to `out`.
    pub fn handle(
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

    /// Adds the client's player to the roster. A player keeps its id through resets.
    fn join(&mut self, lobby_peer: &mut LobbyPeer) -> Result<PlayerId, LobbyFault> {
        if let Some(player) = lobby_peer.player {
            return Ok(player);
        }
        let joined = self.roster_server.join(lobby_peer.info.clone());
        let player = joined.map_err(|_: RosterServerError| LobbyFault::Full)?;
        lobby_peer.player = Some(player);
        Ok(player)
    }

    /// Starts over, also for new clients; returns the message for each client.
    pub fn reset(&mut self, info: ServerInfo) -> ServerMessage {
        self.info = info;
        ServerMessage::Reset(self.info.clone())
    }

    /// Sets the info that new clients receive.
    pub fn set_info(&mut self, info: ServerInfo) {
        self.info = info;
    }

    /// Sets the latency of a client's player.
    pub fn note_latency(&mut self, lobby_peer: &LobbyPeer, latency: Option<Latency>) {
        if let Some(player) = lobby_peer.player
            && let Ok(player) = self.roster_server.player_mut(player)
        {
            player.latency = latency;
        }
    }

    /// Removes a client's player from the roster.
    pub fn leave(&mut self, lobby_peer: &mut LobbyPeer) {
        if let Some(player) = lobby_peer.player.take() {
            let left = self.roster_server.leave(player);
            debug_assert!(left.is_ok(), "it had a number");
        }
    }

    /// Once a second: the updates to send to all clients.
    pub fn poll_updates(&mut self, now: Time) -> Vec<ServerMessage> {
        let updates = self.roster_server.poll_updates(now);
        updates.into_iter().map(ServerMessage::Roster).collect()
    }

    /// All players in the game, by id.
    pub fn players(&self) -> impl Iterator<Item = (PlayerId, &Player)> {
        self.roster_server.players()
    }

    /// When [`poll_updates`](Self::poll_updates) may return messages.
    pub fn next_update(&self) -> Time {
        self.roster_server.next_update()
    }
}

impl LobbyPeer {
    /// Whether the client was sent the server's info.
    pub fn is_introduced(&self) -> bool {
        self.stage != ServerStage::Waiting
    }

    /// The client's player, once it is in the game.
    pub fn player(&self) -> Option<PlayerId> {
        self.player
    }

    /// The client has to load again; `false` if it needs no reset.
    pub fn reset(&mut self) -> bool {
        self.stage.reset()
    }
}
