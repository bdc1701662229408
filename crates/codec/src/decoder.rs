//! The receiving end of one connection: applies packets to a copy of the visible world, each wholly
//! or not at all.

use alloc::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    vec::Vec,
};
use core::fmt;

use prescient_schema::{Content, EntityRef, Schema};

use crate::{
    ack::{Ack, AppliedSet},
    body::{self, ReadLimits, Readout, Scratch, read_body},
    config::{BEST_CONTEXTS, Config, DEFAULT_CONTEXTS, Policy, Profile},
    coverage::Coverage,
    encoder::{WINDOW, finish_check, start_check},
    header::{self, Anchor, Header, Known},
    history::{Archive, HistoryDepth, Window},
    kept::KeptRow,
    last_row::LastRow,
    layout::Layout,
    ledger::{Account, Cause},
    log::Log,
    model::decisions::Decisions,
    packet_coder::PacketCoder,
    population::Phase,
    predict::{ROWS, Samples},
    prior::{Prior, PriorMismatch},
    range::RangeDecoder,
    shared_model::{EntityKey, Rows, SharedModel, Views},
    units::{NetEntityId, Sequence, Slot, Tick},
};

/// Decodes the packets of one [`Encoder`](crate::Encoder).
#[derive(Clone, Debug)]
pub struct Decoder {
    config: Config,
    max_bytes: usize,
    layout: Arc<Layout>,
    shared_model: SharedModel,
    /// The world as received; slots are the sender's ids.
    shown: Archive,
    epoch: u8,
    newest: Sequence,
    applied: AppliedSet,
    /// The newest packet that an acknowledgement named. The sender takes those before it that were
    /// not named as lost.
    acknowledged: Sequence,
    /// Packets of the newest tick that were applied.
    packets_of_tick: u32,
    cursor: Sequence,
    logs: VecDeque<Log>,
    spare: Vec<Log>,
    /// Shown entities that are not in the model yet.
    unconfirmed: BTreeSet<u32>,
    /// The ids that the last packet covered; `None` if it was full.
    covered: Option<Vec<NetEntityId>>,
    /// The last rows of the entities that the last packet despawned, ascending.
    despawned: Vec<(NetEntityId, LastRow)>,
    /// What the packets of the shown ticks covered.
    coverage: Coverage,
    refusals: u32,
    /// [Work](Log::work) of applied packets, and work spent on folding for packets that were
    /// refused then.
    useful: u64,
    wasted: u64,
    decisions: u64,
    scratch: Scratch,
    readout: Readout,
}

/// An applied packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its sequence number.
    pub sequence: Sequence,
    /// The tick it describes.
    pub tick: Tick,
    /// Whether every entity is now as it was at that tick.
    pub full: bool,
}

/// Why a packet was not applied; the decoder is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// A newer packet was applied already. This is no fault.
    Late,
    /// It is not a packet of this connection, or was damaged in transit.
    Malformed,
    /// It was coded with a model that this end does not have.
    UnknownModel,
    /// Its check differs: it was damaged in transit, or the models of the two ends differ.
    CheckFailed,
    /// It needs more memory than [`Decoder::set_max_bytes`] allows.
    Full,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Late => "a newer packet was applied already",
            Self::Malformed => "the packet is malformed",
            Self::UnknownModel => "the packet is coded with a model that this end does not have",
            Self::CheckFailed => "the packet's check does not match its contents",
            Self::Full => "the packet needs more memory than this end allows",
        };
        f.write_str(text)
    }
}

impl core::error::Error for DecodeError {}

impl Decoder {
    /// A decoder that starts from the schema alone.
    pub fn new(schema: Arc<Schema>, config: Config) -> Self {
        Self::with_layout(Arc::new(Layout::new(schema)), config)
    }

    /// A decoder that starts from the sender's prior.
    pub fn with_prior(
        schema: Arc<Schema>,
        config: Config,
        prior: &Prior,
    ) -> Result<Self, PriorMismatch> {
        let layout = Layout::with_prior(schema, prior, config.profile)?;
        Ok(Self::with_layout(Arc::new(layout), config))
    }

    /// A decoder whose layout others share; it starts from the schema alone.
    pub fn with_layout(layout: Arc<Layout>, config: Config) -> Self {
        Self {
            shown: Archive::mirror(layout.schema.clone(), config.history),
            shared_model: SharedModel::new(layout.clone(), &config, true),
            config,
            max_bytes: MAX_BYTES,
            layout,
            epoch: 0,
            newest: Sequence(0),
            applied: AppliedSet::NONE,
            acknowledged: Sequence(0),
            packets_of_tick: 0,
            cursor: Sequence(0),
            logs: VecDeque::new(),
            spare: Vec::new(),
            unconfirmed: BTreeSet::new(),
            covered: Some(Vec::new()),
            despawned: Vec::new(),
            coverage: Coverage::default(),
            refusals: 0,
            useful: 0,
            wasted: 0,
            decisions: 0,
            scratch: Scratch::default(),
            readout: Readout::default(),
        }
    }

    /// Applies a packet, wholly or not at all.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Applied, DecodeError> {
        let result = match self.config.profile {
            Profile::Default => self.decode_with::<DEFAULT_CONTEXTS>(bytes),
            Profile::Best => self.decode_with::<BEST_CONTEXTS>(bytes),
        };
        match result {
            Ok(_) => self.refusals = 0,
            Err(DecodeError::Late) => {}
            Err(_) => self.refusals = self.refusals.saturating_add(1),
        }
        result
    }

    /// The acknowledgement to send; `None` before a packet was applied or refused. Packets that
    /// arrive after later ones are not applied any more if those were acknowledged, so several
    /// packets that arrive together should be applied before one acknowledgement.
    pub fn acknowledgement(&mut self) -> Option<Ack> {
        let resync = self.refusals >= MAX_REFUSALS;
        self.acknowledged = self.newest;
        (self.newest.0 > 0 || resync).then(|| {
            let mut applied = self.applied;
            // The sender has settled everything up to the cursor, so nothing is said of it.
            if self.cursor.0 > 0 {
                applied.insert_before(self.newest.0 - self.cursor.0);
            }
            Ack {
                epoch: self.epoch,
                newest: self.newest,
                applied,
                resync,
            }
        })
    }

    /// The world as received, at the newest and recent ticks. Slots are the [`NetEntityId`]s.
    pub fn world(&self) -> &Archive {
        &self.shown
    }

    /// The newest row of an entity.
    pub fn row(&self, id: NetEntityId) -> Option<&[i64]> {
        self.shown.latest(Slot(id.0))
    }

    /// A copy of the newest row of an entity.
    pub fn keep_row(&self, id: NetEntityId) -> Option<LastRow> {
        LastRow::of(&self.layout, &self.shown, Slot(id.0))
    }

    /// The last row of an entity that the last packet despawned.
    pub fn despawned_row(&self, id: NetEntityId) -> Option<&LastRow> {
        let at = self.despawned.binary_search_by_key(&id, |&(id, _)| id);
        at.ok().map(|at| &self.despawned[at].1)
    }

    /// The rows of an entity at the recent ticks that were confirmed, oldest first: those whose
    /// packets covered it, also if they stated no change. A tick in which only other entities were
    /// covered is none of them: the sender's row of that tick is not known here. Rows from before
    /// the entity appeared, which may be those of another one with this id, are left out.
    pub fn samples(&self, id: NetEntityId) -> impl DoubleEndedIterator<Item = (Tick, &[i64])> {
        let shown = self.shown.samples(Slot(id.0));
        shown.filter(move |(tick, _)| self.coverage.includes(*tick, id.0))
    }

    /// Sets how many ticks before the newest one are kept for [`samples`](Self::samples), beyond
    /// those of [`Config::history`].
    pub fn set_history(&mut self, depth: HistoryDepth) {
        let least = HistoryDepth::of(self.config.history);
        self.shown.set_depth(depth.max(least));
    }

    /// Whether a reference in a received row names an entity that has not arrived yet. Any other
    /// reference is empty, or names an entity of [`world`](Self::world); see [`Archive::entity`].
    pub fn is_pending(&self, reference: EntityRef) -> bool {
        !reference.is_none() && self.shown.entity(reference).is_none()
    }

    /// Replaces [`Config::max_entities`] for the packets to come. Entities beyond it that were
    /// received already remain.
    pub fn set_max_entities(&mut self, max_entities: usize) {
        self.config.max_entities = max_entities;
    }

    /// Sets how many bytes packets may make this end hold: rows and contents of all ticks that are
    /// [kept](Self::set_history), and the logs of packets that are not folded yet, which get half
    /// of it. A packet that needs more is refused and counts as lost. 2^30 unless this is called:
    /// enough for 100,000 entities of ten fields that all change at every tick of the shortest
    /// history.
    pub fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
    }

    /// Bytes that count towards [`set_max_bytes`](Self::set_max_bytes).
    pub fn held_bytes(&self) -> usize {
        let logs: usize = self.logs.iter().map(Log::held_bytes).sum();
        let shown = self.shown_bytes(self.shown.newest().unwrap_or_default());
        logs + self.shared_model.entity_states.rest_row_bytes() + shown
    }

    /// The entities that the last packet covered, ascending; all, if it was full.
    pub fn covered(&self) -> impl Iterator<Item = NetEntityId> + '_ {
        let some = self.covered.iter().flatten().copied();
        let all = self.covered.is_none().then(|| self.shown.living_slots());
        some.chain(all.into_iter().flatten().map(|slot| NetEntityId(slot.0)))
    }

    /// The `order`-th derivative of a field at the newest tick, per tick, as a fraction. It follows
    /// from the entity's recent values, including the newest. `None` if there are too few.
    pub fn derivative(&self, id: NetEntityId, field: u16, order: usize) -> Option<(i64, i64)> {
        let now = self.shown.newest()?;
        let coefficients = order.checked_add(1)?;
        let slot = Slot(id.0);
        let mut offsets = Vec::new();
        let mut values = Vec::new();
        let mut ticks: Vec<Tick> = self.shown.ticks().collect();
        ticks.reverse();
        for tick in ticks {
            let Some(row) = self.shown.row(slot, tick) else {
                break;
            };
            offsets.push(-(now.since(tick) as i32));
            values.push(*row.get(usize::from(field))?);
            if values.len() == coefficients {
                break;
            }
        }
        let weights = crate::predict::polynomial::fit(&offsets, coefficients, order).ok()?;
        let terms = weights.numerators.iter().zip(&values);
        let sum = terms.map(|(&weight, &value)| i128::from(weight) * i128::from(value));
        let sum = sum.fold(0, i128::saturating_add);
        Some((i64::try_from(sum).ok()?, weights.denominator))
    }

    /// The decisions that were read so far, those of refused packets included: a measure of work.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// A digest of the whole model as of the fold point.
    pub fn digest(&self) -> u64 {
        self.shared_model.full_digest()
    }

    /// Memory of this connection's model, in bytes.
    pub fn model_bytes(&self) -> usize {
        self.shared_model.bytes()
    }

    fn decode_with<const N: usize>(&mut self, bytes: &[u8]) -> Result<Applied, DecodeError> {
        let known = Known {
            epoch: self.epoch,
            newest: self.newest,
            acknowledges: self.config.policy == Policy::Confirmed,
        };
        let anchor_of = |sequence: Sequence| self.anchor_of(sequence);
        let (header, check, body) = header::read(bytes, known, &anchor_of)?;
        self.check_order(&header)?;
        let room = self.room_for(&header).ok_or(DecodeError::Full)?;
        let mut fresh = None;
        let mut folded = 0;
        if header.epoch != self.epoch {
            if header.cursor.0 != 0 {
                return Err(DecodeError::UnknownModel);
            }
            fresh = Some(SharedModel::new(self.layout.clone(), &self.config, true));
        } else {
            folded = self.fold_for::<N>(&header)?;
        }
        let mut log = self.spare.pop().unwrap_or_default();
        let cursor_tick = self.anchor_of(header.cursor).unwrap_or_default().tick;
        log.begin(&header, cursor_tick);
        let read = self.read::<N>(&header, check, body, room, &mut fresh, &mut log);
        self.decisions += log.decisions.count() as u64;
        match read {
            Ok(()) => {
                if let Some(shared_model) = fresh {
                    self.start_epoch(header.epoch, shared_model);
                }
                self.commit(&header, log);
                Ok(Applied {
                    sequence: header.sequence,
                    tick: header.tick,
                    full: header.full,
                })
            }
            Err(error) => {
                self.wasted += folded;
                self.readout.clear();
                self.recycle(log);
                self.shared_model.roll_back();
                Err(error)
            }
        }
    }

    /// Checks that a packet comes after all others, or tells more of the newest tick. The packets of
    /// a tick are partial, and coded with one model; they may arrive in any order.
    fn check_order(&self, header: &Header) -> Result<(), DecodeError> {
        let newest = self.shown.newest();
        let continues = newest == Some(header.tick)
            && header.epoch == self.epoch
            && header.cursor == self.cursor;
        if header.sequence > self.newest {
            let is_next = newest.is_none_or(|newest| header.tick > newest);
            let is_partial = !header.full && self.covered.is_some();
            let is_more = continues && is_partial && self.packets_of_tick < MAX_PACKETS_OF_TICK;
            return match is_next || is_more {
                true => Ok(()),
                false => Err(DecodeError::Malformed),
            };
        }
        let at = self.log_at(header.sequence);
        let following = at.err().and_then(|at| self.logs.get(at));
        let is_between = following.is_some_and(|log| log.tick == header.tick && !log.full);
        let is_open = header.sequence > self.acknowledged && header.sequence > header.cursor;
        match continues && is_between && is_open && !header.full {
            true if self.packets_of_tick < MAX_PACKETS_OF_TICK => Ok(()),
            true => Err(DecodeError::Malformed),
            false => Err(DecodeError::Late),
        }
    }

    /// The index of a packet's log, or where it belongs.
    fn log_at(&self, sequence: Sequence) -> Result<usize, usize> {
        self.logs
            .binary_search_by_key(&sequence, |log| log.sequence)
    }

    /// The bytes that a packet may add; `None` if too many are held already.
    fn room_for(&self, header: &Header) -> Option<Room> {
        let (mut logs, mut rest_rows) = (0, 0);
        // What the packet makes obsolete is freed when it is committed; with another epoch that is
        // everything.
        if header.epoch == self.epoch {
            let stays = |log: &&Log| log.sequence >= header.cursor;
            logs = self.logs.iter().filter(stays).map(Log::held_bytes).sum();
            rest_rows = self.shared_model.entity_states.rest_row_bytes();
        }
        let held = logs + rest_rows + self.shown_bytes(header.tick);
        Some(Room {
            logs: (self.max_bytes / LOGS_SHARE).checked_sub(logs)?,
            all: self.max_bytes.checked_sub(held)?,
        })
    }

    /// Bytes of the shown world once a tick is captured and older ones are dropped.
    fn shown_bytes(&self, tick: Tick) -> usize {
        let coverage = self.coverage.bytes_from(self.shown.horizon(tick));
        self.shown.bytes_at(tick) + coverage
    }

    /// Keeps a log's memory for another packet.
    fn recycle(&mut self, log: Log) {
        if log.bytes() <= self.max_bytes / SPARE_SHARE {
            self.spare.push(log);
        }
    }

    /// Folds packets until the model is the one with which the sender wrote this packet. Returns
    /// the work that this took.
    fn fold_for<const N: usize>(&mut self, header: &Header) -> Result<u64, DecodeError> {
        if header.cursor == self.cursor {
            return Ok(0);
        }
        if self.log_at(header.cursor).is_err() {
            return Err(DecodeError::UnknownModel);
        }
        let behind = self.cursor;
        let is_folded = |log: &&Log| {
            let excluded =
                |(from, to): &(Sequence, Sequence)| (*from..=*to).contains(&log.sequence);
            log.sequence > behind
                && log.sequence <= header.cursor
                && !header.excluded.iter().any(excluded)
        };
        let entity_states = &self.shared_model.entity_states;
        let folded = self.logs.iter().filter(is_folded);
        let work: u64 = folded.map(|log| log.work(entity_states.active.len())).sum();
        // A refused packet is rolled back and can be sent again, so the work of folding for it is
        // limited.
        if self.wasted.saturating_add(work) > FREE_WASTE + WASTE * self.useful {
            return Err(DecodeError::UnknownModel);
        }
        let rows = Shown(&self.shown);
        for log in self.logs.iter().filter(is_folded) {
            self.shared_model.fold::<N>(log, &rows);
        }
        Ok(work)
    }

    fn read<const N: usize>(
        &mut self,
        header: &Header,
        check: u16,
        body: &[u8],
        room: Room,
        fresh: &mut Option<SharedModel>,
        log: &mut Log,
    ) -> Result<(), DecodeError> {
        let shared_model = fresh.as_mut().unwrap_or(&mut self.shared_model);
        let rows = Shown(&self.shown);
        let mark = shared_model.context_model.mark();
        let is_fresh = header.epoch != self.epoch;
        self.readout.clear();
        let max_decisions = body::max_decisions(body.len(), &shared_model.entity_states);
        let limits = ReadLimits {
            entities: self.config.max_entities,
            decisions: max_decisions.min(room.logs / Decisions::BYTES_EACH),
        };
        let mut packet_coder = PacketCoder::<_, N> {
            coder: RangeDecoder::new(body),
            context_model: &mut shared_model.context_model,
            entity_states: &shared_model.entity_states,
            rows: &rows,
            log: &mut *log,
            ledger: None,
            account: Account {
                class: None,
                field: None,
                cause: Cause::Header,
            },
            sum: start_check(header, &self.layout),
            counting: false,
            cost: 0,
            max_decisions: usize::MAX,
            copy_work: 0,
            new_contents: Vec::new(),
            content_room: room.all,
            invalid: false,
        };
        let read = read_body(
            &mut packet_coder,
            header.full,
            &rows,
            header.tick,
            &mut self.scratch,
            &limits,
            &mut self.readout,
        );
        let sum = packet_coder.sum;
        let is_log_full = packet_coder.is_exhausted() && packet_coder.work() <= max_decisions;
        let is_full = packet_coder.content_room == 0 || is_log_full;
        self.readout.contents.append(&mut packet_coder.new_contents);
        shared_model.context_model.rewind(mark);
        let mut unfolded = self.logs.iter().filter(|old| old.sequence > header.cursor);
        let error = match read {
            Err(_) if is_full => DecodeError::Full,
            Err(_) => DecodeError::Malformed,
            Ok(()) if !is_fresh && !unfolded.all(|old| classes_agree(&old.spawns, &log.spawns)) => {
                DecodeError::Malformed
            }
            Ok(()) if !check_matches(finish_check(sum, shared_model, log, &rows), check) => {
                DecodeError::CheckFailed
            }
            Ok(()) if !room.fits(log, &self.readout) => DecodeError::Full,
            Ok(()) => return Ok(()),
        };
        shared_model.context_model.free_untrained_pages();
        Err(error)
    }

    fn start_epoch(&mut self, epoch: u8, shared_model: SharedModel) {
        self.shared_model = shared_model;
        self.epoch = epoch;
        self.cursor = Sequence(0);
        self.applied = AppliedSet::NONE;
        while let Some(log) = self.logs.pop_front() {
            self.recycle(log);
        }
        self.unconfirmed = self.shown.living_slots().map(|slot| slot.0).collect();
    }

    fn commit(&mut self, header: &Header, log: Log) {
        for &id in &self.readout.wakes {
            let class = self.shared_model.entity_states.population.status(id).class;
            if let Some(row) = self.shown.latest_of(Slot(id), class) {
                self.shared_model
                    .keep_rest_row(id, row, &Shown(&self.shown));
            }
        }
        self.shared_model.commit();
        self.useful += log.work(self.shared_model.entity_states.active.len());
        self.show(header, &log);
        let listed = (!header.full).then_some(&log.covered[..]);
        self.coverage.add(header.tick, listed);
        self.coverage.drop_before(self.shown.horizon(header.tick));
        match header.sequence.0.checked_sub(self.newest.0) {
            Some(gap) => {
                self.applied.advance(gap);
                self.newest = header.sequence;
            }
            None => self.applied.insert(self.newest.0 - header.sequence.0),
        }
        self.cursor = header.cursor;
        self.covered =
            (!header.full).then(|| log.covered.iter().map(|&id| NetEntityId(id)).collect());
        match self.log_at(header.sequence) {
            Ok(at) | Err(at) => self.logs.insert(at, log),
        }
        // The cursor's log stays, because short headers are relative to its tick, however long the
        // sender receives no acknowledgement. Others as old cannot be folded any more.
        let is_cursor = |log: &Log| log.sequence == header.cursor;
        let horizon =
            Sequence(self.newest.0.saturating_sub(self.config.window())).max(header.cursor);
        loop {
            let at = usize::from(self.logs.front().is_some_and(is_cursor));
            if self.logs.get(at).is_none_or(|log| log.sequence >= horizon) {
                break;
            }
            if let Some(log) = self.logs.remove(at) {
                self.recycle(log);
            }
        }
        self.spare.truncate(SPARE);
    }

    /// Writes the packet into the shown world.
    fn show(&mut self, header: &Header, log: &Log) {
        let shared_model = &self.shared_model;
        let mut despawned: Vec<u32> = log.despawns.clone();
        let mut restored: Vec<(u32, KeptRow)> = Vec::new();
        if header.full {
            let spawned = |id: &u32| log.spawns.binary_search_by_key(id, |&(id, _)| id).is_ok();
            let unknown =
                |id: &u32| shared_model.entity_states.phase(*id) == Phase::Absent && !spawned(id);
            despawned.extend(self.unconfirmed.iter().filter(|id| unknown(id)));
            for (&id, row) in &shared_model.entity_states.rest_rows {
                if self.readout.wakes.binary_search(&id).is_err() {
                    restored.push((id, row.clone()));
                }
            }
        }
        despawned.sort_unstable();
        let last_row = |&id: &u32| {
            let row = LastRow::of(&self.layout, &self.shown, Slot(id))?;
            Some((NetEntityId(id), row))
        };
        self.despawned.clear();
        self.despawned.extend(despawned.iter().filter_map(last_row));
        self.unconfirmed
            .retain(|&id| shared_model.entity_states.phase(id) == Phase::Absent);
        let is_more = self.shown.newest() == Some(header.tick);
        self.packets_of_tick = if is_more { self.packets_of_tick + 1 } else { 1 };
        let capture = match is_more {
            true => self.shown.reopen(),
            false => self.shown.begin(header.tick).ok(),
        };
        let Some(mut capture) = capture else {
            return;
        };
        // What was read and checked is not refused below. If it were, the entity would stay as it
        // was, and the next check would find that.
        for content in &self.readout.contents {
            let _ = capture.intern_hashed(content.clone());
        }
        for content in restored.iter().flat_map(|(_, row)| row.contents()) {
            capture.restore(content);
        }
        for id in despawned {
            let _ = capture.despawn(Slot(id));
            self.unconfirmed.remove(&id);
        }
        for (id, row) in restored {
            let _ = capture.write(Slot(id), &row);
        }
        for row in &self.readout.rows {
            let slot = Slot(row.id);
            let values = self.readout.row(row);
            match capture.class(slot) {
                Some(class) if class == row.class => {
                    let _ = capture.write(slot, values);
                    continue;
                }
                Some(_) => {
                    let _ = capture.despawn(slot);
                }
                None => {}
            }
            if capture.spawn_at(slot, row.class, values).is_ok()
                && shared_model.entity_states.phase(row.id) == Phase::Absent
            {
                self.unconfirmed.insert(row.id);
            }
        }
        capture.finish();
    }

    fn anchor_of(&self, sequence: Sequence) -> Option<Anchor> {
        let at = self.log_at(sequence).ok()?;
        self.logs.get(at).map(Log::anchor)
    }
}

/// The bytes that a packet may add: for logs, and for everything.
#[derive(Clone, Copy, Debug)]
struct Room {
    logs: usize,
    all: usize,
}

impl Room {
    fn fits(&self, log: &Log, readout: &Readout) -> bool {
        let kept = log.held_bytes();
        let listed = if log.full {
            0
        } else {
            size_of_val(&log.covered[..])
        };
        kept <= self.logs && kept + listed + readout.bytes() <= self.all
    }
}

/// Whether the ids that two packets both spawn have the same class in both; spawns are sorted by
/// id. If not, the model would take the class of the packet that is folded first and the shown
/// world that of the later one, and rows of one class would be read as rows of the other.
fn classes_agree(earlier: &[(u32, u16)], later: &[(u32, u16)]) -> bool {
    let mut earlier = earlier.iter().peekable();
    later.iter().all(|&(id, class)| {
        while earlier.next_if(|&&(other, _)| other < id).is_some() {}
        let known = earlier.peek().filter(|&&&(other, _)| other == id);
        known.is_none_or(|&&(_, known)| known == class)
    })
}

/// Compares a packet's check. Fuzzing accepts any: an attacker computes the right one, and random
/// mutations would not get past the comparison.
fn check_matches(computed: u16, received: u16) -> bool {
    cfg!(fuzzing) || computed == received
}

/// The rows of the decoder. They have the precision at which they were sent.
struct Shown<'a>(&'a Archive);

impl Rows for Shown<'_> {
    #[inline]
    fn row<'a>(
        &'a self,
        EntityKey { id, class }: EntityKey,
        tick: Tick,
        _: u8,
        _: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]> {
        self.0.row_of(Slot(id), class, tick)
    }

    #[inline]
    fn rows<'a, 's: 'a>(
        &'s self,
        EntityKey { id, class }: EntityKey,
        samples: &Samples,
        _: u8,
        _: &'a mut [Vec<i64>; ROWS],
        window: &mut Window<'s>,
    ) -> Option<Views<'a>> {
        self.0.rows((Slot(id), class), samples, window)
    }

    fn frame(&self, tick: Tick) -> u32 {
        self.0.frame_number(tick)
    }

    #[inline]
    fn latest<'a>(
        &'a self,
        EntityKey { id, class }: EntityKey,
        _: u8,
        _: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]> {
        self.0.latest_of(Slot(id), class)
    }

    fn changed_after(&self, id: u32, tick: Tick) -> bool {
        self.0
            .last_changed(Slot(id))
            .is_some_and(|changed| changed > tick)
    }

    fn content(&self, cell: i64) -> Option<&Arc<Content>> {
        self.0.shared_content(cell)
    }
}

const MAX_BYTES: usize = 1 << 30;

/// Packets that may tell of one tick.
const MAX_PACKETS_OF_TICK: u32 = WINDOW;

/// Consecutive refused packets after which a new epoch is requested.
const MAX_REFUSALS: u32 = 3;
const SPARE: usize = 4;
/// Logs may hold this fraction of all bytes.
const LOGS_SHARE: usize = 2;
/// A log that holds more than this fraction of all bytes is not reused.
const SPARE_SHARE: usize = 64;
/// Work of folding for refused packets: this much per unit of work in applied packets, and as much
/// as is always allowed.
const WASTE: u64 = 4;
const FREE_WASTE: u64 = 1 << 20;

#[cfg(test)]
mod tests;
