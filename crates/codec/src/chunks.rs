//! Rows and records in chunks that ticks and snapshots share: copying a tick costs one pointer per
//! page, not the rows.

use alloc::{collections::BinaryHeap, sync::Arc, vec::Vec};
use core::{cmp::Reverse, mem};

use crate::{
    history::line::Line,
    units::{Slot, Tick},
};

/// The hot rows of one class: those that are in its frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct HotSet {
    /// Never ends with a free row, so that the sweep of each tick is as short as possible.
    pub hot_rows: Vec<HotRow>,
    /// Indices of free rows, lowest first. Those at or behind the end of `hot_rows` are obsolete.
    free: BinaryHeap<Reverse<u32>>,
    pub sweep: usize,
    draft: Draft,
}

/// A row index in the frames, free or owned by an entity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HotRow {
    pub owner: Option<Slot>,
    /// The tick of the owner's last change. It is not in the owner's record, because snapshots
    /// share records and writing to one costs more than writing a row.
    pub changed: Tick,
    /// The line of the owner up to its last change.
    pub line: Line,
}

impl HotRow {
    /// Records a change of the owner. Returns whether it is the first of this tick.
    #[inline]
    pub(crate) fn change(&mut self, tick: Tick) -> bool {
        let is_first = self.changed < tick;
        self.changed = tick;
        is_first
    }
}

impl HotSet {
    pub(crate) fn acquire(&mut self, slot: Slot, changed: Tick) -> u32 {
        let owned = HotRow {
            owner: Some(slot),
            changed,
            line: Line::NONE,
        };
        let free = self.free.pop().map(|Reverse(row_index)| row_index);
        match free.filter(|&row_index| (row_index as usize) < self.hot_rows.len()) {
            Some(row_index) => {
                self.hot_rows[row_index as usize] = owned;
                row_index
            }
            None => {
                self.free.clear();
                self.hot_rows.push(owned);
                self.hot_rows.len() as u32 - 1
            }
        }
    }

    /// Frees a row, and its chunk if all of its rows are free.
    pub(crate) fn release(&mut self, row_index: u32) {
        self.hot_rows[row_index as usize].owner = None;
        self.free.push(Reverse(row_index));
        let chunk = row_index as usize / CHUNK;
        if is_vacant(&self.hot_rows, chunk) {
            self.draft.mark(chunk);
        }
        while self.hot_rows.pop_if(|last| last.owner.is_none()).is_some() {}
    }

    #[inline]
    pub(crate) fn has_room_well_before(&self, row_index: u32) -> bool {
        let first = self.free.peek();
        first.is_some_and(|&Reverse(free)| free < row_index / 2)
    }
}

/// The tick that is being written.
impl HotSet {
    /// The present row; `shared` are the chunks of the tick before.
    #[inline]
    pub(crate) fn row<'a>(&'a self, shared: &'a Chunks, row_index: u32, fields: u16) -> &'a [i64] {
        let fields = usize::from(fields);
        let (chunk, at) = split(row_index, fields);
        let rows = match self.draft.copies.get(chunk) {
            Some(&Some(start)) => &self.draft.rows[start..],
            _ => match shared.get(chunk) {
                Some(chunk) => chunk,
                None => return &[],
            },
        };
        &rows[at..][..fields]
    }

    #[inline]
    pub(crate) fn row_mut(&mut self, shared: &Chunks, row_index: u32, fields: u16) -> &mut [i64] {
        let fields = usize::from(fields);
        let (chunk, at) = split(row_index, fields);
        let start = match self.draft.copies.get(chunk) {
            Some(&Some(start)) => start,
            _ => self.draft.copy(shared, chunk, CHUNK * fields),
        };
        &mut self.draft.rows[start + at..][..fields]
    }

    /// Writes a row and returns whether that changed it.
    #[inline]
    pub(crate) fn write(&mut self, shared: &Chunks, row_index: u32, row: &[i64]) -> bool {
        let fields = row.len();
        let (chunk, at) = split(row_index, fields);
        let is_same = |old: &[i64]| old.iter().zip(row).all(|(old, new)| old == new);
        let start = match self.draft.copies.get(chunk) {
            Some(&Some(start)) => start,
            _ => {
                let old = shared.get(chunk).and_then(|rows| rows.get(at..at + fields));
                if old.is_some_and(is_same) {
                    return false;
                }
                self.draft.copy(shared, chunk, CHUNK * fields)
            }
        };
        let old = &mut self.draft.rows[start + at..][..fields];
        let is_new = !is_same(old);
        if is_new {
            old.copy_from_slice(row);
        }
        is_new
    }

    /// Discards what was written.
    pub(crate) fn discard(&mut self) {
        if self.draft.pages.contains(&true) {
            self.draft = Draft::default();
        }
    }

    /// Keeps chunks of a dropped tick that nothing else refers to, for the next ticks to write
    /// into.
    pub(crate) fn recycle_chunks(&mut self, old: Chunks, fields: usize) {
        let Draft { rows, spare, .. } = &mut self.draft;
        let wanted = rows.len() / (CHUNK * fields).max(1);
        let pages = old.pages.into_iter().flatten();
        for chunk in pages.filter_map(Arc::into_inner).flatten().flatten() {
            if spare.len() < wanted && Arc::strong_count(&chunk) == 1 {
                spare.push(chunk);
            }
        }
    }

    /// Turns the chunks of the tick before into those of this one, and returns the number of
    /// integers in new chunks.
    pub(crate) fn publish(&mut self, chunks: &mut Chunks, fields: usize) -> usize {
        let draft = &mut self.draft;
        let written = draft.rows.len();
        if chunks.pages.len() < draft.pages.len() {
            chunks.pages.resize(draft.pages.len(), None);
        }
        for (number, page) in chunks.pages.iter_mut().enumerate() {
            if !draft.pages.get_mut(number).is_some_and(mem::take) {
                continue;
            }
            let old = page.take();
            let first = number * PAGE_CHUNKS;
            let copies = draft.copies[first..].iter_mut().map(Option::take);
            let new = copies.take(PAGE_CHUNKS).enumerate().map(|(at, copy)| {
                if is_vacant(&self.hot_rows, first + at) {
                    return None;
                }
                match copy {
                    Some(start) => {
                        let rows = &draft.rows[start..][..CHUNK * fields];
                        Some(chunk(rows, &mut draft.spare))
                    }
                    None => old.as_ref()?.get(at)?.clone(),
                }
            });
            let new: Page = new.collect();
            *page = new.iter().any(Option::is_some).then(|| Arc::new(new));
        }
        draft.clear();
        written
    }
}

/// The chunks that a tick writes to, in memory of its own until the tick is finished: so the cost
/// of sharing is paid once per chunk and not per row.
#[derive(Clone, Debug, Default)]
struct Draft {
    /// For each chunk, the start of its copy in `rows`.
    copies: Vec<Option<usize>>,
    /// For each page of chunks, whether any of them changed.
    pages: Vec<bool>,
    rows: Vec<i64>,
    /// Chunks to be overwritten.
    spare: Vec<Arc<[i64]>>,
}

impl Draft {
    fn mark(&mut self, chunk: usize) {
        let page = chunk / PAGE_CHUNKS;
        if self.pages.len() <= page {
            self.pages.resize(page + 1, false);
            self.copies.resize((page + 1) * PAGE_CHUNKS, None);
        }
        self.pages[page] = true;
    }

    #[inline(never)]
    fn copy(&mut self, shared: &Chunks, chunk: usize, len: usize) -> usize {
        self.mark(chunk);
        let start = self.rows.len();
        match shared.get(chunk) {
            Some(rows) => self.rows.extend_from_slice(rows),
            None => self.rows.resize(start + len, 0),
        }
        self.copies[chunk] = Some(start);
        start
    }

    /// Keeps memory for a tick like this one, and frees it step by step after a peak.
    fn clear(&mut self) {
        let (used, room) = (self.rows.len(), self.rows.capacity());
        self.rows.clear();
        self.spare.clear();
        if room / 4 > used {
            self.rows.shrink_to(room / 2);
            self.spare.shrink_to(self.spare.capacity() / 2);
        }
    }
}

fn is_vacant(hot_rows: &[HotRow], chunk: usize) -> bool {
    let mut hot_rows = hot_rows.iter().skip(chunk * CHUNK).take(CHUNK);
    hot_rows.all(|row_index| row_index.owner.is_none())
}

/// The chunk of a row and the row's start in it.
fn split(row_index: u32, fields: usize) -> (usize, usize) {
    let row_index = row_index as usize;
    (row_index / CHUNK, row_index % CHUNK * fields)
}

fn chunk(rows: &[i64], spare: &mut Vec<Arc<[i64]>>) -> Arc<[i64]> {
    while let Some(mut chunk) = spare.pop() {
        if let Some(room) = Arc::get_mut(&mut chunk)
            && room.len() == rows.len()
        {
            room.copy_from_slice(rows);
            return chunk;
        }
    }
    rows.into()
}

/// The rows of one class at one tick, in chunks that ticks share. Most of a large world is cold and
/// has no chunks here, so there are two levels: a copy costs one pointer per 512 rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunks {
    pub pages: Vec<Option<Arc<Page>>>,
}

pub(crate) type Page = Vec<Option<Arc<[i64]>>>;

impl Chunks {
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&Arc<[i64]>> {
        self.pages
            .get(at / PAGE_CHUNKS)?
            .as_ref()?
            .get(at % PAGE_CHUNKS)?
            .as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Arc<[i64]>)> {
        let pages = self.pages.iter().enumerate();
        pages.flat_map(|(at, page)| {
            let chunks = page.iter().flat_map(|page| page.iter().enumerate());
            chunks.filter_map(move |(i, chunk)| Some((at * PAGE_CHUNKS + i, chunk.as_ref()?)))
        })
    }
}

/// A vector in shared pages: a clone shares them until one side writes.
#[derive(Clone, Debug)]
pub(crate) struct SharedPages<T> {
    pub pages: Vec<Arc<Vec<T>>>,
    pub len: usize,
}

impl<T> Default for SharedPages<T> {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            len: 0,
        }
    }
}

impl<T: Clone + Default> SharedPages<T> {
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.pages.get(at / PAGE)?.get(at % PAGE)
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> &mut T {
        &mut Arc::make_mut(&mut self.pages[at / PAGE])[at % PAGE]
    }

    pub(crate) fn grow(&mut self, len: usize) {
        while self.pages.len() * PAGE < len {
            self.pages.push(Arc::new(alloc::vec![T::default(); PAGE]));
        }
        self.len = self.len.max(len);
    }
}

/// Rows in a chunk, which is what a change copies.
pub(crate) const CHUNK: usize = 8;
pub(crate) const PAGE: usize = 256;
pub(crate) const PAGE_CHUNKS: usize = 64;
