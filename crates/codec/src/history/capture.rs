//! Writes a tick into an archive. Every call is checked against the schema and changes nothing if
//! it is refused.

use alloc::{sync::Arc, vec::Vec};
use core::fmt;

use prescient_schema::{Content, EntityRef, Parcel};

use super::{Archive, Frame, Record};
use crate::{
    kept::HashedContent,
    units::{Slot, Tick},
};

/// A tick that is being written. Dropping it without [`finish`](Capture::finish) leaves the archive
/// in an unspecified but safe state; finish every tick that was begun.
#[must_use = "a tick that is not finished is not captured"]
#[derive(Debug)]
pub struct Capture<'a> {
    pub(super) archive: &'a mut Archive,
    pub(super) frame: Frame,
}

impl Capture<'_> {
    /// Adds an entity and chooses its slot.
    pub fn spawn(&mut self, class: u16, row: &[i64]) -> Result<Slot, CaptureError> {
        let reusable = self.archive.vacant.front().is_some_and(|&(left, slot)| {
            self.frame.tick.shortly_since(left) > self.archive.depth
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

    /// Adds an entity in a given free slot.
    pub(crate) fn spawn_at(
        &mut self,
        slot: Slot,
        class: u16,
        row: &[i64],
    ) -> Result<(), CaptureError> {
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
        let row_index = self.archive.hot[usize::from(class)].acquire(slot, tick);
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
            row_index: Some(row_index),
            older: None,
            cold: None,
        };
        self.row_mut(class, row_index, fields).copy_from_slice(row);
        if has_links {
            self.relink(slot, class, None, Some(row));
        }
        self.archive.living_cells += row.len();
        self.frame.changes.spawned.push(slot);
        Ok(())
    }

    /// Sets one field. A field that is only sent on spawn keeps its value.
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
            self.changing_row(slot)[usize::from(field)] = value;
            return Ok(());
        }
        let old = old.to_vec();
        let mut new = old.clone();
        new[usize::from(field)] = value;
        self.check_links(class, &new, Some(&old))?;
        self.relink(slot, class, Some(&old), Some(&new));
        self.changing_row(slot)[usize::from(field)] = value;
        Ok(())
    }

    /// The class of an entity that is alive at this point of the tick.
    pub fn class(&self, slot: Slot) -> Option<u16> {
        self.archive.class(slot)
    }

    /// Sets all fields. Those that are only sent on spawn keep their values.
    pub fn write(&mut self, slot: Slot, row: &[i64]) -> Result<(), CaptureError> {
        let archive = &mut *self.archive;
        let record = archive.records.get(slot.0 as usize);
        let record = record.filter(|record| record.alive);
        let record = record.ok_or(CaptureError::NotAlive(slot))?;
        let class = usize::from(record.class);
        let rules = &archive.rules[class];
        rules.admit(row)?;
        let hot = &mut archive.hot[class];
        let tick = self.frame.tick;
        let is_settled = || tick.shortly_since(record.hot_since) > archive.depth;
        let stays = |row_index: u32| !(hot.has_room_well_before(row_index) && is_settled());
        let takes_all = |row_index: u32| {
            let old = || hot.row(&self.frame.classes[class], row_index, record.fields);
            rules.links.is_empty() && (archive.mirror || rules.keeps_fixed(old, row))
        };
        match record.row_index {
            Some(row_index) if stays(row_index) && takes_all(row_index) => {
                if hot.write(&self.frame.classes[class], row_index, row)
                    && hot.hot_rows[row_index as usize].change(tick)
                {
                    self.frame.changes.changed.push(slot);
                }
                Ok(())
            }
            _ => self.rewrite(slot, row),
        }
    }

    /// As [`write`](Self::write), for an entity that is cold, has to move to another row, or has
    /// fields that need more than a copy.
    #[inline(never)]
    fn rewrite(&mut self, slot: Slot, row: &[i64]) -> Result<(), CaptureError> {
        let record = self.archive.living(slot);
        let record = record.ok_or(CaptureError::NotAlive(slot))?;
        let (class, rules) = (record.class, self.archive.rules.clone());
        let rules = &rules[usize::from(class)];
        // A mirror takes all values of the other end.
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
        let target = self.changing_row(slot);
        for field in 0..row.len() {
            if changes(target, field) {
                target[field] = row[field];
            }
        }
        Ok(())
    }

    /// Removes an entity.
    pub fn despawn(&mut self, slot: Slot) -> Result<(), CaptureError> {
        let record = self
            .archive
            .living(slot)
            .ok_or(CaptureError::NotAlive(slot))?;
        let (class, row_index) = (record.class, record.row_index);
        if !self.archive.rules[usize::from(class)].links.is_empty() {
            let old = self.present(record).to_vec();
            self.relink(slot, class, Some(&old), None);
        }
        if let Some(row_index) = row_index {
            self.archive.hot[usize::from(class)].release(row_index);
        }
        let record = self.archive.records.get_mut(slot.0 as usize);
        self.archive.living_cells -= usize::from(record.fields);
        record.alive = false;
        record.row_index = None;
        record.cold = None;
        // Only `spawn` takes slots from this queue, and a mirror does not call it.
        if !self.archive.mirror {
            self.archive.vacant.push_back((self.frame.tick, slot));
        }
        self.frame.changes.despawned.push(slot);
        Ok(())
    }

    /// Adds the tick to the archive.
    pub fn finish(self) {
        let Self { archive, mut frame } = self;
        if !archive.mirror {
            archive.extend_lines(&frame);
        }
        archive.make_cold(&frame);
        let horizon = archive.horizon(frame.tick);
        while archive.frames.front().is_some_and(|old| old.tick < horizon) {
            let Some(old) = archive.frames.pop_front() else {
                break;
            };
            for &cell in &old.released {
                archive.content_store.drop_released(cell, old.tick);
            }
            archive.written -= old.written;
            let unread = Arc::into_inner(old).into_iter();
            let chunks = unread.flat_map(|old| old.classes);
            for ((hot, rules), chunks) in archive.hot.iter_mut().zip(&*archive.rules).zip(chunks) {
                hot.recycle_chunks(chunks, rules.ranges.len());
            }
        }
        let drafts = archive.hot.iter_mut().zip(&*archive.rules);
        for ((hot, rules), chunks) in drafts.zip(&mut frame.classes) {
            frame.written += hot.publish(chunks, rules.ranges.len());
        }
        archive.written += frame.written;
        archive.frames.push_back(Arc::new(frame));
    }

    /// Stores the content of a container and returns the cell by which rows name it. A content that
    /// no row names by the end of the tick is dropped after a while.
    pub fn intern(&mut self, content: Content) -> Result<i64, CaptureError> {
        self.intern_hashed(HashedContent::new(content))
    }

    pub(crate) fn intern_hashed(&mut self, content: HashedContent) -> Result<i64, CaptureError> {
        let (tick, cell) = (self.frame.tick, content.cell);
        let content_store = &mut self.archive.content_store;
        content_store
            .put(content, tick, &mut self.frame.released)
            .ok_or(CaptureError::Collision(cell))
    }

    /// Stores a content unless the archive has one with its cell.
    pub(crate) fn restore(&mut self, content: &HashedContent) {
        if self.archive.content_store.get(content.cell).is_none() {
            let _ = self.intern_hashed(content.clone());
        }
    }

    /// Adds an entity with the contents of its containers and chooses its slot.
    pub fn spawn_parcel(&mut self, class: u16, parcel: &Parcel) -> Result<Slot, CaptureError> {
        self.intern_all(parcel)?;
        self.spawn(class, &parcel.row)
    }

    /// Sets all fields, with the contents of containers.
    pub fn write_parcel(&mut self, slot: Slot, parcel: &Parcel) -> Result<(), CaptureError> {
        self.intern_all(parcel)?;
        self.write(slot, &parcel.row)
    }

    /// Checks whether [`write_parcel`](Self::write_parcel) would accept this.
    pub fn check_parcel(&mut self, slot: Slot, parcel: &Parcel) -> Result<(), CaptureError> {
        self.intern_all(parcel)?;
        let record = self.archive.living(slot);
        let record = record.ok_or(CaptureError::NotAlive(slot))?;
        let class = record.class;
        let rules = &self.archive.rules[usize::from(class)];
        rules.admit(&parcel.row)?;
        if rules.links.is_empty() {
            return Ok(());
        }
        let old = self.present(record).to_vec();
        self.check_links(class, &parcel.row, Some(&old))
    }

    /// Checks whether [`spawn_parcel`](Self::spawn_parcel) would accept this.
    pub fn check_spawn(&mut self, class: u16, parcel: &Parcel) -> Result<(), CaptureError> {
        self.intern_all(parcel)?;
        let rules = self.archive.rules.get(usize::from(class));
        let rules = rules.ok_or(CaptureError::UnknownClass(class))?;
        rules.admit(&parcel.row)?;
        if rules.links.is_empty() {
            return Ok(());
        }
        self.check_links(class, &parcel.row, None)
    }

    fn intern_all(&mut self, parcel: &Parcel) -> Result<(), CaptureError> {
        let mut contents = parcel.contents.iter();
        contents.try_for_each(|content| self.intern(content.clone()).map(drop))
    }

    /// The reference to an entity that is alive at this point of the tick.
    pub fn reference(&self, slot: Slot) -> Option<EntityRef> {
        self.archive.reference(slot)
    }

    /// Checks that everything the row names exists. Values that the old row has as well are not
    /// checked again.
    fn check_links(
        &mut self,
        class: u16,
        row: &[i64],
        old: Option<&[i64]>,
    ) -> Result<(), CaptureError> {
        let archive = &mut *self.archive;
        let links = &archive.rules[usize::from(class)].links;
        let is_new = |at: u16| {
            let at = usize::from(at);
            row[at] != 0 && old.is_none_or(|old| old[at] != row[at])
        };
        for &field in links.contents.iter().filter(|&&at| is_new(at)) {
            let cell = row[usize::from(field)];
            let kind = &archive.schema.classes[usize::from(class)].fields[usize::from(field)].kind;
            let container = kind.container();
            let admits = |content: &Content| container.is_some_and(|of| of.admits(content));
            match archive.content_store.admits(cell, (class, field), admits) {
                Some(true) => {}
                Some(false) => return Err(CaptureError::WrongContent { field, cell }),
                None => return Err(CaptureError::UnknownContent { field, cell }),
            }
        }
        if archive.mirror {
            return Ok(());
        }
        for (field, classes) in links.references.iter().filter(|(at, _)| is_new(*at)) {
            let to = EntityRef::from_cell(row[usize::from(*field)]).unwrap_or_default();
            let slot = Slot(to.index().unwrap_or(u32::MAX));
            let record = archive.records.get(slot.0 as usize);
            let was_there = record.is_some_and(|record| record.spawns > to.generation());
            let is_wrong = |class: u16| classes.as_ref().is_some_and(|of| !of.contains(&class));
            let is_there = archive.entity(to).and_then(|slot| archive.class(slot));
            if !was_there || is_there.is_some_and(is_wrong) {
                return Err(CaptureError::WrongReference { field: *field, to });
            }
        }
        Ok(())
    }

    /// Updates the counts of contents and the lists of referrers for a newest row.
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
                self.archive
                    .content_store
                    .exchange(old, new, tick, released);
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
                let referrers = self.archive.referrers.get_mut(index as usize);
                if let Ok(at) = referrers.binary_search(&slot) {
                    referrers.remove(at);
                }
            }
            if let Some(index) = index(new) {
                self.archive.referrers.grow(index as usize + 1);
                let referrers = self.archive.referrers.get_mut(index as usize);
                let at = referrers.partition_point(|&other| other < slot);
                referrers.insert(at, slot);
            }
        }
    }

    fn present<'s>(&'s self, record: &'s Record) -> &'s [i64] {
        let class = usize::from(record.class);
        match (record.row_index, &record.cold) {
            (Some(row_index), _) => {
                self.archive.hot[class].row(&self.frame.classes[class], row_index, record.fields)
            }
            (None, Some(row)) => row,
            (None, None) => &[],
        }
    }

    /// The row of a living entity, which is about to change.
    fn changing_row(&mut self, slot: Slot) -> &mut [i64] {
        let (class, fields, row_index) = self.make_hot(slot);
        let hot = &mut self.archive.hot[usize::from(class)];
        if hot.hot_rows[row_index as usize].change(self.frame.tick) {
            self.frame.changes.changed.push(slot);
        }
        self.row_mut(class, row_index, fields)
    }

    /// Makes an entity that is about to change hot. Returns its class, the number of its fields,
    /// and the index of its row.
    fn make_hot(&mut self, slot: Slot) -> (u16, u16, u32) {
        let tick = self.frame.tick;
        let archive = &mut *self.archive;
        // Most rows stay where they are, and records that are only read need not be copied.
        if let Some(record) = archive.records.get(slot.0 as usize)
            && let Some(row_index) = record.row_index
            && !(archive.hot[usize::from(record.class)].has_room_well_before(row_index)
                && tick.shortly_since(record.hot_since) > archive.depth)
        {
            return (record.class, record.fields, row_index);
        }
        let record = archive.records.get_mut(slot.0 as usize);
        let (class, fields) = (record.class, record.fields);
        let hot = &mut archive.hot[usize::from(class)];
        let chunks = &self.frame.classes[usize::from(class)];
        let row_index = match record.row_index {
            // If most of the world went cold, the remaining rows are sparse; they move to lower
            // indices.
            Some(old) => {
                let row = hot.row(chunks, old, fields).to_vec();
                let row_index = hot.acquire(slot, hot.hot_rows[old as usize].changed);
                hot.row_mut(chunks, row_index, fields).copy_from_slice(&row);
                hot.release(old);
                record.older = Some((old, record.hot_since));
                row_index
            }
            None => {
                let row_index = hot.acquire(slot, record.last_changed);
                if let Some(row) = &record.cold {
                    hot.row_mut(chunks, row_index, fields).copy_from_slice(row);
                }
                record.older = None;
                row_index
            }
        };
        record.row_index = Some(row_index);
        record.hot_since = tick;
        (class, fields, row_index)
    }

    fn row_mut(&mut self, class: u16, row_index: u32, fields: u16) -> &mut [i64] {
        let class = usize::from(class);
        self.archive.hot[class].row_mut(&self.frame.classes[class], row_index, fields)
    }
}

/// Why a call to a [`Capture`] was refused; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaptureError {
    /// Ticks must increase.
    TickNotAfter(Tick),
    /// The schema has no class with this index.
    UnknownClass(u16),
    /// The row and the class differ in the number of fields.
    WrongLength {
        /// Fields of the class.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// There is no living entity in this slot.
    NotAlive(Slot),
    /// The slot has a living entity.
    Occupied(Slot),
    /// The class has no field with this index.
    UnknownField(u16),
    /// The value is not in the range of the field: too wide, or no variant of its enumeration.
    OutOfRange {
        /// Index of the field.
        field: u16,
        /// The value.
        value: i64,
    },
    /// No content with this cell was interned; see [`Capture::intern`].
    UnknownContent {
        /// Index of the field.
        field: u16,
        /// The cell.
        cell: i64,
    },
    /// The content does not fit the field: it is of another kind, too long, or has items that are
    /// out of range or not sorted.
    WrongContent {
        /// Index of the field.
        field: u16,
        /// Its cell.
        cell: i64,
    },
    /// Another content has the same cell. That does not happen by accident: the contents were
    /// chosen to collide. Change one of them.
    Collision(i64),
    /// The entity never existed, or is of another class than the field may refer to.
    WrongReference {
        /// Index of the field.
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
            Self::NotAlive(slot) => write!(f, "slot {} has no living entity", slot.0),
            Self::Occupied(slot) => write!(f, "slot {} is taken", slot.0),
            Self::UnknownField(field) => write!(f, "the class has no field {field}"),
            Self::OutOfRange { field, value } => {
                write!(f, "{value} does not fit field {field}")
            }
            Self::UnknownContent { field, cell } => {
                write!(
                    f,
                    "field {field} names the content {cell}, which was not interned"
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
