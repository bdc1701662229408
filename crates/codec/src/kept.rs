//! Rows and contents that the model keeps although the archive may drop them.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::ops::Deref;

use prescient_schema::Content;

use crate::{
    layout::{ClassLayout, Layout},
    shared_model::Rows,
};

/// A content with its cell, which is a hash over the whole content and therefore kept.
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

    /// Bytes that it holds, including its entry in an archive.
    pub(crate) fn bytes(&self) -> usize {
        content_bytes(&self.content)
    }
}

/// Bytes that a content holds, including its entry in an archive.
pub(crate) fn content_bytes(content: &Content) -> usize {
    ENTRY
        + match content {
            Content::Bytes(bytes) => bytes.len(),
            Content::Cells(cells) => size_of_val(&**cells),
        }
}

/// Approximate bytes of a content's entry in an archive.
const ENTRY: usize = 128;

/// A row with the contents of its containers.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptRow {
    row: Box<[i64]>,
    contents: Vec<HashedContent>,
}

impl KeptRow {
    /// Keeps a row with contents from the archive; `None` if it does not have the class's number of
    /// fields.
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

    pub(crate) fn without_contents(row: Vec<i64>) -> Self {
        Self {
            row: row.into(),
            contents: Vec::new(),
        }
    }

    /// The row, if it has this class's number of fields.
    pub(crate) fn of(&self, class: &ClassLayout) -> Option<&[i64]> {
        (self.row.len() == class.shapes.len()).then_some(&*self.row)
    }

    /// The contents of its containers.
    pub(crate) fn contents(&self) -> &[HashedContent] {
        &self.contents
    }

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
