//! The entities that a client shows, and their changes since the last poll.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

use prescient_codec::{
    Applied, Config, DecodeError, Decoder, HistoryDepth, LastRow, Layout, NetEntityId, Prior,
    Profile, Slot, Tick,
};
use prescient_schema::{EntityRef, Schema};

use super::departed::{Departed, DepartedEntities};
use super::{Change, EntityHandle};
use crate::authority;
use crate::entity_types::{EntityType, EntityTypes, TooManyTables};
use crate::event_types::EventTypes;

/// The entities of the current world.
pub(super) struct ShownWorld {
    entity_types: EntityTypes,
    event_types: Arc<EventTypes>,
    /// Of the state and of reports; they stay the same from world to world.
    plain_layout: Arc<Layout>,
    /// The same, with the prior from which the next decoder starts.
    layout: Arc<Layout>,
    pub report_layout: Arc<Layout>,
    pub decoder: Decoder,
    limits: StateLimits,
    /// The shown entities, by the id of their first table.
    shown: BTreeMap<u32, Shown>,
    /// For each table entity of a further table: the id of its entity, as far as known.
    table_owners: BTreeMap<u32, u32>,
    /// Inverse of `table_owners`; an entity may not have arrived yet.
    owned_tables: BTreeSet<(u32, u32)>,
    /// The newest tick whose whole visible state was received.
    complete: Option<Tick>,
    /// Per id: the newest tick at which an incomplete packet carried it.
    covered: Vec<Option<Tick>>,
    /// How often an id was assigned to an entity, and when it was last released in this world.
    generations: Vec<IdGeneration>,
    pending: BTreeMap<EntityHandle, Pending>,
    pub departed: DepartedEntities,
    /// Further tables that appeared (`true`) or disappeared, of entities that were there before.
    pending_tables: BTreeMap<(EntityHandle, u8), bool>,
}

/// Limits of what the client holds, the same in all worlds.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateLimits {
    pub history: HistoryDepth,
    pub max_state_bytes: usize,
}

impl StateLimits {
    fn decoder(self, layout: Arc<Layout>, config: Config) -> Decoder {
        let mut decoder = Decoder::with_layout(layout, config);
        decoder.set_history(self.history);
        decoder.set_max_bytes(self.max_state_bytes);
        decoder
    }
}

pub(super) struct Shown {
    pub entity: EntityHandle,
    pub entity_type: EntityType,
    /// The id of each visible table.
    pub table_ids: Vec<Option<NetEntityId>>,
    /// When the previous entity with its id was removed in this world.
    after: Option<Tick>,
}

#[derive(Clone, Copy, Debug, Default)]
struct IdGeneration {
    count: u32,
    ended: Option<Tick>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Created,
    Updated,
    Removed,
}

impl ShownWorld {
    pub(super) fn new(
        schema: Schema,
        config: Config,
        limits: StateLimits,
    ) -> Result<Self, TooManyTables> {
        let (entity_types, schema) = EntityTypes::of(schema)?;
        let event_types = Arc::new(EventTypes::of(&schema, &entity_types));
        let [layout, report_layout] = layouts(schema, &entity_types);
        Ok(Self {
            event_types,
            entity_types,
            decoder: limits.decoder(layout.clone(), config),
            plain_layout: layout.clone(),
            layout,
            report_layout,
            limits,
            shown: BTreeMap::new(),
            table_owners: BTreeMap::new(),
            owned_tables: BTreeSet::new(),
            complete: None,
            covered: Vec::new(),
            generations: Vec::new(),
            pending: BTreeMap::new(),
            departed: DepartedEntities::default(),
            pending_tables: BTreeMap::new(),
        })
    }

    /// Sets the prior from which the model of the next world starts.
    pub(super) fn start_from(&mut self, prior: Option<&Prior>, profile: Profile) {
        let schema = self.plain_layout.schema();
        // The prior was trained for this profile, as `adopt` checks.
        let trained =
            prior.and_then(|prior| Layout::with_prior(schema.clone(), prior, profile).ok());
        self.layout = trained.map_or_else(|| self.plain_layout.clone(), Arc::new);
    }

    /// Removes everything and starts another world with these settings.
    pub(super) fn restart(&mut self, config: Config) {
        let tick = self.tick().unwrap_or_default();
        let ids: Vec<u32> = self.shown.keys().copied().collect();
        for &id in &ids {
            self.keep_departing(id, tick);
        }
        for id in ids {
            self.leave(id, tick);
        }
        self.table_owners.clear();
        self.owned_tables.clear();
        self.complete = None;
        self.covered.clear();
        self.generations
            .iter_mut()
            .for_each(|generation| generation.ended = None);
        self.decoder = self.limits.decoder(self.layout.clone(), config);
    }

    /// Whether a world of this schema can be shown.
    pub(super) fn can_show(schema: &Schema) -> bool {
        EntityTypes::of(schema.clone()).is_ok()
    }

    /// Removes everything and starts a world of another schema.
    pub(super) fn read_by(&mut self, schema: Schema, config: Config) -> Result<(), TooManyTables> {
        let (entity_types, schema) = EntityTypes::of(schema)?;
        self.restart(config);
        // Their rows are of the other schema.
        self.departed = DepartedEntities::default();
        self.event_types = Arc::new(EventTypes::of(&schema, &entity_types));
        [self.plain_layout, self.report_layout] = layouts(schema, &entity_types);
        self.layout = self.plain_layout.clone();
        self.entity_types = entity_types;
        self.decoder = self.limits.decoder(self.layout.clone(), config);
        Ok(())
    }

    /// Whether a new decoder with these settings can apply a packet.
    pub(super) fn can_begin_with(&self, packet: &[u8], config: Config) -> Result<(), DecodeError> {
        let mut decoder = self.limits.decoder(self.layout.clone(), config);
        decoder.decode(packet).map(|_| ())
    }

    pub(super) fn apply(&mut self, packet: &[u8]) -> Result<Tick, DecodeError> {
        let applied = self.decoder.decode(packet)?;
        self.follow(applied.tick);
        self.cover(&applied);
        Ok(applied.tick)
    }

    pub(super) fn entity_types(&self) -> &EntityTypes {
        &self.entity_types
    }

    pub(super) fn event_types(&self) -> &Arc<EventTypes> {
        &self.event_types
    }

    /// The layout of the state, whatever prior it starts from.
    pub(super) fn plain_layout(&self) -> &Arc<Layout> {
        &self.plain_layout
    }

    /// The type of an entity that is visible or was removed.
    pub(super) fn type_of(&self, entity: EntityHandle) -> Option<EntityType> {
        let shown = self.entry(entity).map(|shown| shown.entity_type);
        let departed = || self.departed.get(entity).map(|it| it.entity_type);
        shown.or_else(departed)
    }

    pub(super) fn tick(&self) -> Option<Tick> {
        self.decoder.world().newest()
    }

    pub(super) fn complete_tick(&self) -> Option<Tick> {
        self.complete
    }

    pub(super) fn entities(&self) -> impl Iterator<Item = EntityHandle> {
        self.shown.values().map(|shown| shown.entity)
    }

    pub(super) fn entry(&self, entity: EntityHandle) -> Option<&Shown> {
        let shown = self.shown.get(&entity.id)?;
        (shown.entity == entity).then_some(shown)
    }

    /// The entity that has an id now.
    pub(super) fn by_id(&self, id: u32) -> Option<EntityHandle> {
        self.shown.get(&id).map(|shown| shown.entity)
    }

    /// The entity that had an id at a tick, if it is still visible: an id is reused only after its
    /// previous entity was removed here.
    pub(super) fn at(&self, id: NetEntityId, tick: Tick) -> Option<EntityHandle> {
        let ended = self
            .generations
            .get(id.0 as usize)
            .and_then(|generation| generation.ended);
        let entity = self.by_id(id.0)?;
        ended.is_none_or(|ended| ended < tick).then_some(entity)
    }

    /// Whether the removal of an entity was not reported yet.
    pub(super) fn is_leaving(&self, entity: EntityHandle) -> bool {
        self.pending.get(&entity) == Some(&Pending::Removed)
    }

    /// The entity that had an id at a tick: a visible one, or one that was removed recently.
    pub(super) fn at_or_departed(&self, id: NetEntityId, tick: Tick) -> Option<EntityHandle> {
        let departed = || self.departed.at(id.0, tick);
        self.at(id, tick).or_else(departed)
    }

    /// An entity's row in a table, without the added column.
    pub(super) fn row(&self, entity: EntityHandle, table: usize) -> Option<&[i64]> {
        let row = self.decoder.row(self.table_id(entity, table)?)?;
        row.get(..row.len() - usize::from(table > 0))
    }

    /// An entity's rows in a table at the confirmed ticks, without the added column.
    pub(super) fn sample_rows(
        &self,
        entity: EntityHandle,
        table: usize,
    ) -> impl DoubleEndedIterator<Item = (Tick, &[i64])> {
        let samples = move |id| self.decoder.samples(id);
        let samples = self.table_id(entity, table).into_iter().flat_map(samples);
        samples.filter_map(move |(tick, row)| {
            Some((tick, row.get(..row.len() - usize::from(table > 0))?))
        })
    }

    /// The tick of an entity's values in a table.
    pub(super) fn tick_of(&self, entity: EntityHandle, table: usize) -> Option<Tick> {
        self.tick_of_id(self.table_id(entity, table)?)
    }

    /// The tick of a table entity's values.
    pub(super) fn tick_of_id(&self, id: NetEntityId) -> Option<Tick> {
        let alone = self.covered.get(id.0 as usize).copied().flatten();
        alone.max(self.complete)
    }

    fn table_id(&self, entity: EntityHandle, table: usize) -> Option<NetEntityId> {
        *self.entry(entity)?.table_ids.get(table)?
    }

    pub(super) fn poll(&mut self) -> Option<Change> {
        if let Some(pending) = self.pending.pop_first() {
            if let (entity, Pending::Removed) = pending {
                self.departed.note_reported(entity);
            }
            return Some(match pending {
                (entity, Pending::Created) => Change::Created(entity),
                (entity, Pending::Updated) => Change::Updated(entity),
                (entity, Pending::Removed) => Change::Removed(entity),
            });
        }
        let ((entity, table), appeared) = self.pending_tables.pop_first()?;
        let table = usize::from(table);
        Some(match appeared {
            true => Change::TableAdded { entity, table },
            false => Change::TableRemoved { entity, table },
        })
    }

    /// The indices of an entity's visible tables, ascending.
    pub(super) fn tables(&self, entity: EntityHandle) -> impl Iterator<Item = usize> {
        let ids = self.entry(entity).map(|shown| &shown.table_ids[..]);
        let ids = ids.unwrap_or_default().iter().enumerate();
        ids.filter_map(|(table, id)| id.map(|_| table))
    }

    /// Notes what the packet of a tick changed.
    fn follow(&mut self, tick: Tick) {
        let Some(changes) = self.decoder.world().changes(tick).cloned() else {
            return;
        };
        for &Slot(id) in &changes.despawned {
            self.keep_departing(id, tick);
        }
        for &Slot(id) in &changes.despawned {
            self.leave(id, tick);
        }
        for &Slot(id) in &changes.spawned {
            self.enter(id);
        }
        for &Slot(id) in changes.changed.iter().chain(&changes.spawned) {
            self.link_table(id);
            let owner_id = self.table_owners.get(&id).copied().unwrap_or(id);
            if let Some(shown) = self.shown.get(&owner_id) {
                self.pending.entry(shown.entity).or_insert(Pending::Updated);
            }
        }
    }

    /// Notes which entities are now up to date with the packet's tick.
    fn cover(&mut self, applied: &Applied) {
        if applied.full {
            self.complete = Some(applied.tick);
            return;
        }
        for NetEntityId(id) in self.decoder.covered() {
            let at = id as usize;
            if self.covered.len() <= at {
                self.covered.resize(at + 1, None);
            }
            self.covered[at] = Some(applied.tick);
        }
    }

    fn enter(&mut self, id: u32) {
        let Some((entity_type, 0)) = self.class(id) else {
            return;
        };
        let at = id as usize;
        if self.generations.len() <= at {
            self.generations.resize(at + 1, IdGeneration::default());
        }
        let entity = EntityHandle {
            id,
            generation: self.generations[at].count,
        };
        self.generations[at].count += 1;
        let after = self.generations[at].ended;
        let mut table_ids = vec![None; self.entity_types.tables(entity_type).len()];
        table_ids[0] = Some(NetEntityId(id));
        let shown = Shown {
            entity,
            entity_type,
            table_ids,
            after,
        };
        self.shown.insert(id, shown);
        self.pending.insert(entity, Pending::Created);
        let tables = self.owned_tables.range((id, 0)..=(id, u32::MAX));
        let tables: Vec<u32> = tables.map(|&(_, table)| table).collect();
        tables.into_iter().for_each(|table| self.attach(table, id));
    }

    /// Notes to which entity a table entity of a further table belongs.
    fn link_table(&mut self, id: u32) {
        let Some((_, 1..)) = self.class(id) else {
            return;
        };
        let row = self.decoder.row(NetEntityId(id)).unwrap_or_default();
        let owner_id = row
            .last()
            .and_then(|&cell| EntityRef::from_cell(cell)?.index());
        if owner_id.is_some() && self.table_owners.get(&id).copied() == owner_id {
            return;
        }
        self.detach(id);
        let Some(owner_id) = owner_id else {
            return;
        };
        self.table_owners.insert(id, owner_id);
        self.owned_tables.insert((owner_id, id));
        self.attach(id, owner_id);
    }

    /// Adds a table entity of a further table to its entity, if that has arrived.
    fn attach(&mut self, id: u32, owner_id: u32) {
        if let Some((entity_type, table)) = self.class(id)
            && let Some(shown) = self.shown.get_mut(&owner_id)
            && shown.entity_type == entity_type
        {
            let before = shown.table_ids[usize::from(table)].replace(NetEntityId(id));
            let entity = shown.entity;
            if before.is_none() {
                self.note_table(entity, table, true);
            }
        }
    }

    fn detach(&mut self, id: u32) {
        let Some(owner_id) = self.table_owners.remove(&id) else {
            return;
        };
        self.owned_tables.remove(&(owner_id, id));
        let Some(shown) = self.shown.get_mut(&owner_id) else {
            return;
        };
        let entity = shown.entity;
        self.pending.entry(entity).or_insert(Pending::Updated);
        let mut ids = shown.table_ids.iter();
        if let Some(table) = ids.position(|of_table| *of_table == Some(NetEntityId(id))) {
            shown.table_ids[table] = None;
            self.note_table(entity, table as u8, false);
        }
    }

    /// Notes that a further table appeared or disappeared. A new entity is reported with the tables
    /// that it has by then; a table that appeared and disappeared between two polls is not.
    fn note_table(&mut self, entity: EntityHandle, table: u8, appeared: bool) {
        if self.pending.get(&entity) == Some(&Pending::Created) {
            return;
        }
        match self.pending_tables.entry((entity, table)) {
            Entry::Occupied(pending) => {
                if *pending.get() != appeared {
                    pending.remove();
                }
            }
            Entry::Vacant(pending) => {
                pending.insert(appeared);
            }
        }
    }

    /// Keeps the last state of an entity that is about to leave, if the program knows the entity.
    fn keep_departing(&mut self, id: u32, tick: Tick) {
        let Some(shown) = self.shown.get(&id) else {
            return;
        };
        if self.pending.get(&shown.entity) == Some(&Pending::Created) {
            return;
        }
        let last_row = |id: NetEntityId| -> Option<LastRow> {
            let despawned = self.decoder.despawned_row(id).cloned();
            despawned.or_else(|| self.decoder.keep_row(id))
        };
        let tables = shown.table_ids.iter();
        let departed = Departed {
            entity_type: shown.entity_type,
            tables: tables.map(|&id| last_row(id?)).collect(),
            after: shown.after,
            ended: tick,
        };
        self.departed.keep(shown.entity, departed);
    }

    fn leave(&mut self, id: u32, tick: Tick) {
        self.detach(id);
        let Some(shown) = self.shown.remove(&id) else {
            return;
        };
        if let Some(generation) = self.generations.get_mut(id as usize) {
            generation.ended = Some(tick);
        }
        let of_entity = (shown.entity, 0)..=(shown.entity, u8::MAX);
        let tables = self.pending_tables.range(of_entity);
        for table in tables.map(|(&table, _)| table).collect::<Vec<_>>() {
            self.pending_tables.remove(&table);
        }
        // An entity that appeared and left between two polls is not reported.
        match self.pending.insert(shown.entity, Pending::Removed) {
            Some(Pending::Created) => {
                self.pending.remove(&shown.entity);
            }
            Some(Pending::Updated | Pending::Removed) | None => {}
        }
    }

    fn class(&self, id: u32) -> Option<(EntityType, u8)> {
        let class = self.decoder.world().class(Slot(id))?;
        Some(self.entity_types.of_class(class))
    }
}

/// The layouts of the state and of reports.
fn layouts(schema: Schema, entity_types: &EntityTypes) -> [Arc<Layout>; 2] {
    let reports = authority::report_schema(&schema, entity_types);
    [schema, reports].map(|schema| Arc::new(Layout::new(Arc::new(schema))))
}
