//! Connections inside one process, without sockets: for playing alone, and for tests.

use std::collections::VecDeque;
use std::net::SocketAddr;

use prescient_transport::{
    Client, ConnectToken, Denial, Entropy, LinkConfig, ProtocolId, Server, ServerConfig, Time,
    UnixTime,
};

use crate::machine::{ClockReading, Machine};

/// One direction of a link between two ends in memory.
///
/// [`Direct`] is the perfect one. Wrap whatever else shall happen to datagrams;
/// `prescient_sim::link::LinkConditioner` has these same methods, with a time of its own that is
/// microseconds, too.
pub trait Link {
    /// Takes a datagram.
    fn send(&mut self, now: Time, bytes: Vec<u8>);

    /// The next datagram that has arrived by now.
    fn poll(&mut self, now: Time) -> Option<Vec<u8>>;

    /// When to poll next; `None` if nothing is on its way.
    fn next_delivery(&self) -> Option<Time>;
}

/// A link on which everything arrives at once.
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

/// A server and its clients in memory. Nothing happens by itself: [`run`](Self::run) carries
/// everything on to a moment, of the real clock in a game and of any in a test.
///
/// ```
/// use prescient_net::{Clock, MemoryNetwork, SystemEntropy, insecure_token};
/// use prescient_transport::*;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let protocol = ProtocolId(*b"my game, week 12");
/// let address = "127.0.0.1:1".parse()?;
/// let config =
///     ServerConfig::new(TokenKey::insecure_for_loopback_tests(), protocol, vec![address]);
/// let clock = Clock::start();
/// let mut network = MemoryNetwork::new(config, SystemEntropy::new()?, clock.now());
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
    /// A server without clients. Its first address is where it seems to be.
    pub fn new(config: ServerConfig, entropy: impl Entropy + 'static, now: Time) -> Self {
        let mut entropy = entropy;
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        Self {
            address: config.addresses.first().copied().unwrap_or(nowhere),
            server: Server::new(config, &mut entropy, now),
            clients: Vec::new(),
            entropy: Box::new(entropy),
        }
    }

    /// A client that begins to connect.
    pub fn join(
        &mut self,
        token: ConnectToken,
        protocol: ProtocolId,
        config: LinkConfig,
        now: Time,
    ) -> Result<MemoryClientId, Denial> {
        let links = (Direct::default(), Direct::default());
        self.join_over(links, token, protocol, config, now)
    }

    /// The same over links to the server and from it.
    pub fn join_over(
        &mut self,
        (up, down): (impl Link + 'static, impl Link + 'static),
        token: ConnectToken,
        protocol: ProtocolId,
        config: LinkConfig,
        now: Time,
    ) -> Result<MemoryClientId, Denial> {
        let number = self.clients.len();
        let client = Client::connect(token, protocol, config, &mut *self.entropy, now)?;
        // Loopback addresses, for the sake of the insecure key; each its own, for that of limits.
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
    /// If it is one of another network.
    pub fn client(&mut self, id: MemoryClientId) -> &mut Client {
        &mut self.clients[id.0].client
    }

    /// Does everything that is due: timers, departures, arrivals. Moments must not go back.
    ///
    /// Ends have to be polled for events now and then; those that are not drop what arrives.
    pub fn run(&mut self, now: Time, unix: UnixTime) {
        loop {
            wake(&mut self.server, now);
            for end in &mut self.clients {
                wake(&mut end.client, now);
            }
            self.depart(now);
            if !self.arrive(ClockReading { now, unix }) {
                return;
            }
        }
    }

    /// When [`run`](Self::run) has something to do next. `None` while nobody is connected.
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
                    end.up.send(now, transmit.bytes);
                }
            }
        }
        while let Some(transmit) = Machine::poll_transmit(&mut self.server, now) {
            let mut clients = self.clients.iter_mut();
            if let Some(end) = clients.find(|end| end.address == transmit.to) {
                end.down.send(now, transmit.bytes);
            }
        }
    }

    /// Whether anything did.
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
