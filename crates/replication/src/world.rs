//! The truth: objects, their values at every recent tick, and where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use prescient_codec::history::{Archive, Capture, CaptureError};
use prescient_codec::{HISTORY, Slot, Tick};
use prescient_schema::{Declaration, EntityRef, Parcel, Ref, Schema, SchemaError, State};
use thiserror::Error;

use crate::grid::{Grid, Place};
use crate::held::Held;
use crate::kinds::{Kind, Kinds};
use crate::records::Records;
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
    #[error("there is no object {0:?}")]
    NoSuchObject(EntityRef),
    /// The object is of another type.
    #[error("object {object:?} is no `{expected}`")]
    WrongType {
        /// The object.
        object: EntityRef,
        /// What it was taken for.
        expected: &'static str,
    },
    /// An object cannot be part of itself, or of one of its own parts.
    #[error("object {0:?} would be part of itself")]
    Circle(EntityRef),
    /// The values cannot be captured.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// The objects of one world, now and in the recent past.
#[derive(Debug)]
pub struct World {
    /// What the program calls its schema; the archive's has further columns.
    declared: Schema,
    kinds: Kinds,
    archive: Archive,
    cast: Cast,
}

/// When an object appeared, among all that ever did. Nothing that a peer gets to see may depend on
/// slots, which tell how many objects there are that it does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Serial {
    pub number: u64,
    /// The entity of its first table, by whose number both ends call it.
    pub first: Slot,
}

/// What a world knows of an object besides its values.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub serial: Serial,
    pub kind: Kind,
    /// One entity per table.
    pub slots: Vec<Slot>,
    pub owner: Option<PeerId>,
    /// The client that says what it is like.
    pub author: Option<PeerId>,
    /// What it is a part of, and what is a part of it.
    pub whole: Option<Serial>,
    pub parts: Vec<Serial>,
    /// Where it is, if its type has a position, and since when.
    pub place: Option<Place>,
    pub moved: Tick,
}

/// Who is there.
#[derive(Debug)]
pub(crate) struct Cast {
    pub records: Records,
    next_serial: u64,
    grid: Grid,
    pub touched: Vec<Touched>,
    /// What a client is in charge of.
    pub entrusted: BTreeSet<Serial>,
    now: Tick,
    held: Held,
    /// What belongs to whom.
    owned: BTreeMap<PeerId, BTreeSet<Serial>>,
}

impl Cast {
    /// An object was one peer's and is another's.
    fn hand_over(&mut self, serial: Serial, from: Option<PeerId>, to: Option<PeerId>) {
        if let Some(from) = from
            && let Some(owned) = self.owned.get_mut(&from)
        {
            owned.remove(&serial);
            if owned.is_empty() {
                self.owned.remove(&from);
            }
        }
        if let Some(to) = to {
            self.owned.entry(to).or_default().insert(serial);
        }
    }

    /// An object is there now, or nowhere.
    fn put(&mut self, serial: Serial, place: Option<Place>) {
        self.grid.put(serial, place);
        if let Some(record) = self.records.get_mut(serial)
            && record.place != place
        {
            record.place = place;
            record.moved = self.now;
        }
    }
}

/// Something happened to an object that may matter to who sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// It appeared, belongs to somebody or something else, or somebody else is in charge of it.
    Here(Serial),
    /// It is gone.
    Gone(Serial),
}

impl World {
    /// An empty world whose objects are found by cells of this size.
    pub(crate) fn new(schema: Schema, cell: f64) -> Result<Self, WorldError> {
        schema.validate().map_err(WorldError::Schema)?;
        let declared = schema.clone();
        let (kinds, schema) = Kinds::of(schema);
        Ok(Self {
            declared,
            kinds,
            archive: Archive::new(Arc::new(schema), HISTORY),
            cast: Cast {
                records: Records::default(),
                next_serial: 0,
                grid: Grid::new(cell),
                touched: Vec::new(),
                entrusted: BTreeSet::new(),
                now: Tick(0),
                held: Held::default(),
                owned: BTreeMap::new(),
            },
        })
    }

    pub(crate) fn step(&mut self, tick: Tick) -> Result<Step<'_>, WorldError> {
        let schema = self.archive.schema().clone();
        let capture = self.archive.begin(tick)?;
        self.cast.now = tick;
        let mut step = Step {
            capture: Some(capture),
            schema,
            kinds: &self.kinds,
            cast: &mut self.cast,
            values: Vec::new(),
            part: Parcel::default(),
        };
        step.hold()?;
        Ok(step)
    }

    /// The keys that players hold down.
    pub(crate) fn held(&self) -> &Held {
        &self.cast.held
    }

    pub(crate) fn held_mut(&mut self) -> &mut Held {
        &mut self.cast.held
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
        self.cast.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cast.records.len() == 0
    }

    /// Everything about recent ticks, with an entity per object and table.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Where an object is, if its type has a position.
    pub fn place(&self, object: EntityRef) -> Option<Place> {
        self.record(object)?.place
    }

    pub(crate) fn record(&self, object: EntityRef) -> Option<&Record> {
        self.cast.records.at(self.archive.entity(object)?)
    }

    pub(crate) fn record_of(&self, serial: Serial) -> Option<&Record> {
        self.cast.records.get(serial)
    }

    /// The object that an entity of any table belongs to.
    pub(crate) fn object_of(&self, slot: Slot) -> Option<EntityRef> {
        let class = self.archive.class(slot)?;
        match self.kinds.kind(class).1 {
            0 => self.archive.reference(slot),
            _ => EntityRef::from_cell(*self.archive.latest(slot)?.last()?),
        }
    }

    /// All objects in the order in which they appeared.
    pub(crate) fn serials(&self) -> impl Iterator<Item = Serial> {
        self.cast.records.serials()
    }

    pub(crate) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// What an object is a part of in the end, or the object itself.
    pub(crate) fn root(&self, serial: Serial) -> Serial {
        self.cast.root(serial)
    }

    /// Nobody is in charge of what a peer was in charge of.
    pub(crate) fn dismiss(&mut self, peer: PeerId) {
        let Cast {
            records,
            touched,
            entrusted,
            ..
        } = &mut self.cast;
        entrusted.retain(|serial| {
            let record = records.get_mut(*serial);
            let Some(record) = record.filter(|record| record.author == Some(peer)) else {
                return true;
            };
            record.author = None;
            touched.push(Touched::Here(*serial));
            false
        });
    }

    pub(crate) fn grid(&self) -> &Grid {
        &self.cast.grid
    }

    /// What happened since this was last asked.
    pub(crate) fn take_touched(&mut self) -> Vec<Touched> {
        std::mem::take(&mut self.cast.touched)
    }
}

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
