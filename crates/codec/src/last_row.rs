//! Rows of entities that were despawned.

use alloc::sync::Arc;

use prescient_schema::{Content, Library};

use crate::{history::Archive, kept::KeptRow, layout::Layout, units::Slot};

/// The last row of an entity, with the contents of its containers.
#[derive(Clone, Debug)]
pub struct LastRow {
    class: u16,
    row: KeptRow,
}

impl LastRow {
    /// The newest row of a living entity.
    pub(crate) fn of(layout: &Layout, archive: &Archive, slot: Slot) -> Option<Self> {
        let class = archive.class(slot)?;
        let find = |cell| archive.content(cell).cloned().map(Arc::new);
        let row = KeptRow::with(layout, class, archive.latest(slot)?, find)?;
        Some(Self { class, row })
    }

    /// The entity's class.
    pub fn class(&self) -> u16 {
        self.class
    }

    /// The row.
    pub fn row(&self) -> &[i64] {
        &self.row
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.row.bytes()
    }
}

impl Library for LastRow {
    fn content(&self, cell: i64) -> Option<&Content> {
        let contents = self.row.contents().iter();
        let mut found = contents.filter(|content| content.cell == cell);
        found.next().map(|content| &*content.content)
    }
}
