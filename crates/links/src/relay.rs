//! Simulated links between real sockets.
//!
//! To play a game over a bad link, start a relay in front of the server and connect to the relay.
//! One thread holds all links and sockets and waits for the next datagram or delivery. It wakes at
//! most a thousand times a second, so that hundreds of clients behind one relay do not cost a
//! wake-up per datagram.

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::mpsc::{self, Receiver, SyncSender, TryRecvError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use mio::{Events, Interest, Poll, Token, Waker, net::UdpSocket};
use socket2::{Domain, Protocol, Type};

use crate::{
    Conditions, Statistics, Time,
    relay_clients::{RelayClients, TO_CLIENT, TO_SERVER},
    time::micros,
};

/// A UDP relay on this machine with two [`LinkConditioner`](crate::LinkConditioner)s per client. It
/// runs until it is shut down or dropped.
///
/// The seed and the order in which clients appear decide what happens to each datagram; delivery
/// times are accurate to a millisecond or two. Times in conditions count from the relay's start.
///
/// ```
/// use std::net::UdpSocket;
/// use prescient_links::{Conditions, UdpConditioner};
///
/// let server = UdpSocket::bind("127.0.0.1:0")?;
/// let lan = Conditions::named("lan").expect("a preset");
/// let relay = UdpConditioner::start(server.local_addr()?, 1, lan.clone(), lan)?;
///
/// let client = UdpSocket::bind("127.0.0.1:0")?;
/// client.send_to(b"hello", relay.address())?;
/// let mut bytes = [0; 16];
/// let (length, _) = server.recv_from(&mut bytes)?;
/// assert_eq!(&bytes[..length], b"hello");
/// relay.shutdown();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct UdpConditioner {
    address: SocketAddr,
    messages: SyncSender<Message>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl UdpConditioner {
    /// Starts a relay to a server, on a free port of the loopback interface.
    pub fn start(
        server: SocketAddr,
        seed: u64,
        to_server: Conditions,
        to_client: Conditions,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let mut socket = open(loopback(server))?;
        let address = socket.local_addr()?;
        poll.registry()
            .register(&mut socket, CLIENTS, Interest::READABLE)?;
        let (messages, inbox) = mpsc::sync_channel(WAITING_MESSAGES);
        let relay = Relay {
            started: started(),
            server,
            poll,
            socket,
            relay_clients: RelayClients::new(seed, [to_server, to_client]),
            readable: BTreeSet::new(),
            buffer: vec![0; LARGEST_DATAGRAM],
            inbox,
        };
        let thread = thread::Builder::new()
            .name("link conditioner".to_owned())
            .spawn(move || relay.run())?;
        Ok(Self {
            address,
            messages,
            waker,
            thread: Some(thread),
        })
    }

    /// The address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the conditions from now on, for all clients.
    pub fn change(&self, to_server: Conditions, to_client: Conditions) {
        self.tell(Message::Change(Box::new([to_server, to_client])));
    }

    /// Starts or ends a blackout of both directions.
    pub fn set_blackout(&self, on: bool) {
        self.tell(Message::Blackout(on));
    }

    /// Gives every client another source address at the server, as after a NAT rebinding. Packets
    /// to the old addresses are lost.
    pub fn rebind(&self) {
        self.tell(Message::Rebind);
    }

    /// Statistics so far: to the server, and to clients.
    pub fn statistics(&self) -> [Statistics; 2] {
        let (reply, answer) = mpsc::sync_channel(1);
        self.tell(Message::Statistics(reply));
        answer.recv().unwrap_or_default()
    }

    /// Number of clients. A client that sends nothing for a minute is removed.
    pub fn clients(&self) -> usize {
        let (reply, answer) = mpsc::sync_channel(1);
        self.tell(Message::Clients(reply));
        answer.recv().unwrap_or_default()
    }

    /// Stops the relay and waits until its thread has ended and its sockets are closed. Datagrams
    /// under way are lost.
    pub fn shutdown(self) {
        drop(self);
    }

    /// The thread runs until it gets a stop message, so it receives all messages.
    fn tell(&self, message: Message) {
        let _ = self.messages.send(message);
        let _ = self.waker.wake();
    }
}

impl Drop for UdpConditioner {
    fn drop(&mut self) {
        self.tell(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Messages to the relay's thread.
enum Message {
    Change(Box<[Conditions; 2]>),
    Blackout(bool),
    Rebind,
    Statistics(SyncSender<[Statistics; 2]>),
    Clients(SyncSender<usize>),
    Stop,
}

/// The thread that holds the links.
struct Relay {
    started: Instant,
    server: SocketAddr,
    poll: Poll,
    /// The socket for clients.
    socket: UdpSocket,
    /// Each with its own socket to the server.
    relay_clients: RelayClients<UdpSocket>,
    /// Sockets that may have more to read: readiness is edge-triggered.
    readable: BTreeSet<Token>,
    buffer: Vec<u8>,
    inbox: Receiver<Message>,
}

impl Relay {
    fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        loop {
            // A signal may end it early; then all sockets are checked once more.
            let _ = self.poll.poll(&mut events, self.pause());
            self.readable
                .extend(events.iter().map(mio::event::Event::token));
            loop {
                match self.inbox.try_recv() {
                    Ok(Message::Stop) | Err(TryRecvError::Disconnected) => return,
                    Ok(message) => self.handle(message),
                    Err(TryRecvError::Empty) => break,
                }
            }
            self.read();
            self.deliver();
            for mut gone in self.relay_clients.forget(self.now()) {
                let _ = self.poll.registry().deregister(&mut gone);
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "datagrams accumulate, and one wake-up handles them all"
            )]
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// How long to wait for datagrams; `None` for no limit.
    fn pause(&self) -> Option<Duration> {
        if !self.readable.is_empty() {
            return Some(Duration::ZERO);
        }
        Some(self.relay_clients.next_due()?.since(self.now()))
    }

    fn handle(&mut self, message: Message) {
        let now = self.now();
        match message {
            Message::Change(conditions) => self.relay_clients.change(now, *conditions),
            Message::Blackout(on) => self.relay_clients.set_blackout(now, on),
            Message::Rebind => self.rebind(),
            Message::Statistics(reply) => {
                let _ = reply.try_send(self.relay_clients.statistics());
            }
            Message::Clients(reply) => {
                let _ = reply.try_send(self.relay_clients.len());
            }
            Message::Stop => {}
        }
    }

    /// Reads available datagrams, with a limit per socket for fairness.
    fn read(&mut self) {
        for token in std::mem::take(&mut self.readable) {
            for datagram in 0.. {
                if datagram == MAX_READ {
                    self.readable.insert(token);
                    break;
                }
                let read = match token {
                    CLIENTS => self.read_client(),
                    Token(number) => self.read_server(number),
                };
                match read {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // An ICMP error for an earlier datagram; the relay continues.
                    Err(_) => {}
                }
            }
        }
    }

    fn read_client(&mut self) -> io::Result<()> {
        let (length, client) = self.socket.recv_from(&mut self.buffer)?;
        let now = self.now();
        let number = match self.relay_clients.number_of(client) {
            Some(number) => number,
            None => {
                let number = self.relay_clients.next_number();
                // Without a socket for it, the client's datagram is dropped, and the client
                // retries.
                if self.relay_clients.len() >= MAX_CLIENTS {
                    return Ok(());
                }
                let Ok(upstream) = self.upstream(number) else {
                    return Ok(());
                };
                self.relay_clients.insert(now, client, upstream);
                number
            }
        };
        let bytes = &self.buffer[..length];
        self.relay_clients.send(now, number, TO_SERVER, bytes);
        Ok(())
    }

    fn read_server(&mut self, number: usize) -> io::Result<()> {
        let relay_client = self.relay_clients.get(number);
        let relay_client = relay_client.ok_or(io::ErrorKind::WouldBlock)?;
        let length = relay_client.upstream.recv(&mut self.buffer)?;
        let bytes = &self.buffer[..length];
        self.relay_clients
            .send(self.now(), number, TO_CLIENT, bytes);
        Ok(())
    }

    /// Sends all datagrams that are due. Those that a socket refuses are lost, as on any network.
    fn deliver(&mut self) {
        let now = self.now();
        self.relay_clients.deliver(now, |delivery| {
            let relay_client = delivery.relay_client;
            let _ = match delivery.direction {
                TO_SERVER => relay_client.upstream.send(&delivery.bytes),
                _ => self.socket.send_to(&delivery.bytes, relay_client.client),
            };
        });
    }

    fn rebind(&mut self) {
        let numbers: Vec<_> = self
            .relay_clients
            .iter_mut()
            .map(|(number, _)| number)
            .collect();
        let fresh: Vec<_> = numbers
            .into_iter()
            .map(|number| self.upstream(number))
            .collect();
        for ((_, relay_client), fresh) in self.relay_clients.iter_mut().zip(fresh) {
            // If no new socket can be opened, the client keeps its old one.
            if let Ok(upstream) = fresh {
                let mut old = std::mem::replace(&mut relay_client.upstream, upstream);
                let _ = self.poll.registry().deregister(&mut old);
            }
        }
    }

    /// A socket to the server for one client.
    fn upstream(&self, number: usize) -> io::Result<UdpSocket> {
        let mut socket = open(near(self.server))?;
        socket.connect(self.server)?;
        self.poll
            .registry()
            .register(&mut socket, Token(number), Interest::READABLE)?;
        Ok(socket)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "real sockets need the real time; the links get it as an argument"
    )]
    fn now(&self) -> Time {
        Time::from_micros(micros(self.started.elapsed()))
    }
}

/// A socket on a free port, with a receive buffer for many clients.
fn open(address: IpAddr) -> io::Result<UdpSocket> {
    let address = SocketAddr::new(address, 0);
    let domain = Domain::for_address(address);
    let socket = socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    // The system may limit the size; then its limit applies.
    let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(UdpSocket::from_std(socket.into()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "real sockets need the real time; the links get it as an argument"
)]
fn started() -> Instant {
    Instant::now()
}

/// The loopback address of the server's address family.
fn loopback(server: SocketAddr) -> IpAddr {
    match server {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

/// A local address from which the server can be reached.
fn near(server: SocketAddr) -> IpAddr {
    match server {
        _ if server.ip().is_loopback() => loopback(server),
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Tokens of clients are below these.
const CLIENTS: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Each client has a socket.
const MAX_CLIENTS: usize = 4096;

/// Senders of further messages block.
const WAITING_MESSAGES: usize = 16;

/// Datagrams read from one socket before the next one.
const MAX_READ: usize = 256;

const LARGEST_DATAGRAM: usize = 65_536;
const KERNEL_BUFFER: usize = 4 << 20;
