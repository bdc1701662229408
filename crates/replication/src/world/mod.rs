//! The authoritative world: entities, their values at recent ticks, and their positions.

mod entity_table;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use prescient_codec::history::{Archive, CaptureError};
use prescient_codec::{HISTORY, Slot, Tick};
use prescient_schema::{EntityRef, Schema, SchemaError};
use thiserror::Error;

pub(crate) use entity_table::{EntityRecord, EntityTable, Serial, Touched};
pub use step::WorldStep;

use crate::entity_types::EntityTypes;
use crate::grid::{Grid, Position};
use crate::input_state::InputState;
use crate::records::EntityRecords;
use crate::server::PeerId;

/// Why a change of a world failed. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The schema cannot be used.
    #[error("the schema is not usable: {0}")]
    Schema(SchemaError),
    /// The type is not part of the schema.
    #[error("`{0}` is not part of the schema; add it with `SchemaBuilder::state`")]
    UnknownType(String),
    /// Values must be given for all tables of a type.
    #[error("the type has {expected} tables, not {found}")]
    WrongTables {
        /// Tables of the type.
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
    /// An entity cannot be its own ancestor.
    #[error("entity {0:?} would be its own ancestor")]
    HierarchyCycle(EntityRef),
    /// The values cannot be captured.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// The entities of one world, now and at recent ticks.
#[derive(Debug)]
pub struct World {
    /// The schema as the program declared it; the archive's has further columns.
    declared: Schema,
    entity_types: EntityTypes,
    archive: Archive,
    entities: EntityTable,
}

impl World {
    /// An empty world; `cell` is the cell size of its grid.
    pub(crate) fn new(schema: Schema, cell: f64) -> Result<Self, WorldError> {
        schema.validate().map_err(WorldError::Schema)?;
        let declared = schema.clone();
        let (entity_types, schema) = EntityTypes::of(schema);
        Ok(Self {
            declared,
            entity_types,
            archive: Archive::new(Arc::new(schema), HISTORY),
            entities: EntityTable {
                records: EntityRecords::default(),
                next_serial: 0,
                grid: Grid::new(cell),
                touched: Vec::new(),
                with_authority: BTreeSet::new(),
                now: Tick(0),
                input_state: InputState::default(),
                owned: BTreeMap::new(),
            },
        })
    }

    pub(crate) fn step(&mut self, tick: Tick) -> Result<WorldStep<'_>, WorldError> {
        let schema = self.archive.schema().clone();
        let capture = self.archive.begin(tick)?;
        self.entities.now = tick;
        WorldStep::begin(capture, schema, &self.entity_types, &mut self.entities)
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

    pub(crate) fn record(&self, entity: EntityRef) -> Option<&EntityRecord> {
        self.entities.records.at(self.archive.entity(entity)?)
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

    /// Takes the changes since the last call.
    pub(crate) fn take_touched(&mut self) -> Vec<Touched> {
        std::mem::take(&mut self.entities.touched)
    }
}
