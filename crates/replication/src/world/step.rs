//! A tick being written.

use std::sync::Arc;

use prescient_codec::Slot;
use prescient_codec::history::{Capture, CaptureError};
use prescient_schema::{Declaration, EntityRef, Parcel, Ref, Schema, State};

use super::{EntityRecord, EntityTable, Serial, Touched, WorldError};
use crate::entity_types::{EntityType, EntityTypes};
use crate::grid::Position;
use crate::server::PeerId;

/// A tick being written. It ends when this is dropped, whether calls succeeded or not.
pub struct WorldStep<'a> {
    /// `None` only during drop.
    capture: Option<Capture<'a>>,
    schema: Arc<Schema>,
    entity_types: &'a EntityTypes,
    pub(crate) entities: &'a mut EntityTable,
    /// Buffers for a value, one parcel per table.
    values: Vec<Parcel>,
    /// Buffer for a row with added columns.
    buffer: Parcel,
}

impl<'a> WorldStep<'a> {
    /// Begins with writing the keys that changed.
    pub(super) fn begin(
        capture: Capture<'a>,
        schema: Arc<Schema>,
        entity_types: &'a EntityTypes,
        entities: &'a mut EntityTable,
    ) -> Result<Self, WorldError> {
        let mut step = Self {
            capture: Some(capture),
            schema,
            entity_types,
            entities,
            values: Vec::new(),
            buffer: Parcel::default(),
        };
        step.write_input_state()?;
        Ok(step)
    }
}

impl WorldStep<'_> {
    /// Spawns an entity.
    pub fn spawn<T: State>(&mut self, value: &T) -> Result<Ref<T>, WorldError> {
        self.enter(value, None)
    }

    /// Spawns an entity that a peer owns. The [`Relevance`](crate::Relevance) policy decides what
    /// ownership means; private tables are visible to the owner by default.
    pub fn spawn_for<T: State>(&mut self, owner: PeerId, value: &T) -> Result<Ref<T>, WorldError> {
        self.enter(value, Some(owner))
    }

    /// Spawns an entity of the type with this name, from one row per table: for programs whose
    /// schema is known only at run time.
    pub fn spawn_rows(
        &mut self,
        name: &str,
        owner: Option<PeerId>,
        rows: &[Parcel],
    ) -> Result<EntityRef, WorldError> {
        let entity_type = self.entity_types.find(name);
        let entity_type = entity_type.ok_or_else(|| WorldError::UnknownType(name.into()))?;
        self.check_widths(entity_type, rows)?;
        let mut slots = Vec::with_capacity(rows.len());
        let mut entity = EntityRef::NONE;
        for (table, row) in rows.iter().enumerate() {
            let class = self.entity_types.tables(entity_type)[table];
            let keys = self
                .entities
                .input_state
                .of(&self.schema.classes[usize::from(class)], owner);
            let row = stored_row(row, table, entity, keys, &mut self.buffer);
            let Some(capture) = &mut self.capture else {
                break;
            };
            match capture.spawn_parcel(class, row) {
                Ok(slot) => slots.push(slot),
                Err(error) => {
                    for slot in slots.into_iter().rev() {
                        capture.despawn(slot)?;
                    }
                    return Err(error.into());
                }
            }
            if table == 0 {
                entity = capture.reference(slots[0]).unwrap_or(EntityRef::NONE);
            }
        }
        let (Some(&first), Some(row)) = (slots.first(), rows.first()) else {
            return Err(WorldError::UnknownType(name.into()));
        };
        let order = self.entities.next_serial;
        let serial = Serial { order, first };
        self.entities.next_serial += 1;
        self.entities.touched.push(Touched::Here(serial));
        let record = EntityRecord {
            serial,
            entity_type,
            slots,
            owner,
            authority: None,
            parent: None,
            children: Vec::new(),
            position: None,
            moved: self.entities.now,
        };
        self.entities.records.insert(record);
        self.entities.change_owner(serial, None, owner);
        self.set_position(serial, entity_type, &row.row);
        Ok(entity)
    }

    /// Sets the value of an entity.
    pub fn set<T: State>(&mut self, entity: Ref<T>, value: &T) -> Result<(), WorldError> {
        let serial = self.find(entity.entity_ref())?;
        let entity_type = self.entity_type::<T>()?;
        let record = self.entities.records.get(serial);
        if record.is_none_or(|record| record.entity_type != entity_type) {
            return Err(WorldError::WrongType {
                entity: entity.entity_ref(),
                expected: T::NAME,
            });
        }
        self.with_rows(value, |step, rows| step.set_rows(entity.entity_ref(), rows))
    }

    /// Sets the value of an entity, from one row per table.
    pub fn set_rows(&mut self, entity: EntityRef, rows: &[Parcel]) -> Result<(), WorldError> {
        let serial = self.find(entity)?;
        let record = self.entities.records.get(serial);
        let record = record.ok_or(WorldError::NoSuchEntity(entity))?;
        let entity_type = record.entity_type;
        self.check_widths(entity_type, rows)?;
        let Some(capture) = &mut self.capture else {
            return Ok(());
        };
        let (slots, owner) = (&record.slots, record.owner);
        let (classes, schema, input_state) = (
            self.entity_types.tables(entity_type),
            &self.schema,
            &self.entities.input_state,
        );
        let keys =
            |table: usize| input_state.of(&schema.classes[usize::from(classes[table])], owner);
        let tables = || slots.iter().zip(rows).enumerate();
        // Checked first, because a written row cannot be taken back.
        for (table, (&slot, row)) in tables().skip(1) {
            let row = stored_row(row, table, entity, keys(table), &mut self.buffer);
            capture.check_parcel(slot, row)?;
        }
        for (table, (&slot, row)) in tables() {
            let row = stored_row(row, table, entity, keys(table), &mut self.buffer);
            capture.write_parcel(slot, row)?;
        }
        self.set_position(serial, entity_type, &rows[0].row);
        Ok(())
    }

    /// Sets one table of an entity.
    pub(crate) fn set_table(
        &mut self,
        serial: Serial,
        table: usize,
        row: &Parcel,
    ) -> Result<(), CaptureError> {
        let (Some(record), Some(capture)) = (self.entities.records.get(serial), &mut self.capture)
        else {
            return Ok(());
        };
        let entity = capture.reference(record.slots[0]);
        let entity = entity.unwrap_or(EntityRef::NONE);
        let Some(&slot) = record.slots.get(table) else {
            return Ok(());
        };
        let class = self.entity_types.tables(record.entity_type)[table];
        let class = &self.schema.classes[usize::from(class)];
        let keys = self.entities.input_state.of(class, record.owner);
        capture.write_parcel(slot, stored_row(row, table, entity, keys, &mut self.buffer))?;
        if table == 0 {
            self.set_position(serial, record.entity_type, &row.row);
        }
        Ok(())
    }

    /// Changes the owner of an entity.
    pub fn set_owner(
        &mut self,
        entity: EntityRef,
        owner: Option<PeerId>,
    ) -> Result<(), WorldError> {
        let serial = self.find(entity)?;
        if let Some(record) = self.entities.records.get_mut(serial) {
            let before = std::mem::replace(&mut record.owner, owner);
            self.entities.change_owner(serial, before, owner);
            self.entities.touched.push(Touched::Here(serial));
            self.entities.input_state.changed(owner);
        }
        self.write_input_state()
    }

    /// Removes an entity.
    pub fn despawn(&mut self, entity: EntityRef) -> Result<(), WorldError> {
        let serial = self.find(entity)?;
        let Some(record) = self.entities.records.remove(serial) else {
            return Err(WorldError::NoSuchEntity(entity));
        };
        self.entities.change_owner(serial, record.owner, None);
        self.entities.grid.put(serial, None);
        self.entities.touched.push(Touched::Gone(serial));
        self.entities.detach(&record);
        self.entities.with_authority.remove(&serial);
        let Some(capture) = &mut self.capture else {
            return Ok(());
        };
        // Further tables refer to the first, so they are removed before it.
        for slot in record.slots.into_iter().rev() {
            capture.despawn(slot)?;
        }
        Ok(())
    }

    /// Ends the tick.
    pub fn finish(self) {}

    fn enter<T: State>(&mut self, value: &T, owner: Option<PeerId>) -> Result<Ref<T>, WorldError> {
        self.entity_type::<T>()?;
        let entered = self.with_rows(value, |step, rows| step.spawn_rows(T::NAME, owner, rows));
        entered.map(Ref::to)
    }

    /// Calls `act` with the rows of a value.
    fn with_rows<T: State, R>(
        &mut self,
        value: &T,
        act: impl FnOnce(&mut Self, &[Parcel]) -> R,
    ) -> R {
        let mut rows = std::mem::take(&mut self.values);
        rows.resize_with(T::TABLES.len(), Parcel::default);
        for (row, table) in rows.iter_mut().zip(T::TABLES) {
            row.row.clear();
            row.contents.clear();
            value.write(&Declaration::PLAIN, table, row);
        }
        let done = act(self, &rows);
        self.values = rows;
        done
    }

    /// Updates an entity's position from its first row.
    fn set_position(&mut self, serial: Serial, entity_type: EntityType, row: &[i64]) {
        let class = usize::from(self.entity_types.tables(entity_type)[0]);
        let position = Position::of(&self.schema.classes[class], row);
        self.entities.set_position(serial, position);
    }

    fn entity_type<T: State>(&self) -> Result<EntityType, WorldError> {
        let entity_type = self.entity_types.find(T::NAME);
        let entity_type = entity_type
            .filter(|&entity_type| self.entity_types.tables(entity_type).len() == T::TABLES.len());
        entity_type.ok_or_else(|| WorldError::UnknownType(T::NAME.into()))
    }

    /// Checks that there is a row for each table, with its declared number of columns.
    fn check_widths(&self, entity_type: EntityType, rows: &[Parcel]) -> Result<(), WorldError> {
        let classes = self.entity_types.tables(entity_type);
        if classes.len() != rows.len() {
            return Err(WorldError::WrongTables {
                expected: classes.len(),
                found: rows.len(),
            });
        }
        for (table, (&class, row)) in classes.iter().zip(rows).enumerate() {
            let fields = self.schema.classes[usize::from(class)].fields.len();
            let (expected, found) = (fields - usize::from(table > 0), row.row.len());
            if expected != found {
                return Err(CaptureError::WrongLength { expected, found }.into());
            }
        }
        Ok(())
    }

    pub(crate) fn find(&self, entity: EntityRef) -> Result<Serial, WorldError> {
        let slot = Slot(entity.index().unwrap_or(u32::MAX));
        let capture = self.capture.as_ref();
        let there = capture.and_then(|capture| capture.reference(slot)) == Some(entity);
        let record = self.entities.records.at(slot).filter(|_| there);
        let serial = record.map(|record| record.serial);
        serial.ok_or(WorldError::NoSuchEntity(entity))
    }
}

/// Writes owners' keys into their entities whose type has a field for them.
impl WorldStep<'_> {
    /// Updates the entities of owners whose keys changed.
    fn write_input_state(&mut self) -> Result<(), WorldError> {
        let changed = self.entities.input_state.take_changed();
        let Some(capture) = self.capture.as_mut().filter(|_| !changed.is_empty()) else {
            return Ok(());
        };
        let owned = |owner| Some((owner, self.entities.owned.get(&owner)?));
        let owned = changed.into_iter().filter_map(owned);
        for (owner, serial) in owned.flat_map(|(owner, of)| of.iter().map(move |s| (owner, s))) {
            let Some(record) = self.entities.records.get(*serial) else {
                continue;
            };
            let classes = self.entity_types.tables(record.entity_type).iter();
            for (&slot, &class) in record.slots.iter().zip(classes) {
                let class = &self.schema.classes[usize::from(class)];
                if let Some((field, cell)) = self.entities.input_state.of(class, Some(owner)) {
                    capture.set(slot, field, cell)?;
                }
            }
        }
        self.entities.input_state.forget_absent();
        Ok(())
    }
}

impl Drop for WorldStep<'_> {
    fn drop(&mut self) {
        if let Some(capture) = self.capture.take() {
            capture.finish();
        }
    }
}

/// A row as the codec stores it: the owner's keys replace those of the value, and a further table
/// gets the reference to its entity as last column.
fn stored_row<'a>(
    row: &'a Parcel,
    table: usize,
    entity: EntityRef,
    keys: Option<(u16, i64)>,
    buffer: &'a mut Parcel,
) -> &'a Parcel {
    if table == 0 && keys.is_none() {
        return row;
    }
    buffer.clone_from(row);
    if let Some((field, cell)) = keys
        && let Some(key) = buffer.row.get_mut(usize::from(field))
    {
        *key = cell;
    }
    if table > 0 {
        buffer.row.push(entity.cell());
    }
    buffer
}
