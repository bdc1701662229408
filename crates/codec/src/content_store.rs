//! What the containers of an archive's rows hold.
//!
//! Rows name contents by their cells; each content is here once, however many rows name it, and
//! stays until no row of any kept tick does. What counts are the newest rows: a content that the
//! last of them lets go of is noted in the tick at which that happened, and leaves with it.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use prescient_schema::Content;

use crate::units::Tick;

/// Contents by their cells, in shared pieces: a copy costs a word each.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContentStore {
    shards: Vec<Arc<BTreeMap<i64, StoredContent>>>,
}

#[derive(Clone, Debug)]
struct StoredContent {
    content: Arc<Content>,
    /// Columns of newest rows that name it.
    uses: u32,
    /// When it was last without any.
    released: Tick,
}

impl ContentStore {
    pub fn get(&self, cell: i64) -> Option<&Arc<Content>> {
        let stored = self.shards.get(shard(cell))?.get(&cell)?;
        Some(&stored.content)
    }

    /// Takes a content in. `None` if another one has the same cell. What nobody uses by the end
    /// of the tick was released by it.
    pub fn put(
        &mut self,
        content: Arc<Content>,
        now: Tick,
        released: &mut Vec<i64>,
    ) -> Option<i64> {
        let cell = content.cell();
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
        let stored = StoredContent {
            content,
            uses: 0,
            released: now,
        };
        released.push(cell);
        Arc::make_mut(&mut self.shards[shard(cell)]).insert(cell, stored);
        Some(cell)
    }

    /// A column of a newest row changes what it names.
    pub fn exchange(&mut self, old: i64, new: i64, now: Tick, released: &mut Vec<i64>) {
        if let Some(stored) = self.stored(new) {
            stored.uses += 1;
        }
        if let Some(stored) = self.stored(old) {
            stored.uses = stored.uses.saturating_sub(1);
            if stored.uses == 0 {
                stored.released = now;
                released.push(old);
            }
        }
    }

    /// The tick at which a content was released is no longer kept.
    pub fn drop_released(&mut self, cell: i64, at: Tick) {
        let Some(shard) = self.shards.get_mut(shard(cell)) else {
            return;
        };
        let unused = |stored: &StoredContent| stored.uses == 0 && stored.released == at;
        if shard.get(&cell).is_some_and(unused) {
            Arc::make_mut(shard).remove(&cell);
        }
    }

    /// Integers (or bytes) held.
    pub fn bytes(&self) -> usize {
        let all = self.shards.iter().flat_map(|shard| shard.values());
        all.map(|stored| match &*stored.content {
            Content::Bytes(bytes) => bytes.len(),
            Content::Cells(cells) => cells.len() * 8,
        })
        .sum()
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

/// What is copied when a snapshot is taken, and what a change copies after that.
const SHARDS: usize = 256;
