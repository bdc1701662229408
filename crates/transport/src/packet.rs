//! The datagrams and their encoding; WIRE.md has the same as tables. Most lengths are fixed, so
//! that the length alone rejects most foreign datagrams.

use crate::key_schedule::{MAC_LEN, Secret, mac, mac_is};
use crate::reset::{ResetToken, SEALED_RESET_LEN};
use crate::token::UnixTime;
use crate::token::{ConnectToken, ProtocolId, SEALED_LEN, TokenFront};
use prescient_channels::bytes::Reader;
use prescient_channels::{BASE_DATAGRAM, Denial, PacketBuffer, Time};

/// The version of the packet format. All versions have it at the same position: the second byte of
/// a request.
pub const VERSION: u8 = 6;

/// The type of a datagram, from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatagramType {
    Request,
    Challenge,
    Accept,
    Denied,
    Reset,
    Sealed,
}

impl DatagramType {
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match *bytes.first()? {
            REQUEST => Some(Self::Request),
            CHALLENGE => Some(Self::Challenge),
            ACCEPT => Some(Self::Accept),
            DENIED => Some(Self::Denied),
            RESET => Some(Self::Reset),
            first if first & SEALED != 0 => Some(Self::Sealed),
            _ => None,
        }
    }
}

/// Proves to a server that keeps no state that a client receives at its address; see `cookie.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub(crate) made: Time,
    pub(crate) tag: [u8; MAC_LEN],
}

impl Cookie {
    fn to_bytes(self) -> [u8; COOKIE_LEN] {
        let mut bytes = [0; COOKIE_LEN];
        bytes[..8].copy_from_slice(&self.made.as_micros().to_le_bytes());
        bytes[8..].copy_from_slice(&self.tag);
        bytes
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            made: Time::from_micros(reader.u64()?),
            tag: reader.array()?,
        })
    }
}

/// A client's connection request; the cookie is zero in the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Everything before the cookie; the same in every copy.
    pub(crate) opening: Vec<u8>,
    /// A random number that answers repeat, so that only a receiver of the request can answer it.
    pub(crate) echo: [u8; ECHO_LEN],
    pub(crate) front: TokenFront,
    pub(crate) sealed: Box<[u8; SEALED_LEN]>,
    pub(crate) ephemeral: [u8; 32],
    pub(crate) cookie: Cookie,
    pub(crate) mac: [u8; MAC_LEN],
}

/// The part of a request that is the same in every copy.
pub(crate) fn opening(token: &ConnectToken, echo: [u8; ECHO_LEN], ephemeral: [u8; 32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(OPENING_LEN);
    bytes.extend_from_slice(&[REQUEST, VERSION]);
    bytes.extend_from_slice(&echo);
    bytes.extend_from_slice(&token.front.protocol.0);
    bytes.extend_from_slice(&token.front.expires.0.to_le_bytes());
    bytes.extend_from_slice(&token.front.nonce);
    bytes.extend_from_slice(&*token.sealed);
    bytes.extend_from_slice(&ephemeral);
    bytes
}

pub(crate) fn write_request(opening: &[u8], cookie: Cookie, key: &Secret) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BASE_DATAGRAM);
    bytes.extend_from_slice(opening);
    bytes.extend_from_slice(&cookie.to_bytes());
    let tag = mac(key, &[&bytes]);
    bytes.extend_from_slice(&tag);
    bytes.resize(BASE_DATAGRAM, 0);
    bytes
}

/// A datagram with the first byte of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A request of this version.
    Ours(Box<Request>),
    /// A request of another version, of which only the prefix is understood.
    Foreign([u8; PREFIX_LEN]),
}

pub(crate) fn read_request(bytes: &[u8]) -> Option<Asked> {
    if bytes.len() != BASE_DATAGRAM {
        return None;
    }
    if bytes[1] != VERSION {
        return Some(Asked::Foreign(*bytes.first_chunk()?));
    }
    let mut reader = Reader::new(bytes);
    if reader.u8()? != REQUEST {
        return None;
    }
    reader.u8()?;
    let echo = reader.array()?;
    let front = TokenFront {
        protocol: ProtocolId(reader.array()?),
        expires: UnixTime(reader.u64()?),
        nonce: reader.array()?,
    };
    let request = Request {
        opening: bytes[..OPENING_LEN].to_vec(),
        echo,
        front,
        sealed: Box::new(reader.array()?),
        ephemeral: reader.array()?,
        cookie: Cookie::read(&mut reader)?,
        mac: reader.array()?,
    };
    reader.only_zeros()?;
    Some(Asked::Ours(Box::new(request)))
}

impl Request {
    /// Whether the sender has the token's secret.
    pub(crate) fn is_from_holder(&self, key: &Secret) -> bool {
        mac_is(key, &[&self.opening, &self.cookie.to_bytes()], &self.mac)
    }

    /// The part that all versions understand.
    pub(crate) fn prefix(&self) -> [u8; PREFIX_LEN] {
        *self.opening.first_chunk().expect("an opening is longer")
    }
}

pub(crate) fn write_challenge(echo: [u8; ECHO_LEN], cookie: Cookie) -> Vec<u8> {
    [&[CHALLENGE][..], &echo, &cookie.to_bytes()].concat()
}

pub(crate) fn read_challenge(bytes: &[u8]) -> Option<([u8; ECHO_LEN], Cookie)> {
    let mut reader = Reader::new(bytes);
    reader.u8().filter(|&first| first == CHALLENGE)?;
    let challenge = (reader.array()?, Cookie::read(&mut reader)?);
    reader.end()?;
    Some(challenge)
}

/// The server's answer to a client that it admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) echo: [u8; ECHO_LEN],
    pub(crate) connection: u64,
    pub(crate) ephemeral: [u8; 32],
    /// The connection's reset token, sealed with a key that only the two ends have.
    pub(crate) sealed_reset: [u8; SEALED_RESET_LEN],
}

impl Accept {
    /// Everything but the sealed reset token; an input of the key derivation.
    pub(crate) fn answer(&self) -> [u8; ANSWER_LEN] {
        let mut bytes = [0; ANSWER_LEN];
        bytes[0] = ACCEPT;
        bytes[1..9].copy_from_slice(&self.echo);
        bytes[9..17].copy_from_slice(&self.connection.to_le_bytes());
        bytes[17..].copy_from_slice(&self.ephemeral);
        bytes
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [&self.answer()[..], &self.sealed_reset].concat()
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        reader.u8().filter(|&first| first == ACCEPT)?;
        let accept = Self {
            echo: reader.array()?,
            connection: reader.u64()?,
            ephemeral: reader.array()?,
            sealed_reset: reader.array()?,
        };
        reader.end()?;
        Some(accept)
    }
}

/// Denies the request that began with `prefix`. The MAC covers that prefix, so the denial of a
/// request that was damaged on the way does not match the original. If the server has no key,
/// because it cannot open the token, the key is zero.
pub(crate) fn write_denied(denial: Denial, prefix: &[u8; PREFIX_LEN], key: &[u8; 32]) -> Vec<u8> {
    let (kind, detail) = denial.to_code();
    let mut bytes = vec![DENIED];
    bytes.extend_from_slice(&prefix[2..]);
    bytes.push(kind);
    bytes.extend_from_slice(&detail.to_le_bytes());
    let tag = mac(key, &[&bytes, prefix]);
    bytes.extend_from_slice(&tag);
    bytes
}

/// Reads the denial of the request that began with `prefix`.
pub(crate) fn read_denied(bytes: &[u8], prefix: &[u8; PREFIX_LEN], key: &Secret) -> Option<Denial> {
    let mut reader = Reader::new(bytes);
    reader.u8().filter(|&first| first == DENIED)?;
    reader
        .array::<ECHO_LEN>()
        .filter(|echo| echo[..] == prefix[2..])?;
    let denial = Denial::from_code(reader.u8()?, reader.u16()?)?;
    let tag = reader.array()?;
    reader.end()?;
    let denied = &bytes[..bytes.len() - MAC_LEN];
    // A server that cannot open the token has no key for the MAC.
    let keyless = matches!(
        denial,
        Denial::Version { .. } | Denial::Protocol | Denial::Unreadable
    );
    let key = if keyless { &[0; 32] } else { &**key };
    mac_is(key, &[denied, prefix], &tag).then_some(denial)
}

/// A stateless reset: the server has no such connection.
pub(crate) fn write_reset(token: ResetToken) -> Vec<u8> {
    [&[RESET][..], &token.0].concat()
}

pub(crate) fn read_reset(bytes: &[u8]) -> Option<ResetToken> {
    let mut reader = Reader::new(bytes);
    reader.u8().filter(|&first| first == RESET)?;
    let token = ResetToken(reader.array()?);
    reader.end()?;
    Some(token)
}

/// The type of a sealed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketKind {
    /// Messages and other frames.
    Frames,
    KeepAlive,
    /// Validates the address that it is sent to; only a server sends it.
    PathChallenge,
    /// Answers that; only a client sends it.
    PathResponse,
    Close,
}

impl PacketKind {
    fn to_code(self) -> u8 {
        match self {
            Self::Frames => 0,
            Self::KeepAlive => 1,
            Self::PathChallenge | Self::PathResponse => 2,
            Self::Close => 3,
        }
    }

    /// The kind with the lowest two bits of `code`.
    fn from_code(code: u8, to_server: bool) -> Self {
        match (code & 3, to_server) {
            (0, _) => Self::Frames,
            (1, _) => Self::KeepAlive,
            (2, false) => Self::PathChallenge,
            (2, true) => Self::PathResponse,
            (_, _) => Self::Close,
        }
    }
}

/// The header of a sealed packet, authenticated but not encrypted.
///
/// One of frames is *short* if five bits of its number suffice and both phases are the same, which
/// is the ordinary case: the number is in the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: PacketKind,
    /// The lowest bit of the epoch of the sender's key.
    pub(crate) phase: bool,
    /// The lowest bit of the epoch of the newest key that the sender has received.
    pub(crate) other_phase: bool,
    /// The connection id, in packets to a server.
    pub(crate) connection: Option<u64>,
    pub(crate) number: ShortNumber,
}

/// The low bits of a packet number, as many as the receiver needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortNumber {
    /// 1 to 4, or 0 for the five bits of a short header.
    pub(crate) bytes: usize,
    pub(crate) low: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderError;

impl Header {
    /// The length, with or without a connection id, and with so many bytes of the packet number.
    pub(crate) fn len(named: bool, number_bytes: usize) -> usize {
        let name = if named { 8 } else { 0 };
        1 + name + number_bytes
    }

    /// Whether a header may be short, if its number is.
    pub(crate) fn may_be_short(kind: PacketKind, phase: bool, other_phase: bool) -> bool {
        kind == PacketKind::Frames && phase == other_phase
    }

    /// Puts the header before a packet's payload.
    pub(crate) fn prepend(self, packet: &mut PacketBuffer) {
        packet.prepend(&self.number.low.to_le_bytes()[..self.number.bytes]);
        if let Some(connection) = self.connection {
            packet.prepend(&connection.to_le_bytes());
        }
        let (phase, other_phase) = (u8::from(self.phase), u8::from(self.other_phase));
        let first = match self.number.bytes {
            0 => SHORT | phase << 5 | self.number.low as u8,
            bytes => {
                let bytes = bytes as u8 - 1;
                self.kind.to_code() << 4 | bytes << 2 | other_phase << 1 | phase
            }
        };
        packet.prepend(&[SEALED | first]);
    }

    /// The header and the bytes after it.
    pub(crate) fn read(bytes: &[u8], to_server: bool) -> Result<(Self, &[u8]), HeaderError> {
        let mut reader = Reader::new(bytes);
        Self::parse(&mut reader, to_server)
            .map(|header| (header, &bytes[bytes.len() - reader.left()..]))
            .ok_or(HeaderError)
    }

    fn parse(reader: &mut Reader<'_>, to_server: bool) -> Option<Self> {
        let first = reader.u8().filter(|first| first & SEALED != 0)?;
        let connection = match to_server {
            true => Some(reader.u64()?),
            false => None,
        };
        if first & SHORT != 0 {
            let phase = first & 0x20 != 0;
            return Some(Self {
                kind: PacketKind::Frames,
                phase,
                other_phase: phase,
                connection,
                number: ShortNumber {
                    bytes: 0,
                    low: u32::from(first & 0x1f),
                },
            });
        }
        let number_bytes = usize::from(first >> 2 & 3) + 1;
        let mut low = [0; 4];
        low[..number_bytes].copy_from_slice(reader.slice(number_bytes)?);
        Some(Self {
            kind: PacketKind::from_code(first >> 4, to_server),
            phase: first & 1 != 0,
            other_phase: first & 2 != 0,
            connection,
            number: ShortNumber {
                bytes: number_bytes,
                low: u32::from_le_bytes(low),
            },
        })
    }
}

impl ShortNumber {
    /// The low bits of a packet number, of which as many travel as the distance from the newest
    /// acknowledged packet requires; `acknowledged` is one more than its number. Whole bytes unless
    /// the header may be short.
    ///
    /// The receiver has the acknowledged packet, so it finds the number. It also does if this packet
    /// is overtaken by four times as many as are in flight now, or by 22 if the header is short; if
    /// by more, it cannot open the packet, which is then lost.
    pub(crate) fn of(sequence: u64, acknowledged: Option<u64>, may_be_short: bool) -> Self {
        let since = acknowledged.map(|end| sequence.saturating_sub(end) + 1);
        let bytes = match since {
            Some(0..=MAX_SHORT) if may_be_short => 0,
            Some(0..=0x1f) => 1,
            Some(0x20..=0x1fff) => 2,
            Some(0x2000..=0x1f_ffff) => 3,
            _ => 4,
        };
        Self {
            bytes,
            low: (sequence & mask(bytes)) as u32,
        }
    }

    /// The packet number that has these low bits and is nearest to the expected one; with a short
    /// header, it is less than [`MAX_SHORT`] ahead.
    pub(crate) fn nearest(self, expected: u64) -> u64 {
        let mask = mask(self.bytes);
        let max_ahead = match self.bytes {
            0 => MAX_SHORT - 1,
            _ => mask / 2,
        };
        let ahead = u64::from(self.low).wrapping_sub(expected) & mask;
        if ahead <= max_ahead {
            return expected.saturating_add(ahead);
        }
        let behind = mask + 1 - ahead;
        // Near zero, there may be no such number below the expected one.
        expected
            .checked_sub(behind)
            .unwrap_or_else(|| expected + ahead)
    }
}

/// The bits of a number of which so many bytes travel.
fn mask(bytes: usize) -> u64 {
    match bytes {
        0 => 0x1f,
        bytes => (1 << (8 * bytes)) - 1,
    }
}

/// How far from the newest acknowledged packet the number of a short header may be. The rest of the
/// five bits is for packets that overtake it.
const MAX_SHORT: u64 = 9;
const REQUEST: u8 = 1;
const CHALLENGE: u8 = 2;
const ACCEPT: u8 = 3;
const DENIED: u8 = 4;
const RESET: u8 = 5;
const SEALED: u8 = 0x80;
/// In the first byte of a short header.
const SHORT: u8 = 0x40;
pub(crate) const ECHO_LEN: usize = 8;
pub(crate) const PREFIX_LEN: usize = 2 + ECHO_LEN;
const COOKIE_LEN: usize = 8 + MAC_LEN;
const ANSWER_LEN: usize = 1 + ECHO_LEN + 8 + 32;
const OPENING_LEN: usize = PREFIX_LEN + 16 + 8 + 24 + SEALED_LEN + 32;
