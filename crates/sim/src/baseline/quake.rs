//! Changed fields relative to the last acknowledged tick, through a fixed Huffman code.
//!
//! As in Quake 3: unchanged entities are not sent; changed ones have a bit per field up to the last
//! changed one, and the new values. Only the acknowledged snapshots are kept between packets, so
//! any packet may be lost. Unlike Quake, numbers are sent as differences with as many bytes as they
//! need, since their ranges are unknown.

use std::sync::Arc;

use prescient_schema::{Schema, Shape};

use super::{
    archive::{Applications, Decode, Decoded, Encode, Past},
    bytes::{Input, unzigzag, write_varint, zigzag},
    huffman::{BitReader, BitWriter},
    raw::read_base,
    snapshot::{Item, SetChange, Snapshot},
};
use crate::harness::ReceiveError;

pub(super) struct QuakeEncoder {
    shapes: Vec<Vec<Shape>>,
}

impl QuakeEncoder {
    pub(super) fn new(schema: &Schema) -> Self {
        Self {
            shapes: shapes(schema),
        }
    }
}

impl Encode for QuakeEncoder {
    type Model = ();
    const RELIABLE: bool = false;

    fn encode(&mut self, tick: u64, current: &Snapshot, known: &[&Past<()>]) -> (Vec<u8>, ()) {
        let base = known.first();
        let mut output = Vec::new();
        write_varint(&mut output, tick);
        write_varint(&mut output, base.map_or(0, |base| tick - base.tick));
        let base = base.map_or(&[][..], |base| &base.snapshot);
        let change = SetChange::between(base, current);
        change.write(base, &mut output);
        let members = change.members(base);
        let mut writer = BitWriter::default();
        for (item, _) in current
            .iter()
            .zip(&members)
            .filter(|(_, member)| member.base.is_none())
        {
            write_row(
                &self.shapes[usize::from(item.class)],
                &item.row,
                None,
                &mut writer,
            );
        }
        let mut unchanged = 0;
        for (item, member) in current.iter().zip(&members) {
            let Some(rank) = member.base else { continue };
            let old = &base[rank].row;
            if *old == item.row {
                unchanged += 1;
                continue;
            }
            writer.varint(unchanged + 1);
            unchanged = 0;
            write_row(
                &self.shapes[usize::from(item.class)],
                &item.row,
                Some(old),
                &mut writer,
            );
        }
        writer.varint(0);
        output.extend(writer.finish());
        (output, ())
    }
}

fn write_row(shapes: &[Shape], row: &[i64], base: Option<&[i64]>, writer: &mut BitWriter) {
    let old = |field: usize| base.map_or(0, |base| base[field]);
    let last = (0..row.len()).rev().find(|&field| row[field] != old(field));
    let length = last.map_or(0, |last| last + 1);
    writer.varint(length as u64);
    for field in 0..length {
        let (new, old) = (row[field], old(field));
        writer.bits(u32::from(new != old), 1);
        if new == old {
            continue;
        }
        match shapes[field] {
            Shape::Symbol { values: 0..=2 } => {}
            Shape::Symbol { .. } => writer.varint(new as u64),
            _ => {
                let difference = zigzag(new.wrapping_sub(old));
                let bytes = 8 - difference.leading_zeros() / 8;
                writer.bits(bytes - 1, 3);
                difference.to_le_bytes()[..bytes as usize]
                    .iter()
                    .for_each(|&b| writer.byte(b));
            }
        }
    }
}

pub(super) struct QuakeDecoder {
    schema: Arc<Schema>,
    shapes: Vec<Vec<Shape>>,
}

impl QuakeDecoder {
    pub(super) fn new(schema: Arc<Schema>) -> Self {
        let shapes = shapes(&schema);
        Self { schema, shapes }
    }
}

impl Decode for QuakeDecoder {
    type Model = ();

    fn decode(
        &mut self,
        packet: &[u8],
        past: &Applications<()>,
    ) -> Result<Decoded<()>, ReceiveError> {
        let mut input = Input(packet);
        let tick = input.varint()?;
        let (oldest_named, base) = read_base(tick, &mut input, past)?;
        let members = SetChange::read(&self.schema, base, &mut input)?.members(base);
        let mut reader = BitReader::new(input);
        let mut new = Vec::new();
        for member in members.iter().filter(|member| member.base.is_none()) {
            new.push(read_row(&self.shapes[usize::from(member.class)], None, &mut reader)?.into());
        }
        let mut new = new.into_iter();
        let mut items: Vec<Item> = Vec::with_capacity(members.len());
        let mut ahead = reader.varint()?;
        for member in members {
            let row: Arc<[i64]> = match member.base.map(|rank| &base[rank].row) {
                None => new
                    .next()
                    .ok_or(ReceiveError::Malformed("a new entity has no row"))?,
                Some(old) if ahead == 1 => {
                    let shapes = &self.shapes[usize::from(member.class)];
                    let row = read_row(shapes, Some(old), &mut reader)?.into();
                    ahead = reader.varint()?;
                    row
                }
                Some(old) => {
                    ahead = ahead.saturating_sub(1);
                    old.clone()
                }
            };
            items.push(Item {
                id: member.id,
                class: member.class,
                row,
            });
        }
        Ok(Decoded::plain(tick, items, oldest_named))
    }
}

fn read_row(
    shapes: &[Shape],
    base: Option<&[i64]>,
    reader: &mut BitReader,
) -> Result<Vec<i64>, ReceiveError> {
    let mut row = base.map_or_else(|| vec![0; shapes.len()], <[i64]>::to_vec);
    let length = reader.varint()?;
    if length > shapes.len() as u64 {
        return Err(ReceiveError::Malformed("more fields than the class has"));
    }
    for (value, shape) in row.iter_mut().zip(shapes).take(length as usize) {
        if reader.bits(1)? == 0 {
            continue;
        }
        match *shape {
            Shape::Symbol { values: 0..=2 } => *value ^= 1,
            Shape::Symbol { values } => {
                let state = reader.varint()?;
                if state >= u64::from(values) {
                    return Err(ReceiveError::Malformed("no such state"));
                }
                *value = state as i64;
            }
            _ => {
                let mut bytes = [0; 8];
                let count = reader.bits(3)? as usize + 1;
                for byte in &mut bytes[..count] {
                    *byte = reader.byte()?;
                }
                *value = value.wrapping_add(unzigzag(u64::from_le_bytes(bytes)));
            }
        }
    }
    Ok(row)
}

fn shapes(schema: &Schema) -> Vec<Vec<Shape>> {
    let classes = schema.classes.iter();
    classes
        .map(|class| {
            class
                .fields
                .iter()
                .map(|field| field.kind.shape())
                .collect()
        })
        .collect()
}
