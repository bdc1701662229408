//! A row that outlives its place in an archive.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::ops::Deref;

use prescient_schema::Content;

use crate::{
    layout::{ClassLayout, Layout},
    shared_model::Rows,
};

/// A row together with what its containers hold, which an archive would forget.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptRow {
    row: Box<[i64]>,
    contents: Vec<Arc<Content>>,
}

impl KeptRow {
    /// Keeps a row whose contents one end still has; `None` if it is no row of the class.
    pub fn new(layout: &Layout, class: u16, row: &[i64], rows: &dyn Rows) -> Option<Self> {
        Self::with(layout, class, row, |cell| rows.content(cell).cloned())
    }

    pub fn with(
        layout: &Layout,
        class: u16,
        row: &[i64],
        find: impl Fn(i64) -> Option<Arc<Content>>,
    ) -> Option<Self> {
        let class = &layout.classes[usize::from(class)];
        if row.len() != class.shapes.len() {
            return None;
        }
        let cells = class.contents.iter().map(|&at| row[usize::from(at)]);
        Some(Self {
            row: row.into(),
            contents: cells.filter(|&cell| cell != 0).filter_map(find).collect(),
        })
    }

    /// Keeps a row without contents.
    pub fn bare(row: Vec<i64>) -> Self {
        Self {
            row: row.into(),
            contents: Vec::new(),
        }
    }

    /// The row, if it can be one of this class.
    pub fn of(&self, class: &ClassLayout) -> Option<&[i64]> {
        (self.row.len() == class.shapes.len()).then_some(&*self.row)
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
