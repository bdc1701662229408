//! The header of a state packet; `docs/wire/codec.md` describes its bytes.

use alloc::vec::Vec;

use crate::units::{Sequence, ShortTick};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub epoch: u8,
    pub sequence: Sequence,
    pub tick: ShortTick,
    /// The newest packet that was folded into the model with which this packet was coded.
    pub cursor: Sequence,
    pub full: bool,
    /// Ranges of packets after the cursor of the cursor's packet that were applied but are not
    /// folded.
    pub excluded: Vec<(Sequence, Sequence)>,
}

/// The reader's state that a short header is relative to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub epoch: u8,
    pub newest: Sequence,
}

/// Writes a header that ends with two bytes for the check; [`set_check`] fills them in.
/// `cursor_tick` is the tick of the cursor's packet.
pub(crate) fn write(header: &Header, cursor_tick: ShortTick, out: &mut Vec<u8>) {
    let ahead = header.sequence.0 - header.cursor.0;
    let steady = header.tick.since(cursor_tick) == ahead;
    let plain = steady && header.full && header.excluded.is_empty();
    if header.cursor.0 == 0 || ahead > MAX_AHEAD {
        out.push(LONG);
        out.push(header.epoch);
        for word in [header.sequence.0, header.tick.0, header.cursor.0] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        write_flags(header, true, out);
    } else {
        out.push(ahead as u8 | if plain { 0 } else { FLAGS });
        out.extend_from_slice(&(header.sequence.0 as u16).to_le_bytes());
        if !plain {
            write_flags(header, steady, out);
            if !steady {
                out.extend_from_slice(&header.tick.since(cursor_tick).to_le_bytes());
            }
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn write_flags(header: &Header, steady: bool, out: &mut Vec<u8>) {
    let count = header.excluded.len() as u8;
    out.push(u8::from(header.full) | u8::from(steady) << 1 | count << 2);
    for (from, to) in &header.excluded {
        out.extend_from_slice(&from.0.to_le_bytes());
        out.extend_from_slice(&to.0.to_le_bytes());
    }
}

/// Reads a header and returns it with the check and the body; `None` if it is malformed. `tick_of`
/// finds the tick of a packet that the reader has applied.
pub(crate) fn read<'a>(
    bytes: &'a [u8],
    known: Known,
    tick_of: &dyn Fn(Sequence) -> Option<ShortTick>,
) -> Option<(Header, u16, &'a [u8])> {
    let (&first, mut rest) = bytes.split_first()?;
    let mut header;
    if first == LONG {
        let (&epoch, tail) = rest.split_first()?;
        rest = tail;
        let sequence = Sequence(take_u32(&mut rest)?);
        let tick = ShortTick(take_u32(&mut rest)?);
        let cursor = Sequence(take_u32(&mut rest)?);
        header = Header {
            epoch,
            sequence,
            tick,
            cursor,
            full: false,
            excluded: Vec::new(),
        };
        read_flags(&mut header, &mut rest)?;
    } else {
        let ahead = u32::from(first & !FLAGS);
        let (low, tail) = rest.split_at_checked(2)?;
        rest = tail;
        let low = u16::from_le_bytes([low[0], low[1]]);
        let sequence = nearest(known.newest, low);
        let cursor = Sequence(sequence.0.checked_sub(ahead)?);
        let epoch = known.epoch;
        let tick = ShortTick::default();
        header = Header {
            epoch,
            sequence,
            tick,
            cursor,
            full: true,
            excluded: Vec::new(),
        };
        let mut advance = ahead;
        if first & FLAGS != 0 && !read_flags(&mut header, &mut rest)? {
            advance = take_u32(&mut rest)?;
        }
        // The tick of a late packet is not needed: its sequence number is enough to refuse it.
        let base = tick_of(cursor).unwrap_or_default();
        header.tick = ShortTick(base.0.checked_add(advance)?);
    }
    if header.cursor >= header.sequence {
        return None;
    }
    let (check, body) = rest.split_at_checked(2)?;
    Some((header, u16::from_le_bytes([check[0], check[1]]), body))
}

/// Returns whether ticks and sequence numbers advance together.
fn read_flags(header: &mut Header, rest: &mut &[u8]) -> Option<bool> {
    let (&flags, tail) = rest.split_first()?;
    *rest = tail;
    header.full = flags & 1 != 0;
    for _ in 0..flags >> 2 {
        let from = Sequence(take_u32(rest)?);
        let to = Sequence(take_u32(rest)?);
        header.excluded.push((from, to));
    }
    Some(flags & 2 != 0)
}

/// Fills in the check of a packet whose header has this length.
pub(crate) fn set_check(bytes: &mut [u8], header_len: usize, check: u16) {
    if let Some(place) = header_len
        .checked_sub(2)
        .and_then(|at| bytes.get_mut(at..header_len))
    {
        place.copy_from_slice(&check.to_le_bytes());
    }
}

/// The sequence number with these low bits that lies nearest to `around`.
fn nearest(around: Sequence, low: u16) -> Sequence {
    let distance = low.wrapping_sub(around.0 as u16) as i16;
    Sequence(around.0.wrapping_add_signed(i32::from(distance)))
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    let (word, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(u32::from_le_bytes(*word))
}

/// First byte of a long header.
const LONG: u8 = 0;
const FLAGS: u8 = 0x80;
/// Farthest cursor that a short header can name.
const MAX_AHEAD: u32 = 127;
/// Ranges that a header can exclude.
pub(crate) const MAX_EXCLUDED: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_in_every_form() {
        let short = Header {
            epoch: 3,
            sequence: Sequence(70_000),
            tick: ShortTick(90_001),
            cursor: Sequence(69_999),
            full: true,
            excluded: Vec::new(),
        };
        let flagged = Header {
            full: false,
            tick: ShortTick(90_777),
            ..short.clone()
        };
        let gap = (Sequence(69_000), Sequence(69_930));
        let gaps = Header {
            cursor: Sequence(69_950),
            excluded: alloc::vec![gap],
            ..short.clone()
        };
        let long = Header {
            cursor: Sequence(0),
            ..short.clone()
        };
        let far = Header {
            cursor: Sequence(5),
            full: false,
            ..short.clone()
        };
        for (header, len) in [(short, 5), (flagged, 10), (gaps, 18), (long, 17), (far, 17)] {
            let mut bytes = Vec::new();
            write(&header, ShortTick(90_000), &mut bytes);
            assert_eq!(bytes.len(), len);
            set_check(&mut bytes, len, 0xABCD);
            bytes.push(42);
            let known = Known {
                epoch: 3,
                newest: Sequence(69_999),
            };
            let (read, check, body) = read(&bytes, known, &|_| Some(ShortTick(90_000))).unwrap();
            assert_eq!((read, check, body), (header, 0xABCD, &[42][..]));
            for cut in 0..len {
                assert!(super::read(&bytes[..cut], known, &|_| None).is_none());
            }
        }
    }
}
