//! A forwarder on sockets: UDP, TCP, Unix sockets, and queues to applications in the same process.
//!
//! [`Daemon`] owns a [`Forwarder`], the sockets and the clock. It runs on the caller's thread: each
//! call of [`Daemon::poll`] waits for packets or a timeout, handles them, and sends. If a socket's buffer
//! is full, the packet is dropped and counted; NDN links may lose packets.

mod app;
mod datagram;
mod memory;
mod stream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Interest as Readiness, Poll, Token, Waker};
use prescient_channels::Time;
use prescient_net::{Clock, SystemEntropy};
use prescient_transport::Entropy;
use thiserror::Error;

pub use app::{AppFace, RequestError};

use crate::forwarder::{FaceConfig, FaceError, FaceId, Forwarder, ForwarderConfig, HandleError};
use datagram::DatagramPort;
use memory::MemoryPort;
use stream::{Listener, Stream, StreamFace};

/// A forwarder on sockets.
///
/// ```no_run
/// use std::time::Duration;
/// use prescient_named::{Daemon, ForwarderConfig, Name};
///
/// let mut daemon = Daemon::new(ForwarderConfig::default())?;
/// daemon.listen_udp("0.0.0.0:6363".parse()?)?;
/// daemon.listen_tcp("127.0.0.1:6363".parse()?)?;
/// let neighbour = daemon.connect_udp("192.0.2.7:6363".parse()?)?;
/// let game: Name = "/game".parse()?;
/// daemon.forwarder().add_route(game.view(), neighbour, 10)?;
/// loop {
///     daemon.poll(Duration::from_secs(1))?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Daemon {
    forwarder: Forwarder,
    clock: Clock,
    poll: Poll,
    events: Events,
    waker: Arc<Waker>,
    ports: BTreeMap<Token, Port>,
    next_token: usize,
    faces: BTreeMap<FaceId, Place>,
    /// Ports that may be readable.
    ready: BTreeSet<Token>,
    are_hosts_accepted: bool,
    face_events: VecDeque<FaceEvent>,
    next_sweep: Time,
    statistics: SocketStatistics,
    buffer: Vec<u8>,
}

/// A socket or a queue.
enum Port {
    Listener(Listener),
    Datagram(DatagramPort),
    Stream(StreamFace),
    Memory(MemoryPort),
}

/// The port of a face.
#[derive(Clone, Copy)]
enum Place {
    Datagram(Token, SocketAddr),
    Stream(Token),
    Memory(Token),
}

/// A face was added or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaceEvent {
    /// A connection was accepted, or a first datagram arrived from an address.
    Added {
        /// The new face.
        face: FaceId,
    },
    /// A face was removed.
    Removed {
        /// The former face.
        face: FaceId,
        /// Why.
        why: FaceClosed,
    },
}

/// Why a face was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FaceClosed {
    /// The other end closed it.
    #[error("closed by the other end")]
    Closed,
    /// The socket failed.
    #[error("the socket failed: {0}")]
    Failed(io::ErrorKind),
    /// A stream contained something that is not a packet.
    #[error("the stream contains something that is not an NDN packet")]
    Malformed,
    /// The other end did not read for 20 seconds.
    #[error("the other end stopped reading")]
    Stalled,
    /// No datagram arrived for [`DATAGRAM_IDLE`].
    #[error("no datagram arrived for ten minutes")]
    Idle,
    /// [`Daemon::disconnect`] was called.
    #[error("closed here")]
    Disconnected,
}

/// Why a daemon or one of its faces was not opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system refused.
    #[error("the system refused: {0}")]
    System(#[from] io::Error),
    /// The system has no randomness.
    #[error("the system has no randomness: {0}")]
    Randomness(String),
    /// There are too many faces.
    #[error(transparent)]
    Face(#[from] FaceError),
}

/// Counts of the sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStatistics {
    /// Packets that were dropped because a socket's buffer or a queue was full.
    pub dropped: u64,
    /// Connections and first datagrams that were refused because there were too many faces.
    pub refused: u64,
}

/// The most faces that datagrams open, over all UDP ports.
pub const MAX_DATAGRAM_FACES: usize = 512;

/// The time without a datagram after which a face that a datagram opened is removed.
pub const DATAGRAM_IDLE: Duration = Duration::from_secs(600);

/// The interval of the check for idle and stalled faces.
const SWEEP: Duration = Duration::from_secs(1);

/// The most events that wait for [`Daemon::poll_event`]; beyond it the oldest are dropped.
const MAX_EVENTS: usize = 1024;

/// The most packets or reads of a port per round, so that no port delays others.
const TURN: usize = 64;

/// The longest datagram.
const BUFFER: usize = 1 << 16;

const WAKE: Token = Token(0);

impl Daemon {
    /// A forwarder without sockets.
    pub fn new(config: ForwarderConfig) -> Result<Self, OpenError> {
        let entropy = SystemEntropy::new();
        let mut entropy = entropy.map_err(|error| OpenError::Randomness(error.to_string()))?;
        let mut key = [0; 16];
        entropy.fill(&mut key);
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        Ok(Self {
            forwarder: Forwarder::new(config, key),
            clock: Clock::start(),
            poll,
            events: Events::with_capacity(256),
            waker,
            ports: BTreeMap::new(),
            next_token: WAKE.0 + 1,
            faces: BTreeMap::new(),
            ready: BTreeSet::new(),
            are_hosts_accepted: false,
            face_events: VecDeque::new(),
            next_sweep: Time::default().after(SWEEP),
            statistics: SocketStatistics::default(),
            buffer: vec![0; BUFFER],
        })
    }

    /// Whether faces that other machines open from now on may register prefixes: hosts that run no forwarder, or one
    /// without routing. With routing, what they register is advertised. They are trusted with any prefix unless
    /// [`ForwarderConfig::commands`] names the keys of those that are.
    pub fn accept_hosts(&mut self, are_accepted: bool) {
        self.are_hosts_accepted = are_accepted;
    }

    /// Receives datagrams at an address, and returns it with the port that was chosen if it was 0. Every
    /// sender becomes a face; those on this machine may register prefixes.
    ///
    /// The source address of a datagram can be forged, and Data is longer than the Interest for it:
    /// do not offer this to the whole Internet.
    pub fn listen_udp(&mut self, address: SocketAddr) -> Result<SocketAddr, OpenError> {
        let mut port = DatagramPort::bind(address, true)?;
        let bound = port.local_address()?;
        let token = self.token();
        let registry = self.poll.registry();
        registry.register(port.source(), token, Readiness::READABLE)?;
        self.ports.insert(token, Port::Datagram(port));
        Ok(bound)
    }

    /// Accepts connections at an address, and returns it with the port that was chosen if it was 0.
    /// Those from this machine may register prefixes.
    pub fn listen_tcp(&mut self, address: SocketAddr) -> Result<SocketAddr, OpenError> {
        let (listener, bound) = Listener::tcp(address)?;
        self.listen(listener)?;
        Ok(bound)
    }

    /// Accepts connections at a path, which must not exist. It is removed when the daemon is dropped.
    #[cfg(unix)]
    pub fn listen_unix(&mut self, path: impl AsRef<Path>) -> Result<(), OpenError> {
        let listener = Listener::unix(path.as_ref())?;
        self.listen(listener)
    }

    /// Adds a neighbour that receives datagrams at an address.
    pub fn connect_udp(&mut self, address: SocketAddr) -> Result<FaceId, OpenError> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
        };
        let mut port = DatagramPort::bind(any, false)?;
        let face = self.forwarder.add_face(&datagram_face(address))?;
        port.add(address, face, None);
        let token = self.token();
        let registry = self.poll.registry();
        registry.register(port.source(), token, Readiness::READABLE)?;
        self.ports.insert(token, Port::Datagram(port));
        self.faces.insert(face, Place::Datagram(token, address));
        Ok(face)
    }

    /// Connects to a neighbour by TCP. If the connection fails, the face is removed with an event.
    pub fn connect_tcp(&mut self, address: SocketAddr) -> Result<FaceId, OpenError> {
        let stream = Stream::connect_tcp(address)?;
        self.add_stream(stream, &FaceConfig::remote())
    }

    /// Connects to another forwarder on this machine by its Unix socket.
    #[cfg(unix)]
    pub fn connect_unix(&mut self, path: impl AsRef<Path>) -> Result<FaceId, OpenError> {
        let stream = Stream::connect_unix(path.as_ref())?;
        self.add_stream(stream, &FaceConfig::local())
    }

    /// Adds a face for an application in this process, on any thread.
    pub fn memory_face(&mut self) -> Result<(FaceId, AppFace), OpenError> {
        let face = self.forwarder.add_face(&FaceConfig::local())?;
        let token = self.token();
        let (port, end) = memory::pair(face, self.waker.clone());
        self.ports.insert(token, Port::Memory(port));
        self.faces.insert(face, Place::Memory(token));
        Ok((face, AppFace::memory(end)?))
    }

    /// Closes a face.
    pub fn disconnect(&mut self, face: FaceId) {
        self.remove(face, FaceClosed::Disconnected);
    }

    /// The forwarder, for routes, strategies and statistics.
    pub fn forwarder(&mut self) -> &mut Forwarder {
        &mut self.forwarder
    }

    /// The time of its clock.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Ends a wait in [`poll`](Self::poll) from another thread.
    pub fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    /// Counts of the sockets.
    pub fn statistics(&self) -> SocketStatistics {
        self.statistics
    }

    /// The next face that was accepted or removed.
    pub fn poll_event(&mut self) -> Option<FaceEvent> {
        self.face_events.pop_front()
    }

    /// Sends and receives; waits for at most this long. After an error the daemon cannot wait for sockets
    /// and is of no further use.
    pub fn poll(&mut self, max_wait: Duration) -> io::Result<()> {
        self.flush();
        self.wait(max_wait)?;
        for token in std::mem::take(&mut self.ready) {
            if self.serve(token) {
                self.ready.insert(token);
            }
        }
        let now = self.clock.now();
        if self.forwarder.next_timeout().is_some_and(|due| due <= now) {
            self.forwarder.handle_timeout(now);
        }
        if now >= self.next_sweep {
            self.next_sweep = now.after(SWEEP);
            self.sweep(now);
        }
        self.flush();
        Ok(())
    }

    fn wait(&mut self, max_wait: Duration) -> io::Result<()> {
        let now = self.clock.now();
        let due = self.forwarder.next_timeout();
        let due = due.map_or(self.next_sweep, |due| due.min(self.next_sweep));
        let mut wait = max_wait.min(due.since(now));
        if !self.ready.is_empty() {
            wait = Duration::ZERO;
        }
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            polled => polled?,
        }
        for event in &self.events {
            self.ready.insert(event.token());
        }
        if self.ready.remove(&WAKE) {
            self.mark_queues();
        }
        Ok(())
    }

    /// Marks all queues as readable, since the waker does not identify the queue.
    fn mark_queues(&mut self) {
        let queue =
            |(token, port): (&Token, &Port)| matches!(port, Port::Memory(_)).then_some(*token);
        self.ready.extend(self.ports.iter().filter_map(queue));
    }

    /// Receives from a port. True if it may have more.
    fn serve(&mut self, token: Token) -> bool {
        match self.ports.get_mut(&token) {
            None => false,
            Some(Port::Listener(_)) => self.accept(token),
            Some(Port::Datagram(_)) => self.receive_datagrams(token),
            Some(Port::Stream(_)) => self.receive_stream(token),
            Some(Port::Memory(_)) => self.receive_memory(token),
        }
    }

    fn accept(&mut self, token: Token) -> bool {
        for _ in 0..TURN {
            let Some(Port::Listener(listener)) = self.ports.get(&token) else {
                return false;
            };
            let (stream, config) = match listener.accept() {
                Ok((stream, config)) if self.are_hosts_accepted => {
                    (stream, config.registration(true))
                }
                Ok(accepted) => accepted,
                Err(error) => return error.kind() == io::ErrorKind::Interrupted,
            };
            match self.add_stream(stream, &config) {
                Ok(face) => self.queue_event(FaceEvent::Added { face }),
                Err(_) => self.statistics.refused += 1,
            }
        }
        true
    }

    fn receive_datagrams(&mut self, token: Token) -> bool {
        let now = self.clock.now();
        for _ in 0..TURN {
            let Some(Port::Datagram(port)) = self.ports.get_mut(&token) else {
                return false;
            };
            let (length, from) = match port.receive(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // An ICMP error for an earlier datagram.
                Err(_) => continue,
            };
            let bytes = &self.buffer[..length];
            let face = match port.face(from, now) {
                Some(face) => face,
                None if port.accepts(bytes) => match self.add_datagram_face(token, from, now) {
                    Some(face) => face,
                    None => {
                        self.statistics.refused += 1;
                        continue;
                    }
                },
                None => continue,
            };
            // The forwarder counts malformed datagrams.
            let _ = self
                .forwarder
                .handle_packet(now, face, &self.buffer[..length]);
            self.flush();
        }
        true
    }

    fn receive_stream(&mut self, token: Token) -> bool {
        let now = self.clock.now();
        for _ in 0..TURN {
            let Some(Port::Stream(stream)) = self.ports.get_mut(&token) else {
                return false;
            };
            let face = stream.face();
            stream.flush(now);
            let length = match stream.read(&mut self.buffer) {
                Ok(0) => {
                    self.remove(face, FaceClosed::Closed);
                    return false;
                }
                Ok(length) => length,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected => return false,
                    io::ErrorKind::Interrupted => continue,
                    kind => {
                        self.remove(face, FaceClosed::Failed(kind));
                        return false;
                    }
                },
            };
            stream.deframer.push(&self.buffer[..length]);
            loop {
                match stream.deframer.next_packet() {
                    Ok(Some(packet)) => {
                        let taken = self.forwarder.handle_packet(now, face, packet);
                        if matches!(taken, Err(HandleError::NoSuchFace)) {
                            return false;
                        }
                    }
                    Ok(None) => break,
                    Err(_) => {
                        self.remove(face, FaceClosed::Malformed);
                        return false;
                    }
                }
            }
            self.flush();
        }
        true
    }

    fn receive_memory(&mut self, token: Token) -> bool {
        let now = self.clock.now();
        for _ in 0..TURN {
            let Some(Port::Memory(port)) = self.ports.get_mut(&token) else {
                return false;
            };
            let face = port.face();
            match port.receive() {
                Ok(Some(packet)) => {
                    let _ = self.forwarder.handle_packet(now, face, &packet);
                }
                Ok(None) => return false,
                Err(memory::Gone) => {
                    self.remove(face, FaceClosed::Closed);
                    return false;
                }
            }
            self.flush();
        }
        true
    }

    /// Sends the forwarder's packets.
    fn flush(&mut self) {
        let now = self.clock.now();
        let mut bytes = Vec::new();
        while let Some(face) = self.forwarder.poll_transmit(&mut bytes) {
            let Some(place) = self.faces.get(&face) else {
                continue;
            };
            let taken = match *place {
                Place::Datagram(token, address) => match self.ports.get_mut(&token) {
                    Some(Port::Datagram(port)) => port.send(&bytes, address),
                    _ => false,
                },
                Place::Stream(token) => match self.ports.get_mut(&token) {
                    Some(Port::Stream(stream)) => stream.send(&bytes, now),
                    _ => false,
                },
                Place::Memory(token) => match self.ports.get_mut(&token) {
                    Some(Port::Memory(port)) => port.send(&bytes),
                    _ => false,
                },
            };
            self.statistics.dropped += u64::from(!taken);
        }
    }

    /// Removes faces that are idle or stalled, or whose application has dropped its end.
    fn sweep(&mut self, now: Time) {
        self.mark_queues();
        let mut gone = Vec::new();
        for port in self.ports.values() {
            match port {
                Port::Datagram(port) => {
                    gone.extend(port.idle(now).map(|face| (face, FaceClosed::Idle)));
                }
                Port::Stream(stream) if stream.is_stalled(now) => {
                    gone.push((stream.face(), FaceClosed::Stalled));
                }
                _ => {}
            }
        }
        for (face, why) in gone {
            self.remove(face, why);
        }
    }

    fn listen(&mut self, mut listener: Listener) -> Result<(), OpenError> {
        let token = self.token();
        let registry = self.poll.registry();
        listener.register(registry, token)?;
        self.ports.insert(token, Port::Listener(listener));
        Ok(())
    }

    fn add_stream(&mut self, mut stream: Stream, config: &FaceConfig) -> Result<FaceId, OpenError> {
        let token = self.token();
        stream.register(self.poll.registry(), token)?;
        let face = self.forwarder.add_face(config)?;
        let stream = StreamFace::new(stream, face);
        self.ports.insert(token, Port::Stream(stream));
        self.faces.insert(face, Place::Stream(token));
        Ok(face)
    }

    fn add_datagram_face(&mut self, token: Token, from: SocketAddr, now: Time) -> Option<FaceId> {
        let opened = self.ports.values().map(|port| match port {
            Port::Datagram(port) => port.opened(),
            _ => 0,
        });
        if opened.sum::<usize>() >= MAX_DATAGRAM_FACES {
            return None;
        }
        // The system drops datagrams from other machines with such a source address.
        let config = if from.ip().to_canonical().is_loopback() {
            FaceConfig::local()
        } else {
            datagram_face(from).registration(self.are_hosts_accepted)
        };
        let face = self.forwarder.add_face(&config).ok()?;
        if let Some(Port::Datagram(port)) = self.ports.get_mut(&token) {
            port.add(from, face, Some(now));
        }
        self.faces.insert(face, Place::Datagram(token, from));
        self.queue_event(FaceEvent::Added { face });
        Some(face)
    }

    fn remove(&mut self, face: FaceId, why: FaceClosed) {
        let Some(place) = self.faces.remove(&face) else {
            return;
        };
        self.forwarder.remove_face(face);
        match place {
            Place::Datagram(token, address) => {
                let mut is_over = false;
                if let Some(Port::Datagram(port)) = self.ports.get_mut(&token) {
                    port.remove(address);
                    is_over = port.is_over();
                }
                if is_over {
                    self.ports.remove(&token);
                }
            }
            // Dropping a socket deregisters it.
            Place::Stream(token) | Place::Memory(token) => {
                self.ports.remove(&token);
            }
        }
        self.queue_event(FaceEvent::Removed { face, why });
    }

    fn queue_event(&mut self, event: FaceEvent) {
        if self.face_events.len() == MAX_EVENTS {
            self.face_events.pop_front();
        }
        self.face_events.push_back(event);
    }

    fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }
}

/// A neighbour. Datagrams on this machine may be as long as packets; others must not be fragmented by IP.
fn datagram_face(address: SocketAddr) -> FaceConfig {
    let face = FaceConfig::remote();
    if address.ip().is_loopback() {
        return face;
    }
    face.clone().mtu(DATAGRAM_MTU).unwrap_or(face)
}

const DATAGRAM_MTU: usize = 1400;
