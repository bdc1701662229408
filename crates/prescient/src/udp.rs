//! Servers and clients over secure UDP connections.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::{Carrier, ClientId};
use prescient_net::{
    AddressError, BlockingClient, BlockingServer, Socket, insecure_token, resolve,
};
use prescient_replication::Relevance;
use prescient_schema::Schema;
use prescient_transport::{ConnectToken, LinkConfig, ProtocolId, TokenKey};

use crate::client::Client;
use crate::error::{JoinError, ServeError};
use crate::options::{ClientOptions, ServerOptions};
use crate::protocol::protocol;
use crate::server::Server;

impl Server {
    /// A server for clients on this machine, without a backend. Its key is publicly known, so it
    /// accepts loopback connections only.
    pub fn loopback(
        address: &str,
        schema: Schema,
        relevance: impl Relevance + 'static,
    ) -> Result<Self, ServeError> {
        let key = TokenKey::insecure_for_loopback_tests();
        Self::bind(address, key, schema, relevance, ServerOptions::default())
    }

    /// A server for clients whose token is sealed with `key` and names the bound address, or one of
    /// the [public addresses](ServerOptions::with_public_addresses).
    pub fn bind(
        address: &str,
        key: TokenKey,
        schema: Schema,
        relevance: impl Relevance + 'static,
        options: ServerOptions,
    ) -> Result<Self, ServeError> {
        options.check()?;
        // `resolve` fails if the name has no address, so the first exists.
        let addresses = resolve(address)?;
        let socket = Socket::bind(addresses[0])?;
        let bound = socket.address();
        let public = match &options.public_addresses[..] {
            [] => vec![bound],
            public => public.to_vec(),
        };
        let config = prescient_transport::ServerConfig::new(key, protocol(), public)
            .with_limits(options.limits.clone())
            .with_link(options.link.clone());
        let carrier = BlockingServer::new(socket, config)?;
        let mut server = Self::with_carrier(carrier, schema, relevance, options)?;
        server.address = Some(bound);
        Ok(server)
    }

    /// The bound address; `None` for a server that was not [bound](Self::bind).
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The protocol id that tokens for this server must carry.
    pub fn protocol(&self) -> ProtocolId {
        protocol()
    }
}

impl Client {
    /// Joins a server on this machine that was created with [`Server::loopback`].
    pub fn loopback(server: &str, schema: Schema) -> Result<Self, JoinError> {
        Self::join(loopback_token(server)?, schema)
    }

    /// Joins one of the token's servers. Blocks until that is done, ten seconds at most
    /// ([`ClientOptions::with_join_timeout`]).
    pub fn join(token: ConnectToken, schema: Schema) -> Result<Self, JoinError> {
        Self::join_with(token, schema, ClientOptions::default())
    }

    /// Like [`join`](Self::join), with options.
    pub fn join_with(
        token: ConnectToken,
        schema: Schema,
        mut options: ClientOptions,
    ) -> Result<Self, JoinError> {
        options.check()?;
        options.link = share(options.link, &token, options.join_timeout);
        let cancel = options.cancel.clone();
        Self::start_with(token, schema, options)?.finish_joining(&cancel)
    }

    /// Begins to join one of the token's servers and returns at once;
    /// [`ClientEvent::Joined`](crate::ClientEvent::Joined) or
    /// [`ClientEvent::Failed`](crate::ClientEvent::Failed) reports the result.
    pub fn start(token: ConnectToken, schema: Schema) -> Result<Self, JoinError> {
        Self::start_with(token, schema, ClientOptions::default())
    }

    /// Like [`start`](Self::start), with options.
    pub fn start_with(
        token: ConnectToken,
        schema: Schema,
        options: ClientOptions,
    ) -> Result<Self, JoinError> {
        options.check()?;
        let carrier = BlockingClient::start(token, protocol(), options.link.clone())?;
        Self::start_with_carrier(carrier, schema, options)
    }
}

/// Begins to connect, or to replace a lost connection; `None` if no socket can be had now.
pub(crate) fn reconnect(token: ConnectToken, options: &ClientOptions) -> Option<Box<dyn Carrier>> {
    let link = share(options.link.clone(), &token, options.join_timeout);
    let carrier = BlockingClient::start(token, protocol(), link).ok()?;
    Some(Box::new(carrier))
}

/// Divides the time among all servers of a token.
fn share(link: LinkConfig, token: &ConnectToken, within: Duration) -> LinkConfig {
    let servers = u32::try_from(token.servers().len()).unwrap_or(u32::MAX);
    let share = (within / servers.max(1)).max(MIN_SHARE);
    let share = link.connect_timeout().min(share);
    link.with_connect_timeout(share)
}

/// The token with which [`Client::loopback`] joins a server on this machine.
pub fn loopback_token(server: &str) -> Result<ConnectToken, AddressError> {
    insecure_token(server, protocol(), ClientId(0))
}

/// The shortest time in which an answer is possible at all.
const MIN_SHARE: Duration = Duration::from_millis(1);
