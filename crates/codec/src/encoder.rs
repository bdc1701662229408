//! The sending end of one connection.

use alloc::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    vec::Vec,
};
use core::fmt;

use prescient_schema::{Level, Schema};

use crate::{
    ack::Ack,
    body::{self, Bill, Contents, Partial, Scratch, Spawn, Truth, write_body},
    budget::{self, Appetite, Surcharge},
    check::Checksum,
    config::{Config, FEW, MANY, Policy, Profile},
    header::{self, Header, MAX_EXCLUDED},
    history::Archive,
    layout::Layout,
    ledger::{Account, Cause, Ledger},
    log::Log,
    population::Phase,
    prior::{Prior, PriorMismatch},
    range::RangeEncoder,
    roster::{Doom, Roster, Sight},
    session::Session,
    twin::{Rows, Twin},
    units::{ClientId, Sequence, Slot, Tick, Weight},
};

/// Turns an [`Archive`] into packets for one receiver.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: Config,
    layout: Arc<Layout>,
    twin: Twin,
    epoch: u8,
    /// The last packet before this epoch.
    before_epoch: Sequence,
    newest: Sequence,
    /// The newest packet known to be applied, its tick, and what was folded when it was coded.
    cursor: Sequence,
    cursor_tick: Tick,
    cursor_base: Sequence,
    logs: VecDeque<Log>,
    spare: Vec<Log>,
    excluded: Vec<(Sequence, Sequence)>,
    roster: Roster,
    /// How far the archive's changes were followed, and which tick was sent last.
    followed: Option<Tick>,
    encoded: Option<Tick>,
    scratch: Scratch,
    bill: Bill,
    /// Whether the bill has to be right.
    counting: bool,
    /// Room to give a packet so that it need not grow.
    usual_len: usize,
    surcharge: Surcharge,
    appetite: Appetite,
    ledger: Option<Ledger>,
    /// The ledger of the packet written last, which may not be the one that is sent.
    page: Ledger,
    statistics: Statistics,
}

/// What an encoder did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets whose application was confirmed.
    pub applied: u64,
    /// Of those, packets whose lesson became part of the model.
    pub folded: u64,
    /// New epochs after the first.
    pub resyncs: u64,
    /// Entities that were coded, also in packets that were written anew because they were too long:
    /// the work, in other words.
    pub coded: u64,
}

/// A packet to send.
#[derive(Clone, Debug)]
pub struct Packet {
    /// What travels.
    pub bytes: Vec<u8>,
    /// Its number.
    pub sequence: Sequence,
    /// Whether every visible entity is covered.
    pub full: bool,
    /// It is longer than the budget because it holds one entity or group that does not fit.
    pub oversize: bool,
}

/// Why nothing was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// Nothing was captured yet.
    EmptyArchive,
    /// The newest tick was sent already.
    NothingNew(Tick),
    /// The archive has another schema than the connection.
    WrongSchema,
    /// 2³² − 1 packets were sent; the connection has to be made anew.
    Exhausted,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyArchive => write!(f, "capture a tick before encoding"),
            Self::NothingNew(tick) => write!(f, "tick {} was encoded already", tick.0),
            Self::WrongSchema => write!(f, "the archive's schema is not the connection's"),
            Self::Exhausted => write!(f, "all packet numbers are used; reconnect"),
        }
    }
}

impl core::error::Error for EncodeError {}

/// Why an acknowledgement was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AckError {
    /// It names a packet that was never sent: the peer is broken or lies.
    NeverSent(Sequence),
    /// It does not name its own newest packet as applied.
    Contradiction,
}

impl fmt::Display for AckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverSent(sequence) => write!(f, "packet {} was never sent", sequence.0),
            Self::Contradiction => write!(f, "the acknowledgement contradicts itself"),
        }
    }
}

impl core::error::Error for AckError {}

impl Encoder {
    /// An encoder for a receiver that knows nothing yet.
    pub fn new(schema: Arc<Schema>, config: Config) -> Self {
        Self::with_layout(Layout::new(schema), config)
    }

    /// An encoder for a receiver that knows a prior, and nothing else yet.
    pub fn with_prior(
        schema: Arc<Schema>,
        config: Config,
        prior: &Prior,
    ) -> Result<Self, PriorMismatch> {
        let layout = Layout::with_prior(schema, prior, config.profile)?;
        Ok(Self::with_layout(layout, config))
    }

    fn with_layout(layout: Layout, config: Config) -> Self {
        let layout = Arc::new(layout);
        Self {
            twin: Twin::new(layout.clone(), &config, false),
            config,
            layout,
            epoch: 0,
            before_epoch: Sequence(0),
            newest: Sequence(0),
            cursor: Sequence(0),
            cursor_tick: Tick(0),
            cursor_base: Sequence(0),
            logs: VecDeque::new(),
            spare: Vec::new(),
            excluded: Vec::new(),
            roster: Roster::default(),
            followed: None,
            encoded: None,
            scratch: Scratch::default(),
            bill: Bill::default(),
            counting: false,
            usual_len: 0,
            surcharge: Surcharge::default(),
            appetite: Appetite::default(),
            ledger: None,
            page: Ledger::default(),
            statistics: Statistics::default(),
        }
    }

    /// The receiver shall see this entity from now on.
    pub fn show(&mut self, slot: Slot, archive: &Archive) -> Option<ClientId> {
        archive.class(slot)?;
        let since = archive.newest()?;
        let known = self.id(slot).is_some();
        let id = self.roster.admit(slot, since);
        if self.layout.has_references && !known {
            let from = self.next_tick();
            let entity = archive.reference(slot)?;
            self.roster.sightings.begin(entity, id, from);
        }
        Some(ClientId(id))
    }

    /// The receiver shall no longer see this entity. Entities that leave the archive are hidden
    /// without being asked for.
    pub fn hide(&mut self, slot: Slot) {
        let Some(id) = self.roster.ids.remove(slot) else {
            return;
        };
        let to = self.next_tick();
        let active = &self.twin.book.active;
        let roster = &mut self.roster;
        roster.sightings.end(slot, to);
        roster.slots[id as usize] = None;
        roster.dirty.remove(&id);
        if roster.sent[id as usize] == Sequence(0) {
            roster.limbo.insert(id, self.newest);
            roster.release(self.layout.has_references, active);
        } else {
            roster.doomed.insert(
                id,
                Doom {
                    since: self.newest,
                    told: false,
                },
            );
        }
        roster.waiting.remove(id, roster.weights[id as usize]);
    }

    /// The precision at which the receiver shall see an entity. Without effect on a class whose
    /// fields know no coarser levels.
    pub fn set_level(&mut self, slot: Slot, level: Level, archive: &Archive) {
        let (Some(id), Some(class)) = (self.id(slot), archive.class(slot)) else {
            return;
        };
        if !self.layout.classes[usize::from(class)].has_levels {
            return;
        }
        self.follow(archive);
        let wanted = level.index() as u8;
        if core::mem::replace(&mut self.roster.levels[id as usize], wanted) != wanted {
            self.follow_level(id, archive);
        }
    }

    /// How much the time that an entity waits for its turn counts, where packets are too short for
    /// all. Nobody waits for ever.
    pub fn set_weight(&mut self, slot: Slot, weight: Weight) {
        if let Some(id) = self.id(slot) {
            self.roster.weigh(id, weight);
        }
    }

    /// Wakes an entity that rests at another precision than it shall have, and remembers one that
    /// may still come to rest like that.
    fn follow_level(&mut self, id: u32, archive: &Archive) {
        let book = &self.twin.book;
        let phase = book.phase(id);
        let known = phase != Phase::Absent && book.level(id) == self.roster.levels[id as usize];
        if known || self.roster.slots[id as usize].is_none() {
            return;
        }
        if phase != Phase::Resting {
            self.roster.releveled.insert(id);
            return;
        }
        let sight = Sight {
            archive,
            roster: &self.roster,
            layout: &self.layout,
        };
        let mut buffer = Vec::new();
        let row = book.rest_row(id, &sight, &mut buffer);
        if let Some(row) = row.map(<[i64]>::to_vec) {
            self.twin.keep_rest_row(id, &row, &sight);
            self.roster.dirty.entry(id).or_default();
        }
    }

    /// The receiver's number for an entity it is being shown.
    pub fn client_id(&self, slot: Slot) -> Option<ClientId> {
        self.id(slot).map(ClientId)
    }

    /// Whether the receiver is known to have been told of an entity it is being shown.
    pub fn is_confirmed(&self, slot: Slot) -> bool {
        self.id(slot)
            .is_some_and(|id| self.twin.book.phase(id) != Phase::Absent)
    }

    /// The entity behind a receiver's number.
    pub fn slot(&self, id: ClientId) -> Option<Slot> {
        self.roster.slots.get(id.0 as usize).copied().flatten()
    }

    /// Encodes the archive's newest tick. With a `budget`, the packet has at most that many bytes
    /// (unless a single entity needs more) and covers what was not covered for longest, by [`weight`](Self::set_weight).
    pub fn encode(
        &mut self,
        archive: &Archive,
        budget: Option<usize>,
    ) -> Result<Packet, EncodeError> {
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
        self.counting = budget.is_some() || self.ledger.is_some();
        self.follow(archive);
        let mut contents = self.contents(archive, budget);
        let mut packet = self.write(archive, &contents, now);
        if packet.is_none() {
            // A row that the receiver's model rests on is gone: start over rather than guess.
            self.resync();
            contents = self.contents(archive, budget);
            packet = self.write(archive, &contents, now);
        }
        if let Some(limit) = budget
            && packet
                .as_ref()
                .is_some_and(|(bytes, _)| contents.is_draft || bytes.len() > limit)
        {
            contents.despawns.truncate(limit / 4);
            packet = self.write_part(archive, &contents, now, limit);
        }
        let Some((bytes, log)) = packet else {
            return Err(EncodeError::EmptyArchive);
        };
        let (sequence, full) = (log.sequence, log.full);
        let oversize = budget.is_some_and(|limit| bytes.len() > limit);
        self.encoded = Some(now);
        self.usual_len = (self.usual_len * 7 / 8).max(bytes.len() + 16);
        self.note_sent(&log);
        if let Some(ledger) = &mut self.ledger {
            ledger.merge(&self.page);
        }
        self.newest = sequence;
        self.logs.push_back(log);
        while let Some(log) = self
            .logs
            .pop_front_if(|log| log.sequence.0 + WINDOW <= sequence.0)
        {
            self.roster.note_unheard(&log);
            self.spare.push(log);
        }
        if self.config.policy == Policy::Immediate {
            self.settle(sequence, 1, archive);
        }
        Ok(Packet {
            bytes,
            sequence,
            full,
            oversize,
        })
    }

    /// Takes what the receiver said about the packets it applied.
    pub fn acknowledge(&mut self, ack: &Ack, archive: &Archive) -> Result<(), AckError> {
        if ack.newest > self.newest {
            return Err(AckError::NeverSent(ack.newest));
        }
        if ack.newest.0 > 0 && ack.applied & 1 == 0 {
            return Err(AckError::Contradiction);
        }
        if self.config.policy != Policy::Confirmed || ack.epoch != self.epoch {
            return Ok(());
        }
        if ack.resync {
            self.resync();
            return Ok(());
        }
        self.settle(ack.newest, ack.applied, archive);
        Ok(())
    }

    /// Starts a new epoch: the model returns to the prior or to nothing, the receiver's entities keep their numbers.
    pub fn resync(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.before_epoch = self.newest;
        self.twin = Twin::new(self.layout.clone(), &self.config, false);
        self.cursor = Sequence(0);
        self.cursor_tick = Tick(0);
        self.cursor_base = Sequence(0);
        self.excluded.clear();
        self.spare.extend(self.logs.drain(..));
        self.roster.restart(self.followed.unwrap_or_default());
        self.statistics.resyncs += 1;
    }

    /// Starts or stops keeping account of every bit.
    pub fn keep_ledger(&mut self, keep: bool) {
        self.ledger = keep.then(Ledger::default);
    }

    /// Where the bits went since the ledger was started.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// What happened so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Bytes that this connection's model holds.
    pub fn model_bytes(&self) -> usize {
        self.twin.bytes()
    }

    /// A digest of the whole model as of the fold point.
    pub fn digest(&self) -> u64 {
        self.twin.full_digest()
    }

    /// The newest packet whose lesson is part of the model.
    pub fn cursor(&self) -> Sequence {
        self.cursor
    }

    /// What an entity's present values would cost in the next full packet, in 1/65536 bit; nothing
    /// is sent or learned. A partial packet adds a few bits to say that it covers the entity. `None` if the receiver is not shown the entity.
    pub fn estimate(&mut self, slot: Slot, archive: &Archive) -> Option<u64> {
        let id = self.id(slot)?;
        let now = archive.newest()?;
        let class = archive.class(slot)?;
        self.follow(archive);
        let mut contents = Contents {
            partial: Some(Partial::default()),
            ..Contents::default()
        };
        match self.twin.book.phase(id) {
            Phase::Active => {
                contents.partial = Some(Partial {
                    active: [id].into(),
                    limit: 0,
                })
            }
            Phase::Resting => {
                let stirs = self.roster.dirty.contains_key(&id)
                    && self
                        .contents(archive, None)
                        .wakes
                        .binary_search(&id)
                        .is_ok();
                if !stirs {
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
        let kept = (core::mem::take(&mut self.bill), self.ledger.take());
        self.ledger = Some(Ledger::default());
        self.counting = true;
        let written = self.write(archive, &contents, now);
        let bill = core::mem::replace(&mut self.bill, kept.0);
        self.ledger = kept.1;
        self.spare.push(written?.1);
        if !bill.active.is_empty() {
            // A full packet does not say whom it covers.
            let counts = |(account, _): &(Account, u64)| {
                !matches!(account.cause, Cause::Header | Cause::Presence)
            };
            return Some(self.page.entries().filter(counts).map(|(_, c)| c).sum());
        }
        let items = bill.wakes.iter().chain(&bill.spawns);
        Some(items.map(|(_, cost)| cost).sum())
    }

    pub(crate) fn twin(&self) -> &Twin {
        &self.twin
    }

    fn id(&self, slot: Slot) -> Option<u32> {
        self.roster.ids.get(slot)
    }

    /// The first tick that no packet tells of yet.
    fn next_tick(&self) -> Tick {
        self.encoded
            .map_or(Tick(0), |tick| Tick(tick.0.saturating_add(1)))
    }

    /// Keeps what an entity at rest has said since a tick, and says that it may no longer be so.
    fn stir(&mut self, id: u32, slot: Slot, since: Option<Tick>, archive: &Archive) {
        if self.twin.book.phase(id) != Phase::Resting {
            return;
        }
        let row = since.and_then(|tick| archive.row(slot, tick));
        let sight = Sight {
            archive,
            roster: &self.roster,
            layout: &self.layout,
        };
        let level = self.twin.book.level(id);
        let told = self.encoded.unwrap_or_default();
        let mut buffer = Vec::new();
        if let Some(row) = row
            && let Some(kept) = sight.told(slot, row, level, told, &mut buffer)
        {
            self.twin.keep_rest_row(id, kept, &sight);
        }
        self.roster.dirty.entry(id).or_default();
    }

    /// Reads what changed in the archive since the last packet: only that is looked at.
    fn follow(&mut self, archive: &Archive) {
        let before = self.followed;
        let lost = match (self.followed, archive.ticks().next()) {
            (Some(followed), Some(oldest)) => followed < oldest,
            _ => false,
        };
        let news = |tick: &Tick| before.is_none_or(|before| *tick > before);
        let changes = || {
            archive
                .ticks()
                .filter(news)
                .filter_map(|t| archive.changes(t))
        };
        for changes in changes() {
            for &slot in &changes.despawned {
                self.hide(slot);
            }
        }
        // Whichever takes less: to search for those who changed, or to pass over those at rest.
        let known = self.twin.book.population.len();
        let changed: usize = changes().map(|changes| changes.changed.len()).sum();
        if known / 8 < changed {
            for id in 0..known as u32 {
                if self.twin.book.phase(id) == Phase::Resting
                    && let Some(slot) = self.roster.slots[id as usize]
                    && archive.last_changed(slot) > before
                {
                    self.stir(id, slot, before, archive);
                }
            }
        } else {
            for changes in changes() {
                for &slot in &changes.changed {
                    if let Some(id) = self.id(slot) {
                        self.stir(id, slot, before, archive);
                    }
                }
            }
        }
        // Who refers to something that came into sight or left it says something else from now on.
        let since = self.next_tick();
        for slot in self.roster.sightings.take_turned() {
            for &holder in archive.holders(slot) {
                let Some(id) = self.id(holder) else { continue };
                self.roster.sightings.stir(id, since);
                self.stir(id, holder, before, archive);
            }
        }
        self.followed = archive.newest().max(before);
        if lost {
            self.resync();
        }
    }

    /// What there is to say; with a budget, of more than a packet can hold only what has its turn
    /// soon.
    fn contents(&mut self, archive: &Archive, budget: Option<usize>) -> Contents {
        let sight = Sight {
            archive,
            roster: &self.roster,
            layout: &self.layout,
        };
        let book = &self.twin.book;
        let (mut rest, mut truth) = (Vec::new(), Vec::new());
        let mut wakes = Vec::new();
        let mut settled = Vec::new();
        for (&id, &told) in &self.roster.dirty {
            let level = sight.level(id);
            let same = level == book.level(id)
                && book
                    .rest_row(id, &sight, &mut rest)
                    .is_some_and(|row| sight.latest(id, level, &mut truth) == Some(row));
            if !same {
                wakes.push(id);
            } else if told <= self.cursor {
                settled.push(id);
            }
        }
        let despawns = self.roster.doomed.keys().copied().collect();
        for id in settled {
            self.roster.dirty.remove(&id);
            self.twin.drop_rest_row(id);
        }
        let (all_wakes, all_spawns) = (wakes.len(), self.roster.waiting.len());
        let most = budget.map_or(usize::MAX, |limit| self.appetite.most(limit));
        let ids: Vec<u32> = if wakes.len().max(all_spawns) > most {
            let group_of = |id: u32| self.group(id, archive);
            self.preselect(&mut wakes, most, group_of)
        } else {
            self.roster.waiting.ids().collect()
        };
        let spawn = |id: u32| {
            let slot = self.roster.slots[id as usize]?;
            let again = self.roster.sent[id as usize] > Sequence(0);
            Some(Spawn {
                id,
                class: archive.class(slot)?,
                again,
            })
        };
        let is_draft = wakes.len() < all_wakes || ids.len() < all_spawns;
        let mut spawns: Vec<Spawn> = ids.into_iter().filter_map(spawn).collect();
        let waiting = spawns.len();
        body::retain_nearby(&mut spawns, &self.twin.book);
        // Ids too far from those in use have to wait for others; until then no packet is full.
        let partial = (spawns.len() < waiting && !is_draft).then(|| Partial {
            active: self.twin.book.active.clone(),
            limit: usize::MAX,
        });
        Contents {
            despawns,
            wakes,
            spawns,
            partial,
            is_draft,
        }
    }

    /// Of entities at rest that moved, and of those that wait to appear, `most` of each whose turn it
    /// is soon, and whoever has to travel with them.
    fn preselect(
        &self,
        wakes: &mut Vec<u32>,
        most: usize,
        group_of: impl Fn(u32) -> Option<i64>,
    ) -> Vec<u32> {
        let book = &self.twin.book;
        let roster = &self.roster;
        let all = core::mem::take(wakes);
        *wakes = budget::soonest(all.clone(), most, roster, self.newest);
        let may = |id: u32| body::may_appear(id, 0, book);
        let mut spawns = roster.waiting.first(most, may);
        if spawns.len() < most {
            let sent = roster.waiting.ids();
            let sent = sent.filter(|id| may(*id) && spawns.binary_search(id).is_err());
            let room = most - spawns.len();
            let sent = budget::soonest(sent.collect(), room, roster, self.newest);
            spawns.extend(sent);
            spawns.sort_unstable();
        }
        if self.layout.has_groups {
            let chosen = wakes.iter().chain(&spawns).chain(&book.active);
            let groups: BTreeSet<i64> = chosen.filter_map(|&id| group_of(id)).collect();
            let joins = |id: &u32| group_of(*id).is_some_and(|group| groups.contains(&group));
            wakes.extend(all.into_iter().filter(joins));
            spawns.extend(roster.waiting.ids().filter(joins));
            for list in [wakes, &mut spawns] {
                list.sort_unstable();
                list.dedup();
            }
        }
        spawns
    }

    /// Writes what fits and was waited for longest.
    fn write_part(
        &mut self,
        archive: &Archive,
        contents: &Contents,
        now: Tick,
        limit: usize,
    ) -> Option<(Vec<u8>, Log)> {
        let bill = core::mem::take(&mut self.bill);
        let mut attempts = 0;
        loop {
            let group_of = |id: u32| self.group(id, archive);
            let mut chosen = budget::choose(
                &bill,
                &self.roster,
                (self.newest, self.cursor),
                limit,
                self.surcharge,
                group_of,
            );
            let (bytes, log) = loop {
                let (bytes, log) = self.write(archive, &self.part(contents, &chosen), now)?;
                if !chosen.drop_cut_groups(&log.covered, log.sequence) {
                    break (bytes, log);
                }
            };
            let cut = chosen.is_cut(&log.covered);
            self.surcharge.learn(cut, &self.bill);
            attempts += 1;
            if !cut {
                return Some((bytes, log));
            }
            if attempts == ATTEMPTS {
                if !chosen.keep_first_left_out(&log.covered) {
                    return Some((bytes, log));
                }
                self.spare.push(log);
                let mut alone = contents.clone();
                alone.despawns.clear();
                return self.write(archive, &self.part(&alone, &chosen), now);
            }
            self.spare.push(log);
        }
    }

    /// The chosen part of what there is to say.
    fn part(&self, contents: &Contents, chosen: &budget::Choice) -> Contents {
        let mut part = contents.clone();
        part.wakes
            .retain(|id| chosen.wakes.binary_search(id).is_ok());
        part.spawns
            .retain(|spawn| chosen.spawns.binary_search(&spawn.id).is_ok());
        body::retain_nearby(&mut part.spawns, &self.twin.book);
        part.partial = Some(Partial {
            active: chosen.active.clone(),
            limit: chosen.limit,
        });
        part
    }

    /// The group that an entity has to travel with.
    fn group(&self, id: u32, archive: &Archive) -> Option<i64> {
        let slot = self.roster.slots.get(id as usize).copied().flatten()?;
        let class = usize::from(archive.class(slot)?);
        let field = self.layout.schema.classes[class].group?;
        let group = *archive.latest(slot)?.get(usize::from(field))?;
        (group != 0).then_some(group)
    }

    fn write(
        &mut self,
        archive: &Archive,
        contents: &Contents,
        now: Tick,
    ) -> Option<(Vec<u8>, Log)> {
        match self.config.profile {
            Profile::Default => self.write_with::<FEW>(archive, contents, now),
            Profile::Best => self.write_with::<MANY>(archive, contents, now),
        }
    }

    fn write_with<const N: usize>(
        &mut self,
        archive: &Archive,
        contents: &Contents,
        now: Tick,
    ) -> Option<(Vec<u8>, Log)> {
        let full = contents.partial.is_none();
        let header = Header {
            epoch: self.epoch,
            sequence: Sequence(self.newest.0 + 1),
            tick: now,
            cursor: self.cursor,
            full,
            excluded: self.excluded.clone(),
        };
        let mut bytes = Vec::with_capacity(self.usual_len);
        header::write(&header, self.cursor_tick, &mut bytes);
        let header_len = bytes.len();
        let mut log = self.spare.pop().unwrap_or_default();
        log.begin(header.sequence, now, header.cursor, full);
        let mut scratch = core::mem::take(&mut self.scratch);
        let moment = self.twin.bank.mark();
        self.bill.clear();
        let mut page = self.ledger.is_some().then(Ledger::default);
        let sight = Sight {
            archive,
            roster: &self.roster,
            layout: &self.layout,
        };
        let mut session = Session::<_, N> {
            coder: RangeEncoder::new(bytes),
            bank: &mut self.twin.bank,
            book: &self.twin.book,
            rows: &sight,
            log: &mut log,
            ledger: page.as_mut(),
            account: HEADER,
            sum: seed(&header, &self.layout),
            counting: self.counting,
            cost: 0,
            allowance: usize::MAX,
            charged: 0,
            made: Vec::new(),
            invalid: false,
        };
        write_body(
            &mut session,
            contents,
            &sight,
            now,
            &mut scratch,
            &mut self.bill,
        );
        let unfolded = session.unfolded();
        let Session {
            coder,
            sum,
            invalid,
            cost,
            ..
        } = session;
        self.twin.bank.rewind(moment);
        let mut bytes = coder.finish();
        let least = header_len + body::least_len(unfolded, &self.twin.book);
        if bytes.len() < least {
            bytes.resize(least, 0);
        }
        let check = finish_check(sum, &self.twin, &log, &sight);
        header::set_check(&mut bytes, header_len, check);
        self.scratch = scratch;
        self.statistics.coded += self.bill.len() as u64;
        if invalid {
            self.spare.push(log);
            return None;
        }
        if let Some(mut page) = page {
            let rest = (bytes.len() as u64) << 19;
            page.add(HEADER, rest.saturating_sub(cost));
            self.page = page;
        }
        Some((bytes, log))
    }

    fn note_sent(&mut self, log: &Log) {
        if self.counting {
            self.appetite.learn(&self.bill);
        }
        self.roster.note_sent(log);
        if log.full {
            for &id in &self.twin.book.active {
                self.roster.sent[id as usize] = log.sequence;
            }
        }
    }

    /// Folds what is now known to be applied.
    fn settle(&mut self, newest: Sequence, applied: u64, archive: &Archive) {
        let next = self.newest.0 + 1;
        let floor = next.saturating_sub(WINDOW).max(newest.0.saturating_sub(63));
        if newest <= self.cursor || newest.0 < floor {
            return;
        }
        let settled = self.cursor.max(self.before_epoch);
        if floor > settled.0 + 1 {
            if self.excluded.len() == MAX_EXCLUDED {
                self.resync();
                return;
            }
            self.excluded
                .push((Sequence(settled.0 + 1), Sequence(floor - 1)));
        }
        while self.logs.front().is_some_and(|log| log.sequence <= newest) {
            let Some(log) = self.logs.pop_front() else {
                break;
            };
            let back = newest.0 - log.sequence.0;
            if back < 64 && applied >> back & 1 == 1 {
                self.statistics.applied += 1;
                self.roster.note_applied(&log);
                for id in &log.despawns {
                    if let Some(doom) = self.roster.doomed.get_mut(id) {
                        doom.told |= log.sequence > doom.since;
                    }
                }
                if log.sequence.0 >= floor {
                    self.fold(&log, archive);
                    self.statistics.folded += 1;
                } else {
                    self.roster.note_unheard(&log);
                }
            } else {
                self.roster.note_unheard(&log);
                self.note_lost(&log);
            }
            if log.sequence == newest {
                self.cursor_tick = log.tick;
                self.cursor_base = log.cursor;
            }
            self.spare.push(log);
        }
        self.cursor = newest;
        let base = self.cursor_base;
        self.excluded.retain(|(_, to)| *to > base);
        for id in core::mem::take(&mut self.roster.releveled) {
            self.follow_level(id, archive);
        }
        self.settle_roster();
    }

    fn fold(&mut self, log: &Log, archive: &Archive) {
        let sight = Sight {
            archive,
            roster: &self.roster,
            layout: &self.layout,
        };
        match self.config.profile {
            Profile::Default => self.twin.fold::<FEW>(log, &sight),
            Profile::Best => self.twin.fold::<MANY>(log, &sight),
        }
        self.twin.commit();
        for &(id, _) in &log.spawns {
            let weight = self.roster.weights[id as usize];
            self.roster.waiting.remove(id, weight);
        }
        let levels = log.levels.iter().map(|&(id, _)| id);
        self.roster.releveled.extend(levels);
    }

    /// What a lost packet covered waits already for as long as anything may.
    fn note_lost(&mut self, log: &Log) {
        let ids = if log.full {
            &self.twin.book.active
        } else {
            &log.covered
        };
        for &id in ids.iter().chain(&log.covered) {
            let sent = &mut self.roster.sent[id as usize];
            if *sent == log.sequence {
                *sent = Sequence(1);
            }
        }
    }

    fn settle_roster(&mut self) {
        let book = &self.twin.book;
        let roster = &mut self.roster;
        let forgotten = |id: u32, doom: &Doom| doom.told && book.phase(id) == Phase::Absent;
        roster.doomed.retain(|&id, doom| {
            let gone = forgotten(id, doom);
            if gone {
                roster.limbo.insert(id, doom.since);
            }
            !gone
        });
        roster.release(self.layout.has_references, &book.active);
        roster
            .dirty
            .retain(|&id, _| book.phase(id) == Phase::Resting);
        for &id in book.rest_rows.keys() {
            if roster.slots[id as usize].is_some() {
                roster.dirty.entry(id).or_default();
            }
        }
    }
}

/// Where the check of a packet starts from.
pub(crate) fn seed(header: &Header, layout: &Layout) -> Checksum {
    let mut sum = Checksum::new(u64::from(header.epoch));
    if let Some(beginning) = &layout.beginning {
        for half in beginning.check {
            sum.add(half);
        }
    }
    sum.add(u64::from(header.sequence.0) << 32 | u64::from(header.cursor.0));
    sum.add(u64::from(header.tick.0) << 1 | u64::from(header.full));
    sum
}

/// The check of a packet: what it says, and a part of what it was coded with.
pub(crate) fn finish_check(mut sum: Checksum, twin: &Twin, log: &Log, rows: &dyn Rows) -> u16 {
    let vouched = |id: u32| {
        if log.full {
            log.despawns.binary_search(&id).is_err()
        } else {
            log.covered.binary_search(&id).is_ok()
        }
    };
    sum.add(twin.digest(log.sequence.0, log.tick, rows, &vouched));
    sum.short()
}

const HEADER: Account = Account {
    class: None,
    field: None,
    cause: Cause::Header,
};

/// How often a packet is written anew because it had to be cut.
const ATTEMPTS: usize = 3;

/// Packets that may wait for their acknowledgement.
pub(crate) const WINDOW: u32 = 64;
