//! Bad links between real sockets.
//!
//! To feel what a player on a train feels, start a relay in front of a server and connect to the
//! relay instead. One thread holds all links and sockets and waits for whatever is next, a datagram
//! or the time of a delivery. It looks a thousand times a second at most: hundreds of clients behind
//! one relay shall not cost the machine a wake-up for each of their datagrams.

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

use super::{
    Conditions, Statistics, Time,
    relay_clients::{RelayClients, TO_CLIENT, TO_SERVER},
    time::micros,
};

/// A relay for UDP on this machine that treats datagrams as two [`LinkConditioner`](super::LinkConditioner)s per client
/// say. It runs until it is shut down or dropped.
///
/// What happens to which datagram follows from the seed and the order in which clients first
/// appear; when, from the clock of this machine, to a millisecond or two. Times in conditions count
/// from its start.
///
/// ```
/// use std::net::UdpSocket;
/// use prescient_sim::link::{Conditions, UdpConditioner};
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

    /// Where clients have to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Other conditions from now on, for all clients.
    pub fn change(&self, to_server: Conditions, to_client: Conditions) {
        self.tell(Message::Change(Box::new([to_server, to_client])));
    }

    /// Begins or ends a blackout of both directions.
    pub fn set_blackout(&self, on: bool) {
        self.tell(Message::Blackout(on));
    }

    /// From now on the server sees every client at another address, as it does when a router
    /// forgets who they are. What it sends to the old ones is lost.
    pub fn rebind(&self) {
        self.tell(Message::Rebind);
    }

    /// What became of everything so far: to the server, and to clients.
    pub fn statistics(&self) -> [Statistics; 2] {
        let (reply, answer) = mpsc::sync_channel(1);
        self.tell(Message::Statistics(reply));
        answer.recv().unwrap_or_default()
    }

    /// How many clients it passes datagrams for. One of which nothing was heard for a minute is
    /// forgotten.
    pub fn clients(&self) -> usize {
        let (reply, answer) = mpsc::sync_channel(1);
        self.tell(Message::Clients(reply));
        answer.recv().unwrap_or_default()
    }

    /// Stops it and waits until its thread has ended and its sockets are closed. What is on its
    /// way is lost.
    pub fn shutdown(self) {
        drop(self);
    }

    /// The relay ends only when it is told to, so somebody listens.
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

/// What a relay is told.
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
    /// Where clients are.
    socket: UdpSocket,
    /// Each with the socket that the server takes for it.
    relay_clients: RelayClients<UdpSocket>,
    /// Sockets that may have more to read: systems tell of each arrival only once.
    readable: BTreeSet<Token>,
    buffer: Vec<u8>,
    inbox: Receiver<Message>,
}

impl Relay {
    fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        loop {
            // A signal ends it early, and then everything is looked at once more.
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
                reason = "meanwhile nobody has to wake this thread, and datagrams gather"
            )]
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// How long to wait for datagrams; `None` for as long as it takes.
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

    /// Reads what there is, but not so long that others have to wait for it.
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
                    // Nobody was there for what was sent, which is no reason to stop.
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
                // Without a socket for it the client is not heard, and tries again.
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

    /// Hands out everything that is due. What a socket refuses is lost, as on any network.
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
            // A client for which there is no other socket keeps the one it has.
            if let Ok(upstream) = fresh {
                let mut old = std::mem::replace(&mut relay_client.upstream, upstream);
                let _ = self.poll.registry().deregister(&mut old);
            }
        }
    }

    /// A socket that the server takes for a client.
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

/// A socket at a free port, with room for what many clients say at once.
fn open(address: IpAddr) -> io::Result<UdpSocket> {
    let address = SocketAddr::new(address, 0);
    let domain = Domain::for_address(address);
    let socket = socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    // Systems have limits of their own here, and what they allow has to do.
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

/// The loopback address of the server's kind.
fn loopback(server: SocketAddr) -> IpAddr {
    match server {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

/// An address from which the server can be reached.
fn near(server: SocketAddr) -> IpAddr {
    match server {
        _ if server.ip().is_loopback() => loopback(server),
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Clients have the numbers below these.
const CLIENTS: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Each has a socket.
const MAX_CLIENTS: usize = 4096;

/// Beyond that whoever has something to say to the relay waits.
const WAITING_MESSAGES: usize = 16;

/// Datagrams of one socket before others have their turn.
const MAX_READ: usize = 256;

const LARGEST_DATAGRAM: usize = 65_536;
const KERNEL_BUFFER: usize = 4 << 20;
