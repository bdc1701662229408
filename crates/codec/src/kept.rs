//! A row that outlives its place in an archive.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::ops::Deref;

use prescient_schema::Content;

use crate::{layout::Layout, twin::Rows};

/// A row together with what its containers hold, which an archive would forget.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptRow {
    row: Box<[i64]>,
    contents: Vec<Arc<Content>>,
}

impl KeptRow {
    /// Keeps a row whose contents one end still has.
    pub fn new(layout: &Layout, class: u16, row: &[i64], rows: &dyn Rows) -> Self {
        Self::with(layout, class, row, |cell| rows.content(cell).cloned())
    }

    pub fn with(
        layout: &Layout,
        class: u16,
        row: &[i64],
        find: impl Fn(i64) -> Option<Arc<Content>>,
    ) -> Self {
        let columns = &layout.classes[usize::from(class)].contents;
        let cells = columns.iter().map(|&at| row[usize::from(at)]);
        Self {
            row: row.into(),
            contents: cells.filter(|&cell| cell != 0).filter_map(find).collect(),
        }
    }

    /// Keeps a row without contents.
    pub fn bare(row: Vec<i64>) -> Self {
        Self {
            row: row.into(),
            contents: Vec::new(),
        }
    }

    /// What its containers hold.
    pub fn contents(&self) -> &[Arc<Content>] {
        &self.contents
    }
}

impl Deref for KeptRow {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        &self.row
    }
}
