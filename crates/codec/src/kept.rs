//! Contents and rows that outlive their place in an archive.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::ops::Deref;

use prescient_schema::Content;

use crate::{
    layout::{ClassLayout, Layout},
    shared_model::Rows,
};

/// A content and its cell, which takes a walk over the whole content to compute.
#[derive(Clone, Debug)]
pub(crate) struct HashedContent {
    pub cell: i64,
    pub content: Arc<Content>,
}

impl HashedContent {
    pub(crate) fn new(content: Content) -> Self {
        Self {
            cell: content.cell(),
            content: Arc::new(content),
        }
    }

    /// Bytes that it holds, with what it takes to find it.
    pub(crate) fn bytes(&self) -> usize {
        content_bytes(&self.content)
    }
}

/// Bytes that a content holds, with what it takes to find it.
pub(crate) fn content_bytes(content: &Content) -> usize {
    ENTRY
        + match content {
            Content::Bytes(bytes) => bytes.len(),
            Content::Cells(cells) => size_of_val(&**cells),
        }
}

/// Bytes of a content's entry in an archive, roughly.
const ENTRY: usize = 128;

/// A row together with what its containers hold, which an archive would forget.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptRow {
    row: Box<[i64]>,
    contents: Vec<HashedContent>,
}

impl KeptRow {
    /// Keeps a row whose contents one end still has; `None` if it is no row of the class.
    pub(crate) fn new(layout: &Layout, class: u16, row: &[i64], rows: &dyn Rows) -> Option<Self> {
        Self::with(layout, class, row, |cell| rows.content(cell).cloned())
    }

    pub(crate) fn with(
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
        let label = |cell| find(cell).map(|content| HashedContent { cell, content });
        Some(Self {
            row: row.into(),
            contents: cells.filter(|&cell| cell != 0).filter_map(label).collect(),
        })
    }

    /// Keeps a row without contents.
    pub(crate) fn without_contents(row: Vec<i64>) -> Self {
        Self {
            row: row.into(),
            contents: Vec::new(),
        }
    }

    /// The row, if it can be one of this class.
    pub(crate) fn of(&self, class: &ClassLayout) -> Option<&[i64]> {
        (self.row.len() == class.shapes.len()).then_some(&*self.row)
    }

    /// What its containers hold.
    pub(crate) fn contents(&self) -> &[HashedContent] {
        &self.contents
    }

    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> usize {
        let contents: usize = self.contents.iter().map(HashedContent::bytes).sum();
        size_of_val(&*self.row) + contents
    }
}

impl Deref for KeptRow {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        &self.row
    }
}
