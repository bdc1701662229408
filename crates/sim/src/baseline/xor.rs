//! XOR with the last update, deflated packet by packet, with a full update at intervals.
//!
//! The sender ignores acknowledgements and assumes that the last update arrived. After a loss the
//! receiver waits for the next full update.

use std::{ops::BitXor, sync::Arc};

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use prescient_schema::Schema;

use super::{
    archive::{Applications, Decode, Decoded, Encode, Past},
    bytes::{Input, write_varint},
    raw::read_base,
    snapshot::{SetChange, Snapshot},
    widths::Widths,
};
use crate::harness::ReceiveError;

/// Interval of full updates: once every second or two at common tick rates.
const WHOLE_EVERY: u64 = 60;
/// Maximum size of a tick; protects the receiver's memory.
const LARGEST: usize = 1 << 28;

pub(super) struct XorEncoder {
    widths: Widths,
    last: Option<(u64, Snapshot)>,
    sent: u64,
}

impl XorEncoder {
    pub(super) fn new(schema: &Schema) -> Self {
        Self {
            widths: Widths::new(schema),
            last: None,
            sent: 0,
        }
    }
}

impl Encode for XorEncoder {
    type Model = ();
    const RELIABLE: bool = false;

    fn encode(&mut self, tick: u64, current: &Snapshot, _: &[&Past<()>]) -> (Vec<u8>, ()) {
        let whole = self.sent.is_multiple_of(WHOLE_EVERY);
        self.sent += 1;
        let last = self
            .last
            .replace((tick, current.clone()))
            .filter(|_| !whole);
        let mut plain = Vec::new();
        write_varint(&mut plain, tick);
        write_varint(&mut plain, last.as_ref().map_or(0, |(last, _)| tick - last));
        let base = last.as_ref().map_or(&[][..], |(_, snapshot)| snapshot);
        let change = SetChange::between(base, current);
        change.write(base, &mut plain);
        for item in current.iter() {
            self.widths.fit(item);
        }
        self.widths.write(0, &mut plain);
        for (item, member) in current.iter().zip(change.members(base)) {
            let old = member.base.map(|rank| &base[rank].row[..]);
            self.widths.write_row(item, old, u8::bitxor, &mut plain);
        }
        (deflate(&plain), ())
    }
}

fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut deflater = Compress::new(Compression::new(6), false);
    let mut packed = Vec::with_capacity(plain.len() / 4 + 64);
    loop {
        let taken = deflater.total_in() as usize;
        let status = deflater.compress_vec(&plain[taken..], &mut packed, FlushCompress::Finish);
        if status.expect("deflate accepts any input") == Status::StreamEnd {
            return packed;
        }
        packed.reserve(packed.capacity());
    }
}

pub(super) struct XorDecoder {
    schema: Arc<Schema>,
}

impl XorDecoder {
    pub(super) fn new(schema: Arc<Schema>) -> Self {
        Self { schema }
    }
}

impl Decode for XorDecoder {
    type Model = ();

    fn decode(
        &mut self,
        packet: &[u8],
        past: &Applications<()>,
    ) -> Result<Decoded<()>, ReceiveError> {
        let plain = inflate(packet)?;
        let mut input = Input(&plain);
        let tick = input.varint()?;
        let (oldest_named, base) = read_base(tick, &mut input, past)?;
        let members = SetChange::read(&self.schema, base, &mut input)?.members(base);
        let mut widths = Widths::new(&self.schema);
        widths.read(&mut input)?;
        let items = widths.read_rows(members, base, u8::bitxor, &mut input)?;
        input.end()?;
        Ok(Decoded::plain(tick, items, oldest_named))
    }
}

fn inflate(packed: &[u8]) -> Result<Vec<u8>, ReceiveError> {
    let mut inflater = Decompress::new(false);
    let mut plain = Vec::with_capacity(8 * packed.len() + 64);
    loop {
        let taken = inflater.total_in() as usize;
        let status = inflater.decompress_vec(&packed[taken..], &mut plain, FlushDecompress::Finish);
        match status.map_err(|_| ReceiveError::Malformed("not a deflate stream"))? {
            Status::StreamEnd => return Ok(plain),
            _ if plain.len() < plain.capacity() || plain.len() > LARGEST => {
                return Err(ReceiveError::Malformed("the deflate stream does not end"));
            }
            _ => plain.reserve(plain.capacity()),
        }
    }
}
