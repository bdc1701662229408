//! Bad links between real sockets.
//!
//! To feel what a player on a train feels, start a relay in front of a server and connect to the
//! relay instead. One thread holds the links and waits for whatever is next, a datagram or the
//! time of a delivery; a thread per socket reads from it.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{Conditions, LinkConditioner, Statistics, Time, reader::Reader, time::micros};

/// A relay for UDP on this machine that treats datagrams as two [`LinkConditioner`]s per client
/// say. It runs until it is shut down or dropped.
///
/// What happens to which datagram follows from the seed and the order in which clients first
/// appear; when, from the clock of this machine. Times in conditions count from its start.
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
        let socket = Arc::new(UdpSocket::bind((loopback(server), 0))?);
        let address = socket.local_addr()?;
        let (messages, inbox) = mpsc::sync_channel(WAITING_MESSAGES);
        let to_relay = messages.clone();
        let listener = Reader::start(socket.clone(), move |from, bytes| {
            to_relay.send(Message::FromClient(from, bytes)).is_ok()
        })?;
        let relay = Relay {
            started: started(),
            server,
            seed,
            conditions: [to_server, to_client],
            is_blacked_out: false,
            socket,
            sessions: BTreeMap::new(),
            messages: messages.clone(),
            inbox,
            listener,
            retired: Vec::new(),
        };
        let thread = thread::Builder::new()
            .name("link conditioner".to_owned())
            .spawn(move || relay.run())?;
        Ok(Self {
            address,
            messages,
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

    /// Stops it and waits until its threads have ended and its sockets are closed. What is on its
    /// way is lost.
    pub fn shutdown(self) {
        drop(self);
    }

    /// The relay ends only when it is told to, so somebody listens.
    fn tell(&self, message: Message) {
        let _ = self.messages.send(message);
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

/// What the relay waits for.
enum Message {
    FromClient(SocketAddr, Vec<u8>),
    /// To the client with this address, unless its socket has been replaced since.
    FromServer(SocketAddr, u64, Vec<u8>),
    Change(Box<[Conditions; 2]>),
    Blackout(bool),
    Rebind,
    Statistics(SyncSender<[Statistics; 2]>),
    Stop,
}

/// The thread that holds the links.
struct Relay {
    started: Instant,
    server: SocketAddr,
    seed: u64,
    conditions: [Conditions; 2],
    is_blacked_out: bool,
    /// Where clients are.
    socket: Arc<UdpSocket>,
    sessions: BTreeMap<SocketAddr, Session>,
    messages: SyncSender<Message>,
    inbox: Receiver<Message>,
    listener: Reader,
    /// Readers of sockets that were replaced. They may be waiting for room in the inbox, so nobody
    /// waits for them before it is closed.
    retired: Vec<Reader>,
}

/// A client, and the socket that the server takes for it.
struct Session {
    links: [LinkConditioner; 2],
    upstream: Upstream,
}

struct Upstream {
    number: u64,
    socket: Arc<UdpSocket>,
    reader: Reader,
}

impl Relay {
    fn run(mut self) {
        self.serve();
        drop(self.inbox);
        let upstreams = self.sessions.into_values().map(|session| session.upstream);
        let readers = upstreams.map(|upstream| upstream.reader);
        let readers = readers.chain(self.retired).chain([self.listener]);
        let readers: Vec<_> = readers.inspect(Reader::stop).collect();
        readers.into_iter().for_each(Reader::join);
    }

    fn serve(&mut self) {
        loop {
            let message = match self.until_next_delivery() {
                None => self
                    .inbox
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => self.inbox.recv_timeout(wait),
            };
            match message {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.deliver();
        }
    }

    fn until_next_delivery(&self) -> Option<Duration> {
        let links = self.sessions.values().flat_map(|session| &session.links);
        let next = links.filter_map(LinkConditioner::next_delivery).min()?;
        Some(next.since(self.now()))
    }

    fn handle(&mut self, message: Message) {
        let now = self.now();
        match message {
            Message::FromClient(from, bytes) => {
                // Without a socket for it the client is not heard, and tries again.
                if let Ok(session) = self.session(from) {
                    session.links[TO_SERVER].send(now, &bytes);
                }
            }
            Message::FromServer(client, number, bytes) => {
                let session = self.sessions.get_mut(&client);
                if let Some(session) = session.filter(|own| own.upstream.number == number) {
                    session.links[TO_CLIENT].send(now, &bytes);
                }
            }
            Message::Change(conditions) => {
                self.conditions = *conditions;
                for session in self.sessions.values_mut() {
                    for (link, conditions) in session.links.iter_mut().zip(&self.conditions) {
                        link.change(now, conditions.clone());
                    }
                }
            }
            Message::Blackout(on) => {
                self.is_blacked_out = on;
                let sessions = self.sessions.values_mut();
                for link in sessions.flat_map(|session| &mut session.links) {
                    link.set_blackout(now, on);
                }
            }
            Message::Rebind => self.rebind(),
            Message::Statistics(reply) => {
                let _ = reply.try_send(self.statistics());
            }
            Message::Stop => {}
        }
    }

    /// Hands out everything that is due. What a socket refuses is lost, as on any network.
    fn deliver(&mut self) {
        let now = self.now();
        for (client, session) in &mut self.sessions {
            while let Some(bytes) = session.links[TO_SERVER].poll(now) {
                let _ = session.upstream.socket.send(&bytes);
            }
            while let Some(bytes) = session.links[TO_CLIENT].poll(now) {
                let _ = self.socket.send_to(&bytes, client);
            }
        }
    }

    /// A client's session, which begins with the first datagram.
    fn session(&mut self, client: SocketAddr) -> io::Result<&mut Session> {
        if !self.sessions.contains_key(&client) {
            if self.sessions.len() >= MOST_CLIENTS {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            let upstream = self.upstream(client, 0)?;
            let first_seed = self.seed.wrapping_add(2 * self.sessions.len() as u64);
            let link = |direction: usize| {
                let seed = first_seed.wrapping_add(direction as u64);
                let mut link = LinkConditioner::new(seed, self.conditions[direction].clone());
                link.set_blackout(Time::ZERO, self.is_blacked_out);
                link
            };
            let links = [link(TO_SERVER), link(TO_CLIENT)];
            self.sessions.insert(client, Session { links, upstream });
        }
        let session = self.sessions.get_mut(&client);
        session.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rebind(&mut self) {
        let clients: Vec<_> = self.sessions.keys().copied().collect();
        for client in clients {
            let number = self.sessions[&client].upstream.number + 1;
            // A client for which there is no other socket keeps the one it has.
            if let Ok(upstream) = self.upstream(client, number)
                && let Some(session) = self.sessions.get_mut(&client)
            {
                let old = std::mem::replace(&mut session.upstream, upstream);
                old.reader.stop();
                self.retired.push(old.reader);
            }
        }
        self.retired.retain(|reader| !reader.has_ended());
    }

    fn upstream(&self, client: SocketAddr, number: u64) -> io::Result<Upstream> {
        let socket = Arc::new(UdpSocket::bind((near(self.server), 0))?);
        socket.connect(self.server)?;
        let messages = self.messages.clone();
        let reader = Reader::start(socket.clone(), move |_, bytes| {
            let message = Message::FromServer(client, number, bytes);
            messages.send(message).is_ok()
        })?;
        Ok(Upstream {
            number,
            socket,
            reader,
        })
    }

    fn statistics(&self) -> [Statistics; 2] {
        let mut sums = <[Statistics; 2]>::default();
        for session in self.sessions.values() {
            for (sum, link) in sums.iter_mut().zip(&session.links) {
                sum.merge(link.statistics());
            }
        }
        sums
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "real sockets need the real time; the links get it as an argument"
    )]
    fn now(&self) -> Time {
        Time::from_micros(micros(self.started.elapsed()))
    }
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

const TO_SERVER: usize = 0;
const TO_CLIENT: usize = 1;

/// Each has a thread.
const MOST_CLIENTS: usize = 64;

/// Beyond that datagrams wait in their sockets.
const WAITING_MESSAGES: usize = 1024;
