//! Text forms of what programs need before they connect: server addresses, tokens and keys.
//!
//! Text is URL-safe base64 without padding, to be pasted, sent and stored in files.

use std::net::{SocketAddr, ToSocketAddrs};

use base64ct::{Base64UrlUnpadded, Encoding};
use prescient_channels::ClientId;
use prescient_transport::{ConnectToken, Entropy, Grant, ProtocolId, TokenKey, UnixTime};
use zeroize::Zeroizing;

use crate::clock::{Clock, SystemEntropy};
use crate::error::{AddressError, TextError};

/// The addresses of a `host:port`, IPv4 first, since more hosts can reach a server by that. For
/// backends and settings, which have servers as text; tokens have addresses.
///
/// Blocks while the system resolves the name, which may take seconds.
pub fn resolve(text: &str) -> Result<Vec<SocketAddr>, AddressError> {
    let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    // An IPv6 address without brackets ends in something that looks like a port.
    let is_bare = text.parse::<std::net::Ipv6Addr>().is_ok();
    if let Some((_, port)) = text.rsplit_once(':')
        && !is_bare
        && !port.is_empty()
        && port.bytes().all(|digit| digit.is_ascii_digit())
        && port.parse::<u16>().is_err()
    {
        return Err(AddressError::NoSuchPort {
            text: text.to_owned(),
            port: port.to_owned(),
        });
    }
    if is_bare || !matches!(port, Some(Ok(_))) {
        return Err(AddressError::NoPort(text.to_owned()));
    }
    let unknown = |reason: String| AddressError::Unknown {
        name: text.to_owned(),
        reason,
    };
    let found = text.to_socket_addrs();
    let found = found.map_err(|error| unknown(error.to_string()))?;
    let mut addresses: Vec<_> = found.collect();
    if addresses.is_empty() {
        return Err(unknown("it has no address".to_owned()));
    }
    addresses.sort_by_key(SocketAddr::is_ipv6);
    addresses.dedup();
    Ok(addresses)
}

/// A token for a server on this host that has the key [`TokenKey::insecure_for_loopback_tests`],
/// without a backend. Servers on other hosts would not answer.
pub fn insecure_token(
    server: &str,
    protocol: ProtocolId,
    client: ClientId,
) -> Result<ConnectToken, AddressError> {
    let mut servers = resolve(server)?;
    servers.retain(|address| address.ip().is_loopback());
    servers.truncate(MAX_SERVERS);
    let grant = Grant {
        client,
        protocol,
        servers,
        expires: UnixTime(Clock::unix().0 + 60),
        data: Vec::new(),
    };
    let mut entropy = SystemEntropy::new()?;
    let token = grant.issue(&TokenKey::insecure_for_loopback_tests(), &mut entropy);
    token.map_err(|_| AddressError::NeedsToken(server.to_owned()))
}

/// A token as text. It contains a secret: everyone who reads it can connect as this client.
pub fn token_to_text(token: &ConnectToken) -> Zeroizing<String> {
    Zeroizing::new(Base64UrlUnpadded::encode_string(&token.to_bytes()))
}

/// Reads the output of [`token_to_text`]; white space around it and line breaks in it are ignored.
pub fn token_from_text(text: &str) -> Result<ConnectToken, TextError> {
    let bytes = decode(text).ok_or(TextError::NoToken)?;
    ConnectToken::from_bytes(&bytes).map_err(TextError::Token)
}

/// A new key as text, for the files of a backend and its servers.
pub fn new_key(entropy: &mut dyn Entropy) -> Zeroizing<String> {
    let mut bytes = Zeroizing::new([0; KEY_LEN]);
    entropy.fill(&mut *bytes);
    Zeroizing::new(Base64UrlUnpadded::encode_string(&*bytes))
}

/// Reads the output of [`new_key`].
pub fn key_from_text(text: &str) -> Result<TokenKey, TextError> {
    let bytes = decode(text).ok_or(TextError::NoKey)?;
    let bytes: [u8; KEY_LEN] = bytes.as_slice().try_into().map_err(|_| TextError::NoKey)?;
    TokenKey::new(bytes).map_err(TextError::Key)
}

fn decode(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let text: Zeroizing<String> = Zeroizing::new(text.split_whitespace().collect());
    let bytes = Base64UrlUnpadded::decode_vec(&text).ok()?;
    Some(Zeroizing::new(bytes))
}

/// The capacity of a token.
const MAX_SERVERS: usize = 16;
const KEY_LEN: usize = 32;
