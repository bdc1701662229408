//! The contents of containers (texts, byte buffers, lists, maps), stored apart from rows.
//!
//! A row has a fixed number of integers, a container has not. So the column of a container holds a
//! *cell*: a 63-bit hash of its content, 0 if it is empty. Rows with containers are compared,
//! stored and acknowledged like any others, and a [`Library`] resolves a cell to its content.

use alloc::{boxed::Box, vec::Vec};

use crate::{Field, FieldKind};

/// The content of a text, a byte buffer, a list or a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A text or a byte buffer.
    Bytes(Box<[u8]>),
    /// The columns of all items of a list or map, one item after the other.
    Cells(Box<[i64]>),
}

impl Content {
    /// Maximum number of integers (or bytes).
    pub const MAX_CELLS: usize = 1 << 16;

    /// Whether it has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of integers (or bytes).
    pub fn len(&self) -> usize {
        match self {
            Content::Bytes(bytes) => bytes.len(),
            Content::Cells(cells) => cells.len(),
        }
    }

    /// The value of a column with this content. The hash resists accidental collisions, not
    /// deliberate ones: an archive refuses a second content with the same cell.
    pub fn cell(&self) -> i64 {
        if self.is_empty() {
            return 0;
        }
        let kind = u64::from(matches!(self, Content::Cells(_)));
        let mut hash = Hash::new(0);
        hash.add((self.len() as u64) << 1 | kind);
        match self {
            Content::Bytes(bytes) => {
                for word in bytes.chunks(8) {
                    let mut wide = [0; 8];
                    wide[..word.len()].copy_from_slice(word);
                    hash.add(u64::from_le_bytes(wide));
                }
            }
            Content::Cells(cells) => {
                cells.iter().for_each(|&cell| hash.add(cell as u64));
            }
        }
        ((hash.value() >> 1) as i64).max(1)
    }
}

/// Resolves cells to contents.
pub trait Library {
    /// The content of a container whose column has this value; never called with 0, the empty
    /// content.
    fn content(&self, cell: i64) -> Option<&Content>;
}

/// A row together with the contents of its containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parcel {
    /// The row.
    pub row: Vec<i64>,
    /// The contents of its containers, in the order of their columns, without empty ones.
    pub contents: Vec<Content>,
}

impl Library for Parcel {
    fn content(&self, cell: i64) -> Option<&Content> {
        self.contents.iter().find(|content| content.cell() == cell)
    }
}

/// The limits of a container's content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Container<'a> {
    /// The columns of an item; empty for texts and byte buffers, whose items are bytes.
    pub item: &'a [Field],
    /// How many of those form the key by which items are sorted; 0 without a key.
    pub key: usize,
    /// Whether the bytes must be UTF-8.
    pub text: bool,
    /// Maximum number of items.
    pub max_len: usize,
}

impl Container<'_> {
    /// Integers (or bytes) per item.
    pub fn width(&self) -> usize {
        self.item.len().max(1)
    }

    /// Whether `content` is valid in it: right kind, not too long, every column in range, keys
    /// strictly ascending, text in UTF-8.
    pub fn admits(&self, content: &Content) -> bool {
        if content.len() > self.max_len * self.width() {
            return false;
        }
        match content {
            Content::Bytes(bytes) if self.item.is_empty() => {
                !self.text || core::str::from_utf8(bytes).is_ok()
            }
            Content::Cells(cells) if !self.item.is_empty() => {
                let mut items = cells.chunks_exact(self.width());
                let fits = |item: &[i64]| {
                    let mut fields = item.iter().zip(self.item);
                    fields.all(|(&value, field)| field.kind.admits(value))
                };
                let sorted = |pair: &[&[i64]]| pair[0][..self.key] < pair[1][..self.key];
                let ascends = || {
                    let items: Vec<&[i64]> = cells.chunks_exact(self.width()).collect();
                    items.windows(2).all(sorted)
                };
                items.all(fits)
                    && cells.len().is_multiple_of(self.width())
                    && (self.key == 0 || ascends())
            }
            _ => content.is_empty(),
        }
    }
}

impl FieldKind {
    /// The limits of a column's content, if this kind is a container.
    pub fn container(&self) -> Option<Container<'_>> {
        let (item, key, text, max_len): (&[Field], _, _, _) = match self {
            FieldKind::Text { max_len } => (&[], 0, true, max_len),
            FieldKind::Bytes { max_len } => (&[], 0, false, max_len),
            FieldKind::List { item, max_len } => (item, 0, false, max_len),
            FieldKind::Map { item, key, max_len } => (item, usize::from(*key), false, max_len),
            _ => return None,
        };
        Some(Container {
            item,
            key,
            text,
            max_len: *max_len as usize,
        })
    }
}

/// The hash behind cells; the same steps as a packet's checksum.
struct Hash(u64);

impl Hash {
    fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    fn add(&mut self, value: u64) {
        self.0 = (self.0 ^ value)
            .wrapping_mul(0xD6E8_FEB8_6659_FD93)
            .rotate_left(32);
    }

    fn value(&self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ mixed >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_tell_contents_apart() {
        let bytes = |text: &str| Content::Bytes(text.as_bytes().into()).cell();
        let cells = |cells: &[i64]| Content::Cells(cells.into()).cell();
        assert_eq!(bytes(""), 0);
        assert_eq!(cells(&[]), 0);
        let different = [
            bytes("a"),
            bytes("b"),
            bytes("a\0"),
            bytes("\0"),
            bytes("\0\0"),
            cells(&[0]),
            cells(&[0, 0]),
            cells(&[97]),
            cells(&[97, 1]),
            cells(&[1, 97]),
            bytes("\u{1d}"),
            cells(&[28]),
            cells(&[29]),
        ];
        for (at, cell) in different.iter().enumerate() {
            assert!(*cell > 0 && !different[..at].contains(cell), "{at}");
        }
    }

    #[test]
    fn cells_are_part_of_the_format() {
        let text = Content::Bytes(b"Prescient".as_slice().into());
        let cells = Content::Cells([3, -1].into());
        assert_eq!(text.cell(), 5_940_961_907_957_468_585);
        assert_eq!(cells.cell(), 1_177_021_054_916_912_493);
    }
}
