//! The server: one world and its peers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use prescient_codec::history::Archive;
use prescient_codec::{AckError, Quality, QualityError, Tick, ledger::Ledger};
use prescient_schema::{Difference, EntityRef, Event, EventDelivery, Fingerprint, Request, Schema};
use thiserror::Error;

use crate::adaptation::{Adaptation, AdaptationReport, LinkEstimate};
use crate::audit::{self, Divergence};
use crate::config::ServerConfig;
use crate::event_coders::EventCoders;
use crate::grid::Position;
use crate::message::{Message, TickClock, TypedKind, WorldMessage};
use crate::parallel;
use crate::peer::{OutgoingEvent, Peer, PeerStatistics, PeerTransfer, ViewPosition};
use crate::relevance::{Link, Observer, Relevance};
use crate::transmit::Transmit;
use crate::typed_event::{About, EventError, Question, QuestionId, Reply, ReplyTo, TypedEvent};
use crate::world::{Serial, World, WorldError, WorldStep};

/// The id of a client, chosen by the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// Why a call about a peer failed.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The peer is not connected.
    #[error("no peer {0:?} is connected")]
    NoSuchPeer(PeerId),
    /// The bytes are not a message of a client.
    #[error("not a message of a client; the peer runs another program or is hostile")]
    Malformed,
    /// The peer sent a message before its hello, which must come first.
    #[error("the peer sent a message before its hello")]
    NotGreeted,
    /// The peer sent an audit report that was not [requested](Server::audit).
    #[error("the peer sent an audit report that was not requested")]
    AuditNotRequested,
    /// The peer's events cost more to read than a client's may.
    #[error("the peer sends more events than may be read")]
    TooMuch,
    /// The schemas differ. In each [`Difference`], `here` is the server's side.
    #[error("the peer's schema differs: {}", Difference::list(.0))]
    Schema(Vec<Difference>),
    /// The peer acknowledged a packet that was never sent; it is broken or hostile.
    #[error("the peer acknowledges a packet that it was not sent: {0}")]
    BadAcknowledgement(AckError),
    /// The quality is not possible.
    #[error(transparent)]
    Quality(#[from] QualityError),
}

prescient_schema::debug_as_display!(PeerError);

/// The meaning of a message from a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FromClient {
    /// The client's schema was accepted; it is sent the world from now on.
    Greeted,
    /// A message of the protocol itself; nothing to do.
    Applied,
    /// A part of a state audit that was [requested](Server::audit).
    AuditReport {
        /// The differences found; empty if the client's state agrees with the server's.
        differences: Vec<Divergence>,
        /// Whether this is the last part.
        last: bool,
    },
    /// The client sent an event.
    Event {
        /// The visible entity that it is about, if any.
        about: About<EntityRef>,
        /// The program's own bytes.
        payload: Vec<u8>,
    },
    /// The client sent an event of one of the schema's event types.
    Typed(TypedEvent),
    /// The client asks; [`Server::reply`] replies.
    Question(Question),
    /// The client replied to what [`Server::ask`] asked.
    Reply(Reply),
}

/// A world and its peers.
///
/// Every tick: [`step`](Self::step) the world, [`encode`](Self::encode) it, and send what
/// [`poll_transmit`](Self::poll_transmit) returns; in between, [`handle`](Self::handle) whatever
/// arrives.
pub struct Server {
    world: World,
    config: ServerConfig,
    relevance: Box<dyn Relevance>,
    peers: BTreeMap<PeerId, Peer>,
    /// Events since the last [`encode`](Self::encode), which determines their receivers.
    entity_events: Vec<EntityEvent>,
    /// Measures typed events before they are queued.
    event_check: EventCoders,
    /// The newcomer that was sent a packet last, when there were too many for a tick.
    last_newcomer: PeerId,
}

/// How much state a peer can be sent in a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Maximum bytes of a message of state, so that it fits into a packet of the connection.
    pub message: usize,
    /// Maximum bytes of all messages of state. If it is less than one message, nothing is sent.
    pub total: usize,
    /// Free bytes to leave before each message, for the carrier's headers. They count towards neither.
    pub headroom: usize,
}

impl Room {
    /// No state at all.
    pub const NONE: Self = Self {
        message: 0,
        total: 0,
        headroom: 0,
    };

    /// A single message of any length.
    pub const UNLIMITED: Self = Self {
        message: usize::MAX,
        total: usize::MAX,
        headroom: 0,
    };

    /// A single message of at most this many bytes.
    pub const fn one(message: usize) -> Self {
        Self {
            message,
            total: message,
            headroom: 0,
        }
    }
}

/// The room of each peer.
pub type Rooms<'a> = dyn Fn(PeerId) -> Room + Sync + 'a;

/// An event about an entity.
pub(crate) struct EntityEvent {
    pub tick: Tick,
    pub about: Serial,
    /// `None` for all peers that see the entity.
    pub to: Option<PeerId>,
    pub payload: Vec<u8>,
}

impl Server {
    /// A server with an empty world.
    pub fn new(
        schema: Schema,
        config: ServerConfig,
        relevance: impl Relevance + 'static,
    ) -> Result<Self, WorldError> {
        config.check()?;
        let world = World::new(schema, &config)?;
        Ok(Self {
            event_check: EventCoders::new(world.layout().clone()),
            world,
            config,
            relevance: Box::new(relevance),
            peers: BTreeMap::new(),
            entity_events: Vec::new(),
            last_newcomer: PeerId(0),
        })
    }

    /// Begins the next tick; changes go through the returned step. It starts with what clients
    /// reported of entities that they have authority over.
    pub fn step(&mut self, tick: Tick) -> Result<WorldStep<'_>, WorldError> {
        begin(&mut self.world, &mut self.peers, tick)
    }

    /// Opens the newest tick again, to add to it; `None` before the first. Only before that tick was
    /// [encoded](Self::encode) or [published](crate::Publisher::publish), which would miss what is
    /// added.
    pub fn resume_step(&mut self) -> Option<Result<WorldStep<'_>, WorldError>> {
        for peer in self.peers.values_mut() {
            peer.consume_input();
        }
        self.world.resume()
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Registers a peer. State flows once it has sent a matching schema fingerprint. Registering
    /// again resets it.
    pub fn connect(&mut self, peer: PeerId) {
        let new = Peer::new(self.world.layout().clone(), &self.config);
        self.insert_peer(peer, new);
    }

    /// Registers a peer that came from another world of the same schema.
    pub fn transfer_in(&mut self, peer: PeerId, transfer: PeerTransfer) {
        let new = Peer::transferred(transfer, self.world.layout().clone(), &self.config);
        self.insert_peer(peer, new);
    }

    /// Removes a peer.
    pub fn disconnect(&mut self, peer: PeerId) {
        self.remove_peer(peer);
    }

    /// Removes a peer that moves to another world, to be [transferred in](Self::transfer_in) there.
    pub fn transfer_out(&mut self, peer: PeerId) -> Option<PeerTransfer> {
        self.remove_peer(peer).map(Peer::transfer_out)
    }

    /// All peers.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }

    /// Sets a peer's view position to a fixed point.
    pub fn set_view_position(&mut self, peer: PeerId, position: Position) -> Result<(), PeerError> {
        self.peer(peer)?.view_position = ViewPosition::Fixed(position);
        Ok(())
    }

    /// Makes a peer's view position follow an entity.
    pub fn follow(&mut self, peer: PeerId, entity: EntityRef) -> Result<(), PeerError> {
        self.peer(peer)?.view_position = ViewPosition::Follow(entity);
        Ok(())
    }

    /// Sets a peer's team; 0 for none.
    pub fn set_team(&mut self, peer: PeerId, team: u32) -> Result<(), PeerError> {
        let old = std::mem::replace(&mut self.peer(peer)?.team, team);
        if old != team {
            self.reevaluate_relevance();
        }
        Ok(())
    }

    /// Sets how precisely and how often a peer gets entities, by their
    /// [priority](crate::Visibility::priority), from the next [`encode`](Self::encode) on; at first
    /// nothing is degraded. The relevance policy is not queried for it, so it may change with every
    /// tick. The peer keeps it when it changes worlds.
    ///
    /// An entity that is sent more rarely keeps its last values at the client, with
    /// [their tick](crate::Client::tick_of), until its turn comes.
    pub fn set_quality(&mut self, peer: PeerId, quality: Quality) -> Result<(), PeerError> {
        quality.check()?;
        self.peer(peer)?.quality = quality;
        Ok(())
    }

    /// Adapts what a peer gets to its connection, as far as [estimates](Self::set_estimate) of that
    /// are given, or stops doing so. It overrides [`set_quality`](Self::set_quality). The peer keeps
    /// it when it changes worlds.
    pub fn set_adaptation(
        &mut self,
        peer: PeerId,
        adaptation: Option<Adaptation>,
    ) -> Result<(), PeerError> {
        self.peer(peer)?.set_adaptation(adaptation);
        Ok(())
    }

    /// Notes what is known about the connection to a peer; call it before every
    /// [`encode`](Self::encode). Without an [adaptation](Self::set_adaptation) it changes nothing.
    pub fn set_estimate(&mut self, peer: PeerId, estimate: LinkEstimate) -> Result<(), PeerError> {
        self.peer(peer)?.set_estimate(estimate);
        Ok(())
    }

    /// The peers whose quality changed since the last call because their connections did.
    pub fn changed_qualities(&mut self) -> Vec<(PeerId, Quality)> {
        let peers = self.peers.iter_mut();
        let changed = peers.filter_map(|(&id, peer)| Some((id, peer.take_changed_quality()?)));
        changed.collect()
    }

    /// What an [adapted](Self::set_adaptation) peer gets, and why. Visits all entities that change
    /// for it.
    pub fn adaptation(&self, peer: PeerId) -> Option<AdaptationReport> {
        self.peers.get(&peer)?.adaptation(self.world.archive())
    }

    /// Sets what relevance policies get as [`Observer::link`]; `None` if nothing is known.
    pub fn set_link(&mut self, peer: PeerId, link: Option<Link>) -> Result<(), PeerError> {
        self.peer(peer)?.link = link;
        Ok(())
    }

    /// Sets the keys that a peer holds down, one bit per key. From the next [`step`](Self::step) on
    /// they are written to the entities that the peer owns and whose type has a field for them
    /// (`#[state(keys)]`), overriding what the program writes there.
    pub fn set_keys(&mut self, peer: PeerId, keys: u64) -> Result<(), PeerError> {
        self.peer(peer)?;
        self.world.input_state_mut().set(peer, keys);
        Ok(())
    }

    /// Notes the newest input of a peer that the program was given. The state of the next tick says
    /// that it was consumed, so that the client can tell which of its inputs that state lacks.
    pub fn note_input(&mut self, peer: PeerId, tick: u64) -> Result<(), PeerError> {
        self.peer(peer)?.note_input(tick);
        Ok(())
    }

    /// Tells a peer when ticks are due.
    pub fn send_clock(&mut self, peer: PeerId, clock: TickClock) -> Result<(), PeerError> {
        self.peer(peer)?.push_message(Message::Clock(clock));
        Ok(())
    }

    /// The keys that a peer holds down; `None` if it never sent any.
    pub fn keys(&self, peer: PeerId) -> Option<u64> {
        self.world.input_state().keys(peer)
    }

    /// Queries the relevance policy again for every peer and entity, because something that it
    /// depends on has changed, for example the weather. Changes of team, owner and position are
    /// noticed without this.
    pub fn reevaluate_relevance(&mut self) {
        for peer in self.peers.values_mut() {
            peer.needs_evaluation = true;
        }
    }

    /// Whether an entity is visible to a peer.
    pub fn sees(&self, peer: PeerId, entity: EntityRef) -> bool {
        let record = self.world.record(entity);
        let peer = self.peers.get(&peer);
        peer.zip(record)
            .is_some_and(|(peer, record)| peer.sees(record.serial))
    }

    /// Encodes the state of the newest tick for each peer, in as many messages as its [`Room`]
    /// allows; each can be applied without the others. State of earlier ticks that was not
    /// [polled](Self::poll_transmit) is discarded. A peer gets nothing until the message with
    /// its settings was polled. Peers that do not acknowledge are skipped in more and more ticks
    /// ([`ServerConfig::with_probe_every`]). May be skipped in any tick, for all
    /// peers or (with [`Room::NONE`]) for some: the send rate is independent of the tick rate.
    pub fn encode(&mut self, rooms: &Rooms<'_>) {
        self.update_visibility(rooms);
        let delayed = self.delayed_newcomers();
        encode(&mut self.peers, self.world.archive(), &delayed, rooms);
    }

    /// The next message for a peer. Poll until `None`: after [`encode`](Self::encode), and after
    /// [`handle`](Self::handle) if a reply should not wait until then.
    pub fn poll_transmit(&mut self, peer: PeerId) -> Option<Transmit> {
        self.peers.get_mut(&peer)?.poll_transmit()
    }

    /// Like [`encode`](Self::encode), while `happen` changes the next tick on another core; peers
    /// are sent the state before that tick.
    pub fn encode_during<R: Send>(
        &mut self,
        rooms: &Rooms<'_>,
        next: Tick,
        happen: impl FnOnce(&mut WorldStep<'_>) -> R + Send,
    ) -> Result<R, WorldError> {
        self.update_visibility(rooms);
        let delayed = self.delayed_newcomers();
        let before = self.world.archive().clone();
        let mut step = begin(&mut self.world, &mut self.peers, next)?;
        let peers = &mut self.peers;
        let ((), happened) = parallel::join(
            || encode(peers, &before, &delayed, rooms),
            move || happen(&mut step),
        );
        Ok(happened)
    }

    /// Newcomers that are not sent a packet in this tick, because there are too many. They take turns.
    fn delayed_newcomers(&mut self) -> BTreeSet<PeerId> {
        let now = self.world.tick().unwrap_or_default();
        let is_due = |(&id, peer): (&PeerId, &Peer)| peer.is_due_newcomer(now).then_some(id);
        let mut due: Vec<_> = self.peers.iter().filter_map(is_due).collect();
        let limit = self.config.max_newcomers;
        if due.len() <= limit {
            return BTreeSet::new();
        }
        let next = due.partition_point(|&id| id <= self.last_newcomer);
        due.rotate_left(next);
        let delayed = due.split_off(limit).into_iter().collect();
        self.last_newcomer = due.last().copied().unwrap_or(self.last_newcomer);
        delayed
    }

    /// Updates the visible sets and queues the entity events.
    fn update_visibility(&mut self, rooms: &Rooms<'_>) {
        let touched = self.world.take_touched();
        let entity_events = std::mem::take(&mut self.entity_events);
        let tick = self.world.tick().unwrap_or_default();
        let teams: BTreeMap<_, _> = (self.peers.iter())
            .map(|(&id, peer)| (id, peer.team))
            .collect();
        let team_of = |owner: Option<PeerId>| {
            let team = owner.and_then(|owner| teams.get(&owner));
            team.copied().unwrap_or(0)
        };
        let (world, relevance) = (&self.world, &*self.relevance);
        let config = &self.config;
        let serve = |(&id, peer): (&PeerId, &mut Peer)| {
            let observer = Observer {
                peer: id,
                team: peer.team,
                view_position: match peer.view_position {
                    ViewPosition::Unset => None,
                    ViewPosition::Fixed(position) => Some(position),
                    ViewPosition::Follow(entity) => world.position(entity),
                },
                class: match peer.view_position {
                    ViewPosition::Follow(entity) => world.class(entity),
                    ViewPosition::Unset | ViewPosition::Fixed(_) => None,
                },
                link: peer.link,
            };
            // A throttled peer is sent little, so its visible set may lag.
            let every = match peer.is_throttled(tick) {
                true => config.relevance_interval.max(config.probe_every),
                false => config.relevance_interval,
            };
            // Staggered by the peer's own id, so that the timing reveals nothing about other peers.
            let now = tick.0.wrapping_add(id.0).is_multiple_of(every.into());
            // Both peers that saw the entity before the update and those that see it afterwards get
            // its events.
            let told = peer.queue_events(id, &entity_events, &[], |_| true);
            peer.name_before_update();
            let room = rooms(id).total;
            peer.update_visibility(&observer, world, relevance, &touched, now, room, &team_of);
            let there = |serial| world.record_of(serial).is_some();
            peer.queue_events(id, &entity_events, &told, there);
            peer.send_typed_after_update();
        };
        parallel::for_each(greeted(&mut self.peers), serve);
    }

    /// Sends an event about an entity to all peers that see it now or after the next
    /// [`encode`](Self::encode). A client gets it once it knows the entity; if it never does, the
    /// event is about [`About::Gone`].
    pub fn send_entity_event(
        &mut self,
        entity: EntityRef,
        payload: &[u8],
    ) -> Result<(), WorldError> {
        self.note(entity, None, payload)
    }

    /// Like [`send_entity_event`](Self::send_entity_event), to one peer.
    pub fn send_entity_event_to(
        &mut self,
        peer: PeerId,
        entity: EntityRef,
        payload: &[u8],
    ) -> Result<(), WorldError> {
        self.note(entity, Some(peer), payload)
    }

    /// Sends a peer an event that is about no entity.
    pub fn send_event(&mut self, peer: PeerId, payload: &[u8]) -> Result<(), PeerError> {
        let tick = self.world.tick().unwrap_or_default();
        self.peer(peer)?.queue_event(tick, payload);
        Ok(())
    }

    /// Sends all peers an event of one of the schema's event types.
    pub fn broadcast<T: Event>(&mut self, event: &T) -> Result<(), EventError> {
        let event = self.outgoing(event, None, None)?;
        let peers = self.peers.values_mut().filter(|peer| peer.greeted);
        peers.for_each(|peer| peer.push_typed(&event));
        Ok(())
    }

    /// Like [`broadcast`](Self::broadcast), to the peers that see an entity before or after this
    /// tick's [`encode`](Self::encode), also if it was despawned in this tick. Does nothing if the
    /// entity is gone for longer.
    pub fn tell_observers<T: Event>(
        &mut self,
        entity: EntityRef,
        event: &T,
    ) -> Result<(), EventError> {
        let event = match self.world.recent(entity) {
            Some((serial, _)) => self.outgoing(event, Some(serial), None)?,
            None => return Ok(()),
        };
        let peers = self.peers.values_mut().filter(|peer| peer.greeted);
        peers.for_each(|peer| peer.push_typed(&event));
        Ok(())
    }

    /// Like [`broadcast`](Self::broadcast), to one peer.
    pub fn tell<T: Event>(&mut self, peer: PeerId, event: &T) -> Result<(), EventError> {
        self.peer(peer)?;
        let event = self.outgoing(event, None, None)?;
        self.peer(peer)?.push_typed(&event);
        Ok(())
    }

    /// Asks a peer; its reply is a [`FromClient::Reply`] with the returned number. There is none if
    /// the peer leaves before it replies.
    pub fn ask<T: Request>(
        &mut self,
        peer: PeerId,
        question: &T,
    ) -> Result<QuestionId, EventError> {
        let number = self.peer(peer)?.questions;
        let kind = TypedKind::Question(number);
        let event = self.outgoing(question, None, Some(kind))?;
        let peer = self.peer(peer)?;
        peer.questions = number.wrapping_add(1);
        peer.push_typed(&event);
        Ok(QuestionId(number))
    }

    /// Replies to a peer's question.
    pub fn reply<T: Request>(
        &mut self,
        peer: PeerId,
        to: ReplyTo<T>,
        reply: &T::Answer,
    ) -> Result<(), EventError> {
        self.peer(peer)?;
        let kind = TypedKind::Reply(to.id.0);
        let event = self.outgoing(reply, None, Some(kind))?;
        self.peer(peer)?.push_typed(&event);
        Ok(())
    }

    /// A peer's typed input, if it is a `T`. Entities that it names are those that the peer's ids mean
    /// at the newest tick that it acknowledged.
    pub fn read_input<T: Event>(&mut self, peer: PeerId, fields: &[u8]) -> Option<T> {
        let from = self.peers.get_mut(&peer)?;
        let decoded = from.typed_in.decode_input(fields).ok()?;
        from.typed_input(decoded, &self.world)?.read()
    }

    /// Begins the stream of typed events to a peer anew, after a message of it could not be sent.
    pub fn restart_events(&mut self, peer: PeerId) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.restart_events();
        }
    }

    /// An event to be sent: its values, and the entities that it names.
    fn outgoing<T: Event>(
        &mut self,
        event: &T,
        observers_of: Option<Serial>,
        kind: Option<TypedKind>,
    ) -> Result<Arc<OutgoingEvent>, EventError> {
        let (class, mut parcel) = self.world.event_types().parcel(event)?;
        let event_type = self.world.event_types().get(class);
        let event_type = event_type.ok_or(EventError::Invalid)?;
        let mut references = Vec::new();
        for &(column, required) in &event_type.references {
            let cell = parcel.row.get_mut(column).ok_or(EventError::Invalid)?;
            let entity = EntityRef::from_cell(std::mem::take(cell));
            let named = entity.and_then(|entity| self.world.recent(entity));
            if let Some((serial, entity_type)) = named {
                if required.is_some_and(|required| required != entity_type) {
                    return Err(EventError::WrongReference(event_type.field(column)));
                }
                references.push((column, serial));
            }
        }
        let alone = match event_type.delivery {
            EventDelivery::Ordered => TypedKind::Ordered,
            _ => TypedKind::Alone,
        };
        let delivery = event_type.delivery;
        self.event_check.check(class, &parcel)?;
        Ok(Arc::new(OutgoingEvent {
            tick: self.world.tick().unwrap_or_default(),
            class,
            delivery,
            references,
            parcel,
            observers_of,
            kind: kind.unwrap_or(alone),
        }))
    }

    /// Starts a new epoch with a peer: discards the learned model and sends all state again; the
    /// client keeps its entities. It happens by itself when the two models diverge.
    pub fn resync(&mut self, peer: PeerId) -> Result<(), PeerError> {
        self.peer(peer)?.resync();
        Ok(())
    }

    /// Requests a peer's state, to compare it with the server's; the results are
    /// [`FromClient::AuditReport`]s. The reply is about as large as all visible state and comes in
    /// parts. A request while another is being answered is not answered separately.
    pub fn audit(&mut self, peer: PeerId) -> Result<(), PeerError> {
        let peer = self.peer(peer)?;
        peer.open_audits = peer.open_audits.saturating_add(1);
        peer.push_message(Message::AuditRequest);
        Ok(())
    }

    /// Handles a message of a client.
    pub fn handle(&mut self, peer: PeerId, message: &[u8]) -> Result<FromClient, PeerError> {
        let from = self
            .peers
            .get_mut(&peer)
            .ok_or(PeerError::NoSuchPeer(peer))?;
        match Message::read(message).ok_or(PeerError::Malformed)? {
            Message::World { .. } if !from.greeted => Err(PeerError::NotGreeted),
            Message::World {
                world_generation,
                body,
            } => {
                let here = from.is_current_world(world_generation);
                self.handle_world_message(peer, here, body)
            }
            Message::Hello { fingerprint } => self.greet(peer, fingerprint),
            Message::Unreadable { schema } if !from.greeted => {
                let own = self.world.schema();
                let theirs = own.read_other(schema).map_err(|_| PeerError::Malformed)?;
                Err(PeerError::Schema(own.differences(&theirs)))
            }
            Message::Unreadable { .. }
            | Message::Schema { .. }
            | Message::Welcome { .. }
            | Message::AuditRequest
            | Message::Clock(_) => Err(PeerError::Malformed),
        }
    }

    /// Handles a client's message about a world; `here` says whether it is this one or the one
    /// before.
    fn handle_world_message(
        &mut self,
        peer: PeerId,
        here: bool,
        body: WorldMessage<'_>,
    ) -> Result<FromClient, PeerError> {
        let world = &self.world;
        let from = self.peers.get_mut(&peer);
        let from = from.ok_or(PeerError::NoSuchPeer(peer))?;
        match body {
            WorldMessage::ClientEvent {
                tick,
                about,
                payload,
            } => {
                let about = match about {
                    None => About::Nothing,
                    // An id that the peer cannot see or made up is treated like that of a removed
                    // entity.
                    Some(id) => {
                        let slot = from.slot(id, tick).filter(|_| here);
                        let entity = slot.and_then(|slot| world.entity_of(slot));
                        entity.map_or(About::Gone, About::Entity)
                    }
                };
                let payload = payload.to_vec();
                Ok(FromClient::Event { about, payload })
            }
            WorldMessage::TypedEvent { kind, row } => {
                let near = world.tick().unwrap_or_default();
                let decoded = from.typed_in.decode(kind, row, near);
                let (shown, decoded) = decoded.map_err(|_| PeerError::Malformed)?;
                if from.tells_too_much(near, decoded.work) {
                    return Err(PeerError::TooMuch);
                }
                let event = from.typed_event(shown, decoded, here, world);
                let event = event.ok_or(PeerError::Malformed)?;
                Ok(match kind {
                    TypedKind::Ordered | TypedKind::Alone => FromClient::Typed(event),
                    TypedKind::Question(number) => {
                        FromClient::Question(Question::new(QuestionId(number), event))
                    }
                    TypedKind::Reply(number) if number < from.questions => {
                        FromClient::Reply(Reply::new(QuestionId(number), event))
                    }
                    TypedKind::Reply(_) => return Err(PeerError::Malformed),
                })
            }
            WorldMessage::Applied(ack) if here => {
                let taken = from.acknowledge(&ack, world);
                taken.map_err(PeerError::BadAcknowledgement)?;
                Ok(FromClient::Applied)
            }
            WorldMessage::State(packet) if packet.len() > MAX_REPORT_BYTES => {
                Err(PeerError::Malformed)
            }
            WorldMessage::State(packet) if here => {
                // A report that cannot be applied is late or damaged, which heals by itself.
                let _ = from.report(peer, packet, world, &self.config);
                match from.reports_too_much() {
                    true => Err(PeerError::Malformed),
                    false => Ok(FromClient::Applied),
                }
            }
            WorldMessage::AuditReport { .. } if here && from.open_audits == 0 => {
                Err(PeerError::AuditNotRequested)
            }
            WorldMessage::AuditReport { last, rows } if here => {
                from.open_audits -= u32::from(last);
                let find = |id, shown| from.slot(id, shown);
                let is_hidden = |id, shown| from.was_released_after(id, shown);
                let found = audit::examine(rows, world.archive(), &find, &is_hidden);
                let differences = found.ok_or(PeerError::Malformed)?;
                Ok(FromClient::AuditReport { differences, last })
            }
            WorldMessage::Applied(_)
            | WorldMessage::State(_)
            | WorldMessage::AuditReport { .. } => Ok(FromClient::Applied),
            WorldMessage::StateAfter { .. }
            | WorldMessage::Event { .. }
            | WorldMessage::Authority { .. }
            | WorldMessage::Entered { .. } => Err(PeerError::Malformed),
        }
    }

    /// Handles a client's schema fingerprint.
    fn greet(&mut self, peer: PeerId, theirs: Fingerprint) -> Result<FromClient, PeerError> {
        let from = self.peers.get_mut(&peer);
        let from = from.ok_or(PeerError::NoSuchPeer(peer))?;
        let own = self.world.schema();
        let same = own.fingerprint() == theirs;
        if from.greeted || from.schema_sent && !same {
            return Err(PeerError::Malformed);
        }
        if same {
            from.greeted = true;
            from.push_welcome(self.config.settings());
            return Ok(FromClient::Greeted);
        }
        from.schema_sent = true;
        from.push_message(Message::Schema {
            tolerance: self.config.tolerance,
            schema: &own.to_bytes(),
        });
        Ok(FromClient::Applied)
    }

    fn insert_peer(&mut self, peer: PeerId, new: Peer) {
        self.remove_peer(peer);
        self.peers.insert(peer, new);
    }

    fn remove_peer(&mut self, peer: PeerId) -> Option<Peer> {
        let gone = self.peers.remove(&peer)?;
        self.world.revoke_all(peer);
        self.world.input_state_mut().release(peer);
        if gone.team != 0 {
            self.reevaluate_relevance();
        }
        Some(gone)
    }

    /// Notes that a silent peer is responsive again: it is sent state at once, without waiting for
    /// the next probe ([`ServerConfig::with_probe_every`]).
    pub fn resume(&mut self, peer: PeerId) -> Result<(), PeerError> {
        let now = self.world.tick().unwrap_or_default();
        self.peer(peer)?.resume(now);
        Ok(())
    }

    /// The packets that a peer was sent since it last acknowledged one, as a range of packet
    /// counts. Empty if packets are not acknowledged ([`Config::policy`](prescient_codec::Config::policy)).
    pub fn unapplied(&self, peer: PeerId) -> Option<Range<u64>> {
        self.peers.get(&peer).map(Peer::unapplied)
    }

    /// Peers whose waiting events exceeded the limit and that must be disconnected; see
    /// [`PeerStatistics::overrun`].
    pub fn overrun(&self) -> impl Iterator<Item = PeerId> {
        let peers = self.peers.iter();
        peers.filter_map(|(&id, peer)| peer.is_overrun().then_some(id))
    }

    /// Statistics of a peer.
    pub fn statistics(&self, peer: PeerId) -> Option<PeerStatistics> {
        self.peers.get(&peer).map(Peer::statistics)
    }

    /// Starts or stops recording what a peer's bits are spent on. Recording makes encoding slower.
    pub fn keep_ledger(&mut self, peer: PeerId, keep: bool) -> Result<(), PeerError> {
        self.peer(peer)?.keep_ledger(keep);
        Ok(())
    }

    /// What a peer's bits were spent on by class, field and cause, since recording was started.
    pub fn ledger(&self, peer: PeerId) -> Option<&Ledger> {
        self.peers.get(&peer)?.ledger()
    }

    fn note(
        &mut self,
        entity: EntityRef,
        to: Option<PeerId>,
        payload: &[u8],
    ) -> Result<(), WorldError> {
        let record = self.world.record(entity);
        let record = record.ok_or(WorldError::NoSuchEntity(entity))?;
        self.entity_events.push(EntityEvent {
            tick: self.world.tick().unwrap_or_default(),
            about: record.serial,
            to,
            payload: payload.to_vec(),
        });
        Ok(())
    }

    fn peer(&mut self, peer: PeerId) -> Result<&mut Peer, PeerError> {
        self.peers.get_mut(&peer).ok_or(PeerError::NoSuchPeer(peer))
    }
}

/// Begins a tick and applies what clients reported.
fn begin<'a>(
    world: &'a mut World,
    peers: &mut BTreeMap<PeerId, Peer>,
    tick: Tick,
) -> Result<WorldStep<'a>, WorldError> {
    let mut step = world.step(tick)?;
    for peer in peers.values_mut() {
        peer.begin_tick(&mut step);
    }
    Ok(step)
}

/// The peers that are sent state.
fn greeted(peers: &mut BTreeMap<PeerId, Peer>) -> Vec<(&PeerId, &mut Peer)> {
    peers.iter_mut().filter(|(_, peer)| peer.greeted).collect()
}

fn encode(
    peers: &mut BTreeMap<PeerId, Peer>,
    archive: &Archive,
    delayed: &BTreeSet<PeerId>,
    rooms: &Rooms<'_>,
) {
    let serve = |(id, peer): (&PeerId, &mut Peer)| {
        let room = match delayed.contains(id) {
            true => Room::NONE,
            false => rooms(*id),
        };
        peer.encode(archive, room);
    };
    parallel::for_each(greeted(peers), serve);
}

/// Maximum bytes of a report that a server accepts. A report is compressed: a byte of it can take a
/// thousand times as much memory and time to decode.
pub const MAX_REPORT_BYTES: usize = 1200;
