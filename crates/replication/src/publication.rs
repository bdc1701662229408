//! Encoding of published packets, writer above reader; `docs/wire/replication.md` documents the
//! bytes.

use prescient_codec::Config;
use prescient_schema::Fingerprint;

use crate::settings;

/// A published packet around a packet of the codec. Sequence numbers count what a publisher has
/// published, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Publication<'a> {
    /// A snapshot: a reader can begin with it.
    Snapshot {
        sequence: u64,
        /// A reader whose newest packet is older must not keep its entities: their ids may have been
        /// given to others since.
        ids_since: u64,
        fingerprint: Fingerprint,
        config: Config,
        packet: &'a [u8],
    },
    /// For readers that have applied `base` and, because that was predicted from it, `snapshot`.
    Delta {
        sequence: u64,
        snapshot: u64,
        base: u64,
        packet: &'a [u8],
    },
}

impl<'a> Publication<'a> {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Snapshot {
                sequence,
                ids_since,
                fingerprint,
                config,
                packet,
            } => {
                bytes.reserve_exact(MAX_HEADER + packet.len());
                bytes.push(SNAPSHOT);
                put_number(&mut bytes, sequence);
                put_number(&mut bytes, sequence.saturating_sub(ids_since));
                bytes.extend_from_slice(&fingerprint.to_be_bytes());
                settings::write(&config, &mut bytes);
                bytes.extend_from_slice(packet);
            }
            Self::Delta {
                sequence,
                snapshot,
                base,
                packet,
            } => {
                bytes.reserve_exact(MAX_HEADER + packet.len());
                bytes.push(DELTA);
                put_number(&mut bytes, sequence);
                put_number(&mut bytes, sequence.saturating_sub(snapshot));
                put_number(&mut bytes, sequence.saturating_sub(base));
                bytes.extend_from_slice(packet);
            }
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None` for anything else.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        let (sequence, rest) = take_number(rest)?;
        let (back, rest) = take_number(rest)?;
        let earlier = sequence.checked_sub(back)?;
        match kind {
            SNAPSHOT => {
                let (fingerprint, rest) = rest.split_first_chunk()?;
                let (config, packet) = rest.split_at_checked(settings::LEN)?;
                (sequence > 0).then_some(Self::Snapshot {
                    sequence,
                    ids_since: earlier,
                    fingerprint: Fingerprint::from_be_bytes(*fingerprint),
                    config: settings::read(config)?,
                    packet,
                })
            }
            DELTA => {
                let (back, packet) = take_number(rest)?;
                let base = sequence.checked_sub(back)?;
                let in_order = 0 < earlier && earlier <= base && base < sequence;
                in_order.then_some(Self::Delta {
                    sequence,
                    snapshot: earlier,
                    base,
                    packet,
                })
            }
            _ => None,
        }
    }
}

/// Seven bits per byte, the lowest first; the highest bit is set in all but the last byte.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number in its shortest form.
fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(MAX_NUMBER) {
        let part = u64::from(byte & 0x7F);
        let shifted = part << (7 * at);
        if shifted >> (7 * at) != part {
            return None;
        }
        number |= shifted;
        if byte < 0x80 {
            let is_shortest = byte > 0 || at == 0;
            return is_shortest.then(|| (number, &bytes[at + 1..]));
        }
    }
    None
}

const SNAPSHOT: u8 = 1;
const DELTA: u8 = 2;
/// Bytes of the longest number.
const MAX_NUMBER: usize = 10;
/// Bytes of the longest header.
const MAX_HEADER: usize = 1 + 2 * MAX_NUMBER + 16 + settings::LEN;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Fails if a number is cut to 32 bits (`number as u32 as u64` in `take_number`), or if the
        /// base of a delta is read as its snapshot.
        #[test]
        fn publications_come_back(
            sequence in 1u64..,
            back in any::<u64>(),
            nearer in any::<u64>(),
            is_snapshot in any::<bool>(),
            packet in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let packet = &packet[..];
            let earlier = sequence - back % sequence;
            let publication = match is_snapshot {
                true => Publication::Snapshot {
                    sequence,
                    ids_since: earlier,
                    fingerprint: Fingerprint::of_bytes(packet),
                    config: Config::default(),
                    packet,
                },
                false if sequence == 1 => return Ok(()),
                false => {
                    let snapshot = earlier.min(sequence - 1);
                    let base = snapshot + nearer % (sequence - snapshot);
                    Publication::Delta { sequence, snapshot, base, packet }
                }
            };
            let bytes = publication.to_bytes();
            prop_assert_eq!(Publication::read(&bytes), Some(publication));
        }

        /// Fails if `checked_sub` is replaced by a plain subtraction, or numbers are accepted in
        /// longer forms (`is_shortest` always true).
        #[test]
        fn any_bytes_have_one_reading(
            kind in 1u8..3,
            rest in prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(0x80), Just(0xFF)], 0..60),
        ) {
            let mut bytes = vec![kind];
            bytes.extend(rest);
            if let Some(publication) = Publication::read(&bytes) {
                prop_assert_eq!(publication.to_bytes(), bytes);
            }
        }
    }
}
