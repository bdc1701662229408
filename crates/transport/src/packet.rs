//! The datagrams, byte by byte; WIRE.md has the same as tables.
//!
//! A writer stands above its reader. Lengths are fixed, so a length alone refuses most of what is
//! not ours.

use crate::bytes::Reader;
use crate::error::Denial;
use crate::key_schedule::{MAC_LEN, Secret, mac, mac_is};
use crate::reset::{ResetToken, SEALED_RESET_LEN};
use crate::time::{Time, UnixTime};
use crate::token::{ConnectToken, ProtocolId, SEALED_LEN, TokenFront};

/// The version of the packets. It lies where every version has it: in the second byte of a request.
pub const VERSION: u8 = 3;

/// What every path of the internet carries. A request is padded to it, so that a path that does not
/// is noticed at once.
pub const BASE_DATAGRAM: usize = 1200;

/// The longest datagram that is ever sent: what an Ethernet frame has left for UDP over IPv4.
pub const MAX_DATAGRAM: usize = 1472;

/// What a datagram is, as far as its first byte tells.
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

/// A server's word that an address was reached, which it need not remember.
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

/// A client's wish to connect, with the cookie once it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Everything up to the cookie: the same in every copy.
    pub(crate) opening: Vec<u8>,
    /// A random number that answers repeat, so that only who saw the request can answer.
    pub(crate) echo: [u8; ECHO_LEN],
    pub(crate) front: TokenFront,
    pub(crate) sealed: Box<[u8; SEALED_LEN]>,
    pub(crate) ephemeral: [u8; 32],
    pub(crate) cookie: Cookie,
    pub(crate) mac: [u8; MAC_LEN],
}

/// Everything of a request that stays the same however often it is sent.
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

/// A whole request.
pub(crate) fn write_request(opening: &[u8], cookie: Cookie, key: &Secret) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BASE_DATAGRAM);
    bytes.extend_from_slice(opening);
    bytes.extend_from_slice(&cookie.to_bytes());
    let tag = mac(key, &[&bytes]);
    bytes.extend_from_slice(&tag);
    bytes.resize(BASE_DATAGRAM, 0);
    bytes
}

/// What a datagram that begins like a request turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A request.
    Ours(Box<Request>),
    /// A request of another version, of which only this much is understood.
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
    /// Whether whoever sent it has the token's secret.
    pub(crate) fn is_from_holder(&self, key: &Secret) -> bool {
        mac_is(key, &[&self.opening, &self.cookie.to_bytes()], &self.mac)
    }

    /// What every version understands of it.
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

/// The server's answer to a client that it lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) echo: [u8; ECHO_LEN],
    pub(crate) connection: u64,
    pub(crate) ephemeral: [u8; 32],
    /// The connection's reset token, under a key that only the two ends have.
    pub(crate) sealed_reset: [u8; SEALED_RESET_LEN],
}

impl Accept {
    /// All but the sealed reset token: what the keys are made of.
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

/// A refusal of the request that began with `prefix`. Its MAC covers what was asked, so a request
/// that was damaged on the way cannot bring a refusal upon the honest one. The key is zero where
/// the server knows no other.
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

/// Reads a refusal of the request that began with `prefix`.
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
    // Who cannot open the token has no key to prove anything with.
    let nobodys = matches!(
        denial,
        Denial::Version { .. } | Denial::Protocol | Denial::Unreadable
    );
    let key = if nobodys { &[0; 32] } else { &**key };
    mac_is(key, &[denied, prefix], &tag).then_some(denial)
}

/// Tells a client that the server does not know its connection any more.
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

/// What a sealed packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketKind {
    /// Messages, and what there is to say about packets.
    Frames,
    KeepAlive,
    /// Whoever reads this is at the address that it was sent to.
    PathChallenge,
    PathResponse,
    Close,
}

/// What stands before the ciphertext, in the open and authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: PacketKind,
    /// The number of the sender's key, modulo 4.
    pub(crate) phase: u8,
    /// The number of the newest key that the sender received, modulo 4.
    pub(crate) other_phase: u8,
    /// Whose packet it is, where the receiver has more than one connection.
    pub(crate) connection: Option<u64>,
    pub(crate) sequence_low: u32,
}

/// Not the header of a sealed packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderError;

impl Header {
    /// How long it is, with or without the name of a connection.
    pub(crate) fn len(named: bool) -> usize {
        if named { 1 + 8 + 4 } else { 1 + 4 }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let kind = PACKET_KINDS.iter().position(|&kind| kind == self.kind);
        let kind = kind.expect("all kinds are listed") as u8;
        let mut bytes = vec![SEALED | kind << 4 | self.other_phase << 2 | self.phase];
        if let Some(connection) = self.connection {
            bytes.extend_from_slice(&connection.to_le_bytes());
        }
        bytes.extend_from_slice(&self.sequence_low.to_le_bytes());
        bytes
    }

    /// The header and what follows it.
    pub(crate) fn read(bytes: &[u8], to_server: bool) -> Result<(Self, &[u8]), HeaderError> {
        let mut reader = Reader::new(bytes);
        Self::parse(&mut reader, to_server)
            .map(|header| (header, &bytes[bytes.len() - reader.left()..]))
            .ok_or(HeaderError)
    }

    fn parse(reader: &mut Reader<'_>, to_server: bool) -> Option<Self> {
        let first = reader.u8().filter(|first| first & SEALED != 0)?;
        Some(Self {
            kind: *PACKET_KINDS.get(usize::from(first >> 4 & 7))?,
            phase: first & 3,
            other_phase: first >> 2 & 3,
            connection: match to_server {
                true => Some(reader.u64()?),
                false => None,
            },
            sequence_low: reader.u32()?,
        })
    }
}

const REQUEST: u8 = 1;
const CHALLENGE: u8 = 2;
const ACCEPT: u8 = 3;
const DENIED: u8 = 4;
const RESET: u8 = 5;
const SEALED: u8 = 0x80;
const PACKET_KINDS: [PacketKind; 5] = [
    PacketKind::Frames,
    PacketKind::KeepAlive,
    PacketKind::PathChallenge,
    PacketKind::PathResponse,
    PacketKind::Close,
];
pub(crate) const ECHO_LEN: usize = 8;
pub(crate) const PREFIX_LEN: usize = 2 + ECHO_LEN;
const COOKIE_LEN: usize = 8 + MAC_LEN;
const ANSWER_LEN: usize = 1 + ECHO_LEN + 8 + 32;
const OPENING_LEN: usize = PREFIX_LEN + 16 + 8 + 24 + SEALED_LEN + 32;
