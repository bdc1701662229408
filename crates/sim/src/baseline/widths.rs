//! Fields at natural width, for `raw` and the byte-difference methods.
//!
//! Numbers take four bytes, enumerations what their states need, booleans one. A numeric field
//! takes eight bytes from the first value on that does not fit into four; the packet announces it,
//! because the schema does not bound values.

use prescient_schema::{FieldKind, Schema};

use super::{
    bytes::{Input, write_varint},
    snapshot::{Item, Member},
};
use crate::harness::ReceiveError;

/// Bytes per field, by class.
#[derive(Clone, Debug)]
pub(super) struct Widths {
    bytes: Vec<Vec<Width>>,
    wide: Vec<(u16, u16)>,
}

#[derive(Clone, Copy, Debug)]
struct Width {
    bytes: u8,
    number: bool,
}

impl Widths {
    pub(super) fn new(schema: &Schema) -> Self {
        let width = |kind: &FieldKind| match kind {
            FieldKind::Enum { values: 0..=0x100 } | FieldKind::Bool => Width {
                bytes: 1,
                number: false,
            },
            FieldKind::Enum {
                values: 0..=0x1_0000,
            } => Width {
                bytes: 2,
                number: false,
            },
            FieldKind::Enum { .. } => Width {
                bytes: 4,
                number: false,
            },
            _ => Width {
                bytes: 4,
                number: true,
            },
        };
        let classes = schema.classes.iter();
        let bytes = classes.map(|class| {
            class
                .fields
                .iter()
                .map(|field| width(&field.kind))
                .collect()
        });
        Self {
            bytes: bytes.collect(),
            wide: Vec::new(),
        }
    }

    /// The fields that take eight bytes so far.
    pub(super) fn wide(&self) -> &[(u16, u16)] {
        &self.wide
    }

    /// Bytes of a row of this class.
    pub(super) fn row_bytes(&self, class: u16) -> usize {
        self.bytes[usize::from(class)]
            .iter()
            .map(|width| usize::from(width.bytes))
            .sum()
    }

    /// Widens the fields that this row requires.
    pub(super) fn fit(&mut self, item: &Item) {
        for (field, &value) in item.row.iter().enumerate() {
            let width = &mut self.bytes[usize::from(item.class)][field];
            if width.number && width.bytes == 4 && i32::try_from(value).is_err() {
                width.bytes = 8;
                self.wide.push((item.class, field as u16));
            }
        }
    }

    /// Writes the wide fields from index `known` on.
    pub(super) fn write(&self, known: usize, output: &mut Vec<u8>) {
        write_varint(output, (self.wide.len() - known) as u64);
        for &(class, field) in &self.wide[known..] {
            write_varint(output, u64::from(class));
            write_varint(output, u64::from(field));
        }
    }

    pub(super) fn read(&mut self, input: &mut Input) -> Result<(), ReceiveError> {
        for _ in 0..input.count()? {
            let (class, field) = (input.varint()? as usize, input.varint()? as usize);
            let width = self
                .bytes
                .get_mut(class)
                .and_then(|fields| fields.get_mut(field));
            let width = width.ok_or(ReceiveError::Malformed("an unknown field is wide"))?;
            if width.bytes < 8 {
                width.bytes = 8;
                self.wide.push((class as u16, field as u16));
            }
        }
        Ok(())
    }

    /// Appends the row's bytes, each combined with the same byte of `base` by `combine`.
    pub(super) fn write_row(
        &self,
        item: &Item,
        base: Option<&[i64]>,
        combine: fn(u8, u8) -> u8,
        output: &mut Vec<u8>,
    ) {
        for (field, width) in self.bytes[usize::from(item.class)].iter().enumerate() {
            let new = item.row[field].to_le_bytes();
            let old = base.map_or(0, |base| base[field]).to_le_bytes();
            let pairs = new.iter().zip(&old).take(usize::from(width.bytes));
            output.extend(pairs.map(|(&new, &old)| combine(new, old)));
        }
    }

    /// Reads a row for every member; `combine` is the inverse of that of [`Widths::write_row`].
    pub(super) fn read_rows(
        &self,
        members: Vec<Member>,
        base: &[Item],
        combine: fn(u8, u8) -> u8,
        input: &mut Input,
    ) -> Result<Vec<Item>, ReceiveError> {
        let read = |Member {
                        id,
                        class,
                        base: rank,
                    }| {
            let old = rank.map(|rank: usize| &base[rank].row[..]);
            let row = self.read_row(class, old, combine, input)?.into();
            Ok(Item { id, class, row })
        };
        members.into_iter().map(read).collect()
    }

    /// Reads the output of [`Widths::write_row`]; `combine` is the inverse of its.
    pub(super) fn read_row(
        &self,
        class: u16,
        base: Option<&[i64]>,
        combine: fn(u8, u8) -> u8,
        input: &mut Input,
    ) -> Result<Vec<i64>, ReceiveError> {
        let widths = &self.bytes[usize::from(class)];
        let mut row = Vec::with_capacity(widths.len());
        for (field, width) in widths.iter().enumerate() {
            let old = base.map_or(0, |base| base[field]).to_le_bytes();
            let mut new = [0; 8];
            let coded = input.take(usize::from(width.bytes))?;
            for ((new, &coded), old) in new.iter_mut().zip(coded).zip(old) {
                *new = combine(coded, old);
            }
            let value = i64::from_le_bytes(new);
            let narrow = width.number && width.bytes == 4;
            row.push(if narrow {
                i64::from(value as i32)
            } else {
                value
            });
        }
        Ok(row)
    }
}
