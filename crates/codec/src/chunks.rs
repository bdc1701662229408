//! Rows and records in shared pieces: a copy of a tick costs a word per page, not a row.

use alloc::{collections::BTreeSet, sync::Arc, vec::Vec};

use crate::units::Slot;

/// Places in the frames of one class.
#[derive(Clone, Debug, Default)]
pub(crate) struct HotSet {
    pub owners: Vec<Option<Slot>>,
    pub free: BTreeSet<u32>,
    pub sweep: usize,
}

impl HotSet {
    pub fn acquire(&mut self, slot: Slot) -> u32 {
        let place = self.free.pop_first().unwrap_or(self.owners.len() as u32);
        if place as usize == self.owners.len() {
            self.owners.push(None);
        }
        self.owners[place as usize] = Some(slot);
        place
    }

    pub fn release(&mut self, place: u32) {
        self.owners[place as usize] = None;
        self.free.insert(place);
    }
}

impl HotSet {
    pub fn has_room_well_before(&self, place: u32) -> bool {
        self.free.first().is_some_and(|&free| free < place / 2)
    }

    pub fn is_vacant(&self, chunk: usize) -> bool {
        let end = self.owners.len().min((chunk + 1) * CHUNK);
        self.owners[chunk * CHUNK..end].iter().all(Option::is_none)
    }
}

/// The rows of one class at one tick, in chunks that ticks share. Most of a large world is cold
/// and has no chunks here, so they are kept two levels deep: a copy costs a word per 512 places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunks {
    pub pages: Vec<Option<Arc<Page>>>,
}

pub(crate) type Page = Vec<Option<Arc<[i64]>>>;

impl Chunks {
    #[inline]
    pub fn get(&self, at: usize) -> Option<&Arc<[i64]>> {
        self.pages
            .get(at / PAGE_CHUNKS)?
            .as_ref()?
            .get(at % PAGE_CHUNKS)?
            .as_ref()
    }

    pub fn get_mut(&mut self, at: usize, len: usize) -> &mut [i64] {
        let page = at / PAGE_CHUNKS;
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        let page = self.pages[page].get_or_insert_with(|| Arc::new(alloc::vec![None; PAGE_CHUNKS]));
        let chunk =
            Arc::make_mut(page)[at % PAGE_CHUNKS].get_or_insert_with(|| alloc::vec![0; len].into());
        Arc::make_mut(chunk)
    }

    pub fn clear(&mut self, at: usize) {
        let Some(slot) = self.pages.get_mut(at / PAGE_CHUNKS) else {
            return;
        };
        if let Some(page) = slot {
            let page = Arc::make_mut(page);
            page[at % PAGE_CHUNKS] = None;
            if page.iter().all(Option::is_none) {
                *slot = None;
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Arc<[i64]>)> {
        let pages = self.pages.iter().enumerate();
        pages.flat_map(|(at, page)| {
            let chunks = page.iter().flat_map(|page| page.iter().enumerate());
            chunks.filter_map(move |(i, chunk)| Some((at * PAGE_CHUNKS + i, chunk.as_ref()?)))
        })
    }
}

/// A vector in shared pages: a clone shares them until one side writes.
#[derive(Clone, Debug)]
pub(crate) struct Pages<T> {
    pub pages: Vec<Arc<Vec<T>>>,
    pub len: usize,
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            len: 0,
        }
    }
}

impl<T: Clone + Default> Pages<T> {
    pub fn get(&self, at: usize) -> Option<&T> {
        self.pages.get(at / PAGE)?.get(at % PAGE)
    }

    pub fn get_mut(&mut self, at: usize) -> &mut T {
        &mut Arc::make_mut(&mut self.pages[at / PAGE])[at % PAGE]
    }

    pub fn grow(&mut self, len: usize) {
        while self.pages.len() * PAGE < len {
            self.pages.push(Arc::new(alloc::vec![T::default(); PAGE]));
        }
        self.len = self.len.max(len);
    }
}

/// Rows in a chunk: what a change copies.
pub(crate) const CHUNK: usize = 8;
pub(crate) const PAGE: usize = 256;
pub(crate) const PAGE_CHUNKS: usize = 64;
