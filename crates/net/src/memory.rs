//! Connections within one process, without sockets: for single player and for tests.

use std::collections::VecDeque;
use std::net::SocketAddr;

use prescient_channels::{ConfigError, ConnectError, Reception, Time};
use prescient_transport::{
    Client, ConnectToken, Entropy, LinkConfig, ProtocolId, Server, ServerConfig, UnixTime,
};

use crate::machine::{ClockReading, Machine};

/// One direction of a link in memory.
///
/// [`Direct`] is the perfect one. Implement it for links with faults;
/// `prescient_sim::link::LinkConditioner` has the same methods, with its own time type in
/// microseconds.
pub trait Link {
    /// Sends a datagram.
    fn send(&mut self, now: Time, bytes: Vec<u8>);

    /// The next datagram that has arrived by now.
    fn poll(&mut self, now: Time) -> Option<Vec<u8>>;

    /// When to poll next; `None` if nothing is in flight.
    fn next_delivery(&self) -> Option<Time>;
}

/// A link without latency or faults.
#[derive(Clone, Debug, Default)]
pub struct Direct {
    waiting: VecDeque<(Time, Vec<u8>)>,
}

impl Link for Direct {
    fn send(&mut self, now: Time, bytes: Vec<u8>) {
        self.waiting.push_back((now, bytes));
    }

    fn poll(&mut self, _: Time) -> Option<Vec<u8>> {
        self.waiting.pop_front().map(|(_, bytes)| bytes)
    }

    fn next_delivery(&self) -> Option<Time> {
        self.waiting.front().map(|(sent, _)| *sent)
    }
}

/// A server and its clients in memory. Nothing happens by itself: [`run`](Self::run) advances
/// everything to a point in time, which is the real one in a game and may be virtual in a test.
///
/// ```
/// use prescient_net::{Clock, MemoryNetwork, SystemEntropy, insecure_token};
/// use prescient_channels::*;
/// use prescient_transport::*;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let protocol = ProtocolId(*b"my game, week 12");
/// let address = "127.0.0.1:1".parse()?;
/// let config =
///     ServerConfig::new(TokenKey::insecure_for_loopback_tests(), protocol, vec![address]);
/// let clock = Clock::start();
/// let mut network = MemoryNetwork::new(config, SystemEntropy::new()?, clock.now())?;
///
/// let token = insecure_token("127.0.0.1:1", protocol, ClientId(1))?;
/// let client = network.join(token, protocol, LinkConfig::default(), clock.now())?;
/// network.run(clock.now(), Clock::unix());
/// assert!(network.client(client).is_connected());
/// # Ok(())
/// # }
/// ```
pub struct MemoryNetwork {
    server: Server,
    address: SocketAddr,
    clients: Vec<ClientEnd>,
    entropy: Box<dyn Entropy>,
}

/// A client of a [`MemoryNetwork`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryClientId(usize);

struct ClientEnd {
    client: Client,
    address: SocketAddr,
    up: Box<dyn Link>,
    down: Box<dyn Link>,
}

impl MemoryNetwork {
    /// A server without clients. Clients reach it at the first of its addresses.
    pub fn new(
        config: ServerConfig,
        mut entropy: impl Entropy + 'static,
        now: Time,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            // `check` refuses a server without addresses.
            address: config.addresses()[0],
            server: Server::new(config, &mut entropy, now)?,
            clients: Vec::new(),
            entropy: Box::new(entropy),
        })
    }

    /// Adds a client that starts to connect.
    pub fn join(
        &mut self,
        token: ConnectToken,
        protocol: ProtocolId,
        config: LinkConfig,
        now: Time,
    ) -> Result<MemoryClientId, ConnectError> {
        let links = (Direct::default(), Direct::default());
        self.join_over(links, token, protocol, config, now)
    }

    /// Like [`join`](Self::join), over given links to and from the server.
    pub fn join_over(
        &mut self,
        (up, down): (impl Link + 'static, impl Link + 'static),
        token: ConnectToken,
        protocol: ProtocolId,
        config: LinkConfig,
        now: Time,
    ) -> Result<MemoryClientId, ConnectError> {
        let number = self.clients.len();
        let client = Client::connect(token, protocol, config, &mut *self.entropy, now)?;
        // Loopback addresses, because of the insecure key; a different one each, because of limits
        // per address.
        let [_, high, middle, low] = (number as u32).to_be_bytes();
        self.clients.push(ClientEnd {
            client,
            address: SocketAddr::from(([127, high, middle, low], 2)),
            up: Box::new(up),
            down: Box::new(down),
        });
        Ok(MemoryClientId(number))
    }

    /// The server.
    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// A client of this network.
    ///
    /// # Panics
    ///
    /// If the client is of another network.
    pub fn client(&mut self, id: MemoryClientId) -> &mut Client {
        &mut self.clients[id.0].client
    }

    /// Does everything that is due: timers, sending, delivery. Time must not go back.
    ///
    /// Poll the events of server and clients regularly; an end whose events wait drops what
    /// arrives.
    pub fn run(&mut self, now: Time, unix: UnixTime) {
        loop {
            wake(&mut self.server, now);
            for end in &mut self.clients {
                wake(&mut end.client, now);
            }
            self.depart(now);
            let reception = Reception::default();
            if !self.arrive(ClockReading {
                now,
                unix,
                reception,
            }) {
                return;
            }
        }
    }

    /// When to call [`run`](Self::run) next. `None` while there are no connections.
    pub fn next_timeout(&self) -> Option<Time> {
        let clients = self.clients.iter().flat_map(|end| {
            let links = [end.up.next_delivery(), end.down.next_delivery()];
            links.into_iter().flatten().chain(end.client.next_timeout())
        });
        clients.chain(self.server.next_timeout()).min()
    }

    fn depart(&mut self, now: Time) {
        for end in &mut self.clients {
            while let Some(transmit) = Machine::poll_transmit(&mut end.client, now) {
                if transmit.to == self.address {
                    end.up.send(now, transmit.bytes.into_vec());
                }
            }
        }
        while let Some(transmit) = Machine::poll_transmit(&mut self.server, now) {
            let mut clients = self.clients.iter_mut();
            if let Some(end) = clients.find(|end| end.address == transmit.to) {
                end.down.send(now, transmit.bytes.into_vec());
            }
        }
    }

    /// Delivers datagrams; whether there were any.
    fn arrive(&mut self, clocks: ClockReading) -> bool {
        let mut any = false;
        let entropy = &mut *self.entropy;
        for end in &mut self.clients {
            while let Some(bytes) = end.up.poll(clocks.now) {
                any = true;
                let from = end.address;
                Machine::handle_datagram(&mut self.server, from, &bytes, clocks, entropy);
            }
            while let Some(bytes) = end.down.poll(clocks.now) {
                any = true;
                let from = self.address;
                Machine::handle_datagram(&mut end.client, from, &bytes, clocks, entropy);
            }
        }
        any
    }
}

fn wake(machine: &mut impl Machine, now: Time) {
    if machine.next_timeout().is_some_and(|due| due <= now) {
        machine.handle_timeout(now);
    }
}
