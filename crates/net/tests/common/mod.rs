//! Both ends on real sockets of this host, driven in turns on one thread.

#![allow(dead_code, unreachable_pub, reason = "every test uses a part of it")]

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::*;
use prescient_net::{BlockingClient, BlockingServer, Clock, Socket, SystemEntropy};
use prescient_tests::skip::skip;
use prescient_transport::*;

pub const PROTOCOL: ProtocolId = ProtocolId(*b"tests of sockets");

/// How long anything may take. Only a failing test waits for that long.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Arena {
    pub server: BlockingServer,
    pub clients: Vec<BlockingClient>,
    pub server_events: Vec<ServerEvent>,
    pub client_events: Vec<Vec<ClientEvent>>,
}

impl Arena {
    /// A server at a free port of this address.
    pub fn new(address: &str) -> Self {
        Self::with(bind(address), |config| config)
    }

    pub fn with(socket: Socket, change: impl FnOnce(ServerConfig) -> ServerConfig) -> Self {
        let config = change(config(vec![socket.address()]));
        Self {
            server: BlockingServer::new(socket, config).expect("a server"),
            clients: Vec::new(),
            server_events: Vec::new(),
            client_events: Vec::new(),
        }
    }

    /// Adds a client that starts to connect to the server at an address.
    pub fn join(&mut self, server: SocketAddr) -> usize {
        let token = token(self.clients.len() as u64, server);
        let client = BlockingClient::start(token, PROTOCOL, LinkConfig::default());
        self.clients.push(client.expect("a client"));
        self.client_events.push(Vec::new());
        self.clients.len() - 1
    }

    /// Adds three clients and connects them.
    pub fn join_three(&mut self) {
        for _ in 0..3 {
            self.join(self.server.address());
        }
        self.connect_all();
    }

    pub fn connect_all(&mut self) {
        self.run_until("all connect", |arena| {
            let there = arena.server.machine().clients().count();
            let here = arena.clients.iter();
            there == arena.clients.len() && here.clone().all(|c| c.machine().is_connected())
        });
    }

    /// The connection of a client; its account id is its index.
    pub fn connection(&self, client: usize) -> ConnectionId {
        let mut clients = self.server.machine().clients();
        let found = clients.find(|(_, id)| id.0 == client as u64);
        found.expect("it is connected").0
    }

    pub fn client_send(&mut self, client: usize, payload: &[u8]) {
        let sent = self.clients[client]
            .with(|client, now| client.send(ChannelId::UNRELIABLE, payload, now));
        sent.expect("it is connected");
    }

    pub fn server_send(&mut self, client: usize, payload: &[u8]) {
        let to = self.connection(client);
        let sent = self
            .server
            .with(|server, now| server.send(to, ChannelId::UNRELIABLE, payload, now));
        sent.expect("it is connected");
    }

    /// The messages that the server received from a client.
    pub fn received_by_server(&self, client: usize) -> Vec<Vec<u8>> {
        let from = self.connection(client);
        let events = self.server_events.iter();
        let received = events.filter_map(|event| match event {
            ServerEvent::Received {
                connection,
                received: Received::Message { message, .. },
            } if *connection == from => Some(message.clone()),
            _ => None,
        });
        received.collect()
    }

    /// The messages that a client received.
    pub fn received_by_client(&self, client: usize) -> Vec<Vec<u8>> {
        let events = self.client_events[client].iter();
        let received = events.filter_map(|event| match event {
            ClientEvent::Received(Received::Message { message, .. }) => Some(message.clone()),
            _ => None,
        });
        received.collect()
    }

    /// Drives both ends until a condition holds.
    pub fn run_until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let deadline = self.server.now().after(PATIENCE);
        loop {
            for (client, events) in self.clients.iter_mut().zip(&mut self.client_events) {
                events.extend(std::iter::from_fn(|| client.poll()));
            }
            let server = &mut self.server;
            self.server_events
                .extend(std::iter::from_fn(|| server.poll()));
            if done(self) {
                return;
            }
            assert!(
                self.server.now() < deadline,
                "in vain until {what}: {:?} {:?}",
                self.server_events,
                self.client_events,
            );
            self.server_events
                .extend(self.server.wait(Duration::from_micros(100)));
        }
    }
}

pub fn bind(address: &str) -> Socket {
    Socket::bind(address.parse().expect("an address")).expect("a free port")
}

/// Whether the host has IPv6; prints a note if not.
pub fn has_ipv6() -> bool {
    let address = "[::1]:0".parse().expect("an address");
    let has = Socket::bind(address).is_ok();
    if !has {
        skip("this machine has no IPv6 (bring up ::1 on its loopback interface)");
    }
    has
}

pub fn key() -> TokenKey {
    TokenKey::new([42; 32]).expect("not the public one")
}

pub fn config(addresses: Vec<SocketAddr>) -> ServerConfig {
    ServerConfig::new(key(), PROTOCOL, addresses)
}

pub fn grant(client: u64, server: SocketAddr) -> Grant {
    Grant {
        client: ClientId(client),
        protocol: PROTOCOL,
        servers: vec![server],
        expires: UnixTime(Clock::unix().0 + 60),
        data: b"data".to_vec(),
    }
}

pub fn issue(grant: &Grant) -> ConnectToken {
    let mut entropy = SystemEntropy::new().expect("randomness");
    grant.issue(&key(), &mut entropy).expect("a sound grant")
}

pub fn token(client: u64, server: SocketAddr) -> ConnectToken {
    issue(&grant(client, server))
}
