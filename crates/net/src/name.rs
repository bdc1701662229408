//! Resolution of server names.

use std::net::{SocketAddr, ToSocketAddrs};

use prescient_channels::ClientId;
use prescient_transport::{ConnectToken, Grant, ProtocolId, TokenKey, UnixTime};

use crate::clock::{Clock, SystemEntropy};
use crate::error::AddressError;

/// The addresses of a `host:port`, IPv4 first, since more hosts can reach a server by that. For
/// backends and settings, which have servers as text; tokens have addresses.
///
/// Blocks while the system resolves the name, which may take seconds.
pub fn resolve(text: &str) -> Result<Vec<SocketAddr>, AddressError> {
    let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    // An IPv6 address without brackets ends in something that looks like a port.
    let is_bare = text.parse::<std::net::Ipv6Addr>().is_ok();
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

/// The capacity of a token.
const MAX_SERVERS: usize = 16;
