//! The lobby of a server: its name and message of the day, who is there, and who is ready.

use std::collections::BTreeMap;
use std::time::Duration;

use prescient_channels::Time;
use prescient_channels::lobby::{
    ClientInfo, ClientLobbyEvent, Latency, LobbyFault, LobbyPeer, LobbyServer, Player, PlayerId,
    Roster, ServerInfo, ServerLobbyEvent, ServerMessage,
};
use prescient_replication::PeerId;

use crate::client::{Client, ClientEvent};
use crate::server::Server;

/// An action of a client in the lobby.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LobbyEvent {
    /// It introduced itself, or changed its info.
    Introduced(ClientInfo),
    /// It is ready: this player is in the roster from now on.
    Ready(PlayerId),
}

/// The lobby at a server.
pub(crate) struct Lobby {
    server: LobbyServer,
    peers: BTreeMap<PeerId, LobbyPeer>,
}

/// The effects of a client's message.
pub(crate) struct Handled {
    pub(crate) event: Option<LobbyEvent>,
    pub(crate) replies: Vec<Vec<u8>>,
}

impl Lobby {
    pub(crate) fn new(tick_interval: Duration, now: Time) -> Self {
        let info = ServerInfo {
            update_period: tick_interval,
            ..ServerInfo::default()
        };
        Self {
            server: LobbyServer::new(info, now),
            peers: BTreeMap::new(),
        }
    }

    pub(crate) fn handle(&mut self, peer: PeerId, message: &[u8]) -> Result<Handled, LobbyFault> {
        let lobby_peer = self.peers.entry(peer).or_default();
        let mut replies = Vec::new();
        let event = self.server.handle(lobby_peer, message, &mut replies)?;
        Ok(Handled {
            event: match event {
                ServerLobbyEvent::Info(info) => Some(LobbyEvent::Introduced(info)),
                ServerLobbyEvent::Plays(player) => Some(LobbyEvent::Ready(player)),
                ServerLobbyEvent::Nothing => None,
            },
            replies: replies.iter().map(to_bytes).collect(),
        })
    }

    pub(crate) fn leave(&mut self, peer: PeerId) {
        if let Some(mut lobby_peer) = self.peers.remove(&peer) {
            self.server.leave(&mut lobby_peer);
        }
    }

    /// Messages for all clients in the lobby.
    fn updates(&mut self, now: Time, round_trips: &BTreeMap<PeerId, Duration>) -> Vec<Vec<u8>> {
        for (peer, lobby_peer) in &self.peers {
            let latency = round_trips.get(peer).copied().map(Latency::of);
            self.server.note_latency(lobby_peer, latency);
        }
        let messages = self.server.poll_updates(now);
        messages.iter().map(to_bytes).collect()
    }

    fn introduced(&self) -> Vec<PeerId> {
        let peers = self.peers.iter();
        let peers = peers.filter(|(_, lobby_peer)| lobby_peer.is_introduced());
        peers.map(|(&peer, _)| peer).collect()
    }
}

impl Server {
    /// Sets what clients in the lobby are told of this server: its name, the message of the day and
    /// the game's own data, such as which map to load. Its
    /// [`update_period`](ServerInfo::update_period) and [`tick`](ServerInfo::tick) are filled in
    /// here. Clients that introduce themselves from now on get it; see
    /// [`restart_lobby`](Self::restart_lobby) for the others. At first all of it is empty.
    ///
    /// ```
    /// use prescient::{
    ///     ClientEvent, ClientInfo, Everything, LobbyEvent, Schema, Server, ServerEvent, ServerInfo,
    ///     State, Text,
    /// };
    /// # #[derive(State)]
    /// # struct Tank { #[state(step = 0.01)] x: f32 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Server::offline(Schema::of::<Tank>()?, Everything)?;
    /// server.set_info(ServerInfo {
    ///     name: Text::new("Zoë's server")?,
    ///     message_of_the_day: Text::new("Desert tonight")?,
    ///     ..ServerInfo::default()
    /// });
    /// let mut client = server.local_client();
    /// client.introduce(ClientInfo { name: Text::new("Ada")?, ..ClientInfo::default() });
    /// let mut is_ready = false;
    /// for _ in 0..9 {
    ///     while let Some(event) = server.poll() {
    ///         if let ServerEvent::Lobby { lobby: LobbyEvent::Ready(_), .. } = event {
    ///             is_ready = true; // it has loaded everything
    ///         }
    ///     }
    ///     server.step()?.finish();
    ///     server.send();
    ///     while let Some(event) = client.poll() {
    ///         if let ClientEvent::ServerInfo(info) = event {
    ///             assert_eq!(info.message_of_the_day.as_str(), "Desert tonight");
    ///             client.ready(); // now, or when the map is loaded
    ///         }
    ///     }
    /// }
    /// assert!(is_ready);
    /// let (_, ada) = server.players().next().expect("she is ready");
    /// assert_eq!(ada.info.name.as_str(), "Ada");
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_info(&mut self, info: ServerInfo) {
        let info = self.complete(info);
        self.lobby.server.set_info(info);
    }

    /// Starts over, as for the next round or another map: every client in the lobby gets `info`
    /// ([`ClientEvent::LobbyRestarted`](crate::ClientEvent::LobbyRestarted)) and has to be ready
    /// again. Players stay in the roster.
    pub fn restart_lobby(&mut self, info: ServerInfo) {
        let info = self.complete(info);
        let message = to_bytes(&self.lobby.server.reset(info));
        let peers = self.lobby.peers.iter_mut();
        let peers = peers.filter_map(|(&peer, lobby_peer)| lobby_peer.reset().then_some(peer));
        for peer in peers.collect::<Vec<_>>() {
            self.send_message(peer, message.clone());
        }
    }

    /// The players that are [ready](LobbyEvent::Ready), by id, with what their clients say of
    /// themselves and their round-trip times.
    pub fn players(&self) -> impl Iterator<Item = (PlayerId, &Player)> {
        self.lobby.server.players()
    }

    /// The player of a peer, once it is ready.
    pub fn player_of(&self, peer: PeerId) -> Option<PlayerId> {
        self.lobby.peers.get(&peer)?.player()
    }

    fn complete(&self, info: ServerInfo) -> ServerInfo {
        ServerInfo {
            update_period: self.tick_interval(),
            tick: self.world().tick().unwrap_or_default().0,
            ..info
        }
    }

    /// Sends the roster to all clients in the lobby, once a second.
    pub(crate) fn send_roster(&mut self) {
        let now = self.now();
        if self.lobby.peers.is_empty() || now < self.lobby.server.next_update() {
            return;
        }
        let peers = self.lobby.peers.keys();
        let round_trips =
            peers.filter_map(|&peer| Some((peer, self.statistics(peer)?.round_trip()?)));
        let round_trips = round_trips.collect();
        let messages = self.lobby.updates(now, &round_trips);
        for peer in self.lobby.introduced() {
            for message in &messages {
                self.send_message(peer, message.clone());
            }
        }
    }
}

impl Client {
    /// Enters the lobby with the player's name and the game's own data, such as a colour; other
    /// clients get both with the roster. Call it again when they change. The server's answer is
    /// [`ServerInfo`](crate::ClientEvent::ServerInfo). A client that does not call this gets
    /// neither that nor the roster, and plays all the same.
    pub fn introduce(&mut self, info: ClientInfo) {
        self.lobby.set_info(info);
        self.send_introduction();
    }

    /// Tells the server that everything it [asked for](ServerInfo::data) is loaded. Its answer is
    /// [`Ready`](crate::ClientEvent::Ready). Does nothing before
    /// [`ServerInfo`](crate::ClientEvent::ServerInfo) arrived.
    pub fn ready(&mut self) {
        if let Some(message) = self.lobby.loaded() {
            self.queue_message(put_kind(message.to_bytes()));
        }
    }

    /// The players that are ready, with their names and round-trip times, as of the last
    /// [`RosterChanged`](crate::ClientEvent::RosterChanged). The server sends changes once a second.
    pub fn roster(&self) -> &Roster {
        self.lobby.roster()
    }

    pub(crate) fn handle_lobby(&mut self, message: &[u8]) {
        match self.lobby.handle(message).map(client_event) {
            Ok(ClientEvent::RosterChanged)
                if self.events.back() == Some(&ClientEvent::RosterChanged) => {}
            Ok(event) => self.events.push_back(event),
            Err(_) => self.statistics.refused += 1,
        }
    }

    /// Queues a message of the lobby, in place of one of its kind that was not sent yet.
    fn queue_message(&mut self, message: Vec<u8>) {
        let kind = message.get(..2);
        match self.queued.iter_mut().find(|other| other.get(..2) == kind) {
            Some(other) => *other = message,
            None => self.queued.push_back(message),
        }
        self.send_messages();
    }

    /// Introduces the player on a new connection.
    pub(crate) fn send_introduction(&mut self) {
        if self.is_connected()
            && let Some(message) = self.lobby.introduction()
        {
            self.queue_message(put_kind(message.to_bytes()));
        }
    }
}

fn client_event(event: ClientLobbyEvent) -> ClientEvent {
    match event {
        ClientLobbyEvent::Info(info) => ClientEvent::ServerInfo(info),
        ClientLobbyEvent::Welcome(player) => ClientEvent::Ready(player),
        ClientLobbyEvent::Reset(info) => ClientEvent::LobbyRestarted(info),
        ClientLobbyEvent::Roster => ClientEvent::RosterChanged,
    }
}

fn to_bytes(message: &ServerMessage) -> Vec<u8> {
    put_kind(message.to_bytes())
}

/// A message of the lobby among those of `prescient-replication`.
fn put_kind(mut message: Vec<u8>) -> Vec<u8> {
    message.insert(0, LOBBY);
    message
}

/// A message of the lobby, if it is one.
pub(crate) fn message(message: &[u8]) -> Option<&[u8]> {
    message.strip_prefix(&[LOBBY])
}

/// The first byte of messages of the lobby.
const LOBBY: u8 = 0xf6;
