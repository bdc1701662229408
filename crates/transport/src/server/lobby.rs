//! Lobby messages to and from clients, and the roster.

use prescient_channels::{CloseReason, ConnectionId, Time};

use super::{Server, ServerEvent};
use prescient_channels::lobby::{Latency, LobbyFault, ServerInfo, ServerLobbyEvent, ServerMessage};

impl Server {
    /// Sets the info that new clients receive.
    pub fn set_info(&mut self, info: ServerInfo) {
        self.lobby.set_info(info);
    }

    /// Starts over: all clients that sent their info have to load again.
    pub fn reset(&mut self, info: ServerInfo, now: Time) {
        let now = self.clock.advance(now);
        let message = self.lobby.reset(info);
        let all = self.connections.iter_mut();
        let concerned = all.filter_map(|(&id, client_connection)| {
            client_connection.lobby_peer.reset().then_some(id)
        });
        for id in concerned.collect::<Vec<_>>() {
            self.send_lobby(id, &message, now);
        }
    }

    pub(super) fn receive_lobby(&mut self, id: ConnectionId, now: Time) {
        while let Some(client_connection) = self.connections.get_mut(&id)
            && let Some(message) = client_connection.connection.poll_lobby()
        {
            let mut answers = Vec::new();
            let connection = id;
            match self
                .lobby
                .handle(&mut client_connection.lobby_peer, &message, &mut answers)
            {
                Ok(ServerLobbyEvent::Nothing) => {}
                Ok(ServerLobbyEvent::Info(info)) => {
                    self.events.push(ServerEvent::Info { connection, info })
                }
                Ok(ServerLobbyEvent::Plays(player)) => {
                    self.events.push(ServerEvent::Plays { connection, player });
                }
                Err(LobbyFault::Violation) => return self.leave(id, CloseReason::Violation, now),
                Err(LobbyFault::Full) => return self.leave(id, CloseReason::Kicked, now),
            }
            for answer in answers {
                self.send_lobby(id, &answer, now);
            }
        }
    }

    /// Sends a lobby message to a client that is in the lobby.
    fn send_lobby(&mut self, id: ConnectionId, message: &ServerMessage, now: Time) {
        if let Some(exchange) = self.exchange(id)
            && !exchange.send_lobby(message.to_bytes())
        {
            self.leave(id, CloseReason::Stalled, now);
        }
    }

    /// Sends roster changes and latencies to all clients in the lobby.
    pub(super) fn send_roster(&mut self, now: Time) {
        let mut introduced = Vec::new();
        for (&id, client_connection) in &self.connections {
            let latency = client_connection.connection.round_trip().map(Latency::of);
            self.lobby
                .note_latency(&client_connection.lobby_peer, latency);
            if client_connection.lobby_peer.is_introduced() {
                introduced.push(id);
            }
        }
        for update in self.lobby.poll_updates(now) {
            for id in &introduced {
                self.send_lobby(*id, &update, now);
            }
        }
    }
}
