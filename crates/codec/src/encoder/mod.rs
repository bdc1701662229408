//! The sending end of one connection: turns captured ticks into packets for one receiver, and
//! learns from those that were acknowledged.

mod contents;
mod errors;
mod further;
mod packet;
mod rate;
mod selection;
mod settlement;
mod view;

use alloc::{collections::VecDeque, sync::Arc, vec::Vec};

use prescient_schema::Schema;

use crate::{
    ack::{Ack, AppliedSet},
    body::{Contents, Partial, Scratch, Spawn},
    budget::{PacketCosts, SpawnCapacity, Surcharge},
    config::{Config, Policy},
    header::Anchor,
    history::Archive,
    known_entities::KnownEntities,
    layout::Layout,
    ledger::{Account, Cause, Ledger},
    log::Log,
    population::Phase,
    prior::{Prior, PriorMismatch},
    shared_model::SharedModel,
    units::{NetEntityId, Sequence, Slot, Tick},
};

pub use errors::{AckError, EncodeError};
use further::Remainder;
pub(crate) use packet::{finish_check, start_check};
pub use selection::{Selection, ShownErrors};

/// Encodes the ticks of an [`Archive`] for one receiver.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: Config,
    layout: Arc<Layout>,
    shared_model: SharedModel,
    epoch: u8,
    /// The last packet before this epoch.
    before_epoch: Sequence,
    newest: Sequence,
    /// The newest packet known to be applied.
    anchor: Anchor,
    logs: VecDeque<Log>,
    spare: Vec<Log>,
    excluded: Vec<(Sequence, Sequence)>,
    known_entities: KnownEntities,
    /// The newest tick whose changes were read from the archive, and the newest that was encoded.
    read_until: Option<Tick>,
    encoded: Option<Tick>,
    /// What the packets of the newest tick left out.
    remainder: Option<Remainder>,
    scratch: Scratch,
    packet_costs: PacketCosts,
    /// Whether costs have to be counted.
    counting: bool,
    /// Capacity for the next packet, so that it rarely has to grow.
    typical_len: usize,
    /// Free bytes before each packet.
    headroom: usize,
    surcharge: Surcharge,
    selection: Option<Selection>,
    /// What the last tick would have cost without a budget and without new entities, in 1/65536 bit.
    demand: u64,
    spawn_capacity: SpawnCapacity,
    ledger: Option<Ledger>,
    /// The ledger of the packet written last, which may be discarded and written again.
    packet_ledger: Ledger,
    statistics: Statistics,
}

/// Counters of an encoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that were acknowledged as applied.
    pub applied: u64,
    /// Of those, packets that were folded into the model.
    pub folded: u64,
    /// New epochs after the first.
    pub resyncs: u64,
    /// Entities that were coded, including those in packets that were written again because they
    /// were too long. It measures the work done.
    pub coded: u64,
}

/// A packet to send.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The bytes to send, after the free ones of [`Encoder::set_headroom`].
    pub bytes: Vec<u8>,
    /// Its sequence number.
    pub sequence: Sequence,
    /// Whether it covers every visible entity.
    pub full: bool,
    /// Whether it is longer than the budget, because it contains one entity or group that does not
    /// fit.
    pub oversize: bool,
}

impl Encoder {
    /// An encoder for a receiver that starts from the schema alone.
    pub fn new(schema: Arc<Schema>, config: Config) -> Self {
        Self::with_layout(Arc::new(Layout::new(schema)), config)
    }

    /// An encoder for a receiver that starts from the same prior.
    pub fn with_prior(
        schema: Arc<Schema>,
        config: Config,
        prior: &Prior,
    ) -> Result<Self, PriorMismatch> {
        let layout = Layout::with_prior(schema, prior, config.profile)?;
        Ok(Self::with_layout(Arc::new(layout), config))
    }

    /// An encoder whose layout others share; its receivers start from the schema alone.
    pub fn with_layout(layout: Arc<Layout>, config: Config) -> Self {
        let mut known_entities = KnownEntities::default();
        known_entities.visibility_history.depth = config.history;
        Self {
            shared_model: SharedModel::new(layout.clone(), &config, false),
            config,
            layout,
            epoch: 0,
            before_epoch: Sequence(0),
            newest: Sequence(0),
            anchor: Anchor::default(),
            logs: VecDeque::new(),
            spare: Vec::new(),
            excluded: Vec::new(),
            known_entities,
            read_until: None,
            encoded: None,
            remainder: None,
            scratch: Scratch::default(),
            packet_costs: PacketCosts::default(),
            counting: false,
            typical_len: 0,
            headroom: 0,
            surcharge: Surcharge::default(),
            selection: None,
            demand: 0,
            spawn_capacity: SpawnCapacity::default(),
            ledger: None,
            packet_ledger: Ledger::default(),
            statistics: Statistics::default(),
        }
    }

    /// The receiver's id of a visible entity.
    pub fn net_entity_id(&self, slot: Slot) -> Option<NetEntityId> {
        self.id(slot).map(NetEntityId)
    }

    /// Whether the receiver is known to have received a visible entity.
    pub fn is_confirmed(&self, slot: Slot) -> bool {
        self.id(slot)
            .is_some_and(|id| self.shared_model.entity_states.phase(id) != Phase::Absent)
    }

    /// The entity with this id at the receiver.
    pub fn slot(&self, id: NetEntityId) -> Option<Slot> {
        self.known_entities.slot(id.0)
    }

    /// Encodes the archive's newest tick. With a `budget`, the packet has at most that many bytes
    /// (unless a single entity or group needs more) and covers the entities that have waited
    /// longest, by [`weight`](Self::set_weight); [`encode_more`](Self::encode_more) encodes the
    /// others.
    pub fn encode(
        &mut self,
        archive: &Archive,
        budget: Option<usize>,
    ) -> Result<Packet, EncodeError> {
        let now = self.begin(archive)?;
        self.counting = budget.is_some() || self.ledger.is_some();
        let mut contents = self.due_contents(archive, budget);
        let mut packet = self.write(archive, &contents, now);
        if packet.is_none() {
            // A row that the model refers to is no longer in the archive; start a new epoch.
            self.resync();
            contents = self.due_contents(archive, budget);
            packet = self.write(archive, &contents, now);
        }
        let Some(limit) = budget.filter(|&limit| {
            let is_long = |(bytes, _): &(Vec<u8>, Log)| {
                contents.is_draft || bytes.len() - self.headroom > limit
            };
            packet.as_ref().is_some_and(is_long)
        }) else {
            let bytes = packet
                .as_ref()
                .map_or(0, |(bytes, _)| bytes.len() - self.headroom);
            self.demand = (bytes as u64) << 19;
            return self.finish(packet, budget, archive);
        };
        self.demand = self.packet_costs.known() + ((HEADER_BYTES as u64) << 19);
        let mut remainder = Remainder {
            first: Sequence(self.newest.0 + 1),
            epoch: self.epoch,
            cursor: self.anchor.sequence,
            packet_costs: core::mem::take(&mut self.packet_costs),
            contents,
        };
        let packet = self.write_remainder(archive, &mut remainder, now, limit);
        let packet = self.finish(packet, budget, archive)?;
        self.remainder = Some(remainder);
        Ok(packet)
    }

    /// Encodes a packet that covers no entity and costs next to nothing. Its acknowledgement shows
    /// that the receiver still applies packets.
    pub fn encode_probe(&mut self, archive: &Archive) -> Result<Packet, EncodeError> {
        let now = self.begin(archive)?;
        self.counting = self.ledger.is_some();
        let contents = Contents {
            partial: Some(Partial::default()),
            ..Contents::default()
        };
        // Its log must not keep the memory that an earlier packet needed.
        self.spare.clear();
        let packet = self.write(archive, &contents, now);
        self.finish(packet, None, archive)
    }

    /// Checks that there is a tick to encode, and reads the archive's changes up to it.
    fn begin(&mut self, archive: &Archive) -> Result<Tick, EncodeError> {
        if !Arc::ptr_eq(archive.schema(), &self.layout.schema) {
            return Err(EncodeError::WrongSchema);
        }
        let now = archive.newest().ok_or(EncodeError::EmptyArchive)?;
        if self.encoded.is_some_and(|encoded| encoded >= now) {
            return Err(EncodeError::NothingNew(now));
        }
        if self.newest.0 == u32::MAX {
            return Err(EncodeError::Exhausted);
        }
        self.remainder = None;
        self.read_changes(archive);
        Ok(now)
    }

    /// Records the packet as sent.
    fn finish(
        &mut self,
        packet: Option<(Vec<u8>, Log)>,
        budget: Option<usize>,
        archive: &Archive,
    ) -> Result<Packet, EncodeError> {
        let Some((bytes, mut log)) = packet else {
            return Err(EncodeError::MissingRow);
        };
        log.shrink();
        let (sequence, full) = (log.sequence, log.full);
        let length = bytes.len() - self.headroom;
        let oversize = budget.is_some_and(|limit| length > limit);
        self.encoded = Some(log.tick);
        self.typical_len = (self.typical_len * 7 / 8).max(length + SLACK);
        self.note_sent(&log);
        if let Some(ledger) = &mut self.ledger {
            ledger.merge(&self.packet_ledger);
        }
        self.newest = sequence;
        self.logs.push_back(log);
        while let Some(log) = self
            .logs
            .pop_front_if(|log| sequence.0 - log.sequence.0 >= self.config.window())
        {
            self.known_entities.requeue_spawns(&log);
            self.recycle(log);
        }
        if self.config.policy == Policy::Immediate {
            self.settle(sequence, &AppliedSet::ALL, archive);
        }
        Ok(Packet {
            bytes,
            sequence,
            full,
            oversize,
        })
    }

    /// Takes an acknowledgement, and folds the packets that it confirms.
    pub fn acknowledge(&mut self, ack: &Ack, archive: &Archive) -> Result<(), AckError> {
        if ack.newest > self.newest {
            return Err(AckError::NeverSent(ack.newest));
        }
        if self.config.policy != Policy::Confirmed || ack.epoch != self.epoch {
            return Ok(());
        }
        if ack.resync {
            self.resync();
            return Ok(());
        }
        self.settle(ack.newest, &ack.applied, archive);
        Ok(())
    }

    /// Starts a new epoch: the model returns to the prior, or to nothing. Entities keep their ids.
    pub fn resync(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.before_epoch = self.newest;
        self.shared_model = SharedModel::new(self.layout.clone(), &self.config, false);
        self.anchor = Anchor::default();
        self.excluded.clear();
        self.spare.extend(self.logs.drain(..).take(SPARE));
        self.spare.truncate(SPARE);
        self.known_entities
            .restart(self.read_until.unwrap_or_default());
        self.statistics.resyncs += 1;
    }

    /// Keeps the memory of a log for another packet.
    fn recycle(&mut self, log: Log) {
        if self.spare.len() < SPARE {
            self.spare.push(log);
        }
    }

    /// Leaves this many bytes free before each packet, so that those who carry it can put their
    /// headers there without copying the packet. They do not count towards a budget.
    pub fn set_headroom(&mut self, bytes: usize) {
        self.headroom = bytes;
    }

    /// Starts or stops counting the cost of every field.
    pub fn keep_ledger(&mut self, keep: bool) {
        self.ledger = keep.then(Ledger::default);
    }

    /// The costs since [`keep_ledger`](Self::keep_ledger) was called.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// Counters since the encoder was created.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Memory of this connection's model, in bytes.
    pub fn model_bytes(&self) -> usize {
        self.shared_model.bytes()
    }

    /// Memory of the logs of packets that are neither acknowledged nor lost, in bytes.
    pub fn unsettled_bytes(&self) -> usize {
        self.logs.iter().map(Log::bytes).sum()
    }

    /// Drops the logs of the oldest unsettled packets until the others hold at most `limit` bytes,
    /// or only the newest is left. A dropped packet is never folded, and an acknowledgement that
    /// names no later packet is ignored.
    pub fn drop_unsettled(&mut self, limit: usize) {
        let mut bytes = self.unsettled_bytes();
        while bytes > limit
            && self.logs.len() > 1
            && let Some(log) = self.logs.pop_front()
        {
            bytes -= log.bytes();
            self.known_entities.requeue_spawns(&log);
            // Logs that are kept for reuse are as large.
            self.spare.clear();
        }
    }

    /// A digest of the whole model as of the fold point.
    pub fn digest(&self) -> u64 {
        self.shared_model.full_digest()
    }

    /// The newest packet that was folded into the model.
    pub fn cursor(&self) -> Sequence {
        let Anchor { sequence, .. } = self.anchor;
        sequence
    }

    /// The cost of an entity's present values in the next full packet, in 1/65536 bit; nothing is
    /// sent or learned. A partial packet needs a few more bits to name the entity. `None` if the
    /// entity is not visible.
    pub fn estimate(&mut self, slot: Slot, archive: &Archive) -> Option<u64> {
        let id = self.id(slot)?;
        let now = archive.newest()?;
        let class = archive.class(slot)?;
        self.read_changes(archive);
        let mut contents = Contents {
            partial: Some(Partial::default()),
            ..Contents::default()
        };
        match self.shared_model.entity_states.phase(id) {
            Phase::Active => {
                contents.partial = Some(Partial {
                    active: [id].into(),
                    limit: 0,
                })
            }
            Phase::Resting => {
                let wakes = self.known_entities.dirty.contains_key(&id)
                    && self
                        .contents(archive, None)
                        .wakes
                        .binary_search(&id)
                        .is_ok();
                if !wakes {
                    return Some(0);
                }
                contents.wakes.push(id);
            }
            Phase::Absent => contents.spawns.push(Spawn {
                id,
                class,
                again: false,
            }),
        }
        let kept = (core::mem::take(&mut self.packet_costs), self.ledger.take());
        self.ledger = Some(Ledger::default());
        self.counting = true;
        let written = self.write(archive, &contents, now);
        let packet_costs = core::mem::replace(&mut self.packet_costs, kept.0);
        self.ledger = kept.1;
        self.recycle(written?.1);
        if !packet_costs.active.is_empty() {
            // A full packet does not name the active entities.
            let counts = |(account, _): &(Account, u64)| {
                !matches!(account.cause, Cause::Header | Cause::Presence)
            };
            return Some(
                self.packet_ledger
                    .entries()
                    .filter(counts)
                    .map(|(_, c)| c)
                    .sum(),
            );
        }
        let items = packet_costs.wakes.iter().chain(&packet_costs.spawns);
        Some(items.map(|(_, cost)| cost).sum())
    }

    pub(crate) fn shared_model(&self) -> &SharedModel {
        &self.shared_model
    }

    fn id(&self, slot: Slot) -> Option<u32> {
        self.known_entities.id(slot)
    }

    /// The first tick after the last encoded one.
    fn next_tick(&self) -> Tick {
        self.encoded
            .map_or(Tick(0), |tick| Tick(tick.0.saturating_add(1)))
    }
}

/// About the bytes of a packet besides its entities.
const HEADER_BYTES: usize = 12;
/// Logs that are kept for reuse. Many packets are in flight only for a while.
const SPARE: usize = 2;
/// Space after a packet, for one that is a little longer and for an authentication tag.
const SLACK: usize = 48;

/// Packets of which an acknowledgement states whether they were applied, and the most packets of one
/// tick.
pub(crate) const WINDOW: u32 = 256;
