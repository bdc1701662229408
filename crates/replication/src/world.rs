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
pub(crate) struct Serial(pub u64);

/// What a world knows of an object besides its values.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub serial: Serial,
    pub kind: Kind,
    /// One entity per table.
    pub slots: Vec<Slot>,
    pub owner: Option<PeerId>,
    /// Where it is, if its type has a position.
    pub place: Option<Place>,
}

/// Who is there.
#[derive(Debug)]
struct Cast {
    records: BTreeMap<Serial, Record>,
    /// The object of which each slot is the first table's entity.
    serials: Vec<Option<Serial>>,
    next_serial: u64,
    grid: Grid,
    touched: Vec<Touched>,
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

    fn serial(&self, slot: Slot) -> Option<Serial> {
        self.serials.get(slot.0 as usize).copied().flatten()
    }

    fn set_serial(&mut self, slot: Slot, serial: Option<Serial>) {
        let at = slot.0 as usize;
        if self.serials.len() <= at {
            self.serials.resize(at + 1, None);
        }
        self.serials[at] = serial;
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
                records: BTreeMap::new(),
                serials: Vec::new(),
                next_serial: 0,
                grid: Grid::new(cell),
                touched: Vec::new(),
                held: Held::default(),
                owned: BTreeMap::new(),
            },
        })
    }

    pub(crate) fn step(&mut self, tick: Tick) -> Result<Step<'_>, WorldError> {
        let schema = self.archive.schema().clone();
        let mut step = Step {
            capture: Some(self.archive.begin(tick)?),
            schema,
            kinds: &self.kinds,
            cast: &mut self.cast,
            parcel: Parcel::default(),
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
        self.cast.records.is_empty()
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
        let serial = self.cast.serial(self.archive.entity(object)?)?;
        self.record_of(serial)
    }

    pub(crate) fn record_of(&self, serial: Serial) -> Option<&Record> {
        self.cast.records.get(&serial)
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
        self.cast.records.keys().copied()
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
        if self.cast.records[&serial].kind != kind {
            return Err(WorldError::WrongType {
                object: object.entity(),
                expected: T::NAME,
            });
        }
        let owner = self.cast.records[&serial].owner;
        for table in 0..T::TABLES.len() {
            let entity = self.cast.records[&serial].slots[table];
            self.fill(value, table, object.entity());
            self.fill_keys(self.kinds.tables(kind)[table], owner);
            let Some(capture) = &mut self.capture else {
                break;
            };
            capture.write_parcel(entity, &self.parcel)?;
            if table == 0 {
                let class = usize::from(self.kinds.tables(kind)[0]);
                let place = Place::of(&self.schema.classes[class], &self.parcel.row);
                self.cast.grid.put(serial, place);
                if let Some(record) = self.cast.records.get_mut(&serial) {
                    record.place = place;
                }
            }
        }
        Ok(())
    }

    /// An object belongs to somebody else.
    pub fn give(&mut self, object: EntityRef, owner: Option<PeerId>) -> Result<(), WorldError> {
        let serial = self.find(object)?;
        if let Some(record) = self.cast.records.get_mut(&serial) {
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
        let Some(record) = self.cast.records.remove(&serial) else {
            return Err(WorldError::NoSuchObject(object));
        };
        self.cast.set_serial(record.slots[0], None);
        self.cast.hand_over(serial, record.owner, None);
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
            self.fill_keys(class, owner);
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
        let serial = Serial(self.cast.next_serial);
        self.cast.next_serial += 1;
        self.cast.grid.put(serial, place);
        self.cast.set_serial(first, Some(serial));
        self.cast.hand_over(serial, None, owner);
        self.cast.touched.push(Touched::Here(serial));
        let record = Record {
            serial,
            kind,
            slots,
            owner,
            place,
        };
        self.cast.records.insert(serial, record);
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
        let serial = self.cast.serial(slot).filter(|_| there);
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
            let Some(record) = self.cast.records.get(serial) else {
                continue;
            };
            let classes = self.kinds.tables(record.kind).iter();
            for (&slot, &class) in record.slots.iter().zip(classes) {
                let class = &self.schema.classes[usize::from(class)];
                if let Some((field, cell)) = self.cast.held.cell(class, owner) {
                    capture.set(slot, field, cell)?;
                }
            }
        }
        self.cast.held.forget_absent();
        Ok(())
    }

    /// Writes the owner's keys over those of the value.
    fn fill_keys(&mut self, class: u16, owner: Option<PeerId>) {
        let class = &self.schema.classes[usize::from(class)];
        let cell = owner.and_then(|owner| self.cast.held.cell(class, owner));
        if let Some((field, cell)) = cell {
            self.parcel.row[usize::from(field)] = cell;
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
