//! Byte differences from the last acknowledged tick through one compressed stream.
//!
//! The learned protocol's stand-in for Quake 3: every byte of every field minus the same byte in
//! the last acknowledged snapshot, entity by entity in order of id, so that the compressor gets
//! long runs of zeros. New entities are differences from zeros.

use std::sync::Arc;

use prescient_schema::Schema;

use super::{
    archive::{Applications, Decode, Decoded, Encode, Past},
    bytes::{Input, write_varint},
    raw::read_base,
    snapshot::{Item, SetChange, Snapshot},
    stream::{Pack, Unpack},
    widths::Widths,
};
use crate::harness::ReceiveError;

pub(super) struct DifferenceEncoder<P> {
    pack: P,
    widths: Widths,
    last_tick: u64,
}

impl<P: Pack> DifferenceEncoder<P> {
    pub(super) fn new(schema: &Schema, pack: P) -> Self {
        Self {
            pack,
            widths: Widths::new(schema),
            last_tick: 0,
        }
    }
}

impl<P: Pack> Encode for DifferenceEncoder<P> {
    type Model = ();
    const RELIABLE: bool = true;

    fn encode(&mut self, tick: u64, current: &Snapshot, known: &[&Past<()>]) -> (Vec<u8>, ()) {
        let base = known.first();
        let mut plain = Vec::new();
        write_varint(&mut plain, tick - self.last_tick);
        write_varint(&mut plain, base.map_or(0, |base| tick - base.tick));
        self.last_tick = tick;
        let base = base.map_or(&[][..], |base| &base.snapshot);
        let change = SetChange::between(base, current);
        change.write(base, &mut plain);
        let members = change.members(base);
        let known = self.widths.wide().len();
        let row = |rank: usize| &base[rank].row;
        let rests = |item: &Item, rank: Option<usize>| {
            rank.is_some_and(|rank| Arc::ptr_eq(row(rank), &item.row))
        };
        for (item, member) in current.iter().zip(&members) {
            if !rests(item, member.base) {
                self.widths.fit(item);
            }
        }
        self.widths.write(known, &mut plain);
        for (item, member) in current.iter().zip(&members) {
            if rests(item, member.base) {
                plain.resize(plain.len() + self.widths.row_bytes(item.class), 0);
            } else {
                let base = member.base.map(|rank| &row(rank)[..]);
                self.widths
                    .write_row(item, base, u8::wrapping_sub, &mut plain);
            }
        }
        (self.pack.pack(&plain), ())
    }
}

pub(super) struct DifferenceDecoder<U> {
    schema: Arc<Schema>,
    unpack: U,
    widths: Widths,
    last_tick: u64,
}

impl<U: Unpack> DifferenceDecoder<U> {
    pub(super) fn new(schema: Arc<Schema>, unpack: U) -> Self {
        let widths = Widths::new(&schema);
        Self {
            schema,
            unpack,
            widths,
            last_tick: 0,
        }
    }
}

impl<U: Unpack> Decode for DifferenceDecoder<U> {
    type Model = ();

    fn decode(
        &mut self,
        packet: &[u8],
        past: &Applications<()>,
    ) -> Result<Decoded<()>, ReceiveError> {
        let plain = self.unpack.unpack(packet)?;
        let mut input = Input(&plain);
        let tick = self.last_tick.wrapping_add(input.varint()?);
        self.last_tick = tick;
        let (oldest_named, base) = read_base(tick, &mut input, past)?;
        let members = SetChange::read(&self.schema, base, &mut input)?.members(base);
        self.widths.read(&mut input)?;
        let mut items = Vec::with_capacity(members.len());
        for member in members {
            let old = member.base.map(|rank| &base[rank].row);
            let length = self.widths.row_bytes(member.class);
            let rests = input
                .0
                .get(..length)
                .is_some_and(|bytes| bytes.iter().all(|&b| b == 0));
            let row = match old {
                Some(old) if rests => {
                    input.take(length)?;
                    old.clone()
                }
                _ => {
                    let old = old.map(|row| &row[..]);
                    self.widths
                        .read_row(member.class, old, u8::wrapping_add, &mut input)?
                        .into()
                }
            };
            items.push(Item {
                id: member.id,
                class: member.class,
                row,
            });
        }
        input.end()?;
        Ok(Decoded::plain(tick, items, oldest_named))
    }
}
