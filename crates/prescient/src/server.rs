//! A server: a world, a socket, and everybody who joined.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use prescient_net::{BlockingServer, Socket, SocketStatistics, resolve};
use prescient_replication::{
    About, FromClient, PeerError, PeerId, PeerStatistics, Relevance, ServerConfig, Step, Tick,
    World, WorldError,
};
use prescient_schema::{EntityRef, Schema};
use prescient_transport::{
    ClientId, CloseReason, ConnectionId, Limits, LinkConfig, ProtocolId, Received, SendError,
    Statistics, TokenKey,
};

use crate::error::ServeError;
use crate::protocol::{EVENTS, STATE, protocol_of};

/// What a server does by default.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// Bytes of state in a packet at most. One that has to be cut into parts is lost with any of
    /// them.
    pub packet: usize,
    /// How state is coded and looked at.
    pub replication: ServerConfig,
    /// How many may come.
    pub limits: Limits,
    /// The server's side of every connection.
    pub link: LinkConfig,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            packet: 1100,
            replication: ServerConfig::default(),
            limits: Limits::default(),
            link: LinkConfig::default(),
        }
    }
}

/// What happened at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// Somebody joined, and is shown the world from the next [`send`](Server::send) on.
    Joined {
        /// What to call it.
        peer: PeerId,
        /// Who it is to the backend.
        client: ClientId,
        /// What the backend put into the token.
        data: Vec<u8>,
    },
    /// A client said something.
    Said {
        /// Who.
        peer: PeerId,
        /// About which of the objects that it is shown.
        about: About<EntityRef>,
        /// What.
        payload: Vec<u8>,
    },
    /// Nothing was heard of a client for a while; it may come back.
    Silent(PeerId),
    /// It came back.
    Resumed(PeerId),
    /// Somebody left.
    Left {
        /// Who.
        peer: PeerId,
        /// Why.
        reason: CloseReason,
    },
}

/// A world that others may join.
///
/// In every tick: [`poll`](Self::poll) until it is `None`, [`step`](Self::step) the world,
/// [`send`](Self::send), and [`wait`](Self::wait) for the next.
pub struct Server {
    net: BlockingServer,
    stage: prescient_replication::Server,
    protocol: ProtocolId,
    packet: usize,
    tick: Tick,
    /// The next event of those whose connections had no room for it.
    refused: BTreeMap<PeerId, Vec<u8>>,
    events: VecDeque<ServerEvent>,
}

impl Server {
    /// A server for clients on this machine, without a backend: its key is known to everybody, and
    /// it answers nobody else.
    pub fn local(
        address: &str,
        schema: Schema,
        relevance: impl Relevance + 'static,
    ) -> Result<Self, ServeError> {
        let key = TokenKey::insecure_for_loopback_tests();
        Self::bind(address, key, schema, relevance, ServerOptions::default())
    }

    /// A server for everybody with a token that was sealed with this key for this address.
    pub fn bind(
        address: &str,
        key: TokenKey,
        schema: Schema,
        relevance: impl Relevance + 'static,
        options: ServerOptions,
    ) -> Result<Self, ServeError> {
        let protocol = protocol_of(&schema);
        // A name that resolves to nothing is an error of its own.
        let addresses = resolve(address)?;
        let socket = Socket::bind(addresses[0])?;
        let public = vec![socket.address()];
        let mut config = prescient_transport::ServerConfig::new(key, protocol, public);
        (config.limits, config.link) = (options.limits, options.link);
        let stage = prescient_replication::Server::new(schema, options.replication, relevance)?;
        Ok(Self {
            net: BlockingServer::new(socket, config)?,
            stage,
            protocol,
            packet: options.packet,
            tick: Tick(0),
            refused: BTreeMap::new(),
            events: VecDeque::new(),
        })
    }

    /// What tokens for it have to name.
    pub fn protocol(&self) -> ProtocolId {
        self.protocol
    }

    /// Where clients reach it.
    pub fn address(&self) -> SocketAddr {
        self.net.address()
    }

    /// Begins the next tick, in which things happen to the world until this is dropped.
    pub fn step(&mut self) -> Result<Step<'_>, WorldError> {
        self.tick = Tick(self.tick.0.saturating_add(1));
        self.stage.step(self.tick)
    }

    /// The world.
    pub fn world(&self) -> &World {
        self.stage.world()
    }

    /// Sends everybody what is new since the last time.
    pub fn send(&mut self) {
        let Self {
            net, stage, packet, ..
        } = self;
        let packet = *packet;
        let messages = stage.encode(&|_| Some(packet));
        net.with(|server, now| {
            for (peer, message) in messages {
                // What a connection has no room for is lost, as it might be on the way.
                let _ = server.send(ConnectionId(peer.0), STATE, &message, now);
            }
        });
        let peers: Vec<PeerId> = stage.peers().collect();
        for peer in peers {
            let Self {
                net,
                stage,
                refused,
                ..
            } = self;
            net.with(|server, now| {
                while let Some(event) = refused.remove(&peer).or_else(|| stage.poll_event(peer)) {
                    let sent = server.send(ConnectionId(peer.0), EVENTS, &event, now);
                    if sent == Err(SendError::Backlogged) {
                        refused.insert(peer, event);
                        break;
                    }
                }
            });
        }
        let overrun: Vec<PeerId> = self.stage.overrun().collect();
        for peer in overrun {
            self.close(peer, CloseReason::Stalled);
        }
        self.net.flush();
    }

    /// The next thing that happened.
    pub fn poll(&mut self) -> Option<ServerEvent> {
        while let Some(event) = self.net.poll() {
            self.handle(event);
        }
        self.events.pop_front()
    }

    /// Waits, and takes in what arrives.
    pub fn wait(&mut self, span: Duration) {
        let until = self.net.now().after(span);
        while let Some(event) = self.net.wait_until(until) {
            self.handle(event);
        }
    }

    /// Tells a peer something that is about no object.
    pub fn tell(&mut self, peer: PeerId, payload: &[u8]) -> Result<(), PeerError> {
        self.stage.tell(peer, payload)
    }

    /// Tells everybody who sees an object, or will when this tick is [`send`](Self::send)ed, what
    /// happened to it.
    pub fn announce(&mut self, object: EntityRef, payload: &[u8]) -> Result<(), WorldError> {
        self.stage.announce(object, payload)
    }

    /// Throws a peer out.
    pub fn kick(&mut self, peer: PeerId) {
        self.close(peer, CloseReason::Kicked);
    }

    /// Says goodbye to everybody, and returns when that is said.
    pub fn shut_down(mut self) {
        self.net
            .with(|server, now| server.close_all(CloseReason::ShuttingDown, now));
        self.net.finish();
    }

    /// Who sees what: eyes, teams and statistics of peers.
    pub fn stage(&mut self) -> &mut prescient_replication::Server {
        &mut self.stage
    }

    /// What its socket did.
    pub fn socket_statistics(&self) -> SocketStatistics {
        self.net.statistics()
    }

    /// What happened between the server and a peer: packets and round trips, and state.
    pub fn statistics(&self, peer: PeerId) -> Option<(Statistics, PeerStatistics)> {
        let connection = self.net.machine().statistics(ConnectionId(peer.0))?;
        Some((connection, self.stage.statistics(peer)?))
    }

    fn handle(&mut self, event: prescient_transport::ServerEvent) {
        use prescient_transport::ServerEvent as Net;
        match event {
            Net::Connected {
                connection,
                client,
                data,
                ..
            } => {
                let peer = PeerId(connection.0);
                self.stage.connect(peer);
                self.events
                    .push_back(ServerEvent::Joined { peer, client, data });
            }
            Net::Received {
                connection,
                received: Received::Message { message, .. },
            } => self.hear(PeerId(connection.0), &message),
            Net::Silent { connection } => {
                self.events
                    .push_back(ServerEvent::Silent(PeerId(connection.0)));
            }
            Net::Resumed { connection } => {
                self.events
                    .push_back(ServerEvent::Resumed(PeerId(connection.0)));
            }
            Net::Closed { connection, reason } => self.forget(PeerId(connection.0), reason),
            _ => {}
        }
    }

    fn hear(&mut self, peer: PeerId, message: &[u8]) {
        match self.stage.handle(peer, message) {
            Ok(FromClient::Event { about, payload }) => {
                let said = ServerEvent::Said {
                    peer,
                    about,
                    payload,
                };
                self.events.push_back(said);
            }
            Ok(FromClient::Applied) | Err(PeerError::NoSuchPeer(_)) => {}
            Err(_) => self.close(peer, CloseReason::Violation),
        }
    }

    fn close(&mut self, peer: PeerId, reason: CloseReason) {
        self.net
            .with(|server, now| server.close(ConnectionId(peer.0), reason, now));
    }

    fn forget(&mut self, peer: PeerId, reason: CloseReason) {
        self.stage.disconnect(peer);
        self.refused.remove(&peer);
        self.events.push_back(ServerEvent::Left { peer, reason });
    }
}
