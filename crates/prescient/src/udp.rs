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
        Self::loopback_with(address, schema, relevance, ServerOptions::default())
    }

    /// Like [`loopback`](Self::loopback), with options.
    pub fn loopback_with(
        address: &str,
        schema: Schema,
        relevance: impl Relevance + 'static,
        options: ServerOptions,
    ) -> Result<Self, ServeError> {
        let key = TokenKey::insecure_for_loopback_tests();
        Self::bind(address, key, schema, relevance, options)
    }

    /// Puts a simulated link in front of this server, with the same conditions in both directions:
    /// clients that join the link's address instead of the server's get a connection of that
    /// quality. Dropping the link ends it.
    ///
    /// ```
    /// # use prescient::{Client, Everything, Schema, Server, State};
    /// use prescient::links::Conditions;
    /// # #[derive(State)]
    /// # struct Slider { #[state(step = 0.01)] x: f32 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let schema = Schema::of::<Slider>()?;
    /// let mut server = Server::loopback("127.0.0.1:0", schema.clone(), Everything)?;
    /// let link = server.simulate_link(Conditions::named("lte")?, 7)?;
    /// let address = link.address().to_string();
    /// # let joining = std::thread::spawn(move || Client::loopback(&address, schema));
    /// // let client = Client::loopback(&address, schema)?;
    /// # while server.peers().next().is_none() {
    /// #     server.wait(std::time::Duration::from_millis(5));
    /// #     while server.poll().is_some() {}
    /// # }
    /// # while !joining.is_finished() {
    /// #     server.wait(std::time::Duration::from_millis(5));
    /// #     while server.poll().is_some() {}
    /// # }
    /// # joining.join().expect("no panic")?.leave();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The seed decides which datagrams are lost. The server must have been made with
    /// [`loopback`](Self::loopback); with another key, tokens have to name the link's address and
    /// [`with_public_addresses`](ServerOptions::with_public_addresses) too.
    #[cfg(feature = "links")]
    pub fn simulate_link(
        &self,
        conditions: prescient_links::Conditions,
        seed: u64,
    ) -> std::io::Result<prescient_links::UdpConditioner> {
        let address = self.address.ok_or(std::io::ErrorKind::NotConnected)?;
        let (up, down) = (conditions.clone(), conditions);
        prescient_links::UdpConditioner::start(address, seed, up, down)
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
            .with_link(options.adaptive_link());
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
        Self::loopback_as(server, ClientId::ANONYMOUS, schema)
    }

    /// Like [`loopback`](Self::loopback), with the account id that the server's
    /// [`Joined`](crate::ServerEvent::Joined) reports. If a client with the same id is connected,
    /// this one replaces it.
    pub fn loopback_as(server: &str, client: ClientId, schema: Schema) -> Result<Self, JoinError> {
        Self::join(loopback_token_for(server, client)?, schema)
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
    loopback_token_for(server, ClientId::ANONYMOUS)
}

/// The token with which [`Client::loopback_as`] joins a server on this machine.
///
/// ```
/// # use prescient::*;
/// # #[derive(State)]
/// # struct Slider { #[state(step = 0.01)] x: f32 }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let schema = Schema::of::<Slider>()?;
/// let options = ServerOptions::default();
/// let mut server = Server::loopback_with("127.0.0.1:0", schema.clone(), Everything, options)?;
/// let address = server.address().expect("it has a socket").to_string();
/// // Blocks until the server lets it in: `Client::loopback_as(&address, ClientId(7), schema)?`
/// let token = loopback_token_for(&address, ClientId(7))?;
/// let mut client = Client::start_with(token, schema, ClientOptions::default())?;
/// while client.poll() != Some(ClientEvent::Joined) {
///     while server.poll().is_some() {}
///     server.send();
/// }
/// # Ok(())
/// # }
/// ```
pub fn loopback_token_for(server: &str, client: ClientId) -> Result<ConnectToken, AddressError> {
    insecure_token(server, protocol(), client)
}

/// The shortest time in which an answer is possible at all.
const MIN_SHARE: Duration = Duration::from_millis(1);
