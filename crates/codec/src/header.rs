//! The header of a state packet; `docs/wire/codec.md` describes its bytes.
//!
//! Both ends know the packet at the cursor: its sequence number, its tick, and its own cursor. Where
//! a packet is as far from its cursor as that one was from its own, one byte says everything.

use alloc::vec::Vec;

use crate::{
    decoder::DecodeError,
    numbers,
    units::{Sequence, Tick},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub epoch: u8,
    pub sequence: Sequence,
    pub tick: Tick,
    /// The newest packet that was folded into the model with which this packet was coded.
    pub cursor: Sequence,
    pub full: bool,
    /// Ranges of packets after the cursor of the cursor's packet that were applied but are not
    /// folded.
    pub excluded: Vec<(Sequence, Sequence)>,
}

/// What both ends know of the packet at the cursor, and what shorter headers are relative to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub sequence: Sequence,
    pub tick: Tick,
    /// The cursor with which that packet was coded, and the tick of the packet there.
    pub cursor: Sequence,
    pub cursor_tick: Tick,
}

impl Anchor {
    /// The packets between it and its own cursor.
    fn ahead(&self) -> u32 {
        self.sequence.0 - self.cursor.0
    }

    /// The tick of a packet that comes so many packets later, if ticks go on as before.
    fn tick_after(&self, ahead: u32) -> Tick {
        let (packets, ticks) = (self.ahead().into(), self.tick.since(self.cursor_tick));
        let is_even = self.cursor.0 > 0 && ticks.is_multiple_of(packets);
        let each = if is_even { ticks / packets } else { 1 };
        Tick(
            self.tick
                .0
                .wrapping_add(u64::from(ahead).wrapping_mul(each)),
        )
    }

    /// Whether a packet that is so far ahead of it repeats how far it was ahead of its own cursor.
    pub(crate) fn is_repeated(&self, ahead: u32) -> bool {
        self.cursor.0 > 0 && self.ahead() == ahead && ahead <= MAX_REPEATED
    }
}

/// The reader's state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub epoch: u8,
    pub newest: Sequence,
    /// Whether the sender has acknowledgements of this reader, so that it codes with no model that
    /// the reader does not have.
    pub acknowledges: bool,
}

/// Writes a header that ends with two bytes for the check; [`set_check`] fills them in. `is_unique`
/// states that no packet after the cursor, of those that the reader may have applied, is repeated by
/// this one.
pub(crate) fn write(header: &Header, anchor: &Anchor, is_unique: bool, out: &mut Vec<u8>) {
    let Header {
        epoch,
        sequence,
        tick,
        cursor,
        full,
        ref excluded,
    } = *header;
    let ahead = sequence.0 - cursor.0;
    let flag = |bit: u8, holds: bool| if holds { bit } else { 0 };
    let flags = flag(FULL, full) | flag(EXCLUDES, !excluded.is_empty());
    if cursor.0 == 0 {
        out.extend([EXTENDED | LONG | flags, epoch]);
        out.extend_from_slice(&sequence.0.to_le_bytes());
        numbers::put(out, tick.0);
    } else {
        let expected = anchor.tick_after(ahead);
        let flags = flags | flag(STEADY, tick == expected);
        if flags == FULL | STEADY && is_unique && anchor.is_repeated(ahead) {
            out.push(sequence.0 as u8 % SHORT as u8);
        } else if ahead <= MAX_NEAR {
            out.push(EXTENDED | flags);
            let near = (cursor.0 as u16) << 4 | (ahead - 1) as u16;
            out.extend_from_slice(&near.to_le_bytes());
        } else {
            out.push(EXTENDED | flags | FAR);
            out.extend_from_slice(&(cursor.0 as u16).to_le_bytes());
            numbers::put(out, ahead.into());
        }
        if tick != expected {
            numbers::put_signed(out, tick.0.wrapping_sub(expected.0) as i64);
        }
    }
    if !excluded.is_empty() {
        numbers::put(out, excluded.len() as u64);
        for (from, to) in excluded {
            numbers::put(out, from.0.into());
            numbers::put(out, (to.0 - from.0).into());
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// Reads a header and returns it with the check and the body. `anchor_of` finds a packet that the
/// reader has applied.
pub(crate) fn read<'a>(
    bytes: &'a [u8],
    known: Known,
    anchor_of: &dyn Fn(Sequence) -> Option<Anchor>,
) -> Result<(Header, u16, &'a [u8]), DecodeError> {
    let mut rest = bytes;
    let is_short = *bytes.first().ok_or(DecodeError::Malformed)? & EXTENDED == 0;
    let flags = match is_short {
        true => FULL | STEADY,
        false => take(&mut rest)?,
    };
    let mut header = Header {
        epoch: known.epoch,
        sequence: Sequence(0),
        tick: Tick(0),
        cursor: Sequence(0),
        full: flags & FULL != 0,
        excluded: Vec::new(),
    };
    if flags & LONG != 0 {
        header.epoch = take(&mut rest)?;
        let (sequence, tail) = rest.split_first_chunk().ok_or(DecodeError::Malformed)?;
        rest = tail;
        header.sequence = Sequence(u32::from_le_bytes(*sequence));
        header.tick = Tick(number(&mut rest)?);
    } else {
        let (anchor, ahead) = match is_short {
            true => short_cursor(take(&mut rest)?, known, anchor_of)?,
            false => named_cursor(&mut rest, flags & FAR != 0, known, anchor_of)?,
        };
        header.cursor = anchor.sequence;
        let sequence = anchor.sequence.0.checked_add(ahead);
        header.sequence = Sequence(sequence.ok_or(DecodeError::Malformed)?);
        header.tick = anchor.tick_after(ahead);
        if flags & STEADY == 0 {
            let drift = numbers::take_signed(&mut rest).ok_or(DecodeError::Malformed)?;
            header.tick = Tick(header.tick.0.wrapping_add_signed(drift));
        }
    }
    if flags & EXCLUDES != 0 {
        let count: u32 = number(&mut rest)?;
        if count as usize > MAX_EXCLUDED {
            return Err(DecodeError::Malformed);
        }
        for _ in 0..count {
            let from: u32 = number(&mut rest)?;
            let to = from.checked_add(number(&mut rest)?);
            let to = to.ok_or(DecodeError::Malformed)?;
            header.excluded.push((Sequence(from), Sequence(to)));
        }
    }
    if header.cursor >= header.sequence {
        return Err(DecodeError::Malformed);
    }
    let (check, body) = rest.split_first_chunk().ok_or(DecodeError::Malformed)?;
    Ok((header, u16::from_le_bytes(*check), body))
}

/// The cursor of a packet of which only the lowest bits of its sequence number were sent: the newest
/// packet that it [repeats](Anchor::is_repeated). A packet that is not late comes at most
/// [`MAX_REPEATED`] after the newest applied one.
fn short_cursor(
    byte: u8,
    known: Known,
    anchor_of: &dyn Fn(Sequence) -> Option<Anchor>,
) -> Result<(Anchor, u32), DecodeError> {
    let last = known.newest.0.saturating_add(MAX_REPEATED);
    let back = last.wrapping_sub(byte.into()) % SHORT;
    let sequence = last.checked_sub(back).ok_or(DecodeError::UnknownModel)?;
    if sequence <= known.newest.0 {
        return Err(DecodeError::Late);
    }
    let anchors = (1..=MAX_REPEATED).map_while(|ahead| {
        let cursor = sequence.checked_sub(ahead)?;
        Some((anchor_of(Sequence(cursor)), ahead))
    });
    let mut repeated = anchors.filter_map(|(anchor, ahead)| Some((anchor?, ahead)));
    let found = repeated.find(|(anchor, ahead)| anchor.is_repeated(*ahead));
    // A packet that is later than `SHORT` tells apart seems to come.
    let is_late = known.acknowledges && known.newest.0 > 0;
    found.ok_or(match is_late {
        true => DecodeError::Late,
        false => DecodeError::UnknownModel,
    })
}

/// A cursor of which 12 or 16 bits were sent, and how far ahead of it the packet is.
fn named_cursor(
    rest: &mut &[u8],
    is_far: bool,
    known: Known,
    anchor_of: &dyn Fn(Sequence) -> Option<Anchor>,
) -> Result<(Anchor, u32), DecodeError> {
    let (word, tail) = rest.split_first_chunk().ok_or(DecodeError::Malformed)?;
    *rest = tail;
    let word = u16::from_le_bytes(*word);
    let (cursor, ahead) = match is_far {
        true => (nearest(known.newest, word, 16), number(rest)?),
        false => (
            nearest(known.newest, word >> 4, 12),
            u32::from(word & 15) + 1,
        ),
    };
    let is_late = cursor
        .0
        .checked_add(ahead)
        .is_some_and(|sequence| sequence <= known.newest.0);
    // The anchor of an old packet is not needed: its sequence number is enough to refuse it.
    let missing = if is_late {
        DecodeError::Late
    } else {
        DecodeError::UnknownModel
    };
    Ok((anchor_of(cursor).ok_or(missing)?, ahead))
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
fn nearest(around: Sequence, low: u16, bits: u32) -> Sequence {
    let unused = 16 - bits;
    let distance = ((low.wrapping_sub(around.0 as u16) << unused) as i16) >> unused;
    Sequence(around.0.wrapping_add_signed(i32::from(distance)))
}

fn take(rest: &mut &[u8]) -> Result<u8, DecodeError> {
    let (&byte, tail) = rest.split_first().ok_or(DecodeError::Malformed)?;
    *rest = tail;
    Ok(byte)
}

fn number<T: TryFrom<u64>>(rest: &mut &[u8]) -> Result<T, DecodeError> {
    let number = numbers::take(rest).ok_or(DecodeError::Malformed)?;
    T::try_from(number).map_err(|_| DecodeError::Malformed)
}

/// Bits of the first byte. Without the first of them the byte is the whole header.
const EXTENDED: u8 = 0x80;
const FULL: u8 = 1;
const STEADY: u8 = 2;
const EXCLUDES: u8 = 4;
const FAR: u8 = 8;
const LONG: u8 = 16;
/// A short header has the sequence number modulo this.
const SHORT: u32 = 128;
/// How far ahead of its cursor a packet with a short header may be; the rest of [`SHORT`] tells
/// packets that are late.
const MAX_REPEATED: u32 = 16;
/// How far ahead of its cursor a packet may be whose header is neither short nor far.
const MAX_NEAR: u32 = 16;
/// Ranges that a header can exclude.
pub(crate) const MAX_EXCLUDED: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const ANCHOR: Anchor = Anchor {
        sequence: Sequence(69_996),
        tick: Tick(90_000),
        cursor: Sequence(69_992),
        cursor_tick: Tick(89_996),
    };

    /// Fails if a part is written in one order and read in another, or if a header of the usual
    /// packet takes more than one byte and the check.
    #[test]
    fn headers_come_back_in_every_form() {
        let short = Header {
            epoch: 3,
            sequence: Sequence(70_000),
            tick: Tick(90_004),
            cursor: ANCHOR.sequence,
            full: true,
            excluded: Vec::new(),
        };
        let partial = Header {
            full: false,
            ..short.clone()
        };
        let drifted = Header {
            sequence: Sequence(70_002),
            tick: Tick(90_006),
            ..short.clone()
        };
        let far = Header {
            sequence: Sequence(70_200),
            tick: Tick(90_204),
            ..short.clone()
        };
        let skipped = Header {
            tick: Tick(90_777),
            ..short.clone()
        };
        let gap = (Sequence(69_000), Sequence(69_930));
        let gaps = Header {
            excluded: alloc::vec![gap],
            ..short.clone()
        };
        let long = Header {
            cursor: Sequence(0),
            ..short.clone()
        };
        let cases = [
            (short, 3),
            (partial, 5),
            (drifted, 5),
            (far, 7),
            (skipped, 7),
            (gaps, 11),
            (long, 11),
        ];
        for (header, len) in cases {
            let mut bytes = Vec::new();
            write(&header, &ANCHOR, true, &mut bytes);
            assert_eq!(bytes.len(), len, "{header:?}");
            set_check(&mut bytes, len, 0xABCD);
            bytes.push(42);
            let known = Known {
                epoch: 3,
                newest: Sequence(69_999),
                acknowledges: true,
            };
            let anchor_of = |at| (at == ANCHOR.sequence).then_some(ANCHOR);
            let (read, check, body) = read(&bytes, known, &anchor_of).unwrap();
            assert_eq!((read, check, body), (header, 0xABCD, &[42][..]));
            for cut in 0..len {
                assert!(super::read(&bytes[..cut], known, &anchor_of).is_err());
            }
        }
    }

    /// Fails if the reader takes an old packet for one to come (`SHORT` for `MAX_REPEATED`), if one so
    /// old that it seems to come is not late, or if it counts ticks as packets.
    #[test]
    fn late_packets_and_other_rates_are_understood() {
        let anchor = Anchor {
            cursor_tick: Tick(89_988),
            ..ANCHOR
        };
        let header = Header {
            epoch: 0,
            sequence: Sequence(70_000),
            tick: Tick(90_012),
            cursor: ANCHOR.sequence,
            full: true,
            excluded: Vec::new(),
        };
        let mut bytes = Vec::new();
        write(&header, &anchor, true, &mut bytes);
        assert_eq!(bytes.len(), 3);
        for newest in [70_100, 70_120] {
            let later = Known {
                epoch: 0,
                newest: Sequence(newest),
                acknowledges: true,
            };
            assert_eq!(read(&bytes, later, &|_| None), Err(DecodeError::Late));
        }
        let subscriber = Known {
            epoch: 0,
            newest: Sequence(70_120),
            acknowledges: false,
        };
        assert_eq!(
            read(&bytes, subscriber, &|_| None),
            Err(DecodeError::UnknownModel)
        );
        let stranger = Known {
            epoch: 0,
            newest: Sequence(0),
            acknowledges: true,
        };
        assert_eq!(
            read(&bytes, stranger, &|_| None),
            Err(DecodeError::UnknownModel)
        );
    }
}
