//! The contents of containers in an archive.
//!
//! Rows name a content by its cell. Each content is stored once, however many rows name it, until
//! no row of any kept tick does. Only newest rows are counted: when the last of them drops a
//! content, the content is noted in the frame of that tick and removed with that frame.

use alloc::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
    vec::Vec,
};

use prescient_schema::Content;

use crate::{
    kept::{HashedContent, content_bytes},
    units::Tick,
};

/// Contents by cell, in shards that snapshots share: cloning copies one pointer per shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContentStore {
    shards: Vec<Arc<BTreeMap<i64, StoredContent>>>,
    /// Bytes of all contents, and of the unused ones by the tick at which they were released.
    bytes: usize,
    unused: BTreeMap<Tick, usize>,
}

#[derive(Clone, Debug)]
struct StoredContent {
    content: Arc<Content>,
    /// Number of columns of newest rows that name it.
    uses: u32,
    /// The tick at which `uses` last became 0.
    released: Tick,
    /// Class and column of the containers that were checked to admit it, if it is [long](LONG).
    admitted: Vec<(u16, u16)>,
}

impl ContentStore {
    pub(crate) fn get(&self, cell: i64) -> Option<&Arc<Content>> {
        let stored = self.shards.get(shard(cell))?.get(&cell)?;
        Some(&stored.content)
    }

    /// Stores a content. `None` if another one has the same cell. It counts as released in this
    /// tick until a row names it.
    pub(crate) fn put(
        &mut self,
        HashedContent { cell, content }: HashedContent,
        now: Tick,
        released: &mut Vec<i64>,
    ) -> Option<i64> {
        if cell == 0 {
            return Some(0);
        }
        if let Some(known) = self.get(cell) {
            let same = Arc::ptr_eq(known, &content) || *known == content;
            return same.then_some(cell);
        }
        if self.shards.is_empty() {
            self.shards.resize_with(SHARDS, Arc::default);
        }
        let bytes = content_bytes(&content);
        self.bytes += bytes;
        *self.unused.entry(now).or_default() += bytes;
        let stored = StoredContent {
            content,
            uses: 0,
            released: now,
            admitted: Vec::new(),
        };
        released.push(cell);
        Arc::make_mut(&mut self.shards[shard(cell)]).insert(cell, stored);
        Some(cell)
    }

    /// Counts that a column of a newest row names another content.
    pub(crate) fn exchange(&mut self, old: i64, new: i64, now: Tick, released: &mut Vec<i64>) {
        if let Some(stored) = self.stored(new) {
            stored.uses += 1;
            if stored.uses == 1 {
                let (at, bytes) = (stored.released, content_bytes(&stored.content));
                self.note_used(at, bytes);
            }
        }
        if let Some(stored) = self.stored(old)
            && stored.uses > 0
        {
            stored.uses -= 1;
            if stored.uses == 0 {
                stored.released = now;
                released.push(old);
                let bytes = content_bytes(&stored.content);
                *self.unused.entry(now).or_default() += bytes;
            }
        }
    }

    /// Whether the container in a column of a class admits a content; `None` without the content.
    /// The answer is kept for a long content.
    pub(crate) fn admits(
        &mut self,
        cell: i64,
        column: (u16, u16),
        admits: impl FnOnce(&Content) -> bool,
    ) -> Option<bool> {
        let shard = self.shards.get_mut(shard(cell))?;
        let stored = shard.get(&cell)?;
        if stored.admitted.contains(&column) {
            return Some(true);
        }
        let fits = admits(&stored.content);
        if fits
            && stored.content.len() >= LONG
            && let Some(stored) = Arc::make_mut(shard).get_mut(&cell)
        {
            stored.admitted.push(column);
        }
        Some(fits)
    }

    /// Removes a content that is unused since a tick which is no longer kept.
    pub(crate) fn drop_released(&mut self, cell: i64, at: Tick) {
        let Some(shard) = self.shards.get_mut(shard(cell)) else {
            return;
        };
        let unused = |stored: &StoredContent| stored.uses == 0 && stored.released == at;
        if shard.get(&cell).is_some_and(unused)
            && let Some(stored) = Arc::make_mut(shard).remove(&cell)
        {
            let bytes = content_bytes(&stored.content);
            self.bytes -= bytes;
            self.note_used(at, bytes);
        }
    }

    /// Bytes that remain when ticks before this one are no longer kept.
    pub(crate) fn bytes_from(&self, first: Tick) -> usize {
        let old = self.unused.range(..first).map(|(_, bytes)| bytes);
        self.bytes - old.sum::<usize>()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Subtracts a content that was released at a tick and is used again or removed.
    fn note_used(&mut self, released: Tick, bytes: usize) {
        if let Entry::Occupied(mut entry) = self.unused.entry(released) {
            *entry.get_mut() -= bytes;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }

    fn stored(&mut self, cell: i64) -> Option<&mut StoredContent> {
        let shard = self.shards.get_mut(shard(cell))?;
        if !shard.contains_key(&cell) {
            return None;
        }
        Arc::make_mut(shard).get_mut(&cell)
    }
}

fn shard(cell: i64) -> usize {
    cell as usize % SHARDS
}

/// The more shards, the more a snapshot copies, and the less the first change after it.
const SHARDS: usize = 256;
/// Length, in integers or bytes, from which on the check of a content is remembered.
const LONG: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// A long content is checked once for each column that names it, and a wrong one each time.
    /// Fails if `admits` does not remember, or remembers a refusal or another column.
    #[test]
    fn a_long_content_is_checked_once() {
        let mut store = ContentStore::default();
        let long = HashedContent::new(Content::Cells([7; LONG].into()));
        let cell = long.cell;
        store.put(long, Tick(1), &mut Vec::new());
        let mut walks = 0;
        let mut ask = |column, fits| {
            let count = |_: &Content| {
                walks += 1;
                fits
            };
            let answer = store.admits(cell, column, count);
            (answer, walks)
        };
        assert_eq!(ask((0, 1), false), (Some(false), 1));
        assert_eq!(ask((0, 1), true), (Some(true), 2));
        assert_eq!(ask((0, 2), false), (Some(false), 3));
        assert_eq!(ask((0, 2), true), (Some(true), 4));
        for column in [(0, 1), (0, 2), (0, 1)] {
            assert_eq!(ask(column, false), (Some(true), 4));
        }
        assert_eq!(store.admits(cell + 1, (0, 1), |_| true), None);
    }

    /// Fails if `put` counts a content that is stored already, `drop_released` does not count, or
    /// `exchange` does not subtract a content that is used again.
    #[test]
    fn bytes_are_those_of_stored_contents() {
        let mut store = ContentStore::default();
        let released = &mut Vec::new();
        let content = |nth: u8| HashedContent::new(Content::Bytes([nth; 100].into()));
        let [first, second, third] = [1, 2, 3].map(|nth| content(nth).cell);
        for nth in [1, 2, 1, 3] {
            store.put(content(nth), Tick(5), released);
        }
        let each = content(1).bytes();
        let counts =
            |store: &ContentStore| [5, 6, 7, 8].map(|at| store.bytes_from(Tick(at)) / each);
        assert_eq!(counts(&store), [3, 0, 0, 0]);
        store.exchange(0, first, Tick(5), released);
        store.exchange(0, second, Tick(5), released);
        assert_eq!(counts(&store), [3, 2, 2, 2]);
        store.exchange(first, second, Tick(6), released);
        assert_eq!(counts(&store), [3, 2, 1, 1]);
        store.exchange(second, first, Tick(7), released);
        assert_eq!(counts(&store), [3, 2, 2, 2]);
        for cell in [first, second, third] {
            store.drop_released(cell, Tick(5));
        }
        assert_eq!((counts(&store), store.bytes()), ([2; 4], 2 * each));
        store.exchange(first, 0, Tick(7), released);
        store.drop_released(first, Tick(7));
        store.drop_released(first, Tick(7));
        assert_eq!((counts(&store), store.bytes()), ([1; 4], each));
        assert!(store.unused.is_empty());
    }
}
