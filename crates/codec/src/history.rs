//! What the world was at recent ticks, captured once and read by every encoder.
//!
//! A frame shares all chunks of rows that did not change with the frame before it, and an entity
//! that has not changed for the whole depth of the archive leaves the frames altogether: it keeps
//! one row. So capture costs what changed, and a hundred thousand idle entities cost nothing per
//! tick. Frames are immutable once captured; a clone of the archive is a cheap snapshot that can
//! be read on another thread while the next tick is written.

use alloc::{collections::VecDeque, sync::Arc, vec::Vec};
use core::fmt;

use prescient_schema::{Class, Content, EntityRef, Field, Kind, Library, Parcel, Schema, Shape};

use crate::{
    chunks::{CHUNK, Chunks, HotSet, Pages, Place},
    predict::{ROWS, Samples},
    shelf::Shelf,
    twin::Views,
    units::{Slot, Tick},
};

/// Recent truth of one world.
#[derive(Clone, Debug)]
pub struct Archive {
    schema: Arc<Schema>,
    depth: u32,
    frames: VecDeque<Arc<Frame>>,
    records: Pages<Record>,
    /// Slots of entities that left, oldest first, with the tick they left at.
    vacant: VecDeque<(Tick, Slot)>,
    hot: Vec<HotSet>,
    /// What containers hold.
    shelf: Shelf,
    /// For each class, what its rows may hold.
    rules: Arc<[Rules]>,
    /// Who refers to each slot: ascending, once for each column.
    holders: Pages<Vec<Slot>>,
    /// Slots are numbers of another end: references are taken as they come.
    mirror: bool,
}

/// What rows of a class may hold.
#[derive(Clone, Debug)]
struct Rules {
    ranges: Vec<Range>,
    /// Columns that keep what their entity was spawned with.
    fixed: Vec<u16>,
    links: Links,
}

/// Values of a field.
#[derive(Clone, Copy, Debug)]
struct Range {
    least: i64,
    most: i64,
}

/// Columns of a class that name something outside of the row.
#[derive(Clone, Debug, Default)]
struct Links {
    contents: Vec<u16>,
    /// With the classes that it may refer to, if not all.
    references: Vec<(u16, Option<Vec<u16>>)>,
}

/// The chunks that were looked at last: neighbours in a list are mostly neighbours there, too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window<'a> {
    /// The samples, class and chunk that they belong to.
    at: (u32, u16, u32),
    chunks: [&'a [i64]; ROWS],
    present: &'a [i64],
}

/// One captured tick.
#[derive(Clone, Debug)]
pub struct Frame {
    tick: Tick,
    classes: Vec<Chunks>,
    changes: Changes,
    /// Contents that no newest row names since this tick.
    released: Vec<i64>,
}

/// What happened at a tick, each list in the order of the calls.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Entities that appeared.
    pub spawned: Vec<Slot>,
    /// Entities that left.
    pub despawned: Vec<Slot>,
    /// Living entities whose values changed, without repetition.
    pub changed: Vec<Slot>,
}

/// Why a call to a [`Capture`] was refused; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaptureError {
    /// Ticks must increase.
    TickNotAfter(Tick),
    /// The schema has no class of this number.
    UnknownClass(u16),
    /// The row has another number of fields than its class.
    WrongLength {
        /// Fields of the class.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// No living entity has this slot.
    NotAlive(Slot),
    /// The slot is taken by a living entity.
    Occupied(Slot),
    /// The class has no field of this number.
    UnknownField(u16),
    /// The value does not fit the field: wider than its width, or no state of its enumeration.
    OutOfRange {
        /// Number of the field.
        field: u16,
        /// The value.
        value: i64,
    },
    /// No content with this cell was interned; see [`Capture::intern`].
    UnknownContent {
        /// Number of the field.
        field: u16,
        /// The cell.
        cell: i64,
    },
    /// The content cannot stand in this field: of another kind, too long, or with items that are
    /// out of range or not sorted.
    WrongContent {
        /// Number of the field.
        field: u16,
        /// Its cell.
        cell: i64,
    },
    /// Another content has the same cell. That is no accident: somebody looked for two. Change
    /// one of them.
    Collision(i64),
    /// There never was such an entity, or it is of another class than the field refers to.
    WrongReference {
        /// Number of the field.
        field: u16,
        /// The reference.
        to: EntityRef,
    },
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TickNotAfter(tick) => write!(f, "tick {} was captured already", tick.0),
            Self::UnknownClass(class) => write!(f, "the schema has no class {class}"),
            Self::WrongLength { expected, found } => {
                write!(f, "a row of this class has {expected} values, not {found}")
            }
            Self::NotAlive(slot) => write!(f, "no entity lives in slot {}", slot.0),
            Self::Occupied(slot) => write!(f, "slot {} is taken", slot.0),
            Self::UnknownField(field) => write!(f, "the class has no field {field}"),
            Self::OutOfRange { field, value } => {
                write!(f, "{value} does not fit field {field}")
            }
            Self::UnknownContent { field, cell } => {
                write!(
                    f,
                    "field {field} names the content {cell}, which nobody interned"
                )
            }
            Self::WrongContent { field, cell } => {
                write!(f, "the content {cell} cannot stand in field {field}")
            }
            Self::Collision(cell) => write!(f, "another content has the cell {cell}"),
            Self::WrongReference { field, to } => {
                write!(f, "field {field} cannot refer to entity {to:?}")
            }
        }
    }
}

impl core::error::Error for CaptureError {}

impl Archive {
    /// An empty archive that can answer for the last `depth` ticks.
    pub fn new(schema: Arc<Schema>, depth: u32) -> Self {
        let hot = schema.classes.iter().map(|_| HotSet::default()).collect();
        let rules = (schema.classes.iter())
            .map(|class| Rules::new(&schema, class))
            .collect();
        Self {
            schema,
            depth: depth.max(2),
            frames: VecDeque::new(),
            records: Pages::default(),
            vacant: VecDeque::new(),
            hot,
            shelf: Shelf::default(),
            rules,
            holders: Pages::default(),
            mirror: false,
        }
    }

    /// An archive of what another end shows: references in it are that end's numbers.
    pub(crate) fn mirror(schema: Arc<Schema>, depth: u32) -> Self {
        Self {
            mirror: true,
            ..Self::new(schema, depth)
        }
    }

    /// Starts the next tick.
    pub fn begin(&mut self, tick: Tick) -> Result<Capture<'_>, CaptureError> {
        self.hot.iter_mut().for_each(HotSet::discard);
        let previous = self.frames.back();
        if previous.is_some_and(|frame| frame.tick >= tick) {
            return Err(CaptureError::TickNotAfter(tick));
        }
        let classes = match previous {
            Some(frame) => frame.classes.clone(),
            None => alloc::vec![Chunks::default(); self.schema.classes.len()],
        };
        let frame = Frame {
            tick,
            classes,
            changes: Changes {
                changed: Vec::with_capacity(previous.map_or(0, |old| old.changes.changed.len())),
                ..Changes::default()
            },
            released: Vec::new(),
        };
        Ok(Capture {
            archive: self,
            frame,
        })
    }

    /// The schema whose rows are kept.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The newest tick.
    pub fn newest(&self) -> Option<Tick> {
        self.frames.back().map(|frame| frame.tick)
    }

    /// What happened at a tick, if it is still known.
    pub fn changes(&self, tick: Tick) -> Option<&Changes> {
        self.frame(tick).map(|frame| &frame.changes)
    }

    /// Ticks still known, oldest first.
    pub fn ticks(&self) -> impl Iterator<Item = Tick> + '_ {
        self.frames.iter().map(|frame| frame.tick)
    }

    /// The class of a living entity.
    pub fn class(&self, slot: Slot) -> Option<u16> {
        self.living(slot).map(|record| record.class)
    }

    /// When a living entity last changed (or appeared).
    pub fn last_changed(&self, slot: Slot) -> Option<Tick> {
        let record = self.living(slot)?;
        Some(match record.place {
            Some(place) => self.hot[usize::from(record.class)].places[place as usize].changed,
            None => record.last_changed,
        })
    }

    /// The row of a living entity at a captured tick.
    #[inline]
    pub fn row(&self, slot: Slot, tick: Tick) -> Option<&[i64]> {
        let record = self.living(slot)?;
        if tick < record.born {
            return None;
        }
        match record.place_at(tick) {
            Some(place) => self.frame(tick)?.row(record.class, place, record.fields),
            None => record.cold.as_deref(),
        }
    }

    /// The rows of a living entity at the ticks it is predicted from, and its newest.
    #[inline]
    pub(crate) fn rows<'a>(
        &'a self,
        slot: Slot,
        samples: &Samples,
        window: &mut Window<'a>,
    ) -> Option<Views<'a>> {
        let record = self.living(slot)?;
        let Some(place) = record
            .place
            .filter(|_| record.hot_since <= samples.frames.oldest)
        else {
            let mut rows = [&[][..]; ROWS];
            for (row, &tick) in rows.iter_mut().zip(&samples.ticks) {
                *row = self.row(slot, tick)?;
            }
            let present = self.latest(slot);
            return Some(Views { rows, present });
        };
        let chunk = place / CHUNK as u32;
        let at = (samples.frames.serial, record.class, chunk);
        if window.at != at {
            window.at = at;
            self.open(window, samples);
        }
        let fields = usize::from(record.fields);
        let start = place as usize % CHUNK * fields;
        let mut rows = [&[][..]; ROWS];
        for (row, chunk) in rows.iter_mut().zip(window.chunks) {
            *row = chunk.get(start..start + fields)?;
        }
        let present = window.present.get(start..start + fields);
        Some(Views { rows, present })
    }

    fn open<'a>(&'a self, window: &mut Window<'a>, samples: &Samples) {
        let (_, class, chunk) = window.at;
        let find = |frame: Option<&'a Arc<Frame>>| {
            let chunks = frame.and_then(|frame| frame.classes.get(usize::from(class)));
            let chunk = chunks.and_then(|chunks| chunks.get(chunk as usize));
            chunk.map_or(&[][..], |chunk| &**chunk)
        };
        let frames = &samples.frames;
        for at in 0..ROWS {
            let first = usize::from(frames.first[at]);
            window.chunks[at] = if first < at {
                window.chunks[first]
            } else {
                find(self.frames.get(frames.numbers[at] as usize))
            };
        }
        window.present = find(self.frames.back());
    }

    /// What [`rows`](Self::rows) finds a tick by, until another one is captured.
    pub(crate) fn frame_number(&self, tick: Tick) -> u32 {
        let at = self.frames.binary_search_by_key(&tick, |frame| frame.tick);
        at.map_or(u32::MAX, |at| at as u32)
    }

    /// The newest row of a living entity.
    #[inline]
    pub fn latest(&self, slot: Slot) -> Option<&[i64]> {
        let record = self.living(slot)?;
        match record.place {
            Some(place) => self.frames.back()?.row(record.class, place, record.fields),
            None => record.cold.as_deref(),
        }
    }

    /// What refers to a living entity, and to no other that may come after it in its slot.
    pub fn reference(&self, slot: Slot) -> Option<EntityRef> {
        let record = self.living(slot)?;
        let generation = if self.mirror { 0 } else { record.generation() };
        Some(EntityRef::new(slot.0, generation))
    }

    /// The living entity that a reference refers to.
    pub fn entity(&self, reference: EntityRef) -> Option<Slot> {
        let slot = Slot(reference.index()?);
        (self.reference(slot)? == reference).then_some(slot)
    }

    /// Who refers to a slot in its newest row, ascending; once for each column.
    pub(crate) fn holders(&self, slot: Slot) -> &[Slot] {
        self.holders.get(slot.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// What a container with this cell holds.
    pub(crate) fn shared_content(&self, cell: i64) -> Option<&Arc<Content>> {
        self.shelf.get(cell)
    }

    /// All living entities in ascending order of slot.
    pub fn living_slots(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.records.len)
            .filter(|&i| self.records.get(i).is_some_and(|r| r.alive))
            .map(|i| Slot(i as u32))
    }

    /// Bytes of rows that only this archive or its snapshots hold, roughly.
    pub fn bytes(&self) -> usize {
        let mut seen = 0;
        let mut previous: Option<&Frame> = None;
        for frame in &self.frames {
            for (class, chunks) in frame.classes.iter().enumerate() {
                for (at, chunk) in chunks.iter() {
                    let before = previous.and_then(|p| p.classes[class].get(at));
                    if !before.is_some_and(|old| Arc::ptr_eq(old, chunk)) {
                        seen += chunk.len() * 8;
                    }
                }
            }
            previous = Some(frame);
        }
        seen + self.records.len * size_of::<Record>() + self.shelf.bytes()
    }

    fn frame(&self, tick: Tick) -> Option<&Frame> {
        let guess = tick.since(self.frames.front()?.tick) as usize;
        if let Some(frame) = self.frames.get(guess)
            && frame.tick == tick
        {
            return Some(frame);
        }
        let at = self
            .frames
            .binary_search_by_key(&tick, |frame| frame.tick)
            .ok()?;
        self.frames.get(at).map(|frame| &**frame)
    }

    #[inline]
    fn living(&self, slot: Slot) -> Option<&Record> {
        self.records
            .get(slot.0 as usize)
            .filter(|record| record.alive)
    }

    /// Entities that held still for the whole depth leave the frames. A part of the places is
    /// looked at per tick, so that this, too, costs nothing.
    fn cool(&mut self, frame: &Frame) {
        for (chunks, hot) in frame.classes.iter().zip(&mut self.hot) {
            let share = hot.places.len() / 32 + 1;
            for _ in 0..share {
                let Some(&Place { owner, changed }) = hot.places.get(hot.sweep) else {
                    hot.sweep = 0;
                    break;
                };
                let place = hot.sweep as u32;
                hot.sweep += 1;
                let Some(slot) = owner else { continue };
                if frame.tick.since(changed) < self.depth {
                    continue;
                }
                let record = self.records.get_mut(slot.0 as usize);
                record.cold = Some(hot.row(chunks, place, record.fields).into());
                record.last_changed = changed;
                record.place = None;
                record.older = None;
                hot.release(place);
            }
        }
    }
}

impl Library for Archive {
    fn content(&self, cell: i64) -> Option<&Content> {
        self.shelf.get(cell).map(|content| &**content)
    }
}

impl Rules {
    fn new(schema: &Schema, class: &Class) -> Self {
        let columns = (0..).zip(&class.fields);
        let fixed = columns.filter_map(|(at, field)| field.only_on_spawn.then_some(at));
        Self {
            ranges: class.fields.iter().map(Range::new).collect(),
            fixed: fixed.collect(),
            links: Links::new(schema, &class.fields),
        }
    }

    #[inline]
    fn admit(&self, row: &[i64]) -> Result<(), CaptureError> {
        if self.ranges.len() != row.len() {
            return Err(CaptureError::WrongLength {
                expected: self.ranges.len(),
                found: row.len(),
            });
        }
        let mut pairs = self.ranges.iter().zip(row);
        match pairs.position(|(range, &value)| !range.admits(value)) {
            Some(at) => Err(CaptureError::OutOfRange {
                field: at as u16,
                value: row[at],
            }),
            None => Ok(()),
        }
    }
}

impl Range {
    fn new(field: &Field) -> Self {
        let (least, most) = match field.kind.shape() {
            Shape::Symbol { values } => (0, i64::from(values) - 1),
            Shape::Content | Shape::Reference => (0, i64::MAX),
            Shape::Number { bits: 64.., .. } => (i64::MIN, i64::MAX),
            Shape::Number { bits, signed } => {
                let digits = u32::from(bits).saturating_sub(u32::from(signed));
                let most = (1i64 << digits).wrapping_sub(1);
                (if signed { !most } else { 0 }, most)
            }
        };
        Self { least, most }
    }

    #[inline]
    fn admits(self, value: i64) -> bool {
        self.least <= value && value <= self.most
    }
}

impl Links {
    fn new(schema: &Schema, fields: &[Field]) -> Self {
        let mut links = Self::default();
        for (at, field) in (0..).zip(fields) {
            match &field.kind {
                Kind::Reference { class } => {
                    let of = class.as_deref().map(|name| classes(schema, name));
                    links.references.push((at, of));
                }
                kind if kind.container().is_some() => links.contents.push(at),
                _ => {}
            }
        }
        links
    }

    fn is_empty(&self) -> bool {
        self.contents.is_empty() && self.references.is_empty()
    }
}

/// The classes of a type: its own name, and that with the names of tables behind it.
fn classes(schema: &Schema, name: &str) -> Vec<u16> {
    let is_of = |class: &str| match class.strip_prefix(name) {
        Some(rest) => rest.is_empty() || rest.starts_with('.'),
        None => false,
    };
    let classes = (0..).zip(&schema.classes);
    classes
        .filter_map(|(at, class)| is_of(&class.name).then_some(at))
        .collect()
}

impl Frame {
    #[inline]
    fn row(&self, class: u16, place: u32, fields: u16) -> Option<&[i64]> {
        let fields = usize::from(fields);
        let start = place as usize % CHUNK * fields;
        let chunks = self.classes.get(usize::from(class))?;
        let chunk = chunks.get(place as usize / CHUNK)?;
        chunk.get(start..start + fields)
    }
}

/// A tick being written. Dropping it without [`finish`](Capture::finish) leaves the archive in
/// an unspecified but safe state; finish every tick that was begun.
#[must_use = "a tick that is not finished is not captured"]
#[derive(Debug)]
pub struct Capture<'a> {
    archive: &'a mut Archive,
    frame: Frame,
}

impl Capture<'_> {
    /// A new entity in a slot of the archive's choice.
    pub fn spawn(&mut self, class: u16, row: &[i64]) -> Result<Slot, CaptureError> {
        let reusable = self.archive.vacant.front().is_some_and(|&(left, slot)| {
            self.frame.tick.since(left) > self.archive.depth
                && self
                    .archive
                    .records
                    .get(slot.0 as usize)
                    .is_some_and(|r| !r.alive)
        });
        let slot = match self.archive.vacant.front() {
            Some(&(_, slot)) if reusable => slot,
            _ => Slot(self.archive.records.len as u32),
        };
        self.spawn_at(slot, class, row)?;
        if reusable {
            self.archive.vacant.pop_front();
        }
        Ok(slot)
    }

    /// A new entity in a given free slot.
    pub fn spawn_at(&mut self, slot: Slot, class: u16, row: &[i64]) -> Result<(), CaptureError> {
        let rules = self.archive.rules.get(usize::from(class));
        let rules = rules.ok_or(CaptureError::UnknownClass(class))?;
        rules.admit(row)?;
        let has_links = !rules.links.is_empty();
        if has_links {
            self.check_links(class, row, None)?;
        }
        if self.archive.living(slot).is_some() {
            return Err(CaptureError::Occupied(slot));
        }
        let tick = self.frame.tick;
        let fields = row.len() as u16;
        let place = self.archive.hot[usize::from(class)].acquire(slot, tick);
        self.archive.records.grow(slot.0 as usize + 1);
        let record = self.archive.records.get_mut(slot.0 as usize);
        *record = Record {
            spawns: record.spawns.saturating_add(1),
            class,
            fields,
            alive: true,
            born: tick,
            hot_since: tick,
            last_changed: tick,
            place: Some(place),
            older: None,
            cold: None,
        };
        self.row_mut(class, place, fields).copy_from_slice(row);
        if has_links {
            self.relink(slot, class, None, Some(row));
        }
        self.frame.changes.spawned.push(slot);
        Ok(())
    }

    /// A new value for one field.
    pub fn set(&mut self, slot: Slot, field: u16, value: i64) -> Result<(), CaptureError> {
        let record = self
            .archive
            .living(slot)
            .ok_or(CaptureError::NotAlive(slot))?;
        let rules = &self.archive.rules[usize::from(record.class)];
        let range = rules.ranges.get(usize::from(field));
        let range = range.ok_or(CaptureError::UnknownField(field))?;
        if !range.admits(value) {
            return Err(CaptureError::OutOfRange { field, value });
        }
        if rules.fixed.contains(&field) {
            return Ok(());
        }
        let old = self.present(record);
        if old.get(usize::from(field)) == Some(&value) {
            return Ok(());
        }
        let class = record.class;
        if rules.links.is_empty() {
            self.touch(slot)[usize::from(field)] = value;
            return Ok(());
        }
        let old = old.to_vec();
        let mut new = old.clone();
        new[usize::from(field)] = value;
        self.check_links(class, &new, Some(&old))?;
        self.relink(slot, class, Some(&old), Some(&new));
        self.touch(slot)[usize::from(field)] = value;
        Ok(())
    }

    /// The class of an entity that lives at this point of the tick.
    pub fn class(&self, slot: Slot) -> Option<u16> {
        self.archive.class(slot)
    }

    /// New values for all fields.
    pub fn write(&mut self, slot: Slot, row: &[i64]) -> Result<(), CaptureError> {
        let archive = &mut *self.archive;
        let record = archive.records.get(slot.0 as usize);
        let record = record.filter(|record| record.alive);
        let record = record.ok_or(CaptureError::NotAlive(slot))?;
        let class = usize::from(record.class);
        let rules = &archive.rules[class];
        rules.admit(row)?;
        let takes_all = rules.links.is_empty() && (rules.fixed.is_empty() || archive.mirror);
        let hot = &mut archive.hot[class];
        let tick = self.frame.tick;
        let is_settled = || tick.since(record.hot_since) > archive.depth;
        match record.place {
            Some(place) if takes_all && !(hot.has_room_well_before(place) && is_settled()) => {
                if hot.write(&self.frame.classes[class], place, row)
                    && hot.places[place as usize].change(tick)
                {
                    self.frame.changes.changed.push(slot);
                }
                Ok(())
            }
            _ => self.rewrite(slot, row),
        }
    }

    /// New values for a living entity that is cold, has to move, or has more than plain numbers.
    #[inline(never)]
    fn rewrite(&mut self, slot: Slot, row: &[i64]) -> Result<(), CaptureError> {
        let record = self.archive.living(slot);
        let record = record.ok_or(CaptureError::NotAlive(slot))?;
        let (class, rules) = (record.class, self.archive.rules.clone());
        let rules = &rules[usize::from(class)];
        // What another end shows is taken as it comes.
        let takes_all = rules.fixed.is_empty() || self.archive.mirror;
        let stays = |field: usize| !takes_all && rules.fixed.contains(&(field as u16));
        let changes = |old: &[i64], field: usize| old[field] != row[field] && !stays(field);
        let old = self.present(record);
        if !(0..row.len()).any(|field| changes(old, field)) {
            return Ok(());
        }
        if !rules.links.is_empty() {
            let old = old.to_vec();
            let kept = |at: usize| if stays(at) { old[at] } else { row[at] };
            let new: Vec<i64> = (0..row.len()).map(kept).collect();
            self.check_links(class, &new, Some(&old))?;
            self.relink(slot, class, Some(&old), Some(&new));
        }
        let target = self.touch(slot);
        for field in 0..row.len() {
            if changes(target, field) {
                target[field] = row[field];
            }
        }
        Ok(())
    }

    /// The entity leaves.
    pub fn despawn(&mut self, slot: Slot) -> Result<(), CaptureError> {
        let record = self
            .archive
            .living(slot)
            .ok_or(CaptureError::NotAlive(slot))?;
        let (class, place) = (record.class, record.place);
        if !self.archive.rules[usize::from(class)].links.is_empty() {
            let old = self.present(record).to_vec();
            self.relink(slot, class, Some(&old), None);
        }
        if let Some(place) = place {
            self.archive.hot[usize::from(class)].release(place);
        }
        let record = self.archive.records.get_mut(slot.0 as usize);
        record.alive = false;
        record.place = None;
        record.cold = None;
        self.archive.vacant.push_back((self.frame.tick, slot));
        self.frame.changes.despawned.push(slot);
        Ok(())
    }

    /// Makes the tick part of the archive.
    pub fn finish(self) {
        let Self { archive, mut frame } = self;
        archive.cool(&frame);
        let horizon = frame.tick.0.saturating_sub(archive.depth);
        while archive
            .frames
            .front()
            .is_some_and(|old| old.tick.0 < horizon)
        {
            let Some(old) = archive.frames.pop_front() else {
                break;
            };
            for &cell in &old.released {
                archive.shelf.drop_released(cell, old.tick);
            }
            let unread = Arc::into_inner(old).into_iter();
            let chunks = unread.flat_map(|old| old.classes);
            for ((hot, rules), chunks) in archive.hot.iter_mut().zip(&*archive.rules).zip(chunks) {
                hot.salvage(chunks, rules.ranges.len());
            }
        }
        let drafts = archive.hot.iter_mut().zip(&*archive.rules);
        for ((hot, rules), chunks) in drafts.zip(&mut frame.classes) {
            hot.publish(chunks, rules.ranges.len());
        }
        archive.frames.push_back(Arc::new(frame));
    }

    /// Takes in what a container holds; the value is what rows name it by. A content that no
    /// row names by the end of the tick is forgotten after a while.
    pub fn intern(&mut self, content: Content) -> Result<i64, CaptureError> {
        self.intern_shared(Arc::new(content))
    }

    pub(crate) fn intern_shared(&mut self, content: Arc<Content>) -> Result<i64, CaptureError> {
        let (tick, cell) = (self.frame.tick, content.cell());
        let shelf = &mut self.archive.shelf;
        shelf
            .put(content, tick, &mut self.frame.released)
            .ok_or(CaptureError::Collision(cell))
    }

    /// A new entity with what its containers hold, in a slot of the archive's choice.
    pub fn spawn_parcel(&mut self, class: u16, parcel: &Parcel) -> Result<Slot, CaptureError> {
        self.intern_all(parcel)?;
        self.spawn(class, &parcel.row)
    }

    /// New values for all fields, with what containers hold.
    pub fn write_parcel(&mut self, slot: Slot, parcel: &Parcel) -> Result<(), CaptureError> {
        self.intern_all(parcel)?;
        self.write(slot, &parcel.row)
    }

    fn intern_all(&mut self, parcel: &Parcel) -> Result<(), CaptureError> {
        let mut contents = parcel.contents.iter();
        contents.try_for_each(|content| self.intern(content.clone()).map(drop))
    }

    /// What refers to an entity that lives at this point of the tick.
    pub fn reference(&self, slot: Slot) -> Option<EntityRef> {
        self.archive.reference(slot)
    }

    /// Whether everything that a row names exists; what was there before is not looked at.
    fn check_links(
        &self,
        class: u16,
        row: &[i64],
        old: Option<&[i64]>,
    ) -> Result<(), CaptureError> {
        let links = &self.archive.rules[usize::from(class)].links;
        let is_new = |at: u16| {
            let at = usize::from(at);
            row[at] != 0 && old.is_none_or(|old| old[at] != row[at])
        };
        for &field in links.contents.iter().filter(|&&at| is_new(at)) {
            let cell = row[usize::from(field)];
            let content = self.archive.shelf.get(cell);
            let content = content.ok_or(CaptureError::UnknownContent { field, cell })?;
            let kind =
                &self.archive.schema.classes[usize::from(class)].fields[usize::from(field)].kind;
            if !kind
                .container()
                .is_some_and(|container| container.admits(content))
            {
                return Err(CaptureError::WrongContent { field, cell });
            }
        }
        if self.archive.mirror {
            return Ok(());
        }
        for (field, classes) in links.references.iter().filter(|(at, _)| is_new(*at)) {
            let to = EntityRef::from_cell(row[usize::from(*field)]).unwrap_or_default();
            let slot = Slot(to.index().unwrap_or(u32::MAX));
            let record = self.archive.records.get(slot.0 as usize);
            let was_there = record.is_some_and(|record| record.spawns > to.generation());
            let is_wrong = |class: u16| classes.as_ref().is_some_and(|of| !of.contains(&class));
            let is_there = self
                .archive
                .entity(to)
                .and_then(|slot| self.archive.class(slot));
            if !was_there || is_there.is_some_and(is_wrong) {
                return Err(CaptureError::WrongReference { field: *field, to });
            }
        }
        Ok(())
    }

    /// Keeps account of what a newest row names.
    fn relink(&mut self, slot: Slot, class: u16, old: Option<&[i64]>, new: Option<&[i64]>) {
        let rules = self.archive.rules.clone();
        let links = &rules[usize::from(class)].links;
        let pair = |at: u16| {
            let cell = |row: Option<&[i64]>| row.map_or(0, |row| row[usize::from(at)]);
            (cell(old), cell(new))
        };
        for &at in &links.contents {
            let (old, new) = pair(at);
            if old != new {
                let (tick, released) = (self.frame.tick, &mut self.frame.released);
                self.archive.shelf.exchange(old, new, tick, released);
            }
        }
        if self.archive.mirror {
            return;
        }
        for &(at, _) in &links.references {
            let (old, new) = pair(at);
            if old == new {
                continue;
            }
            let index = |cell| EntityRef::from_cell(cell).and_then(EntityRef::index);
            if let Some(index) = index(old) {
                let holders = self.archive.holders.get_mut(index as usize);
                if let Ok(at) = holders.binary_search(&slot) {
                    holders.remove(at);
                }
            }
            if let Some(index) = index(new) {
                self.archive.holders.grow(index as usize + 1);
                let holders = self.archive.holders.get_mut(index as usize);
                let at = holders.partition_point(|&other| other < slot);
                holders.insert(at, slot);
            }
        }
    }

    fn present<'s>(&'s self, record: &'s Record) -> &'s [i64] {
        let class = usize::from(record.class);
        match (record.place, &record.cold) {
            (Some(place), _) => {
                self.archive.hot[class].row(&self.frame.classes[class], place, record.fields)
            }
            (None, Some(row)) => row,
            (None, None) => &[],
        }
    }

    /// The row of a living entity, about to change.
    fn touch(&mut self, slot: Slot) -> &mut [i64] {
        let (class, fields, place) = self.warm(slot);
        let hot = &mut self.archive.hot[usize::from(class)];
        if hot.places[place as usize].change(self.frame.tick) {
            self.frame.changes.changed.push(slot);
        }
        self.row_mut(class, place, fields)
    }

    /// Where an entity that is about to change shall have its rows.
    fn warm(&mut self, slot: Slot) -> (u16, u16, u32) {
        let tick = self.frame.tick;
        let archive = &mut *self.archive;
        // Most stay where they are, and a record that is only read need not be copied.
        if let Some(record) = archive.records.get(slot.0 as usize)
            && let Some(place) = record.place
            && !(archive.hot[usize::from(record.class)].has_room_well_before(place)
                && tick.since(record.hot_since) > archive.depth)
        {
            return (record.class, record.fields, place);
        }
        let record = archive.records.get_mut(slot.0 as usize);
        let (class, fields) = (record.class, record.fields);
        let hot = &mut archive.hot[usize::from(class)];
        let chunks = &self.frame.classes[usize::from(class)];
        let place = match record.place {
            // A world that fell asleep around an entity leaves it far out: it moves inwards.
            Some(old) => {
                let row = hot.row(chunks, old, fields).to_vec();
                let place = hot.acquire(slot, hot.places[old as usize].changed);
                hot.row_mut(chunks, place, fields).copy_from_slice(&row);
                hot.release(old);
                record.older = Some((old, record.hot_since));
                place
            }
            None => {
                let place = hot.acquire(slot, record.last_changed);
                if let Some(row) = &record.cold {
                    hot.row_mut(chunks, place, fields).copy_from_slice(row);
                }
                record.older = None;
                place
            }
        };
        record.place = Some(place);
        record.hot_since = tick;
        (class, fields, place)
    }

    fn row_mut(&mut self, class: u16, place: u32, fields: u16) -> &mut [i64] {
        let class = usize::from(class);
        self.archive.hot[class].row_mut(&self.frame.classes[class], place, fields)
    }
}

/// Where an entity's rows are. Before `hot_since` it held the cold row.
#[derive(Clone, Debug, Default)]
struct Record {
    class: u16,
    fields: u16,
    alive: bool,
    born: Tick,
    hot_since: Tick,
    /// Before it lost its place; a place says it for its owner.
    last_changed: Tick,
    place: Option<u32>,
    /// Where its rows were before `hot_since`, and since when.
    older: Option<(u32, Tick)>,
    cold: Option<Arc<[i64]>>,
    /// Entities that were here, this one included.
    spawns: u32,
}

impl Record {
    fn generation(&self) -> u32 {
        self.spawns.saturating_sub(1)
    }

    /// Where the row of a tick is; `None` if it is the cold row.
    #[inline]
    fn place_at(&self, tick: Tick) -> Option<u32> {
        match (self.place, self.older) {
            (Some(place), _) if tick >= self.hot_since => Some(place),
            (Some(_), Some((place, since))) if tick >= since => Some(place),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use prescient_schema::{Class, Kind};

    fn schema() -> Arc<Schema> {
        let int = Kind::Int {
            bits: 32,
            signed: true,
        };
        let fields = alloc::vec![Field::new("a", int.clone()), Field::new("b", int.clone())];
        let single = alloc::vec![Field::new("c", int)];
        Arc::new(Schema {
            classes: alloc::vec![Class::new("pair", fields), Class::new("one", single)],
        })
    }

    #[test]
    fn every_row_of_the_window_can_be_read_back() {
        let mut seed = 3u64;
        let mut random = |bound: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % bound
        };
        let depth = 20;
        let mut archive = Archive::new(schema(), depth);
        let mut truth: BTreeMap<Slot, Vec<i64>> = BTreeMap::new();
        let mut past: VecDeque<(Tick, BTreeMap<Slot, Vec<i64>>)> = VecDeque::new();
        let mut tick = 0;
        for _ in 0..2000 {
            tick += 1 + random(2) as u32;
            let mut capture = archive.begin(Tick(tick)).unwrap();
            if random(4) == 0 {
                let class = random(2) as u16;
                let row: Vec<i64> = (0..2 - class).map(|_| random(100) as i64).collect();
                let slot = capture.spawn(class, &row).unwrap();
                truth.insert(slot, row);
            }
            let slots: Vec<Slot> = truth.keys().copied().collect();
            for slot in slots {
                // Low slots change often, high ones rarely: some go cold and wake again.
                if random(1 + 3 * u64::from(slot.0)) == 0 {
                    let value = random(5) as i64;
                    capture.set(slot, 0, value).unwrap();
                    truth.get_mut(&slot).unwrap()[0] = value;
                } else if random(200) == 0 {
                    capture.despawn(slot).unwrap();
                    truth.remove(&slot);
                }
            }
            capture.finish();
            past.push_back((Tick(tick), truth.clone()));
            while past.front().unwrap().0.0 < tick.saturating_sub(depth) {
                past.pop_front();
            }
            for (at, rows) in &past {
                for (slot, row) in rows {
                    if truth.contains_key(slot) {
                        assert_eq!(
                            archive.row(*slot, *at),
                            Some(&row[..]),
                            "{slot:?} at {at:?}"
                        );
                    }
                }
            }
            assert!(archive.living_slots().eq(truth.keys().copied()));
        }
    }

    #[test]
    fn a_range_admits_what_its_kind_admits() {
        let mut kinds = alloc::vec![
            Kind::Bool,
            Kind::F32,
            Kind::F64,
            Kind::Reference { class: None }
        ];
        kinds.extend([0, 1, 2, 255, u32::MAX].map(|values| Kind::Enum { values }));
        for signed in [false, true] {
            kinds.extend((1..=64).map(|bits| Kind::Int { bits, signed }));
        }
        let edges = (0..64).flat_map(|bits| [1i64 << bits, !0 << bits]);
        let values = edges
            .chain([0, 255])
            .flat_map(|edge| [edge.wrapping_sub(1), edge, edge.wrapping_add(1)]);
        let values: Vec<i64> = values.collect();
        for kind in kinds {
            let range = Range::new(&Field::new("a", kind.clone()));
            for &value in &values {
                assert_eq!(
                    range.admits(value),
                    kind.admits(value),
                    "{value} as {kind:?}"
                );
            }
        }
    }

    #[test]
    fn a_snapshot_stays_as_it_was_while_the_archive_goes_on() {
        let mut archive = Archive::new(schema(), 4);
        let mut capture = archive.begin(Tick(1)).unwrap();
        let slots = [0; 40].map(|value| capture.spawn(0, &[value, 0]).unwrap());
        capture.finish();
        let mut snapshots: Vec<Archive> = Vec::new();
        for tick in 2..60 {
            let mut capture = archive.begin(Tick(tick)).unwrap();
            for &slot in &slots {
                capture.write(slot, &[i64::from(tick + slot.0), 0]).unwrap();
            }
            capture.finish();
            if tick % 3 == 0 {
                snapshots.push(archive.clone());
            }
            for snapshot in snapshots.iter().chain([&archive]) {
                for at in snapshot.ticks().filter(|at| at.0 > 1) {
                    for &slot in &slots {
                        let row = [i64::from(at.0 + slot.0), 0];
                        assert_eq!(snapshot.row(slot, at), Some(&row[..]));
                    }
                }
                assert_eq!(snapshot.last_changed(slots[0]), snapshot.newest());
            }
            if tick % 7 == 0 {
                snapshots.clear();
            }
        }
    }

    #[test]
    fn a_tick_that_was_not_finished_leaves_no_rows() {
        let mut archive = Archive::new(schema(), 4);
        let mut capture = archive.begin(Tick(1)).unwrap();
        let slot = capture.spawn(0, &[1, 2]).unwrap();
        capture.finish();
        let mut capture = archive.begin(Tick(2)).unwrap();
        capture.write(slot, &[3, 4]).unwrap();
        drop(capture);
        archive.begin(Tick(3)).unwrap().finish();
        assert_eq!(archive.latest(slot), Some(&[1, 2][..]));
    }

    #[test]
    fn nonsense_is_refused_and_changes_nothing() {
        let mut archive = Archive::new(schema(), 4);
        let mut capture = archive.begin(Tick(5)).unwrap();
        assert_eq!(capture.spawn(7, &[]), Err(CaptureError::UnknownClass(7)));
        assert_eq!(
            capture.spawn(0, &[1]),
            Err(CaptureError::WrongLength {
                expected: 2,
                found: 1
            })
        );
        let slot = capture.spawn(0, &[1, 2]).unwrap();
        assert_eq!(capture.set(slot, 2, 0), Err(CaptureError::UnknownField(2)));
        assert_eq!(
            capture.set(Slot(9), 0, 0),
            Err(CaptureError::NotAlive(Slot(9)))
        );
        assert_eq!(
            capture.spawn_at(slot, 0, &[0, 0]),
            Err(CaptureError::Occupied(slot))
        );
        capture.finish();
        assert!(matches!(
            archive.begin(Tick(5)),
            Err(CaptureError::TickNotAfter(_))
        ));
        assert_eq!(archive.latest(slot), Some(&[1, 2][..]));
    }
}
