//! Texts, byte buffers, lists, maps and sets: one column with the cell of their content.
//!
//! Items are flattened like any value, but into the content instead of the row. Precision levels
//! and rates of change do not apply inside containers.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};

use super::{Buffer, Misfit, Numeric, ReadError, Real, Sink, Source, Value};
use crate::{ClassBuilder, Content, Declaration, Field, FieldKind, Priority};

/// UTF-8; a text that is too long is cut at the end of a character.
impl Value for String {
    fn describe(name: &str, how: &Declaration, _: &str, class: &mut ClassBuilder) {
        class.field(how.column(
            name,
            FieldKind::Text {
                max_len: max_len(how, 1),
            },
        ));
    }

    fn width(_: &Declaration, _: &str) -> usize {
        1
    }

    fn write(&self, how: &Declaration, _: &str, row: &mut impl Sink) {
        let mut end = self.len().min(max_len(how, 1) as usize);
        while !self.is_char_boundary(end) {
            end -= 1;
        }
        if end < self.len() {
            row.note_misfit(Misfit::TooLong, how.saturate);
        }
        row.put_content(Content::Bytes(self.as_bytes()[..end].into()));
    }

    fn read(_: &Declaration, _: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
        row.take_content(|content| match content {
            Content::Bytes(bytes) => core::str::from_utf8(bytes).ok().map(String::from),
            Content::Cells(_) => None,
        })
        .map(Option::unwrap_or_default)
    }
}

/// A list, or with `bytes` a byte buffer; one that is too long is cut.
impl<T: Value> Value for Vec<T> {
    fn describe(name: &str, how: &Declaration, table: &str, class: &mut ClassBuilder) {
        let kind = if how.bytes {
            FieldKind::Bytes {
                max_len: max_len(how, 1),
            }
        } else {
            let item = columns::<T>("", how, table);
            let max_len = max_len(how, item.len());
            FieldKind::List { item, max_len }
        };
        class.field(how.column(name, kind));
    }

    fn width(_: &Declaration, _: &str) -> usize {
        1
    }

    fn write(&self, how: &Declaration, table: &str, row: &mut impl Sink) {
        let width = T::width(how, table);
        let max_len = max_len(how, if how.bytes { 1 } else { width }) as usize;
        let mut items = Items::with_capacity(self.len().min(max_len) * width);
        for item in self.iter().take(max_len) {
            item.write(how, table, &mut items);
        }
        let cells = items.into_cells(row);
        if self.len() > max_len {
            row.note_misfit(Misfit::TooLong, how.saturate);
        }
        row.put_content(if how.bytes {
            Content::Bytes(cells.iter().map(|&cell| cell as u8).collect())
        } else {
            Content::Cells(cells.into())
        });
    }

    fn read(how: &Declaration, table: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
        let items = row.take_content(|content| match content {
            Content::Bytes(bytes) if how.bytes => {
                let wide: Vec<i64> = bytes.iter().map(|&byte| i64::from(byte)).collect();
                items(&wide, |item| T::read(how, table, item))
            }
            Content::Cells(cells) if !how.bytes => items(cells, |item| T::read(how, table, item)),
            _ => None,
        });
        items.map(Option::unwrap_or_default)
    }
}

impl Buffer for Vec<u8> {}
impl<T: Numeric> Numeric for Vec<T> {}
impl<T: Real> Real for Vec<T> {}

/// Items sorted by the columns of their keys; items beyond the declared length are left out.
/// Attributes about numbers apply to the values.
impl<K: Value + Ord, V: Value> Value for BTreeMap<K, V> {
    fn describe(name: &str, how: &Declaration, table: &str, class: &mut ClassBuilder) {
        let mut item = columns::<K>("key", &Declaration::PLAIN, table);
        let key = item.len() as u8;
        item.extend(columns::<V>("value", how, table));
        let max_len = max_len(how, item.len());
        class.field(how.column(name, FieldKind::Map { item, key, max_len }));
    }

    fn width(_: &Declaration, _: &str) -> usize {
        1
    }

    fn write(&self, how: &Declaration, table: &str, row: &mut impl Sink) {
        let key = K::width(&Declaration::PLAIN, table);
        let width = key + V::width(how, table);
        let items = self.iter().map(|(key, value)| {
            let mut item = Items::with_capacity(width);
            key.write(&Declaration::PLAIN, table, &mut item);
            value.write(how, table, &mut item);
            item.into_cells(row)
        });
        let items = items.collect();
        put_sorted(items, key, max_len(how, width), how, row);
    }

    fn read(how: &Declaration, table: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
        let read = |item: &mut Source<'_>| {
            let key = K::read(&Declaration::PLAIN, table, item)?;
            Ok((key, V::read(how, table, item)?))
        };
        row.take_content(|content| match content {
            Content::Cells(cells) => items(cells, read),
            Content::Bytes(_) => None,
        })
        .map(|items| items.unwrap_or_default().into_iter().collect())
    }
}

impl<K: Value + Ord, V: Numeric> Numeric for BTreeMap<K, V> {}
impl<K: Value + Ord, V: Real> Real for BTreeMap<K, V> {}

/// A map without values.
impl<K: Value + Ord> Value for BTreeSet<K> {
    fn describe(name: &str, how: &Declaration, table: &str, class: &mut ClassBuilder) {
        let item = columns::<K>("key", &Declaration::PLAIN, table);
        let (key, max_len) = (item.len() as u8, max_len(how, item.len()));
        class.field(how.column(name, FieldKind::Map { item, key, max_len }));
    }

    fn width(_: &Declaration, _: &str) -> usize {
        1
    }

    fn write(&self, how: &Declaration, table: &str, row: &mut impl Sink) {
        let width = K::width(&Declaration::PLAIN, table);
        let items = self.iter().map(|key| {
            let mut item = Items::with_capacity(width);
            key.write(&Declaration::PLAIN, table, &mut item);
            item.into_cells(row)
        });
        let items = items.collect();
        put_sorted(items, width, max_len(how, width), how, row);
    }

    fn read(_: &Declaration, table: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
        row.take_content(|content| match content {
            Content::Cells(cells) => items(cells, |item| K::read(&Declaration::PLAIN, table, item)),
            Content::Bytes(_) => None,
        })
        .map(|items| items.unwrap_or_default().into_iter().collect())
    }
}

/// Sorts items by their key columns. They are signed, so unsigned 64-bit keys sort differently from
/// Rust's order.
fn put_sorted(
    mut items: Vec<Vec<i64>>,
    key: usize,
    max_len: u32,
    how: &Declaration,
    row: &mut impl Sink,
) {
    items.sort_by(|a, b| a[..key].cmp(&b[..key]));
    items.dedup_by(|a, b| a[..key] == b[..key]);
    let max_len = max_len as usize;
    if items.len() > max_len {
        row.note_misfit(Misfit::TooLong, how.saturate);
    }
    items.truncate(max_len);
    row.put_content(Content::Cells(items.concat().into()));
}

/// The cells of items, and which of them do not fit.
struct Items {
    cells: Vec<i64>,
    misfits: Vec<(Misfit, bool)>,
}

impl Items {
    fn with_capacity(cells: usize) -> Self {
        Self {
            cells: Vec::with_capacity(cells),
            misfits: Vec::new(),
        }
    }

    /// The cells; misfits are those of the container.
    fn into_cells(self, row: &mut impl Sink) -> Vec<i64> {
        for (misfit, saturate) in self.misfits {
            row.note_misfit(misfit, saturate);
        }
        self.cells
    }
}

impl Sink for Items {
    fn put(&mut self, value: i64) {
        self.cells.push(value);
    }

    fn note_misfit(&mut self, misfit: Misfit, saturate: bool) {
        self.misfits.push((misfit, saturate));
    }
}

/// The columns of an item.
fn columns<T: Value>(name: &str, how: &Declaration, table: &str) -> Vec<Field> {
    let how = Declaration {
        priority: Some(Priority::default()),
        levels: None,
        only_on_spawn: false,
        optional: false,
        ..*how
    };
    let mut class = ClassBuilder::new("item");
    T::describe(name, &how, table, &mut class);
    let mut fields = class.into_fields();
    for field in &mut fields {
        field.only_on_spawn = false;
        field.optional = false;
        if field.name.is_empty() {
            field.name = "item".into();
        }
    }
    fields
}

/// Maximum number of items of a container whose items have `width` columns.
fn max_len(how: &Declaration, width: usize) -> u32 {
    let room = (Content::MAX_CELLS / width.max(1)) as u32;
    how.max_len.unwrap_or(USUAL.min(room))
}

/// Default maximum number of items.
const USUAL: u32 = 4096;

/// All items of a content; `None` if one of them is invalid.
fn items<T>(
    cells: &[i64],
    mut read: impl FnMut(&mut Source<'_>) -> Result<T, ReadError>,
) -> Option<Vec<T>> {
    let mut source = Source::new(cells);
    let mut items = Vec::new();
    while !source.is_done() {
        let before = source.clone();
        items.push(read(&mut source).ok()?);
        // An item without columns would loop for ever.
        if source.is_at(&before) {
            return None;
        }
    }
    Some(items)
}
