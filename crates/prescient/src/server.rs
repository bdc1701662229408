//! The server: its worlds, its socket and its peers.

mod adaptation;
mod apply_monitor;
mod event;
mod input_buffers;
mod peers;
mod queues;
mod receive;
mod statistics;
mod ticks;
mod typed_events;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use prescient_channels::{
    Capacity, Carrier, ClientId, CloseReason, ConnectionId, PacketBuffer, Time,
};
use prescient_replication::{
    ClientConfig, Delivery, PeerError, PeerId, Publisher, PublisherConfig, PublisherConfigError,
    Relevance, Room, Tick, TickClock, Transmit, World, WorldError, WorldStep,
};
use prescient_schema::{EntityRef, Schema};

use crate::carriers::Carriers;
use crate::client::Client;
use crate::client_events::channel_of;
use crate::error::ServeError;
use crate::lobby::Lobby;
use crate::options::ServerOptions;
use crate::protocol::EVENTS;
use crate::record::ServerRecording;
use crate::watch::{self, Meters};
use crate::worlds::{MoveError, WorldId, Worlds};

use adaptation::Adaptations;
use apply_monitor::ApplyMonitor;
pub use event::ServerEvent;
use input_buffers::InputBuffers;
use queues::{Backlog, EventQueue};
pub use statistics::{Expense, PeerReport};
use ticks::Ticks;

/// A server with one or more worlds that clients join.
///
/// Every tick: wait for it ([`next_tick`](Self::next_tick)), [`poll`](Self::poll) until it returns
/// `None`, change the world in a [`step`](Self::step), and [`send`](Self::send).
///
/// From [`Joined`](ServerEvent::Joined) until [`Left`](ServerEvent::Left) is polled, every call
/// about that peer succeeds. If its connection has ended meanwhile, such a call does nothing.
pub struct Server {
    carriers: Carriers,
    worlds: Worlds,
    options: ServerOptions,
    #[cfg(feature = "udp")]
    pub(crate) address: Option<std::net::SocketAddr>,
    /// Connected peers that have not sent a matching schema fingerprint yet.
    arriving: BTreeMap<PeerId, (ClientId, Vec<u8>)>,
    /// Peers that violated the protocol. Their connections are closing; their messages are ignored.
    refused: BTreeSet<PeerId>,
    /// Messages that connections had no room for yet.
    backlogs: BTreeMap<PeerId, Backlog>,
    apply_monitor: ApplyMonitor,
    adaptations: Adaptations,
    meters: Meters,
    events: EventQueue,
    /// When the current tick was due, if the program waits by [`next_tick`](Self::next_tick).
    due: Option<Time>,
    /// Peers that were not told when ticks are due.
    without_clock: BTreeSet<PeerId>,
    ticks: Ticks,
    input_buffers: InputBuffers,
    /// The account ids of all connected peers.
    clients: BTreeMap<PeerId, ClientId>,
    banned: BTreeSet<ClientId>,
    /// Peers whose end the program has not polled yet.
    leaving: BTreeSet<PeerId>,
    pub(crate) lobby: Lobby,
    pub(crate) recording: Option<ServerRecording>,
}

impl Server {
    /// A server that clients join over a carrier of the program's choice.
    pub fn with_carrier(
        carrier: impl Carrier + 'static,
        schema: Schema,
        relevance: impl Relevance + 'static,
        options: ServerOptions,
    ) -> Result<Self, ServeError> {
        let mut server = Self::new(schema, relevance, options)?;
        server.add_carrier(carrier);
        Ok(server)
    }

    /// Lets clients join over another carrier, too.
    pub fn add_carrier(&mut self, carrier: impl Carrier + 'static) {
        self.carriers.add(Box::new(carrier));
    }

    /// A server without a socket, for single-player games: only its own
    /// [`local_client`](Self::local_client)s can join, until a carrier is
    /// [added](Self::add_carrier).
    pub fn offline(
        schema: Schema,
        relevance: impl Relevance + 'static,
    ) -> Result<Self, ServeError> {
        Self::offline_with(schema, relevance, ServerOptions::default())
    }

    /// Like [`offline`](Self::offline), with options.
    pub fn offline_with(
        schema: Schema,
        relevance: impl Relevance + 'static,
        options: ServerOptions,
    ) -> Result<Self, ServeError> {
        Self::new(schema, relevance, options)
    }

    fn new(
        schema: Schema,
        relevance: impl Relevance + 'static,
        options: ServerOptions,
    ) -> Result<Self, ServeError> {
        options.check()?;
        let config = options.replication.clone();
        let carriers = Carriers::new(options.max_message());
        Ok(Self {
            lobby: Lobby::new(options.tick_interval, carriers.now()),
            carriers,
            worlds: Worlds::new(prescient_replication::Server::new(
                schema, config, relevance,
            )?),
            #[cfg(feature = "udp")]
            address: None,
            options,
            arriving: BTreeMap::new(),
            refused: BTreeSet::new(),
            backlogs: BTreeMap::new(),
            apply_monitor: ApplyMonitor::default(),
            adaptations: Adaptations::default(),
            meters: Meters::default(),
            events: EventQueue::default(),
            due: None,
            without_clock: BTreeSet::new(),
            ticks: Ticks::default(),
            input_buffers: InputBuffers::default(),
            clients: BTreeMap::new(),
            banned: BTreeSet::new(),
            leaving: BTreeSet::new(),
            recording: None,
        })
    }

    /// Adds a client in this process. It has joined already and is used like any other client, on
    /// this thread or another, but without a socket and without loss. Its
    /// [history](ClientConfig::with_history) is as long as the server's. Dropping it leaves the server.
    ///
    /// Its [`Joined`](ServerEvent::Joined) event has client id 0; use [`local_client_as`](Self::local_client_as) for another id.
    pub fn local_client(&mut self) -> Client {
        self.local_client_as(ClientId(0), Vec::new())
    }

    /// Like [`local_client`](Self::local_client), with the client id and data that
    /// [`Joined`](ServerEvent::Joined) is to report, as a token would carry them.
    pub fn local_client_as(&mut self, client: ClientId, data: Vec<u8>) -> Client {
        let config = ClientConfig::default()
            .with_max_entities(self.options.replication.codec().max_entities())
            .with_history(self.options.replication.history());
        let config = match self.options.replication.prior() {
            Some(prior) => config.with_prior(prior.clone()),
            None => config,
        };
        let view = prescient_replication::Client::new(self.world().schema().clone(), config);
        let mut view = view.expect("the schema was good enough for the server");
        let (peer, carrier) = self.carriers.add_local_client();
        self.welcome(peer, client, data);
        while let Some(message) = view.poll_message() {
            self.handle_message(peer, &message);
        }
        Client::from_local(view, carrier)
    }

    /// Opens the present tick of the first world; changes go through the returned step until it is
    /// dropped.
    ///
    /// A tick begins with the first call after [`send`](Self::send) or
    /// [`next_tick`](Self::next_tick), and ends with either of them. All calls in between open the
    /// same tick again, so the world can be changed where events are polled, and the server can be
    /// used as always between two changes:
    ///
    /// ```
    /// # use prescient::{Everything, Schema, Server, State};
    /// # #[derive(State)]
    /// # struct Slider { #[state(step = 0.01)] x: f32 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Server::offline(Schema::of::<Slider>()?, Everything)?;
    /// let one = server.step()?.spawn(&Slider { x: 1.0 })?;
    /// let two = server.step()?.spawn(&Slider { x: 2.0 })?;
    /// server.send_entity_event(one, b"hello")?;
    /// server.step()?.set(two, &Slider { x: 2.5 })?;
    /// assert_eq!(server.world().tick(), Some(prescient::Tick(1)));
    /// server.send();
    /// server.step()?.set(two, &Slider { x: 3.0 })?;
    /// assert_eq!(server.world().tick(), Some(prescient::Tick(2)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// To change many entities keep the step: opening a tick costs more than a change.
    ///
    /// A program that waits by [`next_tick`](Self::next_tick) has one tick per call of it. Further
    /// ticks in between are possible and almost always a mistake, because clients predict with the
    /// tick interval: they are counted as [`unscheduled_ticks`](Self::unscheduled_ticks).
    pub fn step(&mut self) -> Result<WorldStep<'_>, WorldError> {
        let step = self.step_in(WorldId::FIRST);
        step.expect("the first world is never closed")
    }

    /// Ticks that began without a [`next_tick`](Self::next_tick) of their own, in a program that
    /// otherwise uses it. With the feature `tracing`, the first is also an event of level warn.
    pub fn unscheduled_ticks(&self) -> u64 {
        self.ticks.unscheduled
    }

    /// The first world.
    pub fn world(&self) -> &World {
        self.worlds.first().world()
    }

    /// A world that was [opened](Self::open_world); `None` if there is no such world.
    pub fn world_in(&self, world: WorldId) -> Option<&World> {
        Some(self.worlds.get(world)?.world())
    }

    /// A publisher of the first world, for spectators and recordings: [`Publisher::publish`] makes
    /// one packet for all of them. For another world, use [`Publisher::new`].
    pub fn publisher(
        &self,
        config: PublisherConfig,
        relevance: impl Relevance + 'static,
    ) -> Result<Publisher, PublisherConfigError> {
        Publisher::new(self.world(), config, relevance)
    }

    /// Opens another world of the same schema: another map, match or room. It counts its own ticks
    /// and is changed through [`step_in`](Self::step_in).
    pub fn open_world(
        &mut self,
        relevance: impl Relevance + 'static,
    ) -> Result<WorldId, WorldError> {
        let (schema, config) = (
            self.world().schema().clone(),
            self.options.replication.clone(),
        );
        let world_server = prescient_replication::Server::new(schema, config, relevance)?;
        Ok(self.worlds.open(world_server))
    }

    /// Closes a world that has no peers.
    pub fn close_world(&mut self, world: WorldId) -> Result<(), MoveError> {
        self.worlds.close(world)
    }

    /// Moves a peer to another world; its view position and team are unset there. Its client gets
    /// [`Change::Entered`](prescient_replication::Change::Entered).
    pub fn move_to(&mut self, peer: PeerId, world: WorldId) -> Result<(), MoveError> {
        if self.leaving.contains(&peer) {
            return match self.worlds.get(world) {
                Some(_) => Ok(()),
                None => Err(MoveError::NoSuchWorld(world)),
            };
        }
        self.meters.forget(self.worlds.world_of(peer), peer);
        self.worlds.move_to(peer, world)?;
        self.without_clock.insert(peer);
        // A client that knows its world can apply that world's state from the next tick on.
        self.transmit(peer);
        Ok(())
    }

    /// Opens the present tick of a world, like [`step`](Self::step); `None` if there is no such
    /// world.
    pub fn step_in(&mut self, world: WorldId) -> Option<Result<WorldStep<'_>, WorldError>> {
        watch::span!("step");
        let world_server = self.worlds.get_mut(world)?;
        if !self.ticks.open(world) {
            return world_server.resume_step();
        }
        let step = world_server.step(next_tick(world_server));
        if step.is_err() {
            self.ticks.end_of(world);
        }
        Some(step)
    }

    /// Sends all peers the state and events that are new since the last call.
    pub fn send(&mut self) {
        watch::span!("send");
        self.ticks.end();
        let peers = self
            .worlds
            .iter()
            .flat_map(|world_server| world_server.peers());
        let peers: Vec<PeerId> = peers.collect();
        self.update_links(&peers);
        self.update_estimates(&peers);
        self.send_clocks();
        self.send_roster();
        let (carriers, options) = (&mut self.carriers, &self.options);
        let rooms: BTreeMap<PeerId, Room> = (peers.iter())
            .map(|&peer| (peer, room(carriers.capacity(peer), options)))
            .collect();
        let room_of = |peer: PeerId| rooms.get(&peer).copied().unwrap_or(Room::NONE);
        {
            watch::span!("encode");
            for world_server in self.worlds.iter_mut() {
                world_server.encode(&room_of);
            }
        }
        self.note_changed_qualities();
        for &peer in &peers {
            self.transmit(peer);
        }
        let world_servers = self.worlds.iter();
        let overrun: Vec<PeerId> = world_servers
            .flat_map(|world_server| world_server.overrun())
            .collect();
        for peer in overrun {
            self.close(peer, CloseReason::Stalled);
        }
        self.close_not_applying(&peers);
        self.carriers.flush();
        self.meters.update(&self.worlds, self.carriers.traffic());
        if let Some(recording) = &mut self.recording {
            recording.record(self.worlds.first().world());
        }
    }

    pub(crate) fn tick_interval(&self) -> Duration {
        self.options.tick_interval
    }

    /// Closes connections whose clients are responsive but apply no state, except local clients.
    fn close_not_applying(&mut self, peers: &[PeerId]) {
        let now = self.carriers.now();
        for &peer in peers {
            if self.carriers.is_local(peer) {
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

    /// Queues a reliable message for a peer.
    pub(crate) fn send_message(&mut self, peer: PeerId, message: Vec<u8>) {
        self.backlogs.entry(peer).or_default().push(EVENTS, message);
        self.transmit(peer);
    }

    /// Sends a peer what waits for it. Reliable messages wait further if there is no room.
    fn transmit(&mut self, peer: PeerId) {
        let (carriers, backlog) = (&mut self.carriers, self.backlogs.entry(peer).or_default());
        let world_server = self.worlds.world_of_mut(peer);
        backlog.send(|channel, message| carriers.send(peer, channel, message));
        while let Some(transmit) = world_server.poll_transmit(peer) {
            let Transmit {
                delivery,
                buffer,
                headroom,
            } = transmit;
            match delivery {
                Delivery::Reliable | Delivery::Unordered => {
                    backlog.push(channel_of(delivery), buffer);
                    backlog.send(|channel, message| carriers.send(peer, channel, message));
                }
                Delivery::Unreliable | Delivery::Sequenced => {
                    let message = PacketBuffer::with_headroom(buffer, headroom);
                    // A message without room is dropped, like a lost packet.
                    let sent = carriers.send_buffer(peer, channel_of(delivery), message);
                    backlog.dropped += u64::from(sent.is_err());
                }
            }
        }
        if backlog.take_broken() {
            world_server.restart_events(peer);
        }
        if backlog.bytes() > self.options.backlog {
            backlog.clear();
            carriers.close(peer, CloseReason::Stalled);
        }
    }

    /// The next event, if any.
    pub fn poll(&mut self) -> Option<ServerEvent> {
        loop {
            // Receives nothing until all queued events were polled, so that a slow program leaves
            // data in the socket, whose buffer is bounded.
            if let Some(event) = self.events.pop() {
                match event {
                    ServerEvent::Input { peer, tick, .. } => {
                        // A peer that has left meanwhile has no state to consume it.
                        let _ = self.worlds.world_of_mut(peer).note_input(peer, tick.0);
                    }
                    ServerEvent::Left { peer, .. } => {
                        self.leaving.remove(&peer);
                    }
                    _ => {}
                }
                return Some(event);
            }
            if let Some(event) = self.adaptations.pop() {
                return Some(event);
            }
            for peer in self.events.take_paused() {
                self.carriers.pause(peer, false);
            }
            let (peer, event) = self.carriers.poll()?;
            self.handle(peer, event);
        }
    }

    /// Waits for `span` and receives meanwhile; never returns early. A client with 1024 events or
    /// 256 KiB of them waiting to be [`poll`](Self::poll)ed is paused until all were polled: what
    /// it sends meanwhile counts as lost, and reliable messages are sent again.
    pub fn wait(&mut self, span: Duration) {
        let until = self.carriers.now().after(span);
        while let Some((peer, event)) = self.carriers.wait_until(until) {
            self.handle(peer, event);
            if self.carriers.now() >= until {
                return;
            }
        }
    }

    /// Waits until the next tick is due, and receives meanwhile like [`wait`](Self::wait). Call it
    /// once before every [`step`](Self::step).
    ///
    /// Ticks are due at fixed intervals ([`ServerOptions::with_tick_interval`]) from the first call on,
    /// however long a step takes: after a late tick the next ones follow faster, until the program
    /// has caught up. A program that is a quarter of a second behind does not catch up; from then
    /// on, ticks are due that much later.
    ///
    /// Clients are told when ticks are due, which gives them
    /// [`Client::server_tick`].
    pub fn next_tick(&mut self) {
        let due = self.next_due();
        self.wait(due.since(self.carriers.now()));
        self.begin_scheduled(due);
    }

    /// When the next tick is due.
    pub(crate) fn next_due(&mut self) -> Time {
        let (now, interval) = (self.carriers.now(), self.options.tick_interval);
        match self.due {
            Some(due) if now.since(due.after(interval)) < MAX_BEHIND => due.after(interval),
            _ => {
                self.without_clock = self.peers().collect();
                now
            }
        }
    }

    /// Notes that a tick is due now.
    pub(crate) fn begin_scheduled(&mut self, due: Time) {
        self.due = Some(due);
        self.ticks.schedule();
        self.hand_out_inputs();
    }

    /// Handles what has arrived; returns the time that is left until then.
    #[cfg(feature = "tokio")]
    pub(crate) fn receive_until(&mut self, until: Time) -> Duration {
        while self.carriers.now() < until
            && let Some((peer, event)) = self.carriers.poll()
        {
            self.handle(peer, event);
        }
        until.since(self.carriers.now())
    }

    pub(crate) fn now(&self) -> Time {
        self.carriers.now()
    }

    /// Tells peers when ticks are due, after that of the present tick is known.
    fn send_clocks(&mut self) {
        let Some(due) = self.due else {
            return;
        };
        // The options were checked: an interval has at most 32 bits.
        let interval_micros = self.options.tick_interval.as_micros() as u32;
        for peer in std::mem::take(&mut self.without_clock) {
            let world_server = self.worlds.world_of_mut(peer);
            let tick = world_server.world().tick();
            let due = self.carriers.on_carriers_clock(peer, due);
            if let Some((tick, due)) = tick.zip(due) {
                let clock = TickClock {
                    tick,
                    due_micros: due.as_micros(),
                    interval_micros,
                };
                // A peer that has left needs no clock.
                let _ = world_server.send_clock(peer, clock);
            }
        }
    }

    /// Sends a peer an event that is about no entity. A payload longer than
    /// [the longest message](crate::ExchangeConfig::with_max_message) is not sent, and
    /// [counted](crate::PeerReport::too_long).
    pub fn send_event(&mut self, peer: PeerId, payload: &[u8]) -> Result<(), PeerError> {
        self.about_peer(peer, |world_server| world_server.send_event(peer, payload))
    }

    /// Sends an event about an entity to all peers that see it, now or after this tick's
    /// [`send`](Self::send).
    pub fn send_entity_event(
        &mut self,
        entity: impl Into<EntityRef>,
        payload: &[u8],
    ) -> Result<(), WorldError> {
        let world_server = self.worlds.first_mut();
        world_server.send_entity_event(entity.into(), payload)
    }

    /// Like [`send_entity_event`](Self::send_entity_event), for an entity of any world; `None` if
    /// there is no such world.
    pub fn send_entity_event_in(
        &mut self,
        world: WorldId,
        entity: impl Into<EntityRef>,
        payload: &[u8],
    ) -> Option<Result<(), WorldError>> {
        let world_server = self.worlds.get_mut(world)?;
        Some(world_server.send_entity_event(entity.into(), payload))
    }

    pub(crate) fn carrier_of(&mut self, peer: PeerId) -> Option<(&mut dyn Carrier, ConnectionId)> {
        self.carriers.of(peer)
    }

    /// Whether the program has not polled the end of a peer yet.
    pub(crate) fn is_known(&self, peer: PeerId) -> bool {
        self.clients.contains_key(&peer) || self.leaving.contains(&peer)
    }

    /// The account id of a peer.
    pub fn client_of(&self, peer: PeerId) -> Option<ClientId> {
        self.clients.get(&peer).copied()
    }

    /// Bans a client: closes its connection as [`Kicked`](CloseReason::Kicked) and refuses it from
    /// now on, whatever token it has. A server does not share its bans or keep them across
    /// restarts: for a permanent ban the backend must stop issuing tokens.
    pub fn ban(&mut self, client: ClientId) {
        self.banned.insert(client);
        self.carriers.set_banned(client, true);
        let theirs = self.clients.iter().filter(|&(_, &id)| id == client);
        let theirs: Vec<PeerId> = theirs.map(|(&peer, _)| peer).collect();
        for peer in theirs {
            self.close(peer, CloseReason::Kicked);
        }
    }

    /// Lifts a ban; `false` if the client was not banned.
    pub fn unban(&mut self, client: ClientId) -> bool {
        self.carriers.set_banned(client, false);
        self.banned.remove(&client)
    }

    /// All banned clients.
    pub fn banned(&self) -> impl Iterator<Item = ClientId> {
        self.banned.iter().copied()
    }

    /// Closes a peer's connection as [`Kicked`](CloseReason::Kicked).
    pub fn kick(&mut self, peer: PeerId) {
        self.close(peer, CloseReason::Kicked);
    }

    /// Closes all connections, and returns when the peers were notified.
    pub fn shut_down(self) {
        self.carriers.shut_down();
    }
}

/// The room for state in a connection of this capacity.
fn room(capacity: Capacity, options: &ServerOptions) -> Room {
    if capacity == Capacity::UNLIMITED {
        return Room::UNLIMITED;
    }
    let message = capacity.message.min(options.packet);
    Room {
        message,
        total: capacity.total.min(options.state_per_tick.max(message)),
        headroom: PacketBuffer::HEADROOM,
    }
}

/// How far a program may be behind its schedule and still catch up.
const MAX_BEHIND: Duration = Duration::from_millis(250);

fn next_tick(world_server: &prescient_replication::Server) -> Tick {
    let now = world_server.world().tick();
    Tick(now.map_or(1, |now| now.0.saturating_add(1)))
}
