//! The rows of recent ticks, captured once and read by every encoder.
//!
//! A frame shares all chunks of rows that did not change with the frame before it, and an entity
//! that has not changed for the whole depth of the archive leaves the frames: it keeps one cold
//! row. So a capture costs what changed, and idle entities cost nothing per tick. Frames do not
//! change once they are captured; a clone of the archive is a cheap snapshot that another thread
//! can read while the next tick is written.

use alloc::{collections::VecDeque, sync::Arc, vec::Vec};
use core::ops::Range;

use prescient_schema::{Content, EntityRef, Library, Schema};

mod capture;
mod depth;
pub(crate) mod line;
mod rules;

pub use capture::{Capture, CaptureError};
pub use depth::{HistoryDepth, HistoryTooShort};
use line::Line;
use rules::Rules;

use crate::{
    chunks::{CHUNK, Chunks, HotRow, HotSet, SharedPages},
    content_store::ContentStore,
    predict::{ROWS, Samples},
    shared_model::Views,
    units::{Slot, Tick},
};

/// The recent ticks of one world.
#[derive(Clone, Debug)]
pub struct Archive {
    schema: Arc<Schema>,
    depth: u32,
    frames: VecDeque<Arc<Frame>>,
    records: SharedPages<Record>,
    /// Slots of despawned entities, oldest first, with the tick of the despawn.
    vacant: VecDeque<(Tick, Slot)>,
    hot: Vec<HotSet>,
    content_store: ContentStore,
    /// For each class, the values that its rows may have.
    rules: Arc<[Rules]>,
    /// For each slot, the slots whose newest rows refer to it: ascending, once per column.
    referrers: SharedPages<Vec<Slot>>,
    /// Slots are the ids of another end, and references are not checked.
    mirror: bool,
    /// Integers in the rows of living entities.
    living_cells: usize,
    /// Integers in all chunks that the kept frames wrote.
    written: usize,
}

/// The chunks that were used last: entities with neighbouring ids mostly have neighbouring rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window<'a> {
    /// Serial number of the samples, class, and index of the chunk.
    at: (u32, u16, u32),
    chunks: [&'a [i64]; ROWS],
    present: &'a [i64],
}

impl<'a> Window<'a> {
    /// The two newest rows from which an entity is predicted and its newest row, at a range that
    /// [`Archive::window_range`] returned.
    #[inline]
    pub(crate) fn newest(&self, at: Range<usize>) -> Option<[&'a [i64]; 3]> {
        let [first, second, ..] = self.chunks;
        Some([
            first.get(at.clone())?,
            second.get(at.clone())?,
            self.present.get(at)?,
        ])
    }
}

/// One captured tick.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    tick: Tick,
    classes: Vec<Chunks>,
    changes: Changes,
    /// Contents that no newest row names since this tick.
    released: Vec<i64>,
    /// Integers in the chunks that it wrote.
    written: usize,
}

/// The changes of a tick, each list in the order of the calls.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// New entities.
    pub spawned: Vec<Slot>,
    /// Removed entities.
    pub despawned: Vec<Slot>,
    /// Living entities whose values changed, each once.
    pub changed: Vec<Slot>,
}

impl Archive {
    /// An empty archive that keeps the last `depth` ticks.
    pub fn new(schema: Arc<Schema>, depth: u32) -> Self {
        let hot = schema.classes.iter().map(|_| HotSet::default()).collect();
        let rules = (schema.classes.iter())
            .map(|class| Rules::new(&schema, class))
            .collect();
        Self {
            schema,
            depth: depth.max(2),
            frames: VecDeque::new(),
            records: SharedPages::default(),
            vacant: VecDeque::new(),
            hot,
            content_store: ContentStore::default(),
            rules,
            referrers: SharedPages::default(),
            mirror: false,
            living_cells: 0,
            written: 0,
        }
    }

    /// An archive of the world that another end sends: slots and references are that end's ids.
    pub(crate) fn mirror(schema: Arc<Schema>, depth: u32) -> Self {
        Self {
            mirror: true,
            ..Self::new(schema, depth)
        }
    }

    /// Sets how many ticks before the newest one are kept from the next tick on.
    pub(crate) fn set_depth(&mut self, depth: HistoryDepth) {
        self.depth = depth.ticks();
    }

    /// Begins the next tick, which must be after the newest one.
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
            written: 0,
        };
        Ok(Capture {
            archive: self,
            frame,
        })
    }

    /// Opens the newest tick again, for what a further packet of it states. The changes of the tick
    /// are then those since this call.
    pub(crate) fn reopen(&mut self) -> Option<Capture<'_>> {
        let mut capture = self.resume()?;
        capture.frame.changes = Changes::default();
        Some(capture)
    }

    /// Opens the newest tick again, to add to it; `None` if there is none. Nothing that reads the
    /// archive tick by tick, such as an encoder, may have read this tick.
    pub fn resume(&mut self) -> Option<Capture<'_>> {
        self.hot.iter_mut().for_each(HotSet::discard);
        let newest = self.frames.pop_back()?;
        self.written -= newest.written;
        Some(Capture {
            archive: self,
            frame: Arc::unwrap_or_clone(newest),
        })
    }

    /// The schema of the rows.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The newest tick.
    #[inline]
    pub fn newest(&self) -> Option<Tick> {
        self.frames.back().map(|frame| frame.tick)
    }

    /// The changes of a tick, if it is still kept.
    pub fn changes(&self, tick: Tick) -> Option<&Changes> {
        self.frame(tick).map(|frame| &frame.changes)
    }

    /// The changes of all kept ticks after this one, oldest first.
    pub(crate) fn changes_after(&self, tick: Option<Tick>) -> impl Iterator<Item = &Changes> {
        let is_old = |frame: &Arc<Frame>| Some(frame.tick) <= tick;
        let first = self.frames.partition_point(is_old);
        self.frames.range(first..).map(|frame| &frame.changes)
    }

    /// The kept ticks, oldest first.
    pub fn ticks(&self) -> impl Iterator<Item = Tick> + '_ {
        self.frames.iter().map(|frame| frame.tick)
    }

    /// The oldest kept tick.
    pub(crate) fn oldest(&self) -> Option<Tick> {
        self.frames.front().map(|frame| frame.tick)
    }

    /// The class of a living entity.
    pub fn class(&self, slot: Slot) -> Option<u16> {
        self.living(slot).map(|record| record.class)
    }

    /// The tick at which a living entity last changed or was spawned.
    pub(crate) fn last_changed(&self, slot: Slot) -> Option<Tick> {
        let record = self.living(slot)?;
        Some(match record.row_index {
            Some(row_index) => {
                self.hot[usize::from(record.class)].hot_rows[row_index as usize].changed
            }
            None => record.last_changed,
        })
    }

    /// The line of a living entity of a class up to its newest row.
    #[inline]
    pub(crate) fn line(&self, slot: Slot, class: u16) -> Option<Line> {
        let record = self.record_of(slot, class)?;
        let Some(row_index) = record.row_index else {
            return Some(Line::holding(record.last_changed));
        };
        let hot = &self.hot[usize::from(class)].hot_rows[row_index as usize];
        Some(match Some(hot.changed) == self.newest() {
            true => hot.line,
            false => Line::holding(hot.changed),
        })
    }

    /// The row of a living entity at a captured tick.
    #[inline]
    pub fn row(&self, slot: Slot, tick: Tick) -> Option<&[i64]> {
        self.row_at(self.living(slot)?, tick)
    }

    /// As [`row`](Self::row), but `None` if the entity is of another class.
    #[inline]
    pub(crate) fn row_of(&self, slot: Slot, class: u16, tick: Tick) -> Option<&[i64]> {
        self.row_at(self.record_of(slot, class)?, tick)
    }

    #[inline]
    fn row_at<'a>(&'a self, record: &'a Record, tick: Tick) -> Option<&'a [i64]> {
        if tick < record.born {
            return None;
        }
        match record.row_index_at(tick) {
            Some(row_index) => self
                .frame(tick)?
                .row(record.class, row_index, record.fields),
            None => record.cold.as_deref(),
        }
    }

    /// The rows of a living entity at all kept ticks since it was spawned, oldest first.
    pub fn samples(&self, slot: Slot) -> impl DoubleEndedIterator<Item = (Tick, &[i64])> {
        self.living(slot).into_iter().flat_map(move |record| {
            let is_older = |frame: &Arc<Frame>| frame.tick < record.born;
            let first = self.frames.partition_point(is_older);
            let frames = self.frames.range(first..);
            frames.filter_map(move |frame| Some((frame.tick, frame.row_of(record)?)))
        })
    }

    /// The rows of a living entity of a class at the ticks from which it is predicted, and its
    /// newest row.
    #[inline]
    pub(crate) fn rows<'a>(
        &'a self,
        (slot, class): (Slot, u16),
        samples: &Samples,
        window: &mut Window<'a>,
    ) -> Option<Views<'a>> {
        let Some(at) = self.window_range((slot, class), samples, window) else {
            return self.scattered_rows((slot, class), samples);
        };
        let mut rows = [&[][..]; ROWS];
        for (row, chunk) in rows.iter_mut().zip(window.chunks) {
            *row = chunk.get(at.clone())?;
        }
        let present = window.present.get(at);
        Some(Views { rows, present })
    }

    /// Moves the window to the chunks of a living entity of a class and returns the range of its
    /// row in them; `None` if its rows are not at one index for all these ticks.
    #[inline]
    pub(crate) fn window_range<'a>(
        &'a self,
        (slot, class): (Slot, u16),
        samples: &Samples,
        window: &mut Window<'a>,
    ) -> Option<Range<usize>> {
        let record = self.record_of(slot, class)?;
        let row_index = record.row_index?;
        if record.hot_since > samples.frames.oldest {
            return None;
        }
        let chunk = row_index / CHUNK as u32;
        let at = (samples.frames.serial, record.class, chunk);
        if window.at != at {
            window.at = at;
            self.fill_window(window, samples);
        }
        let fields = usize::from(record.fields);
        let start = row_index as usize % CHUNK * fields;
        Some(start..start + fields)
    }

    /// As [`rows`](Self::rows), for an entity whose rows are not at one index for all ticks.
    #[cold]
    fn scattered_rows(&self, (slot, class): (Slot, u16), samples: &Samples) -> Option<Views<'_>> {
        let record = self.record_of(slot, class)?;
        let mut rows = [&[][..]; ROWS];
        for (row, &tick) in rows.iter_mut().zip(&samples.ticks) {
            *row = self.row_at(record, tick)?;
        }
        let present = self.newest_row(record);
        Some(Views { rows, present })
    }

    #[inline(never)]
    fn fill_window<'a>(&'a self, window: &mut Window<'a>, samples: &Samples) {
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

    /// The index of a tick's frame, until another tick is captured.
    pub(crate) fn frame_number(&self, tick: Tick) -> u32 {
        let at = self.frames.binary_search_by_key(&tick, |frame| frame.tick);
        at.map_or(u32::MAX, |at| at as u32)
    }

    /// The newest row of a living entity.
    #[inline]
    pub fn latest(&self, slot: Slot) -> Option<&[i64]> {
        self.newest_row(self.living(slot)?)
    }

    /// As [`latest`](Self::latest), but `None` if the entity is of another class.
    #[inline]
    pub(crate) fn latest_of(&self, slot: Slot, class: u16) -> Option<&[i64]> {
        self.newest_row(self.record_of(slot, class)?)
    }

    #[inline]
    fn newest_row<'a>(&'a self, record: &'a Record) -> Option<&'a [i64]> {
        match record.row_index {
            Some(row_index) => self
                .frames
                .back()?
                .row(record.class, row_index, record.fields),
            None => record.cold.as_deref(),
        }
    }

    /// The reference to a living entity. It does not refer to a later entity in the same slot.
    pub fn reference(&self, slot: Slot) -> Option<EntityRef> {
        let record = self.living(slot)?;
        let generation = if self.mirror { 0 } else { record.generation() };
        Some(EntityRef::new(slot.0, generation))
    }

    /// The slot of the living entity to which a reference refers.
    pub fn entity(&self, reference: EntityRef) -> Option<Slot> {
        let slot = Slot(reference.index()?);
        (self.reference(slot)? == reference).then_some(slot)
    }

    /// The slots whose newest rows refer to a slot, ascending; once per column.
    pub(crate) fn referrers(&self, slot: Slot) -> &[Slot] {
        self.referrers
            .get(slot.0 as usize)
            .map_or(&[], Vec::as_slice)
    }

    /// Resolves a container's cell (a content hash) to its content.
    pub(crate) fn shared_content(&self, cell: i64) -> Option<&Arc<Content>> {
        self.content_store.get(cell)
    }

    /// All living entities in ascending order of slot.
    pub fn living_slots(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.records.len)
            .filter(|&i| self.records.get(i).is_some_and(|r| r.alive))
            .map(|i| Slot(i as u32))
    }

    /// Approximate bytes of rows and contents that only this archive or its snapshots hold.
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
        seen + self.records.len * size_of::<Record>() + self.content_store.bytes()
    }

    /// An upper bound, but for a constant factor, of the bytes that rows and contents hold once
    /// `tick` is captured and older frames are dropped.
    pub(crate) fn bytes_at(&self, tick: Tick) -> usize {
        let horizon = self.horizon(tick);
        let old = self.frames.iter().take_while(|old| old.tick < horizon);
        let written = self.written - old.map(|old| old.written).sum::<usize>();
        let contents = self.content_store.bytes_from(horizon);
        let hot = self.hot.iter().zip(&*self.rules);
        let hot_rows: usize = hot
            .map(|(hot, rules)| hot.hot_rows.len() * rules.ranges.len())
            .sum();
        let cells = written + hot_rows + self.living_cells;
        self.records.len * size_of::<Record>() + cells * size_of::<i64>() + contents
    }

    /// The oldest tick that may be kept once `tick` is captured.
    pub(crate) fn horizon(&self, tick: Tick) -> Tick {
        Tick(tick.0.saturating_sub(self.depth.into()))
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

    /// The record of a living entity, if it is of this class. All rows that are read as rows of a
    /// class are looked up here, so a row always has as many fields as its reader expects.
    #[inline]
    fn record_of(&self, slot: Slot, class: u16) -> Option<&Record> {
        self.living(slot).filter(|record| record.class == class)
    }

    /// Extends or ends the lines of the entities that changed in a tick.
    fn extend_lines(&mut self, frame: &Frame) {
        let Self {
            frames,
            records,
            hot,
            rules,
            ..
        } = self;
        let mut newest = frames.iter().rev();
        let past = newest.next().zip(newest.next());
        let is_even = |(middle, oldest): &(&Arc<Frame>, &Arc<Frame>)| {
            frame.tick.since(middle.tick) == middle.tick.since(oldest.tick)
        };
        let past = past.filter(is_even);
        for &slot in &frame.changes.changed {
            let record = records.get(slot.0 as usize).filter(|record| record.alive);
            let Some((record, row_index)) =
                record.and_then(|record| Some((record, record.row_index?)))
            else {
                continue;
            };
            let class = usize::from(record.class);
            let hot = &mut hot[class];
            let rows = past.filter(|(_, oldest)| record.hot_since <= oldest.tick);
            let rows = rows.and_then(|(middle, oldest)| {
                Some([
                    middle.row(record.class, row_index, record.fields)?,
                    oldest.row(record.class, row_index, record.fields)?,
                ])
            });
            let line = match rows {
                Some([middle, oldest]) => {
                    let present = hot.row(&frame.classes[class], row_index, record.fields);
                    let before = hot.hot_rows[row_index as usize].line;
                    before.extend(frame.tick, [present, middle, oldest], &rules[class].masks)
                }
                None => Line::holding(frame.tick),
            };
            hot.hot_rows[row_index as usize].line = line;
        }
    }

    /// Moves entities that have not changed for the whole depth out of the frames. A fraction of
    /// the hot rows is checked per tick.
    fn make_cold(&mut self, frame: &Frame) {
        for (chunks, hot) in frame.classes.iter().zip(&mut self.hot) {
            let share = hot.hot_rows.len() / 32 + 1;
            for _ in 0..share {
                let Some(&HotRow { owner, changed, .. }) = hot.hot_rows.get(hot.sweep) else {
                    hot.sweep = 0;
                    break;
                };
                let row_index = hot.sweep as u32;
                hot.sweep += 1;
                let Some(slot) = owner else { continue };
                if frame.tick.shortly_since(changed) < self.depth {
                    continue;
                }
                let record = self.records.get_mut(slot.0 as usize);
                record.cold = Some(hot.row(chunks, row_index, record.fields).into());
                record.last_changed = changed;
                record.row_index = None;
                record.older = None;
                hot.release(row_index);
            }
        }
    }
}

impl Library for Archive {
    fn content(&self, cell: i64) -> Option<&Content> {
        self.content_store.get(cell).map(|content| &**content)
    }
}

impl Frame {
    /// The row of an entity that lived at this tick.
    fn row_of<'a>(&'a self, record: &'a Record) -> Option<&'a [i64]> {
        match record.row_index_at(self.tick) {
            Some(row_index) => self.row(record.class, row_index, record.fields),
            None => record.cold.as_deref(),
        }
    }

    #[inline]
    fn row(&self, class: u16, row_index: u32, fields: u16) -> Option<&[i64]> {
        let fields = usize::from(fields);
        let start = row_index as usize % CHUNK * fields;
        let chunks = self.classes.get(usize::from(class))?;
        let chunk = chunks.get(row_index as usize / CHUNK)?;
        chunk.get(start..start + fields)
    }
}

/// Where the rows of an entity are. Before `hot_since` all of them were the cold row.
#[derive(Clone, Debug, Default)]
struct Record {
    class: u16,
    fields: u16,
    alive: bool,
    born: Tick,
    hot_since: Tick,
    /// Last change of a cold entity; [`HotRow::changed`] is that of a hot one.
    last_changed: Tick,
    row_index: Option<u32>,
    /// The index of its rows before `hot_since`, and the tick since which that was so.
    older: Option<(u32, Tick)>,
    cold: Option<Arc<[i64]>>,
    /// Entities that this slot has had, including this one.
    spawns: u32,
}

impl Record {
    fn generation(&self) -> u32 {
        self.spawns.saturating_sub(1)
    }

    /// The index of the row of a tick; `None` for the cold row.
    #[inline]
    fn row_index_at(&self, tick: Tick) -> Option<u32> {
        match (self.row_index, self.older) {
            (Some(row_index), _) if tick >= self.hot_since => Some(row_index),
            (Some(_), Some((row_index, since))) if tick >= since => Some(row_index),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use prescient_schema::{Class, Field, FieldKind};

    fn schema() -> Arc<Schema> {
        let int = FieldKind::Int {
            bits: 32,
            signed: true,
        };
        let fields = alloc::vec![Field::new("a", int.clone()), Field::new("b", int.clone())];
        let single = alloc::vec![Field::new("c", int)];
        Arc::new(Schema {
            classes: alloc::vec![Class::new("pair", fields), Class::new("one", single)],
        })
    }

    /// Fails if `Capture::spawn_at` does not set `born` and `hot_since` (there are then rows of
    /// other entities), or `Frame::row_of` ignores the index of older rows.
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
            tick += 1 + random(2);
            let mut capture = archive.begin(Tick(tick)).unwrap();
            if random(4) == 0 {
                let class = random(2) as u16;
                let row: Vec<i64> = (0..2 - class).map(|_| random(100) as i64).collect();
                let slot = capture.spawn(class, &row).unwrap();
                truth.insert(slot, row);
            }
            let slots: Vec<Slot> = truth.keys().copied().collect();
            for slot in slots {
                // Low slots change often, high ones rarely: some become cold and hot again.
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
            while past.front().unwrap().0.0 < tick.saturating_sub(depth.into()) {
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
            for &slot in truth.keys() {
                let rows = past
                    .iter()
                    .filter_map(|(at, rows)| Some((*at, rows.get(&slot)?)));
                let samples = archive.samples(slot).map(|(at, row)| (at, row.to_vec()));
                assert!(
                    samples.eq(rows.map(|(at, row)| (at, row.clone()))),
                    "{slot:?}"
                );
            }
            assert!(archive.living_slots().eq(truth.keys().copied()));
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
                capture
                    .write(slot, &[tick as i64 + i64::from(slot.0), 0])
                    .unwrap();
            }
            capture.finish();
            if tick % 3 == 0 {
                snapshots.push(archive.clone());
            }
            for snapshot in snapshots.iter().chain([&archive]) {
                for at in snapshot.ticks().filter(|at| at.0 > 1) {
                    for &slot in &slots {
                        let row = [at.0 as i64 + i64::from(slot.0), 0];
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

    /// Fails if `record_of` does not compare the class.
    #[test]
    fn rows_are_found_by_their_own_class_only() {
        let mut archive = Archive::new(schema(), 4);
        let mut capture = archive.begin(Tick(1)).unwrap();
        let slot = capture.spawn(1, &[7]).unwrap();
        capture.finish();
        let samples = Samples::pick(Tick(2), &[Tick(1)]);
        let found = |class: u16| {
            let mut window = Window::default();
            let rows = archive.rows((slot, class), &samples, &mut window);
            let rows = rows.map(|views| views.rows[0]);
            [
                rows,
                archive.latest_of(slot, class),
                archive.row_of(slot, class, Tick(1)),
            ]
        };
        assert_eq!(found(1), [Some(&[7][..]); 3]);
        assert_eq!(found(0), [None; 3]);
    }

    /// A mirror never chooses slots. Fails if `despawn` remembers vacant slots there: a receiver
    /// would hold eight more bytes for every despawn.
    #[test]
    fn a_mirror_keeps_no_vacant_slots() {
        let mut mirror = Archive::mirror(schema(), 4);
        for tick in 1..100 {
            let mut capture = mirror.begin(Tick(tick)).unwrap();
            match tick % 2 {
                1 => capture.spawn_at(Slot(3), 0, &[1, 2]).unwrap(),
                _ => capture.despawn(Slot(3)).unwrap(),
            }
            capture.finish();
        }
        assert!(mirror.vacant.is_empty());
    }

    #[test]
    fn invalid_calls_are_refused_and_change_nothing() {
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
