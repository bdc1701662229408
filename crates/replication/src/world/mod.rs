//! The authoritative world: entities, their values at recent ticks, and their positions.

mod entity_table;
mod step;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use prescient_codec::history::{Archive, CaptureError};
use prescient_codec::{Layout, PriorMismatch, Slot, Tick};
use prescient_schema::{EntityRef, Misfit, Priority, Ref, Schema, SchemaError, State};
use thiserror::Error;

use entity_table::EntityRecords;
pub(crate) use entity_table::{EntityRecord, EntityTable, Serial, Touched};
pub use step::WorldStep;

use crate::authority;
use crate::config::{ConfigError, ServerConfig};
use crate::entity_types::{EntityType, EntityTypes, TooManyTables};
use crate::event_types::EventTypes;
use crate::grid::{Grid, Position};
use crate::input_state::InputState;
use crate::server::PeerId;

/// Why a change of a world failed. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WorldError {
    /// A setting of a server or client cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The prior cannot be used.
    #[error(transparent)]
    Prior(#[from] PriorMismatch),
    /// The schema cannot be used.
    #[error("the schema is not usable: {0}")]
    Schema(SchemaError),
    /// The type is not part of the schema.
    #[error("`{0}` is not part of the schema; add it with `SchemaBuilder::state`")]
    UnknownType(String),
    /// A type has more tables than the 64 that are possible.
    #[error("`{0}` has more than 64 tables")]
    TooManyTables(String),
    /// Values must be given for all tables of a type that are not optional.
    #[error("the type has {expected} tables that are not optional, not {found}")]
    WrongTables {
        /// Tables of the type that are not optional.
        expected: usize,
        /// Tables given.
        found: usize,
    },
    /// There is no such entity, or it was despawned.
    #[error("there is no entity {0:?}")]
    NoSuchEntity(EntityRef),
    /// The entity has another type.
    #[error("entity {entity:?} is no `{expected}`")]
    WrongType {
        /// The entity.
        entity: EntityRef,
        /// The type that was expected.
        expected: &'static str,
    },
    /// The entity's type has no table with this index, or it is not optional.
    #[error("entity {entity:?} has no table {table}, or none that it can lack")]
    WrongTable {
        /// The entity.
        entity: EntityRef,
        /// Index of the table.
        table: usize,
    },
    /// An entity cannot be its own ancestor.
    #[error("entity {0:?} would be its own ancestor")]
    HierarchyCycle(EntityRef),
    /// A value does not fit its field, which is not declared `saturate`.
    #[error("the value of `{field}` does not fit: {misfit} (`saturate` would change it)")]
    DoesNotFit {
        /// The field, with its type: `Tank.position[0]`.
        field: String,
        /// Why it does not fit.
        misfit: Misfit,
    },
    /// The values cannot be captured.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

prescient_schema::debug_as_display!(WorldError);

impl From<TooManyTables> for WorldError {
    fn from(TooManyTables(name): TooManyTables) -> Self {
        Self::TooManyTables(name)
    }
}

/// The entities of one world, now and at recent ticks.
#[derive(Debug)]
pub struct World {
    /// The schema as the program declared it; the archive's has further columns.
    declared: Schema,
    entity_types: EntityTypes,
    event_types: Arc<EventTypes>,
    archive: Archive,
    /// Shared by all encoders of connections.
    layout: Arc<Layout>,
    /// The same without a prior, for publishers.
    plain_layout: Arc<Layout>,
    /// Shared by all decoders of reports.
    report_layout: Arc<Layout>,
    entities: EntityTable,
    /// The last changes that [`take_touched`](Self::take_touched) returned, and the number of all
    /// that it ever did.
    recently_touched: VecDeque<Touched>,
    taken: u64,
}

impl World {
    /// An empty world.
    pub(crate) fn new(schema: Schema, config: &ServerConfig) -> Result<Self, WorldError> {
        schema.validate().map_err(WorldError::Schema)?;
        let declared = schema.clone();
        let (entity_types, schema) = EntityTypes::of(schema)?;
        let reports = authority::report_schema(&schema, &entity_types);
        let schema = Arc::new(schema);
        let plain_layout = Arc::new(Layout::new(schema.clone()));
        let layout = match &config.prior {
            None => plain_layout.clone(),
            Some(prior) => {
                let profile = config.codec.profile();
                Arc::new(Layout::with_prior(schema.clone(), prior, profile)?)
            }
        };
        Ok(Self {
            event_types: Arc::new(EventTypes::of(&schema, &entity_types)),
            declared,
            entity_types,
            archive: Archive::new(schema, config.history.ticks()),
            layout,
            plain_layout,
            report_layout: Arc::new(Layout::new(Arc::new(reports))),
            entities: EntityTable {
                records: EntityRecords::default(),
                next_serial: 0,
                saturated: 0,
                grid: Grid::new(config.grid_cell),
                touched: Vec::new(),
                despawned: Vec::new(),
                with_authority: BTreeSet::new(),
                now: Tick(0),
                input_state: InputState::default(),
                owned: BTreeMap::new(),
            },
            recently_touched: VecDeque::new(),
            taken: 0,
        })
    }

    pub(crate) fn step(&mut self, tick: Tick) -> Result<WorldStep<'_>, WorldError> {
        let schema = self.archive.schema().clone();
        let capture = self.archive.begin(tick)?;
        self.entities.now = tick;
        self.entities.despawned.clear();
        WorldStep::begin(capture, schema, &self.entity_types, &mut self.entities)
    }

    /// Opens the newest tick again; `None` before the first.
    pub(crate) fn resume(&mut self) -> Option<Result<WorldStep<'_>, WorldError>> {
        let schema = self.archive.schema().clone();
        let capture = self.archive.resume()?;
        let (entity_types, entities) = (&self.entity_types, &mut self.entities);
        Some(WorldStep::begin(capture, schema, entity_types, entities))
    }

    pub(crate) fn input_state(&self) -> &InputState {
        &self.entities.input_state
    }

    pub(crate) fn input_state_mut(&mut self) -> &mut InputState {
        &mut self.entities.input_state
    }

    /// The schema, as the program declared it.
    pub fn schema(&self) -> &Schema {
        &self.declared
    }

    /// The newest tick.
    pub fn tick(&self) -> Option<Tick> {
        self.archive.newest()
    }

    /// The number of entities.
    pub fn len(&self) -> usize {
        self.entities.records.len()
    }

    /// Whether there are no entities.
    pub fn is_empty(&self) -> bool {
        self.entities.records.len() == 0
    }

    /// The values at recent ticks, with one table entity per entity and table.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// How many values were changed since the world was made, because they did not fit fields that
    /// are declared `saturate`.
    pub fn saturated(&self) -> u64 {
        self.entities.saturated
    }

    /// An entity's values in its first table at recent ticks, oldest first; read from the back for
    /// the newest. Nothing is copied before it is asked for. Empty if the entity has another type
    /// or was despawned. [`ServerConfig::with_history`](crate::ServerConfig::with_history) says how far this
    /// reaches back.
    ///
    /// A client that shows an entity at a tick ([`Client::samples`](crate::Client::samples)) shows
    /// what this has at that tick, at the precision that the client gets.
    pub fn samples<T: State>(&self, entity: Ref<T>) -> impl DoubleEndedIterator<Item = (Tick, T)> {
        let table = T::TABLES.first().copied().unwrap_or_default();
        self.table_samples(entity, table)
    }

    /// Like [`samples`](Self::samples), in another table.
    pub fn table_samples<T: State>(
        &self,
        entity: Ref<T>,
        table: &str,
    ) -> impl DoubleEndedIterator<Item = (Tick, T)> {
        let entity = entity.entity_ref();
        let is_it =
            self.record(entity).map(|record| record.entity_type) == self.entity_types.find(T::NAME);
        let number = T::TABLES.iter().position(|&name| name == table);
        let number = number.filter(|_| is_it).into_iter();
        let rows = number.flat_map(move |number| self.sample_rows(entity, number));
        rows.filter_map(move |(tick, row)| {
            let value = T::from_row_in(table, row, &self.archive);
            Some((tick, value.ok()?))
        })
    }

    /// Like [`samples`](Self::samples), as rows of the table with this index.
    pub fn sample_rows(
        &self,
        entity: EntityRef,
        table: usize,
    ) -> impl DoubleEndedIterator<Item = (Tick, &[i64])> {
        let slot = self.record(entity).and_then(|record| record.slot(table));
        let rows = slot
            .into_iter()
            .flat_map(move |slot| self.archive.samples(slot));
        // The last column of a further table is not the program's.
        rows.filter_map(move |(tick, row)| {
            Some((tick, row.get(..row.len() - usize::from(table > 0))?))
        })
    }

    /// An entity's row of the table with this index at a recent tick; found at once, however long
    /// the history is. `None` if that tick is not kept any more, or the entity was not there yet.
    pub fn row_at(&self, entity: EntityRef, table: usize, tick: Tick) -> Option<&[i64]> {
        let slot = self.record(entity)?.slot(table)?;
        let row = self.archive.row(slot, tick)?;
        // The last column of a further table is not the program's.
        row.get(..row.len() - usize::from(table > 0))
    }

    /// An entity's value in its first table at a recent tick, like [`row_at`](Self::row_at).
    pub fn value_at<T: State>(&self, entity: Ref<T>, tick: Tick) -> Option<T> {
        let entity = entity.entity_ref();
        let entity_type = self.record(entity)?.entity_type;
        if Some(entity_type) != self.entity_types.find(T::NAME) {
            return None;
        }
        let row = self.row_at(entity, 0, tick)?;
        T::from_row_in(T::TABLES.first()?, row, &self.archive).ok()
    }

    /// The oldest tick that is kept.
    pub fn oldest_tick(&self) -> Option<Tick> {
        self.archive.ticks().next()
    }

    /// An entity's position, if its type has one.
    pub fn position(&self, entity: EntityRef) -> Option<Position> {
        self.record(entity)?.position
    }

    /// The class of an entity's first table, as an index into the classes of the
    /// [`schema`](Self::schema).
    pub fn class(&self, entity: EntityRef) -> Option<u16> {
        let entity_type = self.record(entity)?.entity_type;
        Some(self.entity_types.tables(entity_type)[0])
    }

    /// The priority that a class declares.
    pub(crate) fn priority(&self, class: u16) -> Priority {
        let class = self.declared.classes.get(usize::from(class));
        class.map_or(Priority::default(), |class| class.priority)
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub(crate) fn plain_layout(&self) -> &Arc<Layout> {
        &self.plain_layout
    }

    pub(crate) fn report_layout(&self) -> &Arc<Layout> {
        &self.report_layout
    }

    /// Whether an entity has the table with this index.
    pub fn has_table(&self, entity: EntityRef, table: usize) -> bool {
        self.record(entity)
            .is_some_and(|record| record.slot(table).is_some())
    }

    pub(crate) fn record(&self, entity: EntityRef) -> Option<&EntityRecord> {
        self.entities.records.at(self.archive.entity(entity)?)
    }

    /// An entity that lives or was despawned in this tick, and its type.
    pub(crate) fn recent(&self, entity: EntityRef) -> Option<(Serial, EntityType)> {
        if let Some(record) = self.record(entity) {
            return Some((record.serial, record.entity_type));
        }
        let mut despawned = self.entities.despawned.iter();
        let &(_, serial, entity_type) = despawned.find(|(other, ..)| *other == entity)?;
        Some((serial, entity_type))
    }

    pub(crate) fn event_types(&self) -> &Arc<EventTypes> {
        &self.event_types
    }

    /// The entity whose first table has this slot.
    pub(crate) fn record_at(&self, first: Slot) -> Option<&EntityRecord> {
        self.entities.records.at(first)
    }

    /// The spawn order of the next entity.
    pub(crate) fn next_serial(&self) -> u64 {
        self.entities.next_serial
    }

    pub(crate) fn record_of(&self, serial: Serial) -> Option<&EntityRecord> {
        self.entities.records.get(serial)
    }

    /// The entity that a table entity belongs to.
    pub(crate) fn entity_of(&self, slot: Slot) -> Option<EntityRef> {
        let class = self.archive.class(slot)?;
        match self.entity_types.of_class(class).1 {
            0 => self.archive.reference(slot),
            _ => EntityRef::from_cell(*self.archive.latest(slot)?.last()?),
        }
    }

    /// All entities, in the order in which they were spawned.
    pub(crate) fn serials(&self) -> impl Iterator<Item = Serial> {
        self.entities.records.serials()
    }

    pub(crate) fn entity_types(&self) -> &EntityTypes {
        &self.entity_types
    }

    /// The topmost ancestor of an entity, or the entity itself.
    pub(crate) fn root(&self, serial: Serial) -> Serial {
        self.entities.root(serial)
    }

    /// Revokes all authority of a peer.
    pub(crate) fn revoke_all(&mut self, peer: PeerId) {
        let EntityTable {
            records,
            touched,
            with_authority,
            ..
        } = &mut self.entities;
        with_authority.retain(|serial| {
            let record = records.get_mut(*serial);
            let Some(record) = record.filter(|record| record.authority == Some(peer)) else {
                return true;
            };
            record.authority = None;
            touched.push(Touched::Here(*serial));
            false
        });
    }

    pub(crate) fn grid(&self) -> &Grid {
        &self.entities.grid
    }

    /// Takes the changes since the last call, for the server's peers.
    pub(crate) fn take_touched(&mut self) -> Vec<Touched> {
        let touched = std::mem::take(&mut self.entities.touched);
        self.taken += touched.len() as u64;
        let newest = touched.len().saturating_sub(MAX_RECENTLY_TOUCHED);
        for &touched in &touched[newest..] {
            if self.recently_touched.len() == MAX_RECENTLY_TOUCHED {
                self.recently_touched.pop_front();
            }
            self.recently_touched.push_back(touched);
        }
        touched
    }

    /// The number of changes ever, by which a publisher remembers which of them it has seen.
    pub(crate) fn touched_count(&self) -> u64 {
        self.taken + self.entities.touched.len() as u64
    }

    /// The changes after the first `count`; `None` if some of them are no longer known.
    pub(crate) fn touched_after(&self, count: u64) -> Option<Vec<Touched>> {
        let all = self.recently_touched.iter().chain(&self.entities.touched);
        let known = self.recently_touched.len() + self.entities.touched.len();
        let new = usize::try_from(self.touched_count().checked_sub(count)?).ok()?;
        Some(all.skip(known.checked_sub(new)?).copied().collect())
    }
}

/// Changes that are kept for publishers. One that has missed more evaluates all entities.
const MAX_RECENTLY_TOUCHED: usize = 512;
