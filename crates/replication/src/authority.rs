//! The server's side of client authority: the values that a client reports of its entities become
//! part of the next tick.
//!
//! The server decides who has authority. References in reported values can only be to entities that
//! are visible to the client.

use std::collections::{BTreeMap, BTreeSet};

use prescient_codec::history::Archive;
use prescient_codec::{Ack, DecodeError, Decoder, NetEntityId, Slot, Tick};
use prescient_schema::{EntityRef, Field, FieldKind, Library, Parcel, Schema};

use crate::config::ServerConfig;
use crate::entity_types::EntityTypes;
use crate::server::PeerId;
use crate::world::{Serial, Touched, World, WorldError, WorldStep};

impl WorldStep<'_> {
    /// Grants a client authority over an entity: the values that it reports become part of the next
    /// tick, and the entity is visible to it, whatever the relevance policy decides. A previous
    /// client loses the authority. It ends with [`revoke_authority`](Self::revoke_authority), or
    /// when the client disconnects or moves to another world.
    pub fn grant_authority(
        &mut self,
        entity: impl Into<EntityRef>,
        peer: PeerId,
    ) -> Result<(), WorldError> {
        self.set_authority(entity.into(), Some(peer))
    }

    /// Revokes a client's authority over an entity; from now on only the server changes it. Reports
    /// in flight are ignored.
    pub fn revoke_authority(&mut self, entity: impl Into<EntityRef>) -> Result<(), WorldError> {
        self.set_authority(entity.into(), None)
    }

    fn set_authority(
        &mut self,
        entity: EntityRef,
        authority: Option<PeerId>,
    ) -> Result<(), WorldError> {
        let serial = self.find(entity)?;
        let with_authority = &mut self.entities.with_authority;
        match authority {
            Some(_) => with_authority.insert(serial),
            None => with_authority.remove(&serial),
        };
        if let Some(record) = self.entities.records.get_mut(serial) {
            record.authority = authority;
            self.entities.touched.push(Touched::Here(serial));
        }
        Ok(())
    }
}

/// The schema of reports, equal at both ends: the classes of the world, with references as entity
/// ids and two further columns that identify the entity: its id, and, because ids are reused, the
/// tick at which the client got authority.
pub(crate) fn report_schema(schema: &Schema, entity_types: &EntityTypes) -> Schema {
    let mut schema = schema.clone();
    for (number, class) in (0..).zip(&mut schema.classes) {
        if entity_types.of_class(number).1 > 0 {
            class.fields.pop();
        }
        for field in &mut class.fields {
            if matches!(field.kind, FieldKind::Reference { .. }) {
                field.kind = ENTITY_ID;
            }
        }
        class.contract = None;
        class.fields.push(Field::new("entity", ENTITY_ID));
        class.fields.push(Field::new("since", TICK));
    }
    schema
}

/// An entity id, or an entity id plus one.
const ENTITY_ID: FieldKind = FieldKind::Int {
    bits: 33,
    signed: false,
};

const TICK: FieldKind = FieldKind::Int {
    bits: 64,
    signed: true,
};

/// A tick after all others: references in a report mean the entities that are visible now.
const NOW: Tick = Tick(u64::MAX);

type Find<'a> = dyn Fn(NetEntityId, Tick) -> Option<Slot> + 'a;

/// The reports of one client.
pub(crate) struct AuthorityReports {
    decoder: Decoder,
    /// Reported rows to write at the next tick, by entity and table; `None` for an optional table
    /// that the client removed.
    pending: BTreeMap<(Serial, u8), Option<Parcel>>,
    /// The entity and table that each reported table entity stands for.
    targets: BTreeMap<Slot, (Serial, u8)>,
    /// A report arrived that was not acknowledged yet.
    pub unanswered: bool,
    /// The largest number of table entities that the client was ever allowed to report: it releases
    /// their ids only after our acknowledgement.
    max_entities: usize,
    budget: WorkBudget,
}

impl AuthorityReports {
    pub(crate) fn new(world: &World, config: &ServerConfig) -> Self {
        let layout = world.report_layout().clone();
        let mut decoder = Decoder::with_layout(layout, config.codec);
        decoder.set_max_bytes(config.report_memory);
        Self {
            decoder,
            pending: BTreeMap::new(),
            targets: BTreeMap::new(),
            unanswered: false,
            max_entities: 0,
            budget: WorkBudget::default(),
        }
    }

    pub(crate) fn acknowledgement(&mut self) -> Option<Ack> {
        self.decoder.acknowledgement()
    }

    /// Decodes a report of a client that has authority over `entities` and may report
    /// `max_entities` table entities; `find` resolves an entity id as of a tick that the client
    /// showed.
    pub(crate) fn take(
        &mut self,
        packet: &[u8],
        entities: usize,
        max_entities: usize,
        world: &World,
        peer: PeerId,
        find: &Find<'_>,
    ) -> Result<(), DecodeError> {
        self.unanswered = true;
        self.max_entities = self.max_entities.max(max_entities);
        self.decoder.set_max_entities(self.max_entities);
        let now = world.tick().unwrap_or_default();
        if !self.budget.is_left(now, entities) {
            return Err(DecodeError::Full);
        }
        let before = self.decoder.decisions();
        let decoded = self.decoder.decode(packet);
        self.budget.spend(self.decoder.decisions() - before);
        let applied = decoded?;
        let shown = self.decoder.world();
        let Some(changes) = shown.changes(applied.tick) else {
            return Ok(());
        };
        let removed = changes.despawned.iter();
        let removed: Vec<_> = removed
            .filter_map(|slot| self.targets.remove(slot))
            .collect();
        // Any number of entities may stand for the same table. Contents are copied for the last one.
        let mut last: BTreeMap<(Serial, u8), Slot> = BTreeMap::new();
        for &slot in changes.spawned.iter().chain(&changes.changed) {
            match target(shown, slot, world, peer, find) {
                Some(target) => {
                    self.targets.insert(slot, target);
                    last.insert(target, slot);
                }
                None => {
                    self.targets.remove(&slot);
                }
            }
        }
        if !removed.is_empty() {
            // Where the first table is no longer reported either, the client's authority ended.
            let first = self.targets.values().filter(|(_, table)| *table == 0);
            let reported: BTreeSet<Serial> = first.map(|&(serial, _)| serial).collect();
            let has_authority = |serial| {
                let record = world.record_of(serial);
                record.is_some_and(|record| record.authority == Some(peer))
            };
            let lost = removed
                .into_iter()
                .filter(|&(serial, _)| reported.contains(&serial) && has_authority(serial));
            self.pending.extend(lost.map(|target| (target, None)));
        }
        let rows = last
            .into_iter()
            .filter_map(|(target, slot)| Some((target, Some(parcel(shown, slot, world, find)?))));
        self.pending.extend(rows);
        Ok(())
    }

    /// Number of table entities that the client reports.
    pub(crate) fn len(&self) -> usize {
        self.decoder.world().living_slots().count()
    }

    /// Writes the reported values into a tick that has just begun.
    pub(crate) fn apply(&mut self, step: &mut WorldStep<'_>) {
        for ((serial, table), parcel) in std::mem::take(&mut self.pending) {
            // A row that does not fit its type is ignored.
            let _ = step.report_table(serial, usize::from(table), parcel.as_ref());
        }
    }
}

/// How many decisions the reports of a client may still take. Each takes some 50 ns, whatever the
/// length of a report.
#[derive(Default)]
struct WorkBudget {
    left: u64,
    refilled: Option<Tick>,
}

impl WorkBudget {
    /// Whether another report may be decoded; adds what the ticks since the last call brought.
    fn is_left(&mut self, now: Tick, entities: usize) -> bool {
        let per_tick = DECISIONS_PER_TICK + DECISIONS_PER_ENTITY * entities as u64;
        let passed = self
            .refilled
            .replace(now)
            .map_or(BURST_TICKS, |last| now.since(last));
        let more = passed.min(BURST_TICKS) * per_tick;
        self.left = (self.left + more).min(BURST_TICKS * per_tick);
        self.left > 0
    }

    fn spend(&mut self, decisions: u64) {
        self.left = self.left.saturating_sub(decisions);
    }
}

/// Decisions per tick that every client's reports may take, and further ones for each entity that it
/// has authority over: several times what an entity takes of which everything changes.
const DECISIONS_PER_TICK: u64 = 1 << 14;
const DECISIONS_PER_ENTITY: u64 = 1 << 10;
/// Ticks that reports may be late and arrive at once.
const BURST_TICKS: u64 = 16;

/// The entity and table that a reported table entity stands for, if the client has authority over
/// it.
fn target(
    shown: &Archive,
    slot: Slot,
    world: &World,
    peer: PeerId,
    find: &Find<'_>,
) -> Option<(Serial, u8)> {
    let (entity_type, table) = world.entity_types().of_class(shown.class(slot)?);
    let &[.., id, since] = shown.latest(slot)? else {
        return None;
    };
    let id = NetEntityId(u32::try_from(id).ok()?);
    let slot = find(id, Tick(since as u64))?;
    let record = world.record(world.archive().reference(slot)?)?;
    (record.authority == Some(peer) && record.entity_type == entity_type)
        .then_some((record.serial, table))
}

/// A reported row as a row of the world, without the column that the world adds itself.
fn parcel(shown: &Archive, slot: Slot, world: &World, find: &Find<'_>) -> Option<Parcel> {
    let class = usize::from(shown.class(slot)?);
    let row = shown.latest(slot)?;
    let fields = &world.archive().schema().classes[class].fields;
    let mut parcel = Parcel::default();
    for (&cell, field) in row[..row.len() - 2].iter().zip(fields) {
        parcel.row.push(match field.kind {
            FieldKind::Reference { .. } => {
                let id = cell.checked_sub(1).and_then(|id| u32::try_from(id).ok());
                let to = id.and_then(|id| world.archive().reference(find(NetEntityId(id), NOW)?));
                to.unwrap_or(EntityRef::NONE).cell()
            }
            _ => cell,
        });
        if field.kind.container().is_some() && cell != 0 {
            parcel.contents.push(shown.content(cell)?.clone());
        }
    }
    Some(parcel)
}
