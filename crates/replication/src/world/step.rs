//! A tick being written.

use std::sync::Arc;

use prescient_codec::Slot;
use prescient_codec::history::{Capture, CaptureError};
use prescient_schema::{Declaration, EntityRef, Parcel, Ref, Schema, State};

use super::{Cast, Record, Serial, Touched, WorldError};
use crate::grid::Place;
use crate::kinds::{Kind, Kinds};
use crate::server::PeerId;

/// A tick being written. It ends when this is dropped, whether all went well or not.
pub struct Step<'a> {
    /// `None` only while it is dropped.
    capture: Option<Capture<'a>>,
    schema: Arc<Schema>,
    kinds: &'a Kinds,
    pub(crate) cast: &'a mut Cast,
    /// Room for values, a parcel per table.
    values: Vec<Parcel>,
    /// Room for those of a further table.
    part: Parcel,
}

impl<'a> Step<'a> {
    /// What happens from now on happens at the captured tick.
    pub(super) fn begin(
        capture: Capture<'a>,
        schema: Arc<Schema>,
        kinds: &'a Kinds,
        cast: &'a mut Cast,
    ) -> Result<Self, WorldError> {
        let mut step = Self {
            capture: Some(capture),
            schema,
            kinds,
            cast,
            values: Vec::new(),
            part: Parcel::default(),
        };
        step.hold()?;
        Ok(step)
    }
}

impl Step<'_> {
    /// A new object.
    pub fn spawn<T: State>(&mut self, value: &T) -> Result<Ref<T>, WorldError> {
        self.enter(value, None)
    }

    /// A new object that belongs to a peer. What that means is for a
    /// [`Relevance`](crate::Relevance) to say; private tables are for the owner.
    pub fn spawn_for<T: State>(&mut self, owner: PeerId, value: &T) -> Result<Ref<T>, WorldError> {
        self.enter(value, Some(owner))
    }

    /// A new object of the type that has this name, with a row for each of its tables: for those
    /// whose schema is not known before the program runs.
    pub fn spawn_rows(
        &mut self,
        name: &str,
        owner: Option<PeerId>,
        rows: &[Parcel],
    ) -> Result<EntityRef, WorldError> {
        let kind = self.kinds.find(name);
        let kind = kind.ok_or_else(|| WorldError::UnknownType(name.into()))?;
        self.check_widths(kind, rows)?;
        let mut slots = Vec::with_capacity(rows.len());
        let mut object = EntityRef::NONE;
        for (table, row) in rows.iter().enumerate() {
            let class = self.kinds.tables(kind)[table];
            let keys = self
                .cast
                .held
                .of(&self.schema.classes[usize::from(class)], owner);
            let row = whole(row, table, object, keys, &mut self.part);
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
                object = capture.reference(slots[0]).unwrap_or(EntityRef::NONE);
            }
        }
        let (Some(&first), Some(row)) = (slots.first(), rows.first()) else {
            return Err(WorldError::UnknownType(name.into()));
        };
        let number = self.cast.next_serial;
        let serial = Serial { number, first };
        self.cast.next_serial += 1;
        self.cast.touched.push(Touched::Here(serial));
        let record = Record {
            serial,
            kind,
            slots,
            owner,
            author: None,
            whole: None,
            parts: Vec::new(),
            place: None,
            moved: self.cast.now,
        };
        self.cast.records.insert(record);
        self.cast.hand_over(serial, None, owner);
        self.put(serial, kind, &row.row);
        Ok(object)
    }

    /// An object is like this now.
    pub fn set<T: State>(&mut self, object: Ref<T>, value: &T) -> Result<(), WorldError> {
        let serial = self.find(object.entity())?;
        let kind = self.kind::<T>()?;
        let record = self.cast.records.get(serial);
        if record.is_none_or(|record| record.kind != kind) {
            return Err(WorldError::WrongType {
                object: object.entity(),
                expected: T::NAME,
            });
        }
        self.with_rows(value, |step, rows| step.set_rows(object.entity(), rows))
    }

    /// An object is like this now, with a row for each of its tables.
    pub fn set_rows(&mut self, object: EntityRef, rows: &[Parcel]) -> Result<(), WorldError> {
        let serial = self.find(object)?;
        let record = self.cast.records.get(serial);
        let record = record.ok_or(WorldError::NoSuchObject(object))?;
        let kind = record.kind;
        self.check_widths(kind, rows)?;
        let Some(capture) = &mut self.capture else {
            return Ok(());
        };
        let (slots, owner) = (&record.slots, record.owner);
        let (classes, schema, held) = (self.kinds.tables(kind), &self.schema, &self.cast.held);
        let keys = |table: usize| held.of(&schema.classes[usize::from(classes[table])], owner);
        let tables = || slots.iter().zip(rows).enumerate();
        // Once the first is written there is no way back.
        for (table, (&slot, row)) in tables().skip(1) {
            let row = whole(row, table, object, keys(table), &mut self.part);
            capture.check_parcel(slot, row)?;
        }
        for (table, (&slot, row)) in tables() {
            let row = whole(row, table, object, keys(table), &mut self.part);
            capture.write_parcel(slot, row)?;
        }
        self.put(serial, kind, &rows[0].row);
        Ok(())
    }

    /// One of an object's tables is like this now.
    pub(crate) fn set_table(
        &mut self,
        serial: Serial,
        table: usize,
        row: &Parcel,
    ) -> Result<(), CaptureError> {
        let (Some(record), Some(capture)) = (self.cast.records.get(serial), &mut self.capture)
        else {
            return Ok(());
        };
        let object = capture.reference(record.slots[0]);
        let object = object.unwrap_or(EntityRef::NONE);
        let Some(&slot) = record.slots.get(table) else {
            return Ok(());
        };
        let class = self.kinds.tables(record.kind)[table];
        let class = &self.schema.classes[usize::from(class)];
        let keys = self.cast.held.of(class, record.owner);
        capture.write_parcel(slot, whole(row, table, object, keys, &mut self.part))?;
        if table == 0 {
            self.put(serial, record.kind, &row.row);
        }
        Ok(())
    }

    /// An object belongs to somebody else.
    pub fn give(&mut self, object: EntityRef, owner: Option<PeerId>) -> Result<(), WorldError> {
        let serial = self.find(object)?;
        if let Some(record) = self.cast.records.get_mut(serial) {
            let before = std::mem::replace(&mut record.owner, owner);
            self.cast.hand_over(serial, before, owner);
            self.cast.touched.push(Touched::Here(serial));
            self.cast.held.changed(owner);
        }
        self.hold()
    }

    /// An object is no more.
    pub fn despawn(&mut self, object: EntityRef) -> Result<(), WorldError> {
        let serial = self.find(object)?;
        let Some(record) = self.cast.records.remove(serial) else {
            return Err(WorldError::NoSuchObject(object));
        };
        self.cast.hand_over(serial, record.owner, None);
        self.cast.grid.put(serial, None);
        self.cast.touched.push(Touched::Gone(serial));
        self.cast.part(&record);
        self.cast.entrusted.remove(&serial);
        let Some(capture) = &mut self.capture else {
            return Ok(());
        };
        // Whoever refers to the first table must not outlive it.
        for entity in record.slots.into_iter().rev() {
            capture.despawn(entity)?;
        }
        Ok(())
    }

    /// Ends the tick.
    pub fn finish(self) {}

    fn enter<T: State>(&mut self, value: &T, owner: Option<PeerId>) -> Result<Ref<T>, WorldError> {
        self.kind::<T>()?;
        let entered = self.with_rows(value, |step, rows| step.spawn_rows(T::NAME, owner, rows));
        entered.map(Ref::to)
    }

    /// Does something with the rows of a value.
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

    /// Notes where an object is.
    fn put(&mut self, serial: Serial, kind: Kind, row: &[i64]) {
        let class = usize::from(self.kinds.tables(kind)[0]);
        let place = Place::of(&self.schema.classes[class], row);
        self.cast.put(serial, place);
    }

    fn kind<T: State>(&self) -> Result<Kind, WorldError> {
        let kind = self.kinds.find(T::NAME);
        let kind = kind.filter(|&kind| self.kinds.tables(kind).len() == T::TABLES.len());
        kind.ok_or_else(|| WorldError::UnknownType(T::NAME.into()))
    }

    /// Whether there is a row for each table, and as wide as its users know it.
    fn check_widths(&self, kind: Kind, rows: &[Parcel]) -> Result<(), WorldError> {
        let classes = self.kinds.tables(kind);
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

    pub(crate) fn find(&self, object: EntityRef) -> Result<Serial, WorldError> {
        let slot = Slot(object.index().unwrap_or(u32::MAX));
        let capture = self.capture.as_ref();
        let there = capture.and_then(|capture| capture.reference(slot)) == Some(object);
        let record = self.cast.records.at(slot).filter(|_| there);
        let serial = record.map(|record| record.serial);
        serial.ok_or(WorldError::NoSuchObject(object))
    }
}

/// The keys that owners hold down, in the objects of those whose type has a field for them.
impl Step<'_> {
    /// Brings objects up to date whose owner's keys have changed.
    fn hold(&mut self) -> Result<(), WorldError> {
        let changed = self.cast.held.take_changed();
        let Some(capture) = self.capture.as_mut().filter(|_| !changed.is_empty()) else {
            return Ok(());
        };
        let owned = |owner| Some((owner, self.cast.owned.get(&owner)?));
        let owned = changed.into_iter().filter_map(owned);
        for (owner, serial) in owned.flat_map(|(owner, of)| of.iter().map(move |s| (owner, s))) {
            let Some(record) = self.cast.records.get(*serial) else {
                continue;
            };
            let classes = self.kinds.tables(record.kind).iter();
            for (&slot, &class) in record.slots.iter().zip(classes) {
                let class = &self.schema.classes[usize::from(class)];
                if let Some((field, cell)) = self.cast.held.of(class, Some(owner)) {
                    capture.set(slot, field, cell)?;
                }
            }
        }
        self.cast.held.forget_absent();
        Ok(())
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        if let Some(capture) = self.capture.take() {
            capture.finish();
        }
    }
}

/// A row as the codec has it: those of further tables say at their end whose they are, and the
/// owner's keys stand in place of those of the value.
fn whole<'a>(
    row: &'a Parcel,
    table: usize,
    object: EntityRef,
    keys: Option<(u16, i64)>,
    part: &'a mut Parcel,
) -> &'a Parcel {
    if table == 0 && keys.is_none() {
        return row;
    }
    part.clone_from(row);
    if let Some((field, cell)) = keys
        && let Some(key) = part.row.get_mut(usize::from(field))
    {
        *key = cell;
    }
    if table > 0 {
        part.row.push(object.cell());
    }
    part
}
