//! NDNLPv2: the link header around a packet, fragmentation and reassembly.
//!
//! A bare Interest or Data is legal on every link. It is wrapped to carry a Nack, a PIT token, a
//! congestion mark, or to be a fragment of a packet that is too long for the link.

use std::collections::VecDeque;
use std::time::Duration;

use prescient_channels::Time;

use crate::error::DecodeError;
use crate::tlv::{self, MAX_PACKET, Reader, kind};

/// The most fragments of a packet.
pub const MAX_FRAGMENTS: usize = 64;

/// The most bytes of a PIT token.
pub const MAX_PIT_TOKEN: usize = 32;

/// The smallest MTU of a face: with it [`MAX_FRAGMENTS`] suffice for the longest packet.
pub const MIN_MTU: usize = 256;

/// The overhead of a fragment: LpPacket, Sequence, FragIndex, FragCount and Fragment headers.
const FRAGMENT_OVERHEAD: usize = 4 + 10 + 3 + 3 + 4;

/// Why an Interest was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NackReason {
    /// No reason was given.
    None,
    /// Congestion: retransmit later, or send fewer Interests.
    Congestion,
    /// The nonce was seen before: the Interest is in a loop.
    Duplicate,
    /// There is no route.
    NoRoute,
    /// Any other reason, by its number.
    Other(u64),
}

impl NackReason {
    fn number(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Congestion => 50,
            Self::Duplicate => 100,
            Self::NoRoute => 150,
            Self::Other(number) => number,
        }
    }

    fn from_number(number: u64) -> Self {
        match number {
            0 => Self::None,
            50 => Self::Congestion,
            100 => Self::Duplicate,
            150 => Self::NoRoute,
            _ => Self::Other(number),
        }
    }
}

/// Bytes that the receiver of an Interest repeats with its answer: 1 to [`MAX_PIT_TOKEN`] of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PitToken {
    length: u8,
    bytes: [u8; MAX_PIT_TOKEN],
}

impl PitToken {
    /// `None` if there are too few or too many bytes.
    pub fn new(token: &[u8]) -> Option<Self> {
        if token.is_empty() || token.len() > MAX_PIT_TOKEN {
            return None;
        }
        let mut bytes = [0; MAX_PIT_TOKEN];
        bytes[..token.len()].copy_from_slice(token);
        Some(Self {
            length: token.len() as u8,
            bytes,
        })
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl std::fmt::Debug for PitToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PitToken({:02x?})", self.as_bytes())
    }
}

/// The fields of a link header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkHeader {
    /// Which fragment of a packet this is; `None` for a whole one.
    pub fragment: Option<Fragment>,
    /// With an Interest: to be repeated with the answer. With Data or a Nack: the Interest's token.
    pub pit_token: Option<PitToken>,
    /// The packet is a refused Interest, for this reason.
    pub nack: Option<NackReason>,
    /// The congestion on the path, 0 for none.
    pub congestion_mark: Option<u64>,
}

/// The position of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Ascends by one from fragment to fragment.
    pub sequence: u64,
    /// Its index, from 0.
    pub index: usize,
    /// The number of fragments of the packet.
    pub count: usize,
}

impl LinkHeader {
    /// Appends a packet with this header, or without one if all fields are absent.
    pub fn encode(&self, packet: &[u8], bytes: &mut Vec<u8>) {
        if *self == Self::default() {
            bytes.extend_from_slice(packet);
            return;
        }
        tlv::write_nested(bytes, kind::LP_PACKET, |bytes| {
            if let Some(fragment) = self.fragment {
                tlv::write_element(bytes, kind::SEQUENCE, &fragment.sequence.to_be_bytes());
                tlv::write_integer(bytes, kind::FRAGMENT_INDEX, fragment.index as u64);
                tlv::write_integer(bytes, kind::FRAGMENT_COUNT, fragment.count as u64);
            }
            if let Some(token) = &self.pit_token {
                tlv::write_element(bytes, kind::PIT_TOKEN, token.as_bytes());
            }
            if let Some(reason) = self.nack {
                tlv::write_nested(bytes, kind::NACK, |bytes| {
                    if reason != NackReason::None {
                        tlv::write_integer(bytes, kind::NACK_REASON, reason.number());
                    }
                });
            }
            if let Some(mark) = self.congestion_mark {
                tlv::write_integer(bytes, kind::CONGESTION_MARK, mark);
            }
            tlv::write_element(bytes, kind::FRAGMENT, packet);
        });
    }
}

/// A view of what was received on a link: a packet or a fragment, and its header.
#[derive(Clone, Copy, Debug)]
pub struct LinkPacket<'a> {
    /// Its header.
    pub header: LinkHeader,
    /// An Interest or Data, or a fragment of one; empty if there is only the header.
    pub packet: &'a [u8],
}

impl<'a> LinkPacket<'a> {
    /// Decodes all of `wire`, with or without a header.
    pub fn decode(wire: &'a [u8]) -> Result<Self, DecodeError> {
        if wire.first() != Some(&(kind::LP_PACKET as u8)) {
            if wire.len() > MAX_PACKET {
                return Err(DecodeError::TooLong {
                    length: wire.len(),
                    limit: MAX_PACKET,
                });
            }
            return Ok(Self {
                header: LinkHeader::default(),
                packet: wire,
            });
        }
        let mut reader = Reader::new(tlv::read_packet(wire, kind::LP_PACKET)?);
        let mut header = LinkHeader::default();
        let (mut sequence, mut index, mut count, mut packet) = (None, None, None, None);
        let mut seen = 0_u8;
        while let Some(element) = reader.next()? {
            let (kind, value) = (element.kind, element.value);
            // The packet is the last element.
            if packet.is_some() {
                return Err(DecodeError::Unexpected { kind });
            }
            let known = KNOWN.iter().position(|&known| known == kind);
            if let Some(place) = known {
                if seen & 1 << place != 0 {
                    return Err(DecodeError::Unexpected { kind });
                }
                seen |= 1 << place;
            }
            match kind {
                kind::SEQUENCE => {
                    sequence = Some(u64::from_be_bytes(tlv::read_array(kind, value)?))
                }
                kind::FRAGMENT_INDEX => index = Some(tlv::read_integer(kind, value)?),
                kind::FRAGMENT_COUNT => count = Some(tlv::read_integer(kind, value)?),
                kind::PIT_TOKEN => {
                    let token = PitToken::new(value).ok_or(DecodeError::BadLength {
                        kind,
                        length: value.len(),
                    })?;
                    header.pit_token = Some(token);
                }
                kind::NACK => header.nack = Some(read_nack(value)?),
                kind::CONGESTION_MARK => {
                    header.congestion_mark = Some(tlv::read_integer(kind, value)?);
                }
                kind::FRAGMENT => packet = Some(value),
                _ if is_ignorable(kind) => {}
                _ => return Err(DecodeError::Unexpected { kind }),
            }
        }
        header.fragment = read_fragment(sequence, index, count)?;
        Ok(Self {
            header,
            packet: packet.unwrap_or_default(),
        })
    }
}

const KNOWN: [u32; 7] = [
    kind::SEQUENCE,
    kind::FRAGMENT_INDEX,
    kind::FRAGMENT_COUNT,
    kind::PIT_TOKEN,
    kind::NACK,
    kind::CONGESTION_MARK,
    kind::FRAGMENT,
];

/// Whether an unknown header field may be ignored.
fn is_ignorable(kind: u32) -> bool {
    (800..=959).contains(&kind) && kind & 3 == 0
}

fn read_nack(value: &[u8]) -> Result<NackReason, DecodeError> {
    let mut reader = Reader::new(value);
    let mut reason = NackReason::None;
    while let Some(element) = reader.next()? {
        if element.kind == kind::NACK_REASON {
            let number = tlv::read_integer(element.kind, element.value)?;
            reason = NackReason::from_number(number);
        } else if !is_ignorable(element.kind) {
            return Err(DecodeError::Unexpected { kind: element.kind });
        }
    }
    Ok(reason)
}

/// `None` for a whole packet, also if it is marked as the only fragment.
fn read_fragment(
    sequence: Option<u64>,
    index: Option<u64>,
    count: Option<u64>,
) -> Result<Option<Fragment>, DecodeError> {
    let (index, count) = (index.unwrap_or(0), count.unwrap_or(1));
    if !(1..=MAX_FRAGMENTS as u64).contains(&count) {
        return Err(DecodeError::BadValue {
            kind: kind::FRAGMENT_COUNT,
        });
    }
    if index >= count {
        return Err(DecodeError::BadValue {
            kind: kind::FRAGMENT_INDEX,
        });
    }
    if count == 1 {
        return Ok(None);
    }
    let sequence = sequence.ok_or(DecodeError::Missing {
        kind: kind::SEQUENCE,
    })?;
    Ok(Some(Fragment {
        sequence,
        index: index as usize,
        count: count as usize,
    }))
}

/// Splits a packet into fragments of at most `mtu` bytes, which is at least [`MIN_MTU`]. The first fragment
/// has the header; `sequence` is that of the next fragment.
pub(crate) fn split(
    header: LinkHeader,
    packet: &[u8],
    mtu: usize,
    sequence: &mut u64,
    mut send: impl FnMut(Vec<u8>),
) {
    // Token, Nack and congestion mark of the greatest length.
    let first_overhead = FRAGMENT_OVERHEAD + 2 + MAX_PIT_TOKEN + 18 + 12;
    let room = mtu.max(MIN_MTU) - FRAGMENT_OVERHEAD;
    let first = packet.len().min(mtu.max(MIN_MTU) - first_overhead);
    let (first, rest) = packet.split_at(first);
    let count = 1 + rest.len().div_ceil(room);
    let fragments = std::iter::once(first).chain(rest.chunks(room));
    for (index, bytes) in fragments.enumerate() {
        let mut wrapped = Vec::with_capacity(mtu);
        let base = if index == 0 {
            header
        } else {
            LinkHeader::default()
        };
        let fragment = Fragment {
            sequence: *sequence,
            index,
            count,
        };
        *sequence = sequence.wrapping_add(1);
        let header = LinkHeader {
            fragment: (count > 1).then_some(fragment),
            ..base
        };
        header.encode(bytes, &mut wrapped);
        send(wrapped);
    }
}

/// Incomplete packets of one face, at most [`MAX_PARTIAL`]; a further one replaces the oldest.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// The oldest first.
    partial: VecDeque<Partial>,
}

#[derive(Debug)]
struct Partial {
    /// The sequence of the first fragment.
    first: u64,
    header: LinkHeader,
    fragments: Vec<Option<Box<[u8]>>>,
    missing: usize,
    bytes: usize,
    deadline: Time,
}

/// The most incomplete packets of a face.
pub(crate) const MAX_PARTIAL: usize = 4;

/// The time from a packet's first fragment to its last.
pub(crate) const REASSEMBLY_TIMEOUT: Duration = Duration::from_millis(500);

impl Reassembly {
    /// Adds a fragment. Returns the packet if this completes it.
    pub(crate) fn insert(
        &mut self,
        now: Time,
        header: LinkHeader,
        fragment: Fragment,
        bytes: &[u8],
    ) -> Option<(LinkHeader, Vec<u8>)> {
        self.expire(now);
        let first = fragment.sequence.wrapping_sub(fragment.index as u64);
        let found = self.partial.iter().position(|partial| {
            partial.first == first && partial.fragments.len() == fragment.count
        });
        let place = found.unwrap_or_else(|| {
            if self.partial.len() == MAX_PARTIAL {
                self.partial.pop_front();
            }
            self.partial.push_back(Partial {
                first,
                header: LinkHeader::default(),
                fragments: vec![None; fragment.count],
                missing: fragment.count,
                bytes: 0,
                deadline: now.after(REASSEMBLY_TIMEOUT),
            });
            self.partial.len() - 1
        });
        let partial = &mut self.partial[place];
        let slot = &mut partial.fragments[fragment.index];
        if slot.is_some() {
            return None;
        }
        *slot = Some(bytes.into());
        partial.missing -= 1;
        partial.bytes += bytes.len();
        if fragment.index == 0 {
            partial.header = header;
        }
        if partial.bytes > MAX_PACKET {
            self.partial.remove(place);
            return None;
        }
        if partial.missing > 0 {
            return None;
        }
        let partial = self.partial.remove(place)?;
        let whole = partial.fragments.into_iter().flatten();
        Some((
            LinkHeader {
                fragment: None,
                ..partial.header
            },
            whole.collect::<Vec<_>>().concat(),
        ))
    }

    /// Removes packets that were not completed in time.
    pub(crate) fn expire(&mut self, now: Time) {
        self.partial.retain(|partial| partial.deadline > now);
    }

    /// When the next incomplete packet is removed.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.partial.iter().map(|partial| partial.deadline).min()
    }

    /// The stored bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.partial.iter().map(|partial| partial.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1);

    fn fragments(header: LinkHeader, packet: &[u8], mtu: usize) -> Vec<Vec<u8>> {
        let mut fragments = Vec::new();
        split(header, packet, mtu, &mut 7, |fragment| {
            fragments.push(fragment)
        });
        fragments
    }

    fn insert(reassembly: &mut Reassembly, wire: &[u8]) -> Option<(LinkHeader, Vec<u8>)> {
        let came = LinkPacket::decode(wire).expect("our own");
        let fragment = came.header.fragment.expect("a fragment");
        reassembly.insert(NOW, came.header, fragment, came.packet)
    }

    /// Fails if fragments are concatenated in the order of their arrival, if a duplicate counts, or if a
    /// fragment is longer than the MTU.
    #[test]
    fn fragments_in_any_order_are_a_packet() {
        let packet: Vec<u8> = (0..MAX_PACKET).map(|byte| byte as u8).collect();
        let header = LinkHeader {
            pit_token: PitToken::new(&[9; MAX_PIT_TOKEN]),
            nack: Some(NackReason::Other(u64::MAX)),
            congestion_mark: Some(u64::MAX),
            ..LinkHeader::default()
        };
        for mtu in [MIN_MTU, 1200, 1400] {
            let mut fragments = fragments(header, &packet, mtu);
            assert!(fragments.iter().all(|fragment| fragment.len() <= mtu));
            assert!(fragments.len() <= MAX_FRAGMENTS);
            let last = fragments.remove(1);
            fragments.reverse();
            let mut reassembly = Reassembly::default();
            for fragment in fragments.iter().chain(&fragments) {
                assert_eq!(insert(&mut reassembly, fragment), None);
            }
            let (found, whole) = insert(&mut reassembly, &last).expect("complete");
            assert_eq!(whole, packet);
            assert_eq!(found, header);
            assert_eq!(reassembly.bytes(), 0);
        }
    }

    /// Fails if incomplete packets are kept for ever (`pop_front` left out), or beyond the length of a
    /// packet.
    #[test]
    fn fragments_without_an_end_take_bounded_room() {
        let mut reassembly = Reassembly::default();
        for sequence in 0..10_000 {
            let fragment = Fragment {
                sequence: sequence * 64,
                index: 0,
                count: MAX_FRAGMENTS,
            };
            reassembly.insert(NOW, LinkHeader::default(), fragment, &[0; 1400]);
            assert!(reassembly.bytes() <= MAX_PARTIAL * MAX_PACKET);
        }
        for index in 1..63 {
            let fragment = Fragment {
                sequence: 9_999 * 64 + index as u64,
                index,
                count: MAX_FRAGMENTS,
            };
            reassembly.insert(NOW, LinkHeader::default(), fragment, &[0; 1400]);
            assert!(reassembly.bytes() <= MAX_PARTIAL * MAX_PACKET);
        }
        reassembly.expire(NOW.after(REASSEMBLY_TIMEOUT));
        assert_eq!(reassembly.bytes(), 0);
    }
}
