//! One client as the server's replication sees it: its visible set, encoder and outbox.

mod events;
mod pace;
mod released;
mod sent;
mod typed_events;
mod visibility;
mod visible_set;

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use prescient_codec::history::Archive;
use prescient_codec::{
    Ack, AckError, DecodeError, EncodeError, Encoder, Layout, NetEntityId, Packet, Policy, Quality,
    Slot, Statistics, Tick, ledger::Ledger,
};
use prescient_schema::EntityRef;

use pace::{Pace, Turn};
use released::ReleasedIds;
use sent::Sent;
pub(crate) use typed_events::OutgoingEvent;
use typed_events::TypedOutbox;
use visible_set::VisibleSet;

use crate::adaptation::{Adaptation, AdaptationReport, LinkEstimate, Loop};
use crate::authority::AuthorityReports;
use crate::config::ServerConfig;
use crate::entity_types::MAX_TABLES;
use crate::event_coders::EventCoders;
use crate::message::{MAX_STATE_HEAD, Message, WorldMessage, put_state_head};
use crate::outbox::Outbox;
use crate::relevance::{Link, Observer, Visibility};
use crate::server::{PeerId, Room};
use crate::settings::Settings;
use crate::transmit::{Delivery, Transmit};
use crate::world::{Serial, World, WorldStep};
use crate::world_generation::WorldGeneration;

/// Statistics of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStatistics {
    /// Counters of the codec.
    pub codec: Statistics,
    /// Messages of state that were encoded for it.
    pub packets: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// The newest tick of which it acknowledged a packet.
    pub applied: Option<Tick>,
    /// Messages of state since the last acknowledgement of a newer packet.
    pub unapplied: u32,
    /// Bytes of the logs that are kept for packets until it is known whether they were applied.
    pub unsettled_bytes: usize,
    /// Number of entities that it sees.
    pub visible: usize,
    /// Bytes that its model holds.
    pub model_bytes: usize,
    /// Events that were queued for it.
    pub events: u64,
    /// Events that wait until it knows their entity.
    pub events_waiting: usize,
    /// Bytes of events that wait, for their entity or to be polled.
    pub event_bytes: usize,
    /// It receives too slowly: its waiting events exceeded the limit and were discarded. It gets no
    /// more events and must be disconnected.
    pub overrun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ViewPosition {
    Unset,
    Fixed(crate::Position),
    Follow(EntityRef),
}

pub(crate) struct Peer {
    encoder: Encoder,
    /// Whether packets are acknowledged.
    policy: Policy,
    world_generation: WorldGeneration,
    /// Whether its schema was accepted; before that it is sent no state.
    pub greeted: bool,
    /// Whether it was sent the server's schema.
    pub schema_sent: bool,
    /// Requested audits that it has not answered yet.
    pub open_audits: u32,
    /// Whether its settings were sent; before that it cannot decode state.
    settings_sent: bool,
    pub view_position: ViewPosition,
    pub team: u32,
    pub link: Option<Link>,
    /// Given to the encoder with the next packet.
    pub quality: Quality,
    adaptation: Option<Loop>,
    /// The newest input tick that the program was given, and the newest before the current tick.
    input: Option<u64>,
    consumed_input: Option<u64>,
    sent: Sent,
    pace: Pace,
    /// The visible entities, by the peer's id of their first table.
    visible_set: VisibleSet,
    /// The next spawn order at the last evaluation; later entities were not evaluated yet.
    evaluated_serials: u64,
    /// Per entity id: the tick at which it was last assigned.
    assigned_at: Vec<Tick>,
    /// Whether an id was assigned that another entity had before.
    reused_ids: bool,
    released: ReleasedIds,
    /// Whether the policy must be queried about all entities.
    pub needs_evaluation: bool,
    /// The observer at the last evaluation of distances, and its tick: entities that have not moved
    /// since need no new query.
    evaluated: Option<(Observer, Tick)>,
    /// Entities to become visible later, with their distance as bits; the nearest is last. Entities
    /// that move while they wait are listed more than once.
    pending_visible: Vec<(u64, Serial)>,
    /// Waiting messages, and the number of events ever queued.
    outbox: Outbox,
    events: u64,
    typed: TypedOutbox,
    /// The coders of typed events from the client, and the number of questions asked of it.
    pub typed_in: EventCoders,
    pub questions: u32,
    /// Recent cost of its events, and the tick of the last one.
    typed_work: (Tick, u64),
    /// The messages of state of the tick that was encoded last.
    state: VecDeque<Transmit>,
    /// When its last acknowledgement arrived.
    last_ack: Tick,
    /// When a resync that it requested was last granted, and the minimum ticks between two.
    resynced: Option<Tick>,
    resync_every: u32,
    /// The entities over which the client was told that it has authority.
    authorities: BTreeSet<Serial>,
    /// Its reports of these entities.
    reports: Option<AuthorityReports>,
}

/// A client between two worlds: its schema state and the messages still to be sent.
pub struct PeerTransfer {
    world_generation: WorldGeneration,
    greeted: bool,
    open_audits: u32,
    input: Option<u64>,
    link: Option<Link>,
    quality: Quality,
    adaptation: Option<Loop>,
    outbox: Outbox,
    events: u64,
    typed: TypedOutbox,
    typed_in: EventCoders,
    questions: u32,
}

impl Peer {
    pub(crate) fn new(layout: Arc<Layout>, config: &ServerConfig) -> Self {
        Self {
            typed: TypedOutbox::new(EventCoders::new(layout.clone())),
            typed_in: EventCoders::new(layout.clone()),
            questions: 0,
            typed_work: (Tick::default(), 0),
            encoder: Encoder::with_layout(layout, config.codec),
            policy: config.codec.policy(),
            world_generation: WorldGeneration::default(),
            greeted: false,
            schema_sent: false,
            open_audits: 0,
            settings_sent: false,
            view_position: ViewPosition::Unset,
            team: 0,
            link: None,
            quality: Quality::FULL,
            adaptation: None,
            input: None,
            consumed_input: None,
            sent: Sent::default(),
            pace: Pace::new(config.probe_every),
            visible_set: VisibleSet::default(),
            evaluated_serials: 0,
            assigned_at: Vec::new(),
            reused_ids: false,
            released: ReleasedIds::default(),
            needs_evaluation: true,
            evaluated: None,
            pending_visible: Vec::new(),
            outbox: Outbox::new(config.max_event_bytes),
            events: 0,
            state: VecDeque::new(),
            last_ack: Tick::default(),
            resynced: None,
            resync_every: config.resync_every,
            authorities: BTreeSet::new(),
            reports: None,
        }
    }

    /// A client that comes from another world.
    pub(crate) fn transferred(
        transfer: PeerTransfer,
        layout: Arc<Layout>,
        config: &ServerConfig,
    ) -> Self {
        let mut peer = Self {
            world_generation: transfer.world_generation.next(),
            greeted: transfer.greeted,
            open_audits: transfer.open_audits,
            input: transfer.input,
            link: transfer.link,
            quality: transfer.quality,
            adaptation: transfer.adaptation,
            outbox: transfer.outbox,
            events: transfer.events,
            typed: transfer.typed,
            typed_in: transfer.typed_in,
            questions: transfer.questions,
            ..Self::new(layout, config)
        };
        let settings = config.settings();
        let entered = peer.world_message(WorldMessage::Entered { settings });
        peer.outbox.push_settings(entered);
        let selection = peer.adaptation.as_ref();
        let selection = selection.map(|adaptation| adaptation.config.selection());
        peer.encoder.set_selection(selection);
        peer
    }

    /// The client leaves for another world; events deferred for an entity will be about none.
    pub(crate) fn transfer_out(mut self) -> PeerTransfer {
        for serial in self.outbox.deferred().collect::<Vec<_>>() {
            self.give_up(serial);
        }
        self.give_up_typed();
        PeerTransfer {
            world_generation: self.world_generation,
            greeted: self.greeted,
            open_audits: self.open_audits,
            input: self.input,
            link: self.link,
            quality: self.quality,
            adaptation: self.adaptation,
            outbox: self.outbox,
            events: self.events,
            typed: self.typed,
            typed_in: self.typed_in,
            questions: self.questions,
        }
    }

    pub(crate) fn statistics(&self) -> PeerStatistics {
        PeerStatistics {
            codec: self.encoder.statistics(),
            packets: self.sent.packets,
            bytes: self.sent.bytes,
            applied: self.sent.applied,
            unapplied: self.sent.unapplied,
            unsettled_bytes: self.encoder.unsettled_bytes(),
            visible: self.visible_set.len(),
            model_bytes: self.encoder.model_bytes() + self.typed.bytes() + self.typed_in.bytes(),
            events: self.events,
            events_waiting: self.outbox.deferred_events() + self.typed.len(),
            event_bytes: self.outbox.bytes(),
            overrun: self.outbox.is_overrun(),
        }
    }

    pub(crate) fn is_overrun(&self) -> bool {
        self.outbox.is_overrun()
    }

    pub(crate) fn sees(&self, serial: Serial) -> bool {
        self.visibility(serial).is_some()
    }

    /// The visibility of an entity. An entity that was spawned after the last evaluation may reuse
    /// the slot of a visible one, so it does not count.
    fn visibility(&self, serial: Serial) -> Option<Visibility> {
        let id = self.encoder.net_entity_id(serial.first)?;
        self.visible_set
            .get(id)
            .filter(|_| serial.order < self.evaluated_serials)
    }

    /// Notes that an id was assigned to an entity.
    fn note_assigned(&mut self, id: NetEntityId, now: Tick) {
        let at = id.0 as usize;
        // New ids are assigned in ascending order.
        self.reused_ids |= at < self.assigned_at.len();
        if self.assigned_at.len() <= at {
            self.assigned_at.resize(at + 1, Tick(0));
        }
        self.assigned_at[at] = now;
    }

    /// Whether it is to be sent a full packet and has never acknowledged one.
    pub(crate) fn is_due_newcomer(&self, now: Tick) -> bool {
        let unsettled = || self.encoder.unsettled_bytes();
        self.settings_sent
            && self.policy == Policy::Confirmed
            && self.pace.is_newcomer()
            && self.pace.turn(now, unsettled) == Turn::Full
    }

    /// Encodes the newest tick, unless that was done already, the client cannot decode it yet, or
    /// the tick is skipped because the client applies nothing.
    pub(crate) fn encode(&mut self, archive: &Archive, room: Room) {
        // State of an earlier tick that was not polled is out of date.
        self.state.clear();
        if !self.settings_sent {
            return;
        }
        let now = archive.newest().unwrap_or_default();
        let room = self.adapted_room(room);
        if room.message == 0 || room.total < room.message {
            return;
        }
        // A missing acknowledgement means something only if packets are acknowledged.
        let is_paced = self.policy == Policy::Confirmed;
        let head = if self.consumed_input.is_some() { 3 } else { 1 };
        let headroom = room.headroom + MAX_STATE_HEAD;
        self.encoder.set_headroom(headroom);
        let max_packet = room.message.saturating_sub(head);
        let unsettled = || self.encoder.unsettled_bytes();
        let turn = self.pace.turn(now, unsettled);
        let mut encoded = match turn {
            Turn::Skip if is_paced => return,
            Turn::Probe if is_paced => self.encoder.encode_probe(archive).map(Some),
            _ => {
                let budget = (room.message != usize::MAX).then_some(max_packet);
                self.encoder.set_quality(self.quality, archive);
                self.encoder.encode(archive, budget).map(Some)
            }
        };
        let mut left = room.total;
        while let Ok(Some(packet)) = encoded {
            let Packet { mut bytes, .. } = packet;
            let input = self.consumed_input.map(|input| input as u16);
            let generation = self.world_generation.bits();
            let transmit = Transmit {
                delivery: Delivery::Unreliable,
                headroom: put_state_head(&mut bytes, headroom, generation, input),
                buffer: bytes,
            };
            let length = transmit.message().len();
            self.sent.note(packet.sequence, now, length);
            if let Some(adaptation) = &mut self.adaptation {
                adaptation.allowance.spend(length);
            }
            left = left.saturating_sub(length);
            self.state.push_back(transmit);
            let may_send_more = turn == Turn::Full
                && left >= room.message
                && (!is_paced || self.pace.has_room(now, self.encoder.unsettled_bytes()));
            encoded = match may_send_more {
                true => self.encoder.encode_more(archive, max_packet),
                false => Ok(None),
            };
        }
        if turn == Turn::Full
            && let Some(adaptation) = &mut self.adaptation
            && let Some(quality) = adaptation.adjust(self.encoder.demand(), now)
        {
            self.quality = quality;
        }
        if let Err(error) = encoded {
            let is_schema = matches!(error, EncodeError::WrongSchema);
            debug_assert!(!is_schema, "a peer's schema is its world's");
        }
        if !self.state.is_empty() {
            if is_paced && let Some(limit) = self.pace.note_sent(now) {
                self.encoder.drop_unsettled(limit);
            }
            // Without acknowledgements, what was sent counts as known.
            self.send_known();
        }
    }

    /// Adapts what the peer gets to its connection, or stops doing so.
    pub(crate) fn set_adaptation(&mut self, config: Option<Adaptation>) {
        let is_same = |running: &Loop| Some(running.config) == config;
        if self.adaptation.as_ref().is_some_and(is_same) {
            return;
        }
        self.encoder
            .set_selection(config.map(|config| config.selection()));
        if self.adaptation.is_some() {
            self.quality = Quality::FULL;
        }
        self.adaptation = config.map(Loop::new);
    }

    /// Notes what is known about the connection.
    pub(crate) fn set_estimate(&mut self, estimate: LinkEstimate) {
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.allowance.note(estimate);
        }
    }

    /// The quality, if it changed since the last call because the connection did.
    pub(crate) fn take_changed_quality(&mut self) -> Option<Quality> {
        let adaptation = self.adaptation.as_mut()?;
        let is_told = std::mem::replace(&mut adaptation.is_told, true);
        (!is_told).then_some(self.quality)
    }

    /// What the peer gets, and why; visits all entities that change.
    pub(crate) fn adaptation(&self, archive: &Archive) -> Option<AdaptationReport> {
        let adaptation = self.adaptation.as_ref()?;
        let errors = self.encoder.shown_errors(archive);
        let mean = |at: usize| errors.steps[at] as f64 / f64::from(errors.entities[at].max(1));
        Some(AdaptationReport {
            estimate: adaptation.allowance.estimate(),
            message_bytes: adaptation.allowance.typical_message(),
            demand_bytes: self.encoder.demand(),
            quality: self.quality,
            plan_step: adaptation.plan.step(),
            entities: errors.entities,
            error_steps: [0, 1, 2, 3].map(mean),
            stalest_ticks: errors.stalest,
        })
    }

    /// The room that the connection's rate leaves of what the carrier has.
    fn adapted_room(&mut self, room: Room) -> Room {
        match &mut self.adaptation {
            Some(adaptation) if room.message != usize::MAX => {
                let min_message = adaptation.min_message();
                let demand = self.encoder.demand();
                adaptation.allowance.room(room, min_message, demand)
            }
            _ => room,
        }
    }

    /// A packet of the newest tick for readers that acknowledge nothing, and whether it is whole. It
    /// is whole if that is requested, or if nothing is left from which it could be predicted.
    pub(crate) fn publish(
        &mut self,
        archive: &Archive,
        whole: bool,
    ) -> Result<(Packet, bool), EncodeError> {
        let before = self.encoder.statistics().resyncs;
        if whole {
            self.encoder.resync();
        }
        let packet = self.encoder.encode(archive, None)?;
        // No acknowledgement will ask for the logs of older packets.
        self.encoder.drop_unsettled(0);
        Ok((packet, self.encoder.statistics().resyncs > before))
    }

    /// Lets the packets to come depend on the one [published](Self::publish) last.
    pub(crate) fn make_base(&mut self, archive: &Archive) {
        self.encoder.make_base(archive);
    }

    /// Whether entities wait to become visible with a later update.
    pub(crate) fn has_pending_visible(&self) -> bool {
        !self.pending_visible.is_empty()
    }

    /// Whether ids were assigned again since the last call.
    pub(crate) fn take_reused_ids(&mut self) -> bool {
        std::mem::take(&mut self.reused_ids)
    }

    pub(crate) fn acknowledge(&mut self, ack: &Ack, world: &World) -> Result<(), AckError> {
        let now = world.tick().unwrap_or_default();
        let before = std::mem::replace(&mut self.last_ack, now);
        if now.since(before) > self.pace.second() {
            self.pace.resume(now);
        }
        let is_early = |last: Tick| now.since(last) < self.resync_every.into();
        if ack.resync && self.resynced.is_some_and(is_early) {
            return Ok(());
        }
        let (before, unsettled) = (self.encoder.statistics(), self.encoder.unsettled_bytes());
        self.encoder.acknowledge(ack, world.archive())?;
        let after = self.encoder.statistics();
        if ack.resync && after.resyncs > before.resyncs {
            self.resynced = Some(now);
        }
        if after.applied > before.applied {
            let settled = unsettled.saturating_sub(self.encoder.unsettled_bytes());
            self.pace.note_applied(settled);
            self.send_known();
        }
        self.sent.apply(ack.newest);
        Ok(())
    }

    /// The client is responsive again after a silence.
    pub(crate) fn resume(&mut self, now: Tick) {
        self.pace.resume(now);
    }

    /// Whether it is sent less because it acknowledges nothing.
    pub(crate) fn is_throttled(&self, now: Tick) -> bool {
        self.policy == Policy::Confirmed && self.pace.is_throttled(now)
    }

    /// The packets since the last acknowledgement of a newer one, as a range of packet counts;
    /// empty if packets are not acknowledged.
    pub(crate) fn unapplied(&self) -> Range<u64> {
        let sent = self.sent.packets;
        match self.policy {
            Policy::Confirmed => sent - u64::from(self.sent.unapplied)..sent,
            Policy::Immediate | Policy::Stateless => sent..sent,
        }
    }

    /// Starts or stops recording what bits are spent on.
    pub(crate) fn keep_ledger(&mut self, keep: bool) {
        self.encoder.keep_ledger(keep);
    }

    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.encoder.ledger()
    }

    /// Queues the message with which the client is shown the world.
    pub(crate) fn push_welcome(&mut self, settings: Settings) {
        let welcome = Message::Welcome { settings };
        self.outbox.push_settings(welcome.to_bytes());
    }

    /// Queues a message that must be delivered once.
    pub(crate) fn push_message(&mut self, message: Message<'_>) {
        self.outbox.push(message.to_bytes());
    }

    /// The next message to send: reliable ones first, because a client can apply the state of a new
    /// world only after it was told of that world.
    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit> {
        if let Some((transmit, is_settings)) = self.outbox.pop() {
            self.settings_sent |= is_settings;
            return Some(transmit);
        }
        let acknowledgement = self.acknowledgement().map(Transmit::unreliable);
        acknowledgement.or_else(|| self.state.pop_front())
    }

    /// Whether a message is about the client's current world.
    pub(crate) fn is_current_world(&self, world_generation: u8) -> bool {
        self.world_generation.bits() == world_generation
    }

    /// The slot that an entity id stood for when the client showed a tick; `None` if the id was
    /// assigned again since.
    pub(crate) fn slot(&self, id: NetEntityId, shown: Tick) -> Option<Slot> {
        slot(&self.encoder, &self.assigned_at, id, shown)
    }

    /// Whether an entity id meant something that was visible at a tick and was hidden after it.
    pub(crate) fn was_released_after(&self, id: NetEntityId, shown: Tick) -> bool {
        self.released.contains(id, shown)
    }

    /// Starts a new epoch: resets the model; visible entities keep their ids.
    pub(crate) fn resync(&mut self) {
        self.encoder.resync();
    }

    /// Decodes a client's report of the entities that it has authority over.
    pub(crate) fn report(
        &mut self,
        own: PeerId,
        packet: &[u8],
        world: &World,
        config: &ServerConfig,
    ) -> Result<(), DecodeError> {
        if self.authorities.is_empty() && self.reports.is_none() {
            return Ok(());
        }
        let reports = self
            .reports
            .get_or_insert_with(|| AuthorityReports::new(world, config));
        let (encoder, since) = (&self.encoder, &self.assigned_at);
        let find = |id, shown| slot(encoder, since, id, shown);
        let limit = max_reported(self.authorities.len()).min(config.codec.max_entities());
        reports.take(packet, self.authorities.len(), limit, world, own, &find)
    }

    /// Begins the stream of typed events anew, because a message of it was not delivered.
    pub(crate) fn restart_events(&mut self) {
        self.typed.restart();
    }

    /// Whether the client reports more table entities than it may.
    pub(crate) fn reports_too_much(&self) -> bool {
        let limit = max_reported(self.authorities.len());
        self.reports
            .as_ref()
            .is_some_and(|reports| reports.len() > limit)
    }

    /// Notes the newest input that the program was given; the next tick consumes it.
    pub(crate) fn note_input(&mut self, tick: u64) {
        self.input = Some(tick);
    }

    /// Notes that the present tick has all inputs that the program was given so far.
    pub(crate) fn consume_input(&mut self) {
        self.consumed_input = self.input;
    }

    /// Begins a tick: its state is after all inputs so far, and starts with the client's reported
    /// values.
    pub(crate) fn begin_tick(&mut self, step: &mut WorldStep<'_>) {
        self.consume_input();
        if let Some(reports) = &mut self.reports {
            reports.apply(step);
        }
    }

    /// The acknowledgement of the client's reports, if any is due.
    fn acknowledgement(&mut self) -> Option<Vec<u8>> {
        let reports = self.reports.as_mut()?;
        if !std::mem::take(&mut reports.unanswered) {
            return None;
        }
        let ack = reports.acknowledgement()?;
        Some(self.world_message(WorldMessage::Applied(ack)))
    }

    fn world_message(&self, body: WorldMessage<'_>) -> Vec<u8> {
        let world_generation = self.world_generation.bits();
        Message::World {
            world_generation,
            body,
        }
        .to_bytes()
    }
}

fn slot(encoder: &Encoder, since: &[Tick], id: NetEntityId, shown: Tick) -> Option<Slot> {
    let since = *since.get(id.0 as usize)?;
    (since <= shown).then(|| encoder.slot(id)).flatten()
}

/// Maximum table entities that a client with authority over this many entities may report; some may
/// just have replaced others. The client assigns ids from 0 and the server indexes by them, so this
/// bounds the ids, too.
fn max_reported(entities: usize) -> usize {
    2 * entities * MAX_TABLES + SLACK
}

/// Table entities that a client may still report although its authority over them ended.
const SLACK: usize = 1024;
