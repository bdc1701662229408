//! A connected server and client, and the datagrams between them.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::*;

use prescient_transport::*;

/// Both ends of a connection.
pub struct Pair {
    pub now: Time,
    pub server: Server,
    pub client: Client,
    pub connection: ConnectionId,
    /// Datagrams under way to the server, and to the client.
    pub flying: [Vec<Vec<u8>>; 2],
    entropy: u64,
}

/// One of the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Server,
    Client,
}

/// The server's address.
pub fn here() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 4000))
}

fn home() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 5000))
}

/// Deterministic randomness.
pub fn mix(state: &mut u64) -> impl FnMut(&mut [u8]) {
    move |bytes| {
        bytes.fill_with(|| {
            *state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (*state >> 56) as u8
        });
    }
}

impl Pair {
    /// Two ends that have just connected.
    pub fn connected(link: LinkConfig) -> Self {
        let (mut state, now, protocol) = (1, Time::from_micros(1 << 40), ProtocolId([5; 16]));
        let mut entropy = mix(&mut state);
        let key = TokenKey::generate(&mut entropy);
        let config = ServerConfig::new(key.clone(), protocol, vec![here()]).with_link(link.clone());
        let server = Server::new(config, &mut entropy, now).expect("it can work");
        let grant = Grant {
            client: ClientId(1),
            protocol,
            servers: vec![here()],
            expires: UnixTime(1000),
            data: Vec::new(),
        };
        let token = grant.issue(&key, &mut entropy).expect("sound");
        let client = Client::connect(token, protocol, link, &mut entropy, now);
        drop(entropy);
        let mut pair = Self {
            now,
            server,
            client: client.expect("the same protocol"),
            connection: ConnectionId(0),
            flying: [Vec::new(), Vec::new()],
            entropy: state,
        };
        for _ in 0..8 {
            pair.wait(0);
            pair.deliver_all();
        }
        let (connection, _) = pair.server.clients().next().expect("connected");
        pair.connection = connection;
        pair
    }

    /// Advances the time, and collects the datagrams sent.
    pub fn wait(&mut self, micros: u32) {
        self.now = self.now.after(Duration::from_micros(micros.into()));
        self.server.handle_timeout(self.now);
        self.client.handle_timeout(self.now);
        self.collect();
    }

    /// Collects the datagrams sent.
    pub fn collect(&mut self) {
        while let Some(sent) = self.client.poll_transmit(self.now) {
            assert!(sent.bytes.len() <= MAX_DATAGRAM);
            self.flying[0].push(sent.bytes.into_vec());
        }
        while let Some(sent) = self.server.poll_transmit(self.now) {
            assert!(sent.bytes.len() <= MAX_DATAGRAM);
            self.flying[1].push(sent.bytes.into_vec());
        }
    }

    /// Passes a datagram to an end.
    pub fn arrive(&mut self, at: End, bytes: &[u8]) {
        match at {
            End::Server => {
                let mut entropy = mix(&mut self.entropy);
                let unix = UnixTime(900);
                self.server
                    .handle_datagram(home(), bytes, self.now, unix, &mut entropy);
            }
            End::Client => self.client.handle_datagram(here(), bytes, self.now),
        }
    }

    /// Removes one of the datagrams under way to an end.
    pub fn take(&mut self, to: End, index: u8) -> Option<Vec<u8>> {
        let flying = &mut self.flying[usize::from(to == End::Client)];
        let index = usize::from(index).checked_rem(flying.len())?;
        Some(flying.remove(index))
    }

    /// Delivers all datagrams under way, in order.
    pub fn deliver_all(&mut self) {
        let [up, down] = std::mem::take(&mut self.flying);
        up.iter().for_each(|bytes| self.arrive(End::Server, bytes));
        down.iter()
            .for_each(|bytes| self.arrive(End::Client, bytes));
    }

    /// What an end has received since the last call, and whether its connection ended.
    pub fn events(&mut self, of: End) -> (Vec<Received>, bool) {
        let (mut received, mut closed) = (Vec::new(), false);
        match of {
            End::Server => {
                while let Some(event) = self.server.poll_event() {
                    match event {
                        ServerEvent::Received { received: one, .. } => received.push(one),
                        ServerEvent::Closed { .. } => closed = true,
                        _ => {}
                    }
                }
            }
            End::Client => {
                while let Some(event) = self.client.poll_event() {
                    match event {
                        ClientEvent::Received(one) => received.push(one),
                        ClientEvent::Closed(_) => closed = true,
                        _ => {}
                    }
                }
            }
        }
        (received, closed)
    }
}
