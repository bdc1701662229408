//! Connect tokens, by which a backend lets a client connect to a server.
//!
//! The backend knows the accounts, the server does not, and the two share only a key. The backend
//! therefore seals what the server needs into a token and hands that to the client, over HTTPS or
//! whatever the players log in with. The client can neither read nor change the sealed part; the
//! token has the secret and the addresses a second time, readable for the client.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use ring::digest;
use zeroize::{Zeroize, Zeroizing};

use crate::entropy::{Entropy, random};
use crate::error::TokenError;
use crate::key_schedule::{Secret, follow};
use prescient_channels::ClientId;
use prescient_channels::bytes::Reader;

/// Wall clock time in seconds since 1970, which backend and server share. It is used only for the
/// expiry of tokens, so a wall clock that jumps cannot end a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixTime(pub u64);

/// Identifies what both ends must have in common: a hash over the schema, the prior and everything
/// else that the game's packets depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolId(pub [u8; 16]);

impl ProtocolId {
    /// Hashes everything that both ends must have in common, in this order: the version of the
    /// packet format, the fingerprints of schema and prior, and what the game adds. Each part's
    /// length is hashed, too.
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

/// The key that a backend seals tokens with and its servers open them with. Everyone who has it can
/// issue tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenKey(Zeroizing<[u8; 32]>);

impl TokenKey {
    /// A key that backend and server store. Rejects the published key of the insecure mode.
    pub fn new(bytes: [u8; 32]) -> Result<Self, TokenError> {
        let key = Self(Zeroizing::new(bytes));
        if key.is_public() {
            return Err(TokenError::PublicKey);
        }
        Ok(key)
    }

    /// A random key.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        Self(Zeroizing::new(random(entropy)))
    }

    /// A published key, so that a test needs no backend. Packets are protected as usual, but
    /// everyone can issue tokens; a server with this key therefore answers loopback addresses only.
    pub fn insecure_for_loopback_tests() -> Self {
        Self(Zeroizing::new(PUBLIC_KEY))
    }

    pub(crate) fn is_public(&self) -> bool {
        *self.0 == PUBLIC_KEY
    }

    /// Derives a key for another purpose of the server.
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

/// What a backend permits a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The client's account id.
    pub client: ClientId,
    /// The protocol that both ends must have.
    pub protocol: ProtocolId,
    /// Servers to try in this order, 1 to 16, at addresses that clients can reach. Each server
    /// remembers used tokens by itself: name only one server if the grant must be good for a single
    /// session.
    pub servers: Vec<SocketAddr>,
    /// When the token expires. It limits the handshake only, so half a minute is plenty. A server
    /// keeps used tokens in memory: after a restart it accepts one that has not expired again. The
    /// restart ended the token's session, so there is still only one session at a time and the
    /// client can reconnect; but until the token expires, so can a client that was kicked.
    pub expires: UnixTime,
    /// Up to 256 bytes for the game's server; the client can neither read nor change them.
    pub data: Vec<u8>,
}

impl Grant {
    /// Seals the grant into a token. Each call makes another token, good for one session.
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

/// The part of a token that is authenticated but not encrypted.
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

/// A client's permission to connect. It contains a secret: send it over a protected channel only.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectToken {
    pub(crate) front: TokenFront,
    pub(crate) sealed: Box<[u8; SEALED_LEN]>,
    pub(crate) secret: Zeroizing<[u8; 32]>,
    pub(crate) servers: Vec<SocketAddr>,
}

impl ConnectToken {
    /// The servers, in the order in which they are tried.
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// The expiry, by the backend's clock.
    pub fn expires(&self) -> UnixTime {
        self.front.expires
    }

    /// The encoding that a backend sends to a client.
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

    /// Decodes [`to_bytes`](Self::to_bytes).
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

/// The decrypted part of a token.
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
    /// Opens the sealed part; `None` if the key is wrong or anything was changed.
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

/// The canonical form of an address: an IPv4-mapped IPv6 address becomes IPv4.
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

    /// Fails if parts are hashed without their lengths. The first hash was computed with another
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
