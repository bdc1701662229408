//! A tick being written.

use std::sync::Arc;

use prescient_codec::Slot;
use prescient_codec::history::{Capture, CaptureError};
use prescient_schema::{EntityRef, Parcel, Ref, Schema, State};

use super::{EntityRecord, EntityTable, Serial, Touched, WorldError};
use crate::checked_row;
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
    /// Spawns an entity. Refused, like any value, if a field does not fit its declaration and does
    /// not `saturate` ([`WorldError::DoesNotFit`]).
    pub fn spawn<T: State>(&mut self, value: &T) -> Result<Ref<T>, WorldError> {
        self.enter(value, None)
    }

    /// Spawns an entity that a peer owns. The [`Relevance`](crate::Relevance) policy decides what
    /// ownership means; private tables are visible to the owner by default.
    pub fn spawn_for<T: State>(&mut self, owner: PeerId, value: &T) -> Result<Ref<T>, WorldError> {
        self.enter(value, Some(owner))
    }

    /// Spawns an entity of the type with this name, from one row for each table that is not
    /// optional: for programs whose schema is known only at run time.
    /// [`set_table`](Self::set_table) adds optional tables.
    pub fn spawn_rows(
        &mut self,
        name: &str,
        owner: Option<PeerId>,
        rows: &[Parcel],
    ) -> Result<EntityRef, WorldError> {
        let entity_type = self.entity_types.find(name);
        let entity_type = entity_type.ok_or_else(|| WorldError::UnknownType(name.into()))?;
        let values = required_rows(self.entity_types, entity_type, rows)?;
        self.spawn_tables(entity_type, owner, values)
    }

    /// Spawns an entity whose tables `values` returns, by index.
    fn spawn_tables<'r>(
        &mut self,
        entity_type: EntityType,
        owner: Option<PeerId>,
        values: impl Fn(usize) -> TableValue<'r>,
    ) -> Result<EntityRef, WorldError> {
        self.check_widths(entity_type, &values)?;
        let classes = self.entity_types.tables(entity_type);
        let mut slots = Vec::with_capacity(classes.len());
        let mut entity = EntityRef::NONE;
        let mut position = None;
        for (table, &class) in classes.iter().enumerate() {
            let TableValue::Row(row) = values(table) else {
                continue;
            };
            let class_of_table = &self.schema.classes[usize::from(class)];
            let keys = self.entities.input_state.of(class_of_table, owner);
            let stored = stored_row(row, table, entity, keys, &mut self.buffer);
            let Some(capture) = &mut self.capture else {
                break;
            };
            match capture.spawn_parcel(class, stored) {
                Ok(slot) => slots.push((table as u8, slot)),
                Err(error) => {
                    for (_, slot) in slots.into_iter().rev() {
                        capture.despawn(slot)?;
                    }
                    return Err(error.into());
                }
            }
            if table == 0 {
                entity = capture.reference(slots[0].1).unwrap_or(EntityRef::NONE);
                position = Position::of(class_of_table, &row.row);
            }
        }
        let Some(&(_, first)) = slots.first() else {
            return Err(WorldError::NoSuchEntity(entity));
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
        self.entities.set_position(serial, position);
        Ok(entity)
    }

    /// Sets the value of an entity. It gains the optional tables whose fields are `Some`, and loses
    /// those whose fields are `None`. Clients get exactly this value, with floats rounded to their
    /// declared steps or formats; one that does not fit is refused ([`WorldError::DoesNotFit`]), and
    /// the entity stays as it was.
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
        self.with_rows(entity_type, value, |step, rows| {
            step.set_tables(entity.entity_ref(), |table| rows.value(table))
        })
    }

    /// Sets the value of an entity, from one row for each table that is not optional. Optional
    /// tables stay as they are.
    pub fn set_rows(&mut self, entity: EntityRef, rows: &[Parcel]) -> Result<(), WorldError> {
        let serial = self.find(entity)?;
        let record = self.entities.records.get(serial);
        let record = record.ok_or(WorldError::NoSuchEntity(entity))?;
        let values = required_rows(self.entity_types, record.entity_type, rows)?;
        self.set_tables(entity, values)
    }

    /// Sets the table with this index of an entity. The entity gains it if it is optional and the
    /// entity lacks it.
    pub fn set_table(
        &mut self,
        entity: EntityRef,
        table: usize,
        row: &Parcel,
    ) -> Result<(), WorldError> {
        self.find_table(entity, table)?;
        self.set_tables(entity, |other| match other == table {
            true => TableValue::Row(row),
            false => TableValue::Unchanged,
        })
    }

    /// Removes an optional table of an entity; returns whether the entity had it.
    pub fn remove_table(&mut self, entity: EntityRef, table: usize) -> Result<bool, WorldError> {
        let (serial, entity_type) = self.find_table(entity, table)?;
        if !self.entity_types.is_optional(entity_type, table) {
            return Err(WorldError::WrongTable { entity, table });
        }
        let record = self.entities.records.get(serial);
        let had = record.is_some_and(|record| record.slot(table).is_some());
        self.set_tables(entity, |other| match other == table {
            true => TableValue::Absent,
            false => TableValue::Unchanged,
        })?;
        Ok(had)
    }

    /// Whether an entity has the table with this index.
    pub fn has_table(&self, entity: EntityRef, table: usize) -> bool {
        let record = self.find(entity).ok();
        let record = record.and_then(|serial| self.entities.records.get(serial));
        record.is_some_and(|record| record.slot(table).is_some())
    }

    /// Sets the tables of an entity to what `values` returns, by index.
    fn set_tables<'r>(
        &mut self,
        entity: EntityRef,
        values: impl Fn(usize) -> TableValue<'r>,
    ) -> Result<(), WorldError> {
        let serial = self.find(entity)?;
        let record = self.entities.records.get(serial);
        let record = record.ok_or(WorldError::NoSuchEntity(entity))?;
        let (entity_type, owner) = (record.entity_type, record.owner);
        self.check_widths(entity_type, &values)?;
        let Some(capture) = &mut self.capture else {
            return Ok(());
        };
        let (classes, schema, input_state) = (
            self.entity_types.tables(entity_type),
            &self.schema,
            &self.entities.input_state,
        );
        let keys = |class: u16| input_state.of(&schema.classes[usize::from(class)], owner);
        // Checked first, because a written row cannot be taken back.
        for (table, &class) in classes.iter().enumerate().skip(1) {
            if let TableValue::Row(row) = values(table) {
                let row = stored_row(row, table, entity, keys(class), &mut self.buffer);
                match record.slot(table) {
                    Some(slot) => capture.check_parcel(slot, row)?,
                    None => capture.check_spawn(class, row)?,
                }
            }
        }
        let mut changed = Vec::new();
        for (table, &class) in classes.iter().enumerate() {
            match (values(table), record.slot(table)) {
                (TableValue::Row(row), slot) => {
                    let row = stored_row(row, table, entity, keys(class), &mut self.buffer);
                    match slot {
                        Some(slot) => capture.write_parcel(slot, row)?,
                        None => {
                            let slot = capture.spawn_parcel(class, row)?;
                            changed.push((table, Some(slot)));
                            let gained = Touched::Gained(serial, table as u8);
                            self.entities.touched.push(gained);
                        }
                    }
                }
                (TableValue::Absent, Some(slot)) => {
                    capture.despawn(slot)?;
                    changed.push((table, None));
                    self.entities.touched.push(Touched::Lost(slot));
                }
                (TableValue::Absent, None) | (TableValue::Unchanged, _) => {}
            }
        }
        if let Some(record) = self.entities.records.get_mut(serial) {
            for (table, slot) in changed {
                record.set_slot(table, slot);
            }
        }
        if let TableValue::Row(row) = values(0) {
            self.set_position(serial, entity_type, &row.row);
        }
        Ok(())
    }

    /// Sets a table of an entity to what a client reports.
    pub(crate) fn report_table(
        &mut self,
        serial: Serial,
        table: usize,
        row: Option<&Parcel>,
    ) -> Result<(), WorldError> {
        let reference = |serial: Serial| self.capture.as_ref()?.reference(serial.first);
        let record = self.entities.records.get(serial);
        let Some(entity) = record.and_then(|record| reference(record.serial)) else {
            return Ok(());
        };
        match row {
            Some(row) => self.set_table(entity, table, row),
            None => self.remove_table(entity, table).map(drop),
        }
    }

    /// Changes the owner of an entity.
    pub fn set_owner(
        &mut self,
        entity: impl Into<EntityRef>,
        owner: Option<PeerId>,
    ) -> Result<(), WorldError> {
        let serial = self.find(entity.into())?;
        if let Some(record) = self.entities.records.get_mut(serial) {
            let before = std::mem::replace(&mut record.owner, owner);
            self.entities.change_owner(serial, before, owner);
            self.entities.touched.push(Touched::Here(serial));
            self.entities.input_state.changed(owner);
        }
        self.write_input_state()
    }

    /// Removes an entity.
    pub fn despawn(&mut self, entity: impl Into<EntityRef>) -> Result<(), WorldError> {
        let entity = entity.into();
        let serial = self.find(entity)?;
        let Some(record) = self.entities.records.remove(serial) else {
            return Err(WorldError::NoSuchEntity(entity));
        };
        let despawned = (entity, serial, record.entity_type);
        self.entities.despawned.push(despawned);
        self.entities.change_owner(serial, record.owner, None);
        self.entities.grid.put(serial, None);
        self.entities.touched.push(Touched::Gone(serial));
        self.entities.detach(&record);
        self.entities.with_authority.remove(&serial);
        let Some(capture) = &mut self.capture else {
            return Ok(());
        };
        // Further tables refer to the first, so they are removed before it.
        for (table, slot) in record.slots.into_iter().rev() {
            capture.despawn(slot)?;
            if table > 0 {
                self.entities.touched.push(Touched::GoneTable(slot));
            }
        }
        Ok(())
    }

    /// Ends the tick.
    pub fn finish(self) {}

    fn enter<T: State>(&mut self, value: &T, owner: Option<PeerId>) -> Result<Ref<T>, WorldError> {
        let entity_type = self.entity_type::<T>()?;
        let entered = self.with_rows(entity_type, value, |step, rows| {
            step.spawn_tables(entity_type, owner, |table| rows.value(table))
        });
        entered.map(Ref::to)
    }

    /// Calls `act` with the rows of a value, if all of it fits.
    fn with_rows<T: State, R>(
        &mut self,
        entity_type: EntityType,
        value: &T,
        act: impl FnOnce(&mut Self, ValueRows<'_>) -> Result<R, WorldError>,
    ) -> Result<R, WorldError> {
        let mut rows = std::mem::take(&mut self.values);
        rows.resize_with(T::TABLES.len(), Parcel::default);
        let (mut absent, mut saturated, mut misfit) = (0, 0, None);
        for (at, (row, table)) in rows.iter_mut().zip(T::TABLES).enumerate() {
            if !value.has_table(table) {
                absent |= 1u64.checked_shl(at as u32).unwrap_or(0);
                continue;
            }
            match checked_row::write(value, table, row) {
                Ok(changed) => saturated += changed,
                Err(refused) => {
                    misfit.get_or_insert((at, refused));
                }
            }
        }
        let done = match misfit {
            None => act(
                self,
                ValueRows {
                    rows: &rows,
                    absent,
                },
            ),
            Some((table, (column, misfit))) => {
                let types = self.entity_types;
                let field =
                    checked_row::column_name(&self.schema, types, entity_type, table, column);
                Err(WorldError::DoesNotFit { field, misfit })
            }
        };
        if done.is_ok() {
            self.entities.saturated += saturated;
        }
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

    /// Checks that no row is missing and that each has its declared number of columns.
    fn check_widths<'r>(
        &self,
        entity_type: EntityType,
        values: &impl Fn(usize) -> TableValue<'r>,
    ) -> Result<(), WorldError> {
        let classes = self.entity_types.tables(entity_type);
        for (table, &class) in classes.iter().enumerate() {
            let row = match values(table) {
                TableValue::Row(row) => row,
                TableValue::Absent if !self.entity_types.is_optional(entity_type, table) => {
                    let expected = self.entity_types.required(entity_type);
                    let found = expected - 1;
                    return Err(WorldError::WrongTables { expected, found });
                }
                TableValue::Absent | TableValue::Unchanged => continue,
            };
            let fields = self.schema.classes[usize::from(class)].fields.len();
            let (expected, found) = (fields - usize::from(table > 0), row.row.len());
            if expected != found {
                return Err(CaptureError::WrongLength { expected, found }.into());
            }
        }
        Ok(())
    }

    /// The type of an entity, if it has a table with this index.
    fn find_table(
        &self,
        entity: EntityRef,
        table: usize,
    ) -> Result<(Serial, EntityType), WorldError> {
        let serial = self.find(entity)?;
        let record = self.entities.records.get(serial);
        let entity_type = record.map(|record| record.entity_type);
        let entity_type =
            entity_type.filter(|&entity_type| table < self.entity_types.tables(entity_type).len());
        let wrong = WorldError::WrongTable { entity, table };
        entity_type
            .map(|entity_type| (serial, entity_type))
            .ok_or(wrong)
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
            let classes = self.entity_types.tables(record.entity_type);
            for &(table, slot) in &record.slots {
                let class = &self.schema.classes[usize::from(classes[usize::from(table)])];
                if let Some((field, cell)) = self.entities.input_state.of(class, Some(owner)) {
                    capture.set(slot, field, cell)?;
                }
            }
        }
        self.entities.input_state.forget_absent();
        Ok(())
    }
}

/// The new value of a table of an entity.
enum TableValue<'a> {
    /// It has this row; the entity gains it if it lacks it.
    Row(&'a Parcel),
    /// The entity is to lack it.
    Absent,
    /// It is unchanged.
    Unchanged,
}

/// The rows of the tables that all entities of a type have; optional tables stay as they are.
fn required_rows<'r>(
    entity_types: &'r EntityTypes,
    entity_type: EntityType,
    rows: &'r [Parcel],
) -> Result<impl Fn(usize) -> TableValue<'r>, WorldError> {
    let (expected, found) = (entity_types.required(entity_type), rows.len());
    if expected != found {
        return Err(WorldError::WrongTables { expected, found });
    }
    Ok(move |table| {
        let at = entity_types.required_index(entity_type, table);
        let row = at.and_then(|at| rows.get(at));
        row.map_or(TableValue::Unchanged, TableValue::Row)
    })
}

/// The rows of a value, one per table.
#[derive(Clone, Copy)]
struct ValueRows<'a> {
    rows: &'a [Parcel],
    /// Bit `k` is set if the value lacks table `k`.
    absent: u64,
}

impl<'a> ValueRows<'a> {
    fn value(self, table: usize) -> TableValue<'a> {
        match self.rows.get(table) {
            Some(row) if self.absent >> table & 1 == 0 => TableValue::Row(row),
            _ => TableValue::Absent,
        }
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
