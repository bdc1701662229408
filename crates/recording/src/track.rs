//! A decoded segment: the differences from each tick to the next, which can be applied in both
//! directions.
//!
//! Decoding takes most of a millisecond per tick of a large world and works forwards only, because the
//! codec's model learns. The differences take a few bytes per changed field, and applying them takes
//! microseconds.

use std::collections::BTreeMap;
use std::sync::Arc;

use prescient_codec::{Config, DecodeError, Decoder, Layout, Policy, Slot, Tick};
use prescient_schema::{Content, EntityRef, Library, Schema, Shape};
use thiserror::Error;

use crate::RecordedId;
use crate::block::TickRange;
use crate::player::{Entities, RecordedEntity};
use crate::recorder::IdRuns;
use crate::recording::{Recording, Segment};
use prescient_codec::numbers;

/// Why a tick cannot be shown. The player shows the last tick before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The recording has no ticks.
    #[error("the recording has no ticks")]
    Empty,
    /// A tick cannot be decoded although its block is intact: it was not written by a recorder.
    #[error("the recording cannot be decoded after tick {after:?}")]
    Malformed {
        /// The last tick before it in the same segment.
        after: Option<u64>,
    },
}

/// The decoded ticks of a segment so far.
pub(crate) struct Track {
    decoding: Option<Decoding>,
    ticks: Vec<u64>,
    /// The differences of all ticks, and where those of each tick end.
    differences: Vec<u8>,
    ends: Vec<usize>,
    contents: BTreeMap<i64, Content>,
    is_malformed: bool,
}

/// What is needed to decode further ticks.
struct Decoding {
    schema: Arc<Schema>,
    decoder: Decoder,
    ids: IdRuns,
    /// The entities by their ids in packets.
    shown: BTreeMap<u32, Shown>,
    /// The block that is decoded, and the ticks that it declares.
    block: usize,
    declared: TickRange,
    /// What is left of the block, and how many ticks that are.
    offset: usize,
    left: u64,
}

struct Shown {
    id: u64,
    entity: RecordedEntity,
}

impl Track {
    pub(crate) fn new(recording: &Recording) -> Self {
        let schema = Arc::new(recording.info().schema.clone());
        let config = Config::default()
            .with_policy(Policy::Immediate)
            .with_profile(recording.info().profile);
        let layout = Arc::new(Layout::new(schema.clone()));
        Self {
            decoding: Some(Decoding {
                schema,
                decoder: Decoder::with_layout(layout, config),
                ids: IdRuns::default(),
                shown: BTreeMap::new(),
                block: 0,
                declared: TickRange::default(),
                offset: 0,
                left: 0,
            }),
            ticks: Vec::new(),
            differences: Vec::new(),
            ends: Vec::new(),
            contents: BTreeMap::new(),
            is_malformed: false,
        }
    }

    /// The decoded ticks, ascending.
    pub(crate) fn ticks(&self) -> &[u64] {
        &self.ticks
    }

    pub(crate) fn content(&self, cell: i64) -> Option<&Content> {
        self.contents.get(&cell)
    }

    /// Whether there is nothing more to decode.
    pub(crate) fn is_complete(&self) -> bool {
        self.decoding.is_none()
    }

    /// Bytes of the differences.
    pub(crate) fn bytes(&self) -> usize {
        self.differences.len() + 16 * self.ticks.len()
    }

    /// Decodes until this tick or a later one is decoded, or to the end of the segment.
    pub(crate) fn decode_to(
        &mut self,
        tick: u64,
        recording: &Recording,
        segment: &Segment,
    ) -> Result<(), PlayError> {
        while self.ticks.last().is_none_or(|&last| last < tick) {
            let Some(decoding) = &mut self.decoding else {
                break;
            };
            let before = self.differences.len();
            let decoded = decoding.next(
                recording,
                segment,
                &mut self.differences,
                &mut self.contents,
            );
            match decoded {
                Ok(Some(tick)) if self.ticks.last().is_none_or(|&last| last < tick) => {
                    self.ticks.push(tick);
                    self.ends.push(self.differences.len());
                }
                Ok(None) => self.decoding = None,
                Ok(Some(_)) | Err(Malformed) => {
                    self.differences.truncate(before);
                    self.is_malformed = true;
                    self.decoding = None;
                }
            }
        }
        let is_before = self.ticks.last().is_none_or(|&last| last < tick);
        match self.is_malformed && is_before {
            true => Err(PlayError::Malformed {
                after: self.ticks.last().copied(),
            }),
            false => Ok(()),
        }
    }

    /// Changes entities from tick number `at - 1` of the segment (from nothing, if it is 0) to the next.
    pub(crate) fn forward(&self, at: usize, entities: &mut Entities) {
        let mut from = self.difference(at);
        let _ = Difference::read(&mut from).map(|difference| difference.forward(entities));
    }

    /// Inverse of [`forward`](Self::forward).
    pub(crate) fn back(&self, at: usize, entities: &mut Entities) {
        let mut from = self.difference(at);
        let _ = Difference::read(&mut from).map(|difference| difference.back(entities));
    }

    fn difference(&self, at: usize) -> &[u8] {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.differences[begin..self.ends[at]]
    }
}

/// A tick's bytes are not what a recorder writes.
#[derive(Debug)]
struct Malformed;

impl From<DecodeError> for Malformed {
    fn from(_: DecodeError) -> Self {
        Self
    }
}

impl Decoding {
    /// Decodes the next tick, and appends its differences; `None` at the end of the segment.
    fn next(
        &mut self,
        recording: &Recording,
        segment: &Segment,
        differences: &mut Vec<u8>,
        contents: &mut BTreeMap<i64, Content>,
    ) -> Result<Option<u64>, Malformed> {
        if self.left == 0 {
            let Some(range) = segment.blocks.get(self.block) else {
                return Ok(None);
            };
            let payload = recording.payload(range);
            let mut from = payload;
            self.declared = TickRange::read(&mut from).ok_or(Malformed)?;
            (self.offset, self.left) = (payload.len() - from.len(), self.declared.count);
        }
        let payload = recording.payload(&segment.blocks[self.block]);
        let mut from = payload.get(self.offset..).ok_or(Malformed)?;
        let packet = numbers::take_bytes(&mut from).ok_or(Malformed)?;
        let applied = self.decoder.decode(packet)?;
        let difference = self.difference(applied.tick, &mut from, contents)?;
        difference.write(differences);
        let tick = applied.tick.0;
        let is_first = self.left == self.declared.count;
        self.offset = payload.len() - from.len();
        self.left -= 1;
        let is_last = self.left == 0;
        // Segments are found by the declared ticks.
        let is_declared = (self.declared.first..=self.declared.last).contains(&tick)
            && is_first <= (tick == self.declared.first)
            && is_last <= (tick == self.declared.last && from.is_empty());
        if !is_declared {
            return Err(Malformed);
        }
        self.block += usize::from(is_last);
        Ok(Some(tick))
    }

    fn difference(
        &mut self,
        tick: Tick,
        from: &mut &[u8],
        contents: &mut BTreeMap<i64, Content>,
    ) -> Result<Difference, Malformed> {
        let archive = self.decoder.world();
        let changes = archive.changes(tick).ok_or(Malformed)?;
        let mut difference = Difference::default();
        for slot in &changes.despawned {
            if let Some(shown) = self.shown.remove(&slot.0) {
                difference.despawned.push((shown.id, shown.entity));
            }
        }
        let mut spawned: Vec<Slot> = changes.spawned.clone();
        spawned.sort_unstable();
        spawned.dedup();
        let ids = self.ids.read(spawned.len(), from).ok_or(Malformed)?;
        for (slot, id) in spawned.iter().zip(ids) {
            let class = archive.class(*slot).ok_or(Malformed)?;
            let row = Vec::new();
            let entity = RecordedEntity { class, row };
            self.shown.insert(slot.0, Shown { id, entity });
        }
        let rows = Rows {
            schema: &self.schema,
            archive,
        };
        for slot in &spawned {
            let row = rows.row(*slot, &self.shown, contents).ok_or(Malformed)?;
            let shown = self.shown.get_mut(&slot.0).ok_or(Malformed)?;
            shown.entity.row = row;
            difference.spawned.push((shown.id, shown.entity.clone()));
        }
        for slot in &changes.changed {
            if spawned.binary_search(slot).is_ok() {
                continue;
            }
            let row = rows.row(*slot, &self.shown, contents).ok_or(Malformed)?;
            let shown = self.shown.get_mut(&slot.0).ok_or(Malformed)?;
            let pairs = row.iter().zip(&shown.entity.row).enumerate();
            let changed = pairs.filter(|(_, (new, old))| new != old);
            let fields = changed.map(|(at, (new, old))| (at, new.wrapping_sub(*old)));
            difference.changed.push((shown.id, fields.collect()));
            shown.entity.row = row;
        }
        Ok(difference)
    }
}

/// The rows of a decoder, with the identities of the recording.
struct Rows<'a> {
    schema: &'a Schema,
    archive: &'a prescient_codec::history::Archive,
}

impl Rows<'_> {
    fn row(
        &self,
        slot: Slot,
        shown: &BTreeMap<u32, Shown>,
        contents: &mut BTreeMap<i64, Content>,
    ) -> Option<Vec<i64>> {
        let mut row = self.archive.latest(slot)?.to_vec();
        let class = usize::from(self.archive.class(slot)?);
        let fields = &self.schema.classes.get(class)?.fields;
        for (cell, field) in row.iter_mut().zip(fields) {
            match field.kind.shape() {
                Shape::Reference => {
                    let to = EntityRef::from_cell(*cell).and_then(EntityRef::index);
                    let target = to.and_then(|index| shown.get(&index));
                    *cell = target.map_or(0, |target| target.id as i64);
                }
                Shape::Content if *cell != 0 && !contents.contains_key(cell) => {
                    let content = Library::content(self.archive, *cell)?;
                    contents.insert(*cell, content.clone());
                }
                _ => {}
            }
        }
        Some(row)
    }
}

/// What differs between two ticks.
#[derive(Debug, Default)]
struct Difference {
    despawned: Vec<(u64, RecordedEntity)>,
    spawned: Vec<(u64, RecordedEntity)>,
    /// Fields with what is added to them, modulo 2⁶⁴.
    changed: Vec<(u64, Vec<(usize, i64)>)>,
}

impl Difference {
    fn write(&self, out: &mut Vec<u8>) {
        for entities in [&self.despawned, &self.spawned] {
            numbers::put(out, entities.len() as u64);
            for (id, entity) in entities {
                numbers::put(out, *id);
                numbers::put(out, u64::from(entity.class));
                numbers::put(out, entity.row.len() as u64);
                for &value in &entity.row {
                    numbers::put_signed(out, value);
                }
            }
        }
        numbers::put(out, self.changed.len() as u64);
        for (id, fields) in &self.changed {
            numbers::put(out, *id);
            numbers::put(out, fields.len() as u64);
            for &(field, by) in fields {
                numbers::put(out, field as u64);
                numbers::put_signed(out, by);
            }
        }
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let mut difference = Self::default();
        for entities in [&mut difference.despawned, &mut difference.spawned] {
            for _ in 0..numbers::take(from)? {
                let id = numbers::take(from)?;
                let class = numbers::take(from)? as u16;
                let len = numbers::take(from)?;
                let row = (0..len).map(|_| numbers::take_signed(from));
                let row = row.collect::<Option<_>>()?;
                entities.push((id, RecordedEntity { class, row }));
            }
        }
        for _ in 0..numbers::take(from)? {
            let id = numbers::take(from)?;
            let len = numbers::take(from)?;
            let field = |_| Some((numbers::take(from)? as usize, numbers::take_signed(from)?));
            let fields = (0..len).map(field).collect::<Option<_>>()?;
            difference.changed.push((id, fields));
        }
        Some(difference)
    }

    fn forward(self, entities: &mut Entities) {
        for (id, _) in self.despawned {
            entities.remove(&RecordedId(id));
        }
        for (id, entity) in self.spawned {
            entities.insert(RecordedId(id), entity);
        }
        for (id, fields) in self.changed {
            if let Some(entity) = entities.get_mut(&RecordedId(id)) {
                for (field, by) in fields {
                    entity.row[field] = entity.row[field].wrapping_add(by);
                }
            }
        }
    }

    fn back(self, entities: &mut Entities) {
        for (id, fields) in self.changed {
            if let Some(entity) = entities.get_mut(&RecordedId(id)) {
                for (field, by) in fields {
                    entity.row[field] = entity.row[field].wrapping_sub(by);
                }
            }
        }
        for (id, _) in self.spawned {
            entities.remove(&RecordedId(id));
        }
        for (id, entity) in self.despawned {
            entities.insert(RecordedId(id), entity);
        }
    }
}
