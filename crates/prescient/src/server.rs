//! A server: a world, a socket, and everybody who joined.

mod account;
mod apply_monitor;
mod event;
mod options;
mod peers;
mod queue;
mod receive;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use prescient_net::{BlockingServer, Socket, resolve};
use prescient_replication::{
    ClientConfig, PeerError, PeerId, Relevance, Tick, World, WorldError, WorldStep,
};
use prescient_schema::{EntityRef, Schema};
use prescient_transport::{ClientId, CloseReason, ProtocolId, TokenKey};

use crate::backlog::Backlog;
use crate::carrier::ServerCarrier;
use crate::client::Client;
use crate::error::ServeError;
use crate::protocol::{EVENTS, STATE, protocol};
use crate::watch::{self, Meters};
use crate::worlds::{MoveError, WorldId, Worlds};

use apply_monitor::ApplyMonitor;
pub use event::ServerEvent;
pub use options::ServerOptions;
use queue::EventQueue;

/// A world that others may join.
///
/// In every tick: [`poll`](Self::poll) until it is `None`, [`step`](Self::step) the world,
/// [`send`](Self::send), and [`wait`](Self::wait) for the next.
pub struct Server {
    carrier: ServerCarrier,
    worlds: Worlds,
    options: ServerOptions,
    /// Who is connected, but did not say yet by which schema it reads.
    arriving: BTreeMap<PeerId, (ClientId, Vec<u8>)>,
    /// Peers that broke the rules. Their connections are closing; what they sent before is ignored.
    refused: BTreeSet<PeerId>,
    /// What connections had no room for.
    backlogs: BTreeMap<PeerId, Backlog>,
    apply_monitor: ApplyMonitor,
    meters: Meters,
    events: EventQueue,
}

impl Server {
    /// A server for clients on this machine, without a backend: its key is known to everybody, and
    /// it answers nobody else.
    pub fn loopback(
        address: &str,
        schema: Schema,
        relevance: impl Relevance + 'static,
    ) -> Result<Self, ServeError> {
        let key = TokenKey::insecure_for_loopback_tests();
        Self::bind(address, key, schema, relevance, ServerOptions::default())
    }

    /// A server for everybody with a token that was sealed with this key for this address, or for
    /// one of those that are [`public`](ServerOptions::public).
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
        let public = match &options.public[..] {
            [] => vec![socket.address()],
            public => public.to_vec(),
        };
        let mut config = prescient_transport::ServerConfig::new(key, protocol, public);
        (config.limits, config.link) = (options.limits, options.link);
        let net = BlockingServer::new(socket, config)?;
        Ok(Self::new(Some(net), schema, relevance, options)?)
    }

    /// A server without a socket, for a game that is played alone: only its own
    /// [`local_client`](Self::local_client)s can join.
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
            worlds: Worlds::new(prescient_replication::Server::new(
                schema, config, relevance,
            )?),
            options,
            arriving: BTreeMap::new(),
            refused: BTreeSet::new(),
            backlogs: BTreeMap::new(),
            apply_monitor: ApplyMonitor::default(),
            meters: Meters::default(),
            events: EventQueue::default(),
        })
    }

    /// A client for a player at this machine. It has joined already, and is used like any other, on
    /// this thread or another, but no socket lies in between and nothing gets lost. It leaves when
    /// it is dropped.
    ///
    /// [`Joined`](ServerEvent::Joined) says that it is client 0, as whom
    /// [`Client::loopback`] joins, too; [`local_client_as`](Self::local_client_as) has it be somebody else.
    pub fn local_client(&mut self) -> Client {
        self.local_client_as(ClientId(0), Vec::new())
    }

    /// The same for a player of whom [`Joined`](ServerEvent::Joined) says what the token of others
    /// would say.
    pub fn local_client_as(&mut self, client: ClientId, data: Vec<u8>) -> Client {
        let config = ClientConfig {
            max_entities: self.options.replication.codec.max_entities,
            ..ClientConfig::default()
        };
        let view = prescient_replication::Client::new(self.world().schema().clone(), config);
        let mut view = view.expect("the schema was good enough for the server");
        let (peer, carrier) = self.carrier.add_local_client();
        self.welcome(peer, client, data);
        while let Some(message) = view.poll_message() {
            self.handle_message(peer, &message);
        }
        Client::from_local(view, carrier)
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
    pub fn step(&mut self) -> Result<WorldStep<'_>, WorldError> {
        watch::span!("step");
        let world_server = self.worlds.first_mut();
        world_server.step(next_tick(world_server))
    }

    /// The world, or the first of several.
    pub fn world(&self) -> &World {
        self.worlds.first().world()
    }

    /// A world that was [opened](Self::open_world); `None` if there is no such world.
    pub fn world_in(&self, world: WorldId) -> Option<&World> {
        Some(self.worlds.get(world)?.world())
    }

    /// Opens another world of the same schema: another map, match or room. It has ticks of its own,
    /// and things happen in it through [`step_in`](Self::step_in).
    pub fn open_world(
        &mut self,
        relevance: impl Relevance + 'static,
    ) -> Result<WorldId, WorldError> {
        let (schema, config) = (self.world().schema().clone(), self.options.replication);
        let world_server = prescient_replication::Server::new(schema, config, relevance)?;
        Ok(self.worlds.open(world_server))
    }

    /// Closes a world that nobody is in.
    pub fn close_world(&mut self, world: WorldId) -> Result<(), MoveError> {
        self.worlds.close(world)
    }

    /// Moves a peer to another world, from where it is shown that one; it has no eye and no team
    /// there yet. Its client hears that it [`Entered`](prescient_replication::Change::Entered).
    pub fn move_to(&mut self, peer: PeerId, world: WorldId) -> Result<(), MoveError> {
        self.meters.forget(self.worlds.world_of(peer), peer);
        self.worlds.move_to(peer, world)?;
        // Who is told where it is can make something of what it is shown by the next tick.
        self.send_messages(peer);
        Ok(())
    }

    /// Begins the next tick of a world; `None` if there is none.
    pub fn step_in(&mut self, world: WorldId) -> Option<Result<WorldStep<'_>, WorldError>> {
        watch::span!("step");
        let world_server = self.worlds.get_mut(world)?;
        Some(world_server.step(next_tick(world_server)))
    }

    /// Sends everybody what is new since the last time.
    pub fn send(&mut self) {
        watch::span!("send");
        let peers = self
            .worlds
            .iter()
            .flat_map(|world_server| world_server.peers());
        let peers: Vec<PeerId> = peers.collect();
        let waits = |peer: &PeerId| self.carrier.is_waiting(*peer, STATE);
        let waiting: BTreeSet<PeerId> = peers.iter().copied().filter(waits).collect();
        let (local_clients, packet) = (self.carrier.local_clients(), self.options.packet);
        let budget = |peer| match local_clients.contains_key(&peer) {
            // Nothing is too long for a local client.
            true => None,
            // What would only wait behind older state is not worth making.
            false if waiting.contains(&peer) => Some(0),
            false => Some(packet),
        };
        let state: Vec<_> = {
            watch::span!("encode");
            let world_servers = self.worlds.iter_mut();
            world_servers
                .flat_map(|world_server| world_server.encode(&budget))
                .collect()
        };
        // Before the state: who is told that it is elsewhere can make something of it.
        for &peer in &peers {
            self.send_messages(peer);
        }
        for (peer, message) in state {
            // What a connection has no room for is lost, as it might be on the way.
            if self.carrier.send(peer, STATE, &message).is_err() {
                self.backlogs.entry(peer).or_default().dropped += 1;
            }
        }
        let world_servers = self.worlds.iter();
        let overrun: Vec<PeerId> = world_servers
            .flat_map(|world_server| world_server.overrun())
            .collect();
        for peer in overrun {
            self.close(peer, CloseReason::Stalled);
        }
        self.close_not_applying(&peers);
        self.carrier.flush();
        self.meters
            .update(&self.worlds, self.carrier.socket_statistics());
    }

    /// Closes connections whose clients are heard of and apply nothing. Local clients are the program's own.
    fn close_not_applying(&mut self, peers: &[PeerId]) {
        let now = self.carrier.now();
        for &peer in peers {
            if self.carrier.local_clients().contains_key(&peer) {
                continue;
            }
            let span = match self.worlds.world_of(peer).unapplied(peer) {
                _ if self.arriving.contains_key(&peer) => {
                    self.apply_monitor.note_unready(peer, now)
                }
                Some(unapplied) => self.apply_monitor.note_unapplied(peer, unapplied, now),
                None => continue,
            };
            if span >= self.options.apply_timeout {
                self.close(peer, CloseReason::NotApplying);
            }
        }
    }

    /// Sends a peer what has to arrive, as far as there is room.
    fn send_messages(&mut self, peer: PeerId) {
        let backlog = self.backlogs.entry(peer).or_default();
        while let Some(message) = self.worlds.world_of_mut(peer).poll_message(peer) {
            backlog.push(message);
        }
        let carrier = &mut self.carrier;
        backlog.send(|message| carrier.send(peer, EVENTS, message));
        if backlog.bytes() > self.options.backlog {
            backlog.clear();
            carrier.close(peer, CloseReason::Stalled);
        }
    }

    /// The next thing that happened.
    pub fn poll(&mut self) -> Option<ServerEvent> {
        loop {
            // Nothing is taken in before the last event was polled: what a program has no time for
            // waits in the socket, which has a limit.
            if let Some(event) = self.events.pop() {
                return Some(event);
            }
            for peer in self.events.take_paused() {
                self.carrier.pause(peer, false);
            }
            let event = self.carrier.poll()?;
            self.handle(event);
        }
    }

    /// Waits for this long, whatever arrives, and takes that in. A client of which a thousand events
    /// wait to be [`poll`](Self::poll)ed, or 256 KiB of them, is paused until they were: what it sends
    /// meanwhile counts as lost, and arrives later if it must.
    pub fn wait(&mut self, span: Duration) {
        let until = self.carrier.now().after(span);
        while let Some(event) = self.carrier.wait_until(until) {
            self.handle(event);
            if self.carrier.now() >= until {
                return;
            }
        }
    }

    /// Tells a peer something that is about no entity. What is longer than
    /// [`max_message`](crate::LinkConfig::max_message) is not sent, and
    /// [counted](crate::PeerReport::too_long).
    pub fn send_event(&mut self, peer: PeerId, payload: &[u8]) -> Result<(), PeerError> {
        self.worlds.world_of_mut(peer).send_event(peer, payload)
    }

    /// Tells everybody who sees an entity, or will when this tick is [`send`](Self::send)ed, what
    /// happened to it.
    pub fn send_entity_event(
        &mut self,
        entity: EntityRef,
        payload: &[u8],
    ) -> Result<(), WorldError> {
        self.worlds.first_mut().send_entity_event(entity, payload)
    }

    /// Like [`send_entity_event`](Self::send_entity_event), for an entity of another world; `None` if
    /// there is no such world.
    pub fn send_entity_event_in(
        &mut self,
        world: WorldId,
        entity: EntityRef,
        payload: &[u8],
    ) -> Option<Result<(), WorldError>> {
        let world_server = self.worlds.get_mut(world)?;
        Some(world_server.send_entity_event(entity, payload))
    }

    /// Throws a peer out.
    pub fn kick(&mut self, peer: PeerId) {
        self.close(peer, CloseReason::Kicked);
    }

    /// Says goodbye to everybody, and returns when that is said.
    pub fn shut_down(self) {
        self.carrier.shut_down();
    }
}

fn next_tick(world_server: &prescient_replication::Server) -> Tick {
    let now = world_server.world().tick();
    Tick(now.map_or(1, |now| now.0.saturating_add(1)))
}
