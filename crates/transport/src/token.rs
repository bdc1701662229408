//! Connect tokens: a backend's word that a client may join.
//!
//! The backend knows who has an account, the server does not, and the two share only a key. So the
//! backend seals what the server has to know into a token and hands it to the client, over HTTPS
//! or whatever the players log in with. The client cannot read or change the sealed part; beside
//! it lie the same secret and addresses once more, for the client itself.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use ring::digest;
use zeroize::{Zeroize, Zeroizing};

use crate::bytes::Reader;
use crate::entropy::{Entropy, random};
use crate::error::TokenError;
use crate::key_schedule::{Secret, follow};
use crate::time::UnixTime;

/// Who a client is to the backend that issued its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// What both ends must have in common before they talk: a hash over the schema, the prior and
/// whatever else the game's packets depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolId(pub [u8; 16]);

impl ProtocolId {
    /// A hash over everything that both ends must have in common, in this order: the version of
    /// the packets, the fingerprints of schema and prior, and what the game adds. Where one part
    /// ends and the next begins counts, too.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in parts {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut short = [0; 16];
        short.copy_from_slice(&context.finish().as_ref()[..16]);
        Self(short)
    }
}

/// The key that a backend seals tokens with and its servers open them with. Whoever has it can
/// let anybody in.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenKey(Zeroizing<[u8; 32]>);

impl TokenKey {
    /// A key from where both keep it. The published key of the insecure mode is refused.
    pub fn new(bytes: [u8; 32]) -> Result<Self, TokenError> {
        let key = Self(Zeroizing::new(bytes));
        if key.is_public() {
            return Err(TokenError::PublicKey);
        }
        Ok(key)
    }

    /// A new key.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        Self(Zeroizing::new(random(entropy)))
    }

    /// A key that everybody knows, so that a test needs no backend. Packets are protected as ever,
    /// but anybody can issue tokens; a server with this key therefore answers nobody but the
    /// machine that it runs on.
    pub fn insecure_for_loopback_tests() -> Self {
        Self(Zeroizing::new(PUBLIC_KEY))
    }

    pub(crate) fn is_public(&self) -> bool {
        *self.0 == PUBLIC_KEY
    }

    /// A key for something else that only a server does with it.
    pub(crate) fn follow(&self, label: &[u8]) -> Secret {
        follow(&self.0, label)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.0.as_slice().into())
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenKey(…)")
    }
}

/// What a backend grants to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// To whom.
    pub client: ClientId,
    /// What both ends must speak.
    pub protocol: ProtocolId,
    /// Servers to try in this order, 1 to 16, as clients can reach them. A server remembers which
    /// tokens it has seen but knows nothing of the others: name one if a grant must be good for
    /// one session only.
    pub servers: Vec<SocketAddr>,
    /// When a connection can no longer be made with it. Half a minute is plenty; sessions outlive
    /// their tokens. A server remembers used tokens in memory: one that is restarted takes a token
    /// that has not expired once more. The session that it was used for ended with the restart, so
    /// there is still one at a time, and its client can come back; what remains is that somebody who
    /// was thrown out can, too, until then.
    pub expires: UnixTime,
    /// Up to 256 bytes for the game's server, which the client can neither read nor change.
    pub data: Vec<u8>,
}

impl Grant {
    /// Seals the grant into a token. Two calls give two tokens, good for a session each.
    pub fn issue(
        &self,
        key: &TokenKey,
        entropy: &mut dyn Entropy,
    ) -> Result<ConnectToken, TokenError> {
        if self.servers.is_empty() || self.servers.len() > MAX_SERVERS {
            return Err(TokenError::Servers(self.servers.len()));
        }
        if self.data.len() > MAX_DATA {
            return Err(TokenError::Data(self.data.len()));
        }
        let secret = Zeroizing::new(random::<32>(entropy));
        let public = TokenFront {
            protocol: self.protocol,
            expires: self.expires,
            nonce: random(entropy),
        };
        let mut sealed = [0; SEALED_LEN];
        let (text, tag) = sealed.split_at_mut(SEALED_LEN - 16);
        write_private(self, &secret, text);
        let made = key
            .cipher()
            .encrypt_in_place_detached(
                XNonce::from_slice(&public.nonce),
                &public.associated(),
                text,
            )
            .expect("a token is shorter than 2^38 bytes");
        tag.copy_from_slice(&made);
        Ok(ConnectToken {
            front: public,
            sealed: Box::new(sealed),
            secret,
            servers: self.servers.iter().copied().map(canonical).collect(),
        })
    }
}

/// The part of a token that anybody can read and nobody can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenFront {
    pub(crate) protocol: ProtocolId,
    pub(crate) expires: UnixTime,
    pub(crate) nonce: [u8; 24],
}

impl TokenFront {
    fn associated(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(&self.protocol.0);
        bytes[24..].copy_from_slice(&self.expires.0.to_le_bytes());
        bytes
    }
}

/// What a client needs to connect. It holds a secret: carry it over a protected channel.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectToken {
    pub(crate) front: TokenFront,
    pub(crate) sealed: Box<[u8; SEALED_LEN]>,
    pub(crate) secret: Zeroizing<[u8; 32]>,
    pub(crate) servers: Vec<SocketAddr>,
}

impl ConnectToken {
    /// The servers that it is for, in the order in which they are tried.
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// When it expires, by the clock of whoever issued it.
    pub fn expires(&self) -> UnixTime {
        self.front.expires
    }

    /// The bytes that a backend hands to a client.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(TOKEN_LEN_MAX));
        bytes.extend_from_slice(&self.front.associated());
        bytes.extend_from_slice(&self.front.nonce);
        bytes.extend_from_slice(&*self.sealed);
        bytes.extend_from_slice(&*self.secret);
        bytes.push(self.servers.len() as u8);
        for server in &self.servers {
            bytes.extend_from_slice(&address_to_bytes(*server));
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TokenError> {
        Self::read(Reader::new(bytes)).ok_or(TokenError::Malformed)
    }

    fn read(mut reader: Reader<'_>) -> Option<Self> {
        if reader.array()? != MAGIC {
            return None;
        }
        let front = TokenFront {
            protocol: ProtocolId(reader.array()?),
            expires: UnixTime(reader.u64()?),
            nonce: reader.array()?,
        };
        let sealed = Box::new(reader.array()?);
        let secret = Zeroizing::new(reader.array()?);
        let servers = read_servers(&mut reader)?;
        reader.end()?;
        Some(Self {
            front,
            sealed,
            secret,
            servers,
        })
    }
}

impl fmt::Debug for ConnectToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectToken")
            .field("front", &self.front)
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

/// What a server finds in a token.
pub(crate) struct Private {
    pub(crate) client: ClientId,
    pub(crate) secret: Zeroizing<[u8; 32]>,
    pub(crate) servers: Vec<SocketAddr>,
    pub(crate) data: Vec<u8>,
}

fn write_private(grant: &Grant, secret: &[u8; 32], text: &mut [u8]) {
    let mut bytes = Zeroizing::new(Vec::with_capacity(SEALED_LEN));
    bytes.extend_from_slice(&grant.client.0.to_le_bytes());
    bytes.extend_from_slice(secret);
    bytes.push(grant.servers.len() as u8);
    for server in &grant.servers {
        bytes.extend_from_slice(&address_to_bytes(*server));
    }
    bytes.extend_from_slice(&(grant.data.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&grant.data);
    text[..bytes.len()].copy_from_slice(&bytes);
}

impl Private {
    /// Opens a sealed part; `None` if the key does not fit or anything was changed.
    pub(crate) fn open(
        key: &TokenKey,
        front: &TokenFront,
        sealed: &[u8; SEALED_LEN],
    ) -> Option<Self> {
        let mut text = Zeroizing::new(*sealed);
        let (text, tag) = text.split_at_mut(SEALED_LEN - 16);
        key.cipher()
            .decrypt_in_place_detached(
                XNonce::from_slice(&front.nonce),
                &front.associated(),
                text,
                (&*tag).into(),
            )
            .ok()?;
        let mut reader = Reader::new(text);
        let client = ClientId(reader.u64()?);
        let secret = Zeroizing::new(reader.array()?);
        let servers = read_servers(&mut reader)?;
        let length = usize::from(reader.u16()?);
        if length > MAX_DATA {
            return None;
        }
        let data = reader.slice(length)?.to_vec();
        reader.only_zeros()?;
        Some(Self {
            client,
            secret,
            servers,
            data,
        })
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        self.data.zeroize();
    }
}

/// An address without what makes two names of one address differ.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// An address as bytes: family, 16 bytes of which IPv4 uses the first four, port.
pub(crate) fn address_to_bytes(address: SocketAddr) -> [u8; ADDRESS_LEN] {
    let mut bytes = [0; ADDRESS_LEN];
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => {
            bytes[0] = 4;
            bytes[1..5].copy_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes[0] = 6;
            bytes[1..17].copy_from_slice(&ip.octets());
        }
    }
    bytes[17..].copy_from_slice(&address.port().to_le_bytes());
    bytes
}

fn read_address(reader: &mut Reader<'_>) -> Option<SocketAddr> {
    let family = reader.u8()?;
    let octets: [u8; 16] = reader.array()?;
    let port = reader.u16()?;
    let ip = match (family, octets) {
        (4, [a, b, c, d, rest @ ..]) if rest == [0; 12] => Ipv4Addr::new(a, b, c, d).into(),
        (6, octets) => IpAddr::from(Ipv6Addr::from(octets)),
        _ => return None,
    };
    (ip.to_canonical() == ip).then_some(SocketAddr::new(ip, port))
}

fn read_servers(reader: &mut Reader<'_>) -> Option<Vec<SocketAddr>> {
    let count = usize::from(reader.u8()?);
    if count == 0 || count > MAX_SERVERS {
        return None;
    }
    (0..count).map(|_| read_address(reader)).collect()
}

pub(crate) const SEALED_LEN: usize = 640;
const ADDRESS_LEN: usize = 19;
const MAX_SERVERS: usize = 16;
const MAX_DATA: usize = 256;
const TOKEN_LEN_MAX: usize = 32 + 24 + SEALED_LEN + 32 + 1 + MAX_SERVERS * ADDRESS_LEN;
/// The last byte is the version of the token.
const MAGIC: [u8; 8] = *b"prscnt\0\x01";
const PUBLIC_KEY: [u8; 32] = *b"insecure: only for loopback test";

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if parts are joined without their lengths. The first was computed with another
    /// implementation of SHA-256.
    #[test]
    fn protocols_differ_by_any_part_and_by_where_it_ends() {
        let id = |parts: &[&[u8]]| ProtocolId::of(parts);
        assert_eq!(
            id(&[b"wire 3", b"schema"]).0,
            [
                0x68, 0x7f, 0x4d, 0x22, 0x6c, 0x9f, 0x8d, 0x24, 0xa9, 0x92, 0x80, 0xe9, 0x3b, 0x68,
                0x2b, 0x52
            ]
        );
        assert_ne!(id(&[b"wire 3", b"schema"]), id(&[b"wire 3s", b"chema"]));
        assert_ne!(
            id(&[b"wire 3", b"schema"]),
            id(&[b"wire 3", b"schema", b""])
        );
        assert_ne!(id(&[]), id(&[b""]));
    }
}
