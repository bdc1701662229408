//! The truth: objects, their values at every recent tick, and where they are.

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

/// Why something could not be done to a world. Nothing was changed.
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
    /// There is no such object, or no longer.
    #[error("there is no entity {0:?}")]
    NoSuchEntity(EntityRef),
    /// The object is of another type.
    #[error("entity {entity:?} is no `{expected}`")]
    WrongType {
        /// The object.
        entity: EntityRef,
        /// What it was taken for.
        expected: &'static str,
    },
    /// An object cannot be part of itself, or of one of its own parts.
    #[error("entity {0:?} would be its own ancestor")]
    HierarchyCycle(EntityRef),
    /// The values cannot be captured.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// The objects of one world, now and in the recent past.
#[derive(Debug)]
pub struct World {
    /// What the program calls its schema; the archive's has further columns.
    declared: Schema,
    entity_types: EntityTypes,
    archive: Archive,
    entities: EntityTable,
}

impl World {
    /// An empty world whose objects are found by cells of this size.
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

    /// The keys that players hold down.
    pub(crate) fn input_state(&self) -> &InputState {
        &self.entities.input_state
    }

    pub(crate) fn input_state_mut(&mut self) -> &mut InputState {
        &mut self.entities.input_state
    }

    /// What its objects can be, as the program said.
    pub fn schema(&self) -> &Schema {
        &self.declared
    }

    /// The newest tick.
    pub fn tick(&self) -> Option<Tick> {
        self.archive.newest()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.entities.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entities.records.len() == 0
    }

    /// Everything about recent ticks, with an entity per object and table.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Where an object is, if its type has a position.
    pub fn position(&self, entity: EntityRef) -> Option<Position> {
        self.record(entity)?.position
    }

    /// An entity's class, as an index into the classes of the [`schema`](Self::schema); of several
    /// tables, the first one's.
    pub fn class(&self, entity: EntityRef) -> Option<u16> {
        let entity_type = self.record(entity)?.entity_type;
        Some(self.entity_types.tables(entity_type)[0])
    }

    pub(crate) fn record(&self, entity: EntityRef) -> Option<&EntityRecord> {
        self.entities.records.at(self.archive.entity(entity)?)
    }

    /// The object whose first table's entity this is.
    pub(crate) fn record_at(&self, first: Slot) -> Option<&EntityRecord> {
        self.entities.records.at(first)
    }

    /// What the next object will be called.
    pub(crate) fn next_serial(&self) -> u64 {
        self.entities.next_serial
    }

    pub(crate) fn record_of(&self, serial: Serial) -> Option<&EntityRecord> {
        self.entities.records.get(serial)
    }

    /// The object that an entity of any table belongs to.
    pub(crate) fn entity_of(&self, slot: Slot) -> Option<EntityRef> {
        let class = self.archive.class(slot)?;
        match self.entity_types.of_class(class).1 {
            0 => self.archive.reference(slot),
            _ => EntityRef::from_cell(*self.archive.latest(slot)?.last()?),
        }
    }

    /// All objects in the order in which they appeared.
    pub(crate) fn serials(&self) -> impl Iterator<Item = Serial> {
        self.entities.records.serials()
    }

    pub(crate) fn entity_types(&self) -> &EntityTypes {
        &self.entity_types
    }

    /// What an object is a part of in the end, or the object itself.
    pub(crate) fn root(&self, serial: Serial) -> Serial {
        self.entities.root(serial)
    }

    /// Nobody is in charge of what a peer was in charge of.
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

    /// What happened since this was last asked.
    pub(crate) fn take_touched(&mut self) -> Vec<Touched> {
        std::mem::take(&mut self.entities.touched)
    }
}
