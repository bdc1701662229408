//! All fields of all entities, every tick, at natural width.
//!
//! Only the visible set is sent as a change from the last acknowledged tick. This is the document's
//! "binary contents" and shows the amount of state.

use std::sync::Arc;

use prescient_schema::Schema;

use super::{
    archive::{Applications, Decode, Decoded, Encode, Past},
    bytes::{Input, write_varint},
    snapshot::{Item, SetChange, Snapshot},
    widths::Widths,
};
use crate::harness::ReceiveError;

pub(super) struct RawEncoder {
    widths: Widths,
}

impl RawEncoder {
    pub(super) fn new(schema: &Schema) -> Self {
        Self {
            widths: Widths::new(schema),
        }
    }
}

impl Encode for RawEncoder {
    type Model = ();
    const RELIABLE: bool = false;

    fn encode(&mut self, tick: u64, current: &Snapshot, known: &[&Past<()>]) -> (Vec<u8>, ()) {
        let base = known.first();
        let mut output = Vec::new();
        write_varint(&mut output, tick);
        write_varint(&mut output, base.map_or(0, |base| tick - base.tick));
        let base = base.map_or(&[][..], |base| &base.snapshot);
        SetChange::between(base, current).write(base, &mut output);
        for item in current.iter() {
            self.widths.fit(item);
        }
        self.widths.write(0, &mut output);
        for item in current.iter() {
            self.widths.write_row(item, None, |new, _| new, &mut output);
        }
        (output, ())
    }
}

pub(super) struct RawDecoder {
    schema: Arc<Schema>,
}

impl RawDecoder {
    pub(super) fn new(schema: Arc<Schema>) -> Self {
        Self { schema }
    }
}

impl Decode for RawDecoder {
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
        let mut widths = Widths::new(&self.schema);
        widths.read(&mut input)?;
        let items = widths.read_rows(members, base, |new, _| new, &mut input)?;
        input.end()?;
        Ok(Decoded::plain(tick, items, oldest_named))
    }
}

/// Reads the distance in ticks of the baseline (0: none) and finds it.
pub(super) fn read_base<'a, M>(
    tick: u64,
    input: &mut Input,
    past: &'a Applications<M>,
) -> Result<(Option<u64>, &'a [Item]), ReceiveError> {
    let back = input.varint()?;
    if back == 0 {
        return Ok((None, &[]));
    }
    let named = tick
        .checked_sub(back)
        .ok_or(ReceiveError::MissingBaseline { tick })?;
    Ok((Some(named), &past.find(named, tick)?.snapshot))
}
