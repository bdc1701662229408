//! The truth: objects, their values at every recent tick, and where they are.

use std::sync::Arc;

use prescient_codec::history::{Archive, Capture, CaptureError};
use prescient_codec::{HISTORY, Slot, Tick};
use prescient_schema::{Declaration, EntityRef, Parcel, Ref, Schema, SchemaError, State};
use thiserror::Error;

use crate::grid::{Grid, Place};
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
    UnknownType(&'static str),
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
    /// The values cannot be captured.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// The objects of one world, now and in the recent past.
#[derive(Debug)]
pub struct World {
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
    /// Where it is, if its type has a position, and since when.
    pub place: Option<Place>,
    pub moved: Tick,
}

/// Who is there.
#[derive(Debug)]
struct Cast {
    records: Records,
    next_serial: u64,
    grid: Grid,
    touched: Vec<Touched>,
    now: Tick,
}

impl Cast {
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
    /// It appeared, or belongs to somebody else.
    Here(Serial),
    /// It is gone.
    Gone(Serial),
}

impl World {
    /// An empty world whose objects are found by cells of this size.
    pub(crate) fn new(schema: Schema, cell: f64) -> Result<Self, WorldError> {
        schema.validate().map_err(WorldError::Schema)?;
        let (kinds, schema) = Kinds::of(schema);
        Ok(Self {
            kinds,
            archive: Archive::new(Arc::new(schema), HISTORY),
            cast: Cast {
                records: Records::default(),
                next_serial: 0,
                grid: Grid::new(cell),
                touched: Vec::new(),
                now: Tick(0),
            },
        })
    }

    pub(crate) fn step(&mut self, tick: Tick) -> Result<Step<'_>, WorldError> {
        let schema = self.archive.schema().clone();
        let capture = self.archive.begin(tick)?;
        self.cast.now = tick;
        Ok(Step {
            capture: Some(capture),
            schema,
            kinds: &self.kinds,
            cast: &mut self.cast,
            parcel: Parcel::default(),
        })
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
    cast: &'a mut Cast,
    /// Room for values.
    parcel: Parcel,
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
        for table in 0..T::TABLES.len() {
            let record = self.cast.records.get(serial);
            let entity = record.and_then(|record| record.slots.get(table)).copied();
            self.fill(value, table, object.entity());
            let (Some(capture), Some(entity)) = (&mut self.capture, entity) else {
                break;
            };
            capture.write_parcel(entity, &self.parcel)?;
            if table == 0 {
                let class = usize::from(self.kinds.tables(kind)[0]);
                let place = Place::of(&self.schema.classes[class], &self.parcel.row);
                self.cast.put(serial, place);
            }
        }
        Ok(())
    }

    /// An object belongs to somebody else.
    pub fn give(&mut self, object: EntityRef, owner: Option<PeerId>) -> Result<(), WorldError> {
        let serial = self.find(object)?;
        if let Some(record) = self.cast.records.get_mut(serial) {
            record.owner = owner;
            self.cast.touched.push(Touched::Here(serial));
        }
        Ok(())
    }

    /// An object is no more.
    pub fn despawn(&mut self, object: EntityRef) -> Result<(), WorldError> {
        let serial = self.find(object)?;
        let Some(record) = self.cast.records.remove(serial) else {
            return Err(WorldError::NoSuchObject(object));
        };
        self.cast.grid.put(serial, None);
        self.cast.touched.push(Touched::Gone(serial));
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
        let kind = self.kind::<T>()?;
        let classes = self.kinds.tables(kind);
        let mut slots = Vec::with_capacity(classes.len());
        let mut object = EntityRef::NONE;
        let mut place = None;
        for (table, &class) in classes.iter().enumerate() {
            self.fill(value, table, object);
            let Some(capture) = &mut self.capture else {
                break;
            };
            let entered = capture.spawn_parcel(class, &self.parcel);
            let slot = match entered {
                Ok(slot) => slot,
                Err(error) => {
                    for slot in slots.into_iter().rev() {
                        capture.despawn(slot)?;
                    }
                    return Err(error.into());
                }
            };
            slots.push(slot);
            if table == 0 {
                object = capture.reference(slot).unwrap_or(EntityRef::NONE);
                place = Place::of(&self.schema.classes[usize::from(class)], &self.parcel.row);
            }
        }
        let Some(&first) = slots.first() else {
            return Err(WorldError::UnknownType(T::NAME));
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
            place: None,
            moved: self.cast.now,
        };
        self.cast.records.insert(record);
        self.cast.put(serial, place);
        Ok(Ref::to(object))
    }

    fn kind<T: State>(&self) -> Result<Kind, WorldError> {
        let kind = self.kinds.find(T::NAME);
        let kind = kind.filter(|&kind| self.kinds.tables(kind).len() == T::TABLES.len());
        kind.ok_or(WorldError::UnknownType(T::NAME))
    }

    fn find(&self, object: EntityRef) -> Result<Serial, WorldError> {
        let slot = Slot(object.index().unwrap_or(u32::MAX));
        let capture = self.capture.as_ref();
        let there = capture.and_then(|capture| capture.reference(slot)) == Some(object);
        let record = self.cast.records.at(slot).filter(|_| there);
        let serial = record.map(|record| record.serial);
        serial.ok_or(WorldError::NoSuchObject(object))
    }

    /// Writes the values of a table, and whose they are.
    fn fill<T: State>(&mut self, value: &T, table: usize, object: EntityRef) {
        self.parcel.row.clear();
        self.parcel.contents.clear();
        value.write(&Declaration::PLAIN, T::TABLES[table], &mut self.parcel);
        if table > 0 {
            self.parcel.row.push(object.cell());
        }
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        if let Some(capture) = self.capture.take() {
            capture.finish();
        }
    }
}
