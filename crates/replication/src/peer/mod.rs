//! One client as the server sees it: what it is shown, and what it is still to hear.

mod events;
mod pace;
mod sent;
mod visibility;
mod visible_set;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use prescient_codec::history::Archive;
use prescient_codec::{
    Ack, AckError, DecodeError, EncodeError, Encoder, NetEntityId, Policy, Slot, Statistics, Tick,
    ledger::Ledger,
};
use prescient_schema::{EntityRef, Schema};

use pace::{Pace, Turn};
use sent::Sent;
use visible_set::VisibleSet;

use crate::authority::AuthorityReports;
use crate::message::{Message, WorldMessage};
use crate::outbox::Outbox;
use crate::relevance::{Observer, Visibility};
use crate::server::{PeerId, ServerConfig};
use crate::world::{Serial, World, WorldStep};
use crate::world_generation::WorldGeneration;

/// What happened between a server and one of its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStatistics {
    /// What the codec counted.
    pub codec: Statistics,
    /// Messages of state that were made for it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The newest tick that it is known to have applied something of.
    pub applied: Option<Tick>,
    /// Messages of state since it last acknowledged another one as applied.
    pub unapplied: u32,
    /// Bytes of what is kept of messages until it is known whether they were applied.
    pub unsettled_bytes: usize,
    /// Entities that it is shown.
    pub visible: usize,
    /// Bytes that its model holds.
    pub model_bytes: usize,
    /// Events that were made ready for it.
    pub events: u64,
    /// Events that wait for their entity to be known there.
    pub events_waiting: usize,
    /// Bytes of events that wait, for that or to be polled.
    pub event_bytes: usize,
    /// It does not take in what it is told: more waited than may, and was thrown away. Nothing is
    /// told to it any more; disconnect it.
    pub overrun: bool,
}

/// From where a peer looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ViewPosition {
    Unset,
    Fixed(crate::Position),
    Follow(EntityRef),
}

pub(crate) struct Peer {
    encoder: Encoder,
    /// How it learns what it is told of.
    policy: Policy,
    world_generation: WorldGeneration,
    /// Whether it reads by the right schema; before that it is shown nothing.
    pub greeted: bool,
    /// Whether it was told the right one.
    pub schema_sent: bool,
    /// How often it was asked what it shows, as far as it has not answered.
    pub open_audits: u32,
    /// Whether it was told how state is coded: before that it could make nothing of any.
    settings_sent: bool,
    pub view_position: ViewPosition,
    pub team: u32,
    /// What it was sent.
    sent: Sent,
    /// How often it is sent something.
    pace: Pace,
    /// How it sees entities, by its numbers for their first tables.
    visible_set: VisibleSet,
    /// The number of the next entity when it last looked.
    evaluated_serials: u64,
    /// The tick since which each of the client's numbers is that of the entity it was last given to.
    assigned_at: Vec<Tick>,
    /// Whether everything is to be looked at anew.
    pub needs_evaluation: bool,
    /// Who looked at places last, and when: what has not moved since need not be asked about.
    evaluated: Option<(Observer, Tick)>,
    /// What it shall see, too, when its turn comes, with its distance as bits: what is nearest last.
    /// What moves while it waits is in here more than once.
    pending_visible: Vec<(u64, Serial)>,
    /// What it is to be told, and how many events it ever was.
    outbox: Outbox,
    events: u64,
    /// When it last said what it applied.
    last_ack: Tick,
    /// When it was last given a new epoch that it asked for, and the ticks between two of them.
    resynced: Option<Tick>,
    resync_every: u32,
    /// What the client was told that it is in charge of.
    authorities: BTreeSet<Serial>,
    /// What it reports of that.
    reports: Option<AuthorityReports>,
}

/// A client between two worlds: what it is still to hear of the last one, and how it reads.
pub struct PeerTransfer {
    world_generation: WorldGeneration,
    greeted: bool,
    open_audits: u32,
    outbox: Outbox,
    events: u64,
}

impl Peer {
    pub fn new(schema: Arc<Schema>, config: &ServerConfig) -> Self {
        Self {
            encoder: Encoder::new(schema, config.codec),
            policy: config.codec.policy,
            world_generation: WorldGeneration::default(),
            greeted: false,
            schema_sent: false,
            open_audits: 0,
            settings_sent: false,
            view_position: ViewPosition::Unset,
            team: 0,
            sent: Sent::default(),
            pace: Pace::new(config.probe_every),
            visible_set: VisibleSet::default(),
            evaluated_serials: 0,
            assigned_at: Vec::new(),
            needs_evaluation: true,
            evaluated: None,
            pending_visible: Vec::new(),
            outbox: Outbox::new(config.max_event_bytes),
            events: 0,
            last_ack: Tick::default(),
            resynced: None,
            resync_every: config.resync_every,
            authorities: BTreeSet::new(),
            reports: None,
        }
    }

    /// A client that comes from another world.
    pub fn transferred(transfer: PeerTransfer, schema: Arc<Schema>, config: &ServerConfig) -> Self {
        let mut peer = Self {
            world_generation: transfer.world_generation.next(),
            greeted: transfer.greeted,
            open_audits: transfer.open_audits,
            outbox: transfer.outbox,
            events: transfer.events,
            ..Self::new(schema, config)
        };
        let entered = peer.world_message(WorldMessage::Entered {
            config: config.codec,
        });
        peer.outbox.push(entered);
        peer
    }

    /// The client leaves for another world; what waits for an entity will never be about one.
    pub fn transfer_out(mut self) -> PeerTransfer {
        for serial in self.outbox.deferred().collect::<Vec<_>>() {
            self.give_up(serial);
        }
        PeerTransfer {
            world_generation: self.world_generation,
            greeted: self.greeted,
            open_audits: self.open_audits,
            outbox: self.outbox,
            events: self.events,
        }
    }

    pub fn statistics(&self) -> PeerStatistics {
        PeerStatistics {
            codec: self.encoder.statistics(),
            packets: self.sent.packets,
            bytes: self.sent.bytes,
            applied: self.sent.applied,
            unapplied: self.sent.unapplied,
            unsettled_bytes: self.encoder.unsettled_bytes(),
            visible: self.visible_set.len(),
            model_bytes: self.encoder.model_bytes(),
            events: self.events,
            events_waiting: self.outbox.deferred_events(),
            event_bytes: self.outbox.bytes(),
            overrun: self.outbox.is_overrun(),
        }
    }

    pub fn is_overrun(&self) -> bool {
        self.outbox.is_overrun()
    }

    pub fn sees(&self, serial: Serial) -> bool {
        self.visibility(serial).is_some()
    }

    /// How an entity is seen, if it is. What appeared since the last look is not what was seen in its
    /// slot.
    fn visibility(&self, serial: Serial) -> Option<Visibility> {
        let id = self.encoder.net_entity_id(serial.first)?;
        self.visible_set
            .get(id)
            .filter(|_| serial.order < self.evaluated_serials)
    }

    /// A number is given to an entity.
    fn note_assigned(&mut self, id: NetEntityId, now: Tick) {
        let at = id.0 as usize;
        if self.assigned_at.len() <= at {
            self.assigned_at.resize(at + 1, Tick::default());
        }
        self.assigned_at[at] = now;
    }

    /// A packet of the newest tick; `None` if it was encoded already, cannot be read yet, or is left
    /// out because the peer applies nothing.
    pub fn encode(&mut self, archive: &Archive, budget: Option<usize>) -> Option<Vec<u8>> {
        if !self.settings_sent {
            return None;
        }
        let now = archive.newest().unwrap_or_default();
        // Only where packets are confirmed does it say anything that none is.
        let is_paced = self.policy == Policy::Confirmed;
        let unsettled = || self.encoder.unsettled_bytes();
        let encoded = match self.pace.turn(now, unsettled) {
            Turn::Skip if is_paced => return None,
            Turn::Probe if is_paced => self.encoder.encode_probe(archive),
            _ => {
                let budget = budget.map(|bytes| bytes.saturating_sub(1));
                self.encoder.encode(archive, budget)
            }
        };
        match encoded {
            Ok(packet) => {
                let message = self.world_message(WorldMessage::State(&packet.bytes));
                self.sent.note(packet.sequence, now, message.len());
                if is_paced && let Some(limit) = self.pace.note_sent(now) {
                    self.encoder.drop_unsettled(limit);
                }
                // Where nobody acknowledges, what was sent is known.
                self.send_known();
                Some(message)
            }
            Err(
                EncodeError::NothingNew(_) | EncodeError::EmptyArchive | EncodeError::Exhausted,
            ) => None,
            Err(error) => {
                debug_assert!(false, "a peer's schema is its world's: {error}");
                None
            }
        }
    }

    pub fn acknowledge(&mut self, ack: &Ack, world: &World) -> Result<(), AckError> {
        let now = world.tick().unwrap_or_default();
        let before = std::mem::replace(&mut self.last_ack, now);
        if now.since(before) > self.pace.second() {
            self.pace.resume(now);
        }
        let is_early = |last: Tick| now.since(last) < self.resync_every;
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

    /// The client is heard of again after a while.
    pub fn resume(&mut self, now: Tick) {
        self.pace.resume(now);
    }

    /// Whether it is sent less than others because it applies nothing.
    pub fn is_throttled(&self, now: Tick) -> bool {
        self.policy == Policy::Confirmed && self.pace.is_throttled(now)
    }

    /// Packets since another one was acknowledged as applied, where that is done, by how many were
    /// sent before each.
    pub fn unapplied(&self) -> Range<u64> {
        let sent = self.sent.packets;
        match self.policy {
            Policy::Confirmed => sent - u64::from(self.sent.unapplied)..sent,
            Policy::Immediate | Policy::Stateless => sent..sent,
        }
    }

    /// Keeps an account of what bits are spent on from now on, or no longer.
    pub fn keep_ledger(&mut self, keep: bool) {
        self.encoder.keep_ledger(keep);
    }

    pub fn ledger(&self) -> Option<&Ledger> {
        self.encoder.ledger()
    }

    /// Sends a message that is to be delivered once.
    pub fn push_message(&mut self, message: Message<'_>) {
        self.outbox.push(message.to_bytes());
    }

    pub fn poll_message(&mut self) -> Option<Vec<u8>> {
        let message = self.outbox.pop()?;
        if !self.settings_sent {
            self.settings_sent = match Message::read(&message) {
                Some(Message::Welcome { .. }) => true,
                Some(Message::World {
                    world_generation,
                    body,
                }) => {
                    self.is_current_world(world_generation)
                        && matches!(body, WorldMessage::Entered { .. })
                }
                _ => false,
            };
        }
        Some(message)
    }

    /// Whether a message is about the world that the client is in now.
    pub fn is_current_world(&self, world_generation: u8) -> bool {
        self.world_generation.bits() == world_generation
    }

    /// The entity that the client called by a number when it showed a tick; `None` if the number was
    /// another's then, which has left.
    pub fn slot(&self, id: NetEntityId, shown: Tick) -> Option<Slot> {
        slot(&self.encoder, &self.assigned_at, id, shown)
    }

    /// The model starts anew; what is shown keeps its numbers.
    pub fn resync(&mut self) {
        self.encoder.resync();
    }

    /// Takes what the client reports of what it is in charge of.
    pub fn report(
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
        let limit = max_reported(self.authorities.len()).min(config.codec.max_entities);
        reports.take(packet, limit, world, own, &find)
    }

    /// Whether the client reports more than it can be in charge of.
    pub fn reports_too_much(&self) -> bool {
        let limit = max_reported(self.authorities.len());
        self.reports
            .as_ref()
            .is_some_and(|reports| reports.len() > limit)
    }

    /// Makes what the client reported part of a tick.
    pub fn relay(&mut self, step: &mut WorldStep<'_>) {
        if let Some(reports) = &mut self.reports {
            reports.apply(step);
        }
    }

    /// What to tell the client about what it reported.
    pub fn acknowledgement(&mut self) -> Option<Vec<u8>> {
        let reports = self.reports.as_mut()?;
        if !std::mem::take(&mut reports.unanswered) {
            return None;
        }
        let ack = reports.decoder().acknowledgement()?;
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
    let since = since.get(id.0 as usize)?;
    (*since <= shown).then(|| encoder.slot(id)).flatten()
}

/// Entities by which a client can report that is in charge of so many entities, some of which may
/// just have taken the place of others. It numbers them from 0 and the server has a table of them, so
/// this bounds the numbers, too.
fn max_reported(entities: usize) -> usize {
    2 * entities * MAX_TABLES + SLACK
}

/// Tables that a type may have.
const MAX_TABLES: usize = 32;

/// Entities that a client may still report although it is no longer in charge of them.
const SLACK: usize = 1024;
