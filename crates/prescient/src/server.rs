//! A server: a world, a socket, and everybody who joined.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use prescient_net::{BlockingServer, Socket, SocketStatistics, resolve};
use prescient_replication::{
    About, Divergence, FromClient, PeerError, PeerId, PeerStatistics, Relevance, ServerConfig,
    Step, Tick, World, WorldError,
};
use prescient_schema::{Difference, EntityRef, Schema};
use prescient_transport::{
    ClientId, CloseReason, Limits, LinkConfig, ProtocolId, Received, SendError, Statistics,
    TokenKey,
};

use crate::carrier::ServerCarrier;
use crate::client::Client;
use crate::error::ServeError;
use crate::protocol::{EVENTS, STATE, protocol};

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
    /// Somebody was turned away because its schema is another, in what this names; *here* is the
    /// server.
    OtherSchema {
        /// Who it is to the backend.
        client: ClientId,
        /// What differs.
        differences: Vec<Difference>,
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
    /// What a client shows that was not true, as it was
    /// [asked](prescient_replication::Server::question); empty if all is well.
    Testified {
        /// Who.
        peer: PeerId,
        /// What.
        differences: Vec<Divergence>,
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
    carrier: ServerCarrier,
    stage: prescient_replication::Server,
    schema: Schema,
    options: ServerOptions,
    tick: Tick,
    /// Who is connected, but did not say yet by which schema it reads.
    arriving: BTreeMap<PeerId, (ClientId, Vec<u8>)>,
    /// Events that their connections had no room for.
    backlog: BTreeMap<PeerId, VecDeque<Vec<u8>>>,
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
        let protocol = protocol();
        // A name that resolves to nothing is an error of its own.
        let addresses = resolve(address)?;
        let socket = Socket::bind(addresses[0])?;
        let public = vec![socket.address()];
        let mut config = prescient_transport::ServerConfig::new(key, protocol, public);
        (config.limits, config.link) = (options.limits, options.link);
        let net = BlockingServer::new(socket, config)?;
        Ok(Self::new(Some(net), schema, relevance, options)?)
    }

    /// A server without a socket, for a game that is played alone: only its own
    /// [`seat`](Self::seat)s can join.
    pub fn offline(
        schema: Schema,
        relevance: impl Relevance + 'static,
    ) -> Result<Self, ServeError> {
        Ok(Self::new(
            None,
            schema,
            relevance,
            ServerOptions::default(),
        )?)
    }

    fn new(
        net: Option<BlockingServer>,
        schema: Schema,
        relevance: impl Relevance + 'static,
        options: ServerOptions,
    ) -> Result<Self, WorldError> {
        let config = options.replication;
        Ok(Self {
            carrier: ServerCarrier::new(net, &options.link),
            stage: prescient_replication::Server::new(schema.clone(), config, relevance)?,
            schema,
            options,
            tick: Tick(0),
            arriving: BTreeMap::new(),
            backlog: BTreeMap::new(),
            events: VecDeque::new(),
        })
    }

    /// A client for a player at this machine. It has joined already, and is used like any other, on
    /// this thread or another, but no socket lies in between and nothing gets lost. It leaves when
    /// it is dropped.
    ///
    /// [`Joined`](ServerEvent::Joined) says that it is client 0, as whom
    /// [`Client::local`] joins, too; [`seat_as`](Self::seat_as) has it be somebody else.
    pub fn seat(&mut self) -> Client {
        self.seat_as(ClientId(0), Vec::new())
    }

    /// The same for a player of whom [`Joined`](ServerEvent::Joined) says what the token of others
    /// would say.
    pub fn seat_as(&mut self, client: ClientId, data: Vec<u8>) -> Client {
        let config = self.options.replication.codec;
        let view = prescient_replication::Client::new(self.schema.clone(), config);
        let mut view = view.expect("the schema was good enough for the server");
        let (peer, carrier) = self.carrier.seat();
        self.welcome(peer, client, data);
        while let Some(message) = view.poll_message() {
            self.hear(peer, &message);
        }
        Client::new(view, carrier, true)
    }

    /// What tokens for it have to name.
    pub fn protocol(&self) -> ProtocolId {
        protocol()
    }

    /// Where clients reach it; `None` for one that is [`offline`](Self::offline).
    pub fn address(&self) -> Option<SocketAddr> {
        self.carrier.address()
    }

    /// Begins the next tick, in which things happen to the world until this is dropped.
    pub fn step(&mut self) -> Result<Step<'_>, WorldError> {
        self.tick = Tick(self.tick.0 + 1);
        self.stage.step(self.tick)
    }

    /// The world.
    pub fn world(&self) -> &World {
        self.stage.world()
    }

    /// Sends everybody what is new since the last time.
    pub fn send(&mut self) {
        let Self {
            carrier,
            stage,
            options,
            ..
        } = self;
        // Nothing is too long for a seat.
        let seats = carrier.seats();
        let budget = |peer| (!seats.contains_key(&peer)).then_some(options.packet);
        for (peer, message) in stage.encode(&budget) {
            // What a connection has no room for is lost, as it might be on the way.
            let _ = carrier.send(peer, STATE, &message);
        }
        let peers: Vec<PeerId> = stage.peers().collect();
        for peer in peers {
            self.send_messages(peer);
        }
        self.carrier.flush();
    }

    /// Sends a peer what has to arrive, as far as there is room.
    fn send_messages(&mut self, peer: PeerId) {
        let backlog = self.backlog.entry(peer).or_default();
        backlog.extend(std::iter::from_fn(|| self.stage.poll_message(peer)));
        while let Some(message) = backlog.front() {
            match self.carrier.send(peer, EVENTS, message) {
                Err(SendError::Backlogged) => break,
                Ok(()) | Err(_) => backlog.pop_front(),
            };
        }
    }

    /// The next thing that happened.
    pub fn poll(&mut self) -> Option<ServerEvent> {
        while let Some(event) = self.carrier.poll() {
            self.handle(event);
        }
        self.events.pop_front()
    }

    /// Waits, and takes in what arrives.
    pub fn wait(&mut self, span: Duration) {
        let until = self.carrier.now().after(span);
        while let Some(event) = self.carrier.wait_until(until) {
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
    pub fn shut_down(self) {
        self.carrier.shut_down();
    }

    /// Who sees what: eyes, teams and statistics of peers.
    pub fn stage(&mut self) -> &mut prescient_replication::Server {
        &mut self.stage
    }

    /// What its socket did.
    pub fn socket_statistics(&self) -> SocketStatistics {
        self.carrier.socket_statistics()
    }

    /// What happened between the server and a peer: packets and round trips, and state.
    pub fn statistics(&self, peer: PeerId) -> Option<(Statistics, PeerStatistics)> {
        let connection = self.carrier.statistics(peer)?;
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
            } => self.welcome(PeerId(connection.0), client, data),
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
        let heard = self.stage.handle(peer, message);
        if self.arriving.contains_key(&peer) {
            // Who waits at the door does not wait for the next tick.
            self.send_messages(peer);
        }
        if let Some(message) = self.stage.acknowledgement(peer) {
            // The next one says the same and more.
            let _ = self.carrier.send(peer, STATE, &message);
        }
        match heard {
            Ok(FromClient::Event { about, payload }) => {
                let said = ServerEvent::Said {
                    peer,
                    about,
                    payload,
                };
                self.events.push_back(said);
            }
            Ok(FromClient::Greeted) => {
                if let Some((client, data)) = self.arriving.remove(&peer) {
                    let joined = ServerEvent::Joined { peer, client, data };
                    self.events.push_back(joined);
                }
            }
            Ok(FromClient::Testified(differences)) => {
                let said = ServerEvent::Testified { peer, differences };
                self.events.push_back(said);
            }
            Err(PeerError::Schema(differences)) => {
                if let Some(&(client, _)) = self.arriving.get(&peer) {
                    let event = ServerEvent::OtherSchema {
                        client,
                        differences,
                    };
                    self.events.push_back(event);
                }
                self.close(peer, CloseReason::Violation);
            }
            Ok(FromClient::Applied) | Err(PeerError::NoSuchPeer(_)) => {}
            Err(_) => self.close(peer, CloseReason::Violation),
        }
    }

    fn close(&mut self, peer: PeerId, reason: CloseReason) {
        self.carrier.close(peer, reason);
    }

    fn welcome(&mut self, peer: PeerId, client: ClientId, data: Vec<u8>) {
        self.stage.connect(peer);
        self.arriving.insert(peer, (client, data));
    }

    fn forget(&mut self, peer: PeerId, reason: CloseReason) {
        self.stage.disconnect(peer);
        self.backlog.remove(&peer);
        // Who never joined does not leave.
        if self.arriving.remove(&peer).is_none() {
            self.events.push_back(ServerEvent::Left { peer, reason });
        }
    }
}
