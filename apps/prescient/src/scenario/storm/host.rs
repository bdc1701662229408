//! The server of a storm: replication on top of transport.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use prescient_channels::{ChannelId, CloseReason, ConnectionId, PacketBuffer, Received, SendError};
use prescient_replication::{
    About, Delivery, FromClient, PeerError, PeerId, Rooms, Server, ServerConfig, WorldError,
};
use prescient_sim::link::{EndpointId, Network};
use prescient_transport::{
    self as transport, LinkConfig, ProtocolId, ServerEvent, TokenKey, UnixTime,
};

use prescient::schema::Schema;

use super::dice::Dice;
use super::game::{Clock, SERVER};
use super::policy::Policy;
use super::verdict::{Fault, Verdict};

/// State and its acknowledgements.
pub(super) const STATE: ChannelId = ChannelId::UNRELIABLE;
/// Events, in both directions.
pub(super) const EVENTS: ChannelId = ChannelId::ORDERED;
/// The protocol id of a storm.
pub(super) const PROTOCOL: ProtocolId = ProtocolId(*b"prescient storm!");

/// The server of a storm.
pub(super) struct Host {
    pub server: Server,
    net: transport::Server,
    entropy: Dice,
    /// The peer of each connection, and the number of that connection.
    guests: BTreeMap<ConnectionId, (PeerId, u32)>,
    /// The connection of each peer, and the messages that it had no room for.
    current: BTreeMap<PeerId, (ConnectionId, VecDeque<Vec<u8>>)>,
    /// The peers whose `hello` has arrived.
    joined: BTreeSet<PeerId>,
}

/// Events of the server that the storm records.
pub(super) enum Happened {
    /// A peer joined, with this connection.
    Joined(PeerId, u32),
    /// A peer left.
    Left(PeerId),
    /// A peer's event arrived, over this connection.
    Event(PeerId, u32, About<prescient::schema::EntityRef>, Vec<u8>),
}

/// Short timeouts on both ends, so that a storm is short.
pub(super) fn link_config() -> LinkConfig {
    LinkConfig::default()
        .with_connect_timeout(Duration::from_millis(1500))
        .with_timeout(Duration::from_millis(1500))
        .with_keep_alive(Duration::from_millis(200))
        .with_quiet(Duration::from_millis(600))
}

/// The key of the tokens.
pub(super) fn token_key() -> TokenKey {
    TokenKey::new([7; 32]).expect("not the public one")
}

impl Host {
    pub(super) fn new(
        schema: Schema,
        config: ServerConfig,
        policy: Policy,
        mut entropy: Dice,
        clock: Clock,
    ) -> Result<Self, WorldError> {
        let server = match policy.is_settled() {
            true => {
                let rule = move |observer: &_, candidate: &_, seen| {
                    prescient_replication::Relevance::visibility(&policy, observer, candidate, seen)
                };
                Server::new(schema, config, rule)?
            }
            false => Server::new(schema, config, policy)?,
        };
        let limits = transport::Limits::default().with_handshakes_per_address(1000);
        let public = transport::ServerConfig::new(token_key(), PROTOCOL, vec![SERVER])
            .with_link(link_config())
            .with_limits(limits);
        let net = transport::Server::new(public, &mut entropy, clock.transport());
        Ok(Self {
            server,
            net: net.expect("the settings above can work"),
            entropy,
            guests: BTreeMap::new(),
            current: BTreeMap::new(),
            joined: BTreeSet::new(),
        })
    }

    /// The number of a joined peer's connection.
    pub(super) fn visit_of(&self, peer: PeerId) -> Option<u32> {
        let (connection, _) = self.current.get(self.joined.get(&peer)?)?;
        self.guests.get(connection).map(|&(_, visit)| visit)
    }

    /// Handles received packets and timers.
    pub(super) fn attend(
        &mut self,
        network: &mut Network,
        endpoint: EndpointId,
        clock: Clock,
        verdict: &mut Verdict,
    ) -> Vec<Happened> {
        let now = clock.transport();
        while let Ok(Some(datagram)) = network.poll(clock.0, endpoint) {
            self.net.handle_datagram(
                datagram.path.from,
                &datagram.bytes,
                now,
                UNIX,
                &mut self.entropy,
            );
        }
        if self.net.next_timeout().is_some_and(|due| due <= now) {
            self.net.handle_timeout(now);
        }
        let mut happened = Vec::new();
        while let Some(event) = self.net.poll_event() {
            happened.extend(self.handle(event, clock, verdict));
        }
        happened
    }

    /// Sends all pending datagrams; returns their number.
    pub(super) fn transmit(
        &mut self,
        network: &mut Network,
        endpoint: EndpointId,
        clock: Clock,
    ) -> u64 {
        let mut count = 0;
        while let Some(datagram) = self.net.poll_transmit(clock.transport()) {
            let sent = network.send(clock.0, endpoint, datagram.to, &datagram.bytes);
            sent.expect("the server is part of the network");
            count += 1;
        }
        count
    }

    /// Sends the newest tick to all peers. Returns all messages.
    pub(super) fn send_world(
        &mut self,
        rooms: &Rooms<'_>,
        clock: Clock,
        verdict: &mut Verdict,
    ) -> Vec<(PeerId, bool, Vec<u8>)> {
        let mut messages = Vec::new();
        self.server.encode(rooms);
        for (&peer, (connection, backlog)) in &mut self.current {
            while let Some(transmit) = self.server.poll_transmit(peer) {
                let message = transmit.message().to_vec();
                if transmit.delivery == Delivery::Reliable {
                    messages.push((peer, false, message.clone()));
                    backlog.push_back(message);
                    continue;
                }
                let buffer = PacketBuffer::with_headroom(transmit.buffer, transmit.headroom);
                let sent = (self.net).send_buffer(*connection, STATE, buffer, clock.transport());
                match sent {
                    Ok(()) | Err(SendError::Backlogged | SendError::NotConnected) => {}
                    Err(error) => verdict.note(Fault::Failure, || {
                        format!("{peer:?}: {} bytes of state: {error}", message.len())
                    }),
                }
                messages.push((peer, true, message));
            }
            while let Some(event) = backlog.front() {
                match self.net.send(*connection, EVENTS, event, clock.transport()) {
                    Err(SendError::Backlogged) => break,
                    Ok(()) | Err(_) => backlog.pop_front(),
                };
            }
        }
        messages
    }

    fn handle(
        &mut self,
        event: ServerEvent,
        clock: Clock,
        verdict: &mut Verdict,
    ) -> Option<Happened> {
        match event {
            ServerEvent::Connected {
                connection,
                client,
                data,
                ..
            } => {
                let peer = PeerId(client.0);
                let visit = data.try_into().map_or(0, u32::from_le_bytes);
                self.guests.insert(connection, (peer, visit));
                let before = self.current.insert(peer, (connection, VecDeque::new()));
                if let Some((before, _)) = before {
                    let now = clock.transport();
                    self.net.close(before, CloseReason::Kicked, now);
                }
                self.server.connect(peer);
                // A peer that reconnects has left until its `hello` arrives.
                self.joined.remove(&peer).then_some(Happened::Left(peer))
            }
            ServerEvent::Received {
                connection,
                received: Received::Message { message, .. },
            } => {
                let &(peer, visit) = self.guests.get(&connection)?;
                if self.current.get(&peer)?.0 != connection {
                    return None;
                }
                match self.server.handle(peer, &message) {
                    Ok(FromClient::Event { about, payload }) => {
                        Some(Happened::Event(peer, visit, about, payload))
                    }
                    Ok(FromClient::Greeted) => {
                        self.joined.insert(peer);
                        Some(Happened::Joined(peer, visit))
                    }
                    Ok(_) | Err(PeerError::NoSuchPeer(_)) => None,
                    Err(error) => {
                        verdict.note(Fault::Failure, || {
                            format!("{peer:?}, an honest client, was refused: {error}")
                        });
                        None
                    }
                }
            }
            ServerEvent::Closed { connection, reason } => {
                let (peer, _) = self.guests.remove(&connection)?;
                if !matches!(
                    reason,
                    CloseReason::TimedOut
                        | CloseReason::Finished
                        | CloseReason::Kicked
                        | CloseReason::Replaced
                ) {
                    verdict.note(Fault::Failure, || format!("{peer:?} was lost: {reason}"));
                }
                if self.current.get(&peer)?.0 != connection {
                    return None;
                }
                self.current.remove(&peer);
                self.server.disconnect(peer);
                self.joined.remove(&peer).then_some(Happened::Left(peer))
            }
            _ => None,
        }
    }
}

/// The wall-clock time of a storm, for the expiry of tokens.
pub(super) const UNIX: UnixTime = UnixTime(1_800_000_000);
