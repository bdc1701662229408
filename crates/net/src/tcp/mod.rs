//! Carriers over plain TCP streams, for networks that do not let UDP through.

mod stream;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use prescient_channels::bytes::Reader;
use prescient_channels::{
    AttendedClock, BlobError, BlobId, Capacity, Carrier, CarrierEvent, ChannelId, ClientId,
    CloseReason, ConfigError, ConnectError, ConnectionId, Denial, Exchange, ExchangeConfig, Input,
    InputError, InputTick, Now, RequestId, SendError, Statistics, Time, Traffic,
};
use prescient_transport::ProtocolId;
use thiserror::Error;

use crate::clock::Clock;
use stream::{Broken, Control, Silence, Stream};

/// Why a TCP socket could not be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TcpError {
    /// The system refused it.
    #[error("cannot use a TCP socket at {address}: {error}")]
    Socket {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data of a client is too long.
    #[error("{0} bytes are too long for the data of a client, which may have 256")]
    Data(usize),
}

/// A server's carrier over TCP.
///
/// TCP streams are neither encrypted nor authenticated: anybody can read, change and forge what
/// they carry. Use them on one machine, or inside a network or tunnel that is secure by itself. A
/// lost packet delays all that follow, so UDP is better wherever it works.
pub struct TcpServer {
    listener: TcpListener,
    address: SocketAddr,
    protocol: ProtocolId,
    config: ExchangeConfig,
    max_connections: usize,
    streams: BTreeMap<ConnectionId, Stream>,
    accepted: u64,
    core: Core,
}

/// A client's carrier over TCP, for a [`TcpServer`].
pub struct TcpClient {
    stream: Option<Stream>,
    server: SocketAddr,
    core: Core,
}

/// The state that both ends have.
struct Core {
    poll: Poll,
    ready: Events,
    clock: Clock,
    attended: AttendedClock,
    events: VecDeque<CarrierEvent>,
    traffic: Traffic,
}

/// How both ends wait for their sockets.
trait Endpoint {
    fn core(&mut self) -> &mut Core;

    /// Waits until a socket is ready, for `span` at most, then receives and sends what it can.
    fn drive(&mut self, span: Duration);

    /// When a stream has something to do.
    fn next_timeout(&self) -> Option<Time>;

    fn poll_event(&mut self) -> Option<CarrierEvent> {
        if self.core().events.is_empty() {
            self.drive(Duration::ZERO);
        }
        self.core().events.pop_front()
    }

    fn poll_event_until(&mut self, deadline: Time) -> Option<CarrierEvent> {
        loop {
            if let Some(event) = self.poll_event() {
                return Some(event);
            }
            if self.core().clock.now() >= deadline {
                return None;
            }
            let due = self.next_timeout();
            let pause = self.core().pause(deadline, due);
            self.drive(pause);
        }
    }
}

impl TcpServer {
    /// Listens at an address. At most `max_connections` clients are accepted, and only those with
    /// this protocol.
    pub fn bind(
        address: SocketAddr,
        protocol: ProtocolId,
        config: ExchangeConfig,
        max_connections: usize,
    ) -> Result<Self, TcpError> {
        config.check()?;
        let failed = |error| TcpError::Socket { address, error };
        let mut listener = TcpListener::bind(address).map_err(failed)?;
        let core = Core::new().map_err(failed)?;
        let registry = core.poll.registry();
        let registered = registry.register(&mut listener, LISTENER, Interest::READABLE);
        registered.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            protocol,
            config,
            max_connections,
            streams: BTreeMap::new(),
            accepted: 0,
            core,
        })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn accept(&mut self, now: Time) {
        // Any error but `WouldBlock` belongs to the client that would be accepted.
        while let Ok((mut socket, _)) = self.listener.accept() {
            if self.streams.len() >= self.max_connections {
                continue;
            }
            self.accepted += 1;
            let id = ConnectionId(self.accepted);
            let Ok(token) = usize::try_from(id.0) else {
                continue;
            };
            let both = Interest::READABLE | Interest::WRITABLE;
            let registry = self.core.poll.registry();
            if registry.register(&mut socket, Token(token), both).is_ok() {
                let exchange = Exchange::of_server(&self.config, now);
                self.streams.insert(id, Stream::new(socket, exchange, now));
            }
        }
    }

    /// Receives from and sends to one stream.
    fn tend(&mut self, connection: ConnectionId, at: Now) -> Result<(), Broken> {
        let Self { streams, core, .. } = self;
        let Some(stream) = streams.get_mut(&connection) else {
            return Ok(());
        };
        let has_room = core.events.len() < MAX_EVENTS;
        while has_room && let Some(control) = stream.receive(at, &mut core.traffic)? {
            match control {
                Control::Hello(hello) => {
                    let (protocol, client, data) = read_hello(&hello).ok_or(Broken::Violation)?;
                    if protocol != self.protocol {
                        let (kind, _) = Denial::Protocol.to_code();
                        stream.put_control(&Control::Answer(vec![kind]));
                        let _ = stream.transmit(at, &mut core.traffic);
                        return Err(Broken::Closed);
                    }
                    stream.is_open = true;
                    stream.put_control(&Control::Answer(Vec::new()));
                    core.events.push_back(CarrierEvent::Connected {
                        connection,
                        client,
                        data,
                    });
                }
                Control::Answer(_) => return Err(Broken::Violation),
                Control::Close(reason) => {
                    self.end(connection, reason);
                    return Ok(());
                }
            }
        }
        core.finish_turn(connection, stream, at)
    }

    /// Removes a stream; reports its end if its beginning was reported.
    fn end(&mut self, connection: ConnectionId, reason: CloseReason) {
        let Some(stream) = self.streams.remove(&connection) else {
            return;
        };
        if stream.is_open {
            let event = CarrierEvent::Closed { connection, reason };
            self.core.events.push_back(event);
        }
    }
}

impl TcpClient {
    /// Begins to connect. The server trusts what `client` and `data` say; `data` has at most 256
    /// bytes, as in a token.
    pub fn connect(
        server: SocketAddr,
        protocol: ProtocolId,
        client: ClientId,
        data: &[u8],
        config: &ExchangeConfig,
    ) -> Result<Self, TcpError> {
        config.check()?;
        if data.len() > MAX_DATA {
            return Err(TcpError::Data(data.len()));
        }
        let address = server;
        let failed = |error| TcpError::Socket { address, error };
        let mut socket = TcpStream::connect(server).map_err(failed)?;
        let core = Core::new().map_err(failed)?;
        let both = Interest::READABLE | Interest::WRITABLE;
        let registry = core.poll.registry();
        let registered = registry.register(&mut socket, STREAM, both);
        registered.map_err(failed)?;
        let now = core.attended.now();
        let mut stream = Stream::new(socket, Exchange::of_client(config, now), now);
        stream.put_control(&Control::Hello(write_hello(protocol, client, data)));
        Ok(Self {
            stream: Some(stream),
            server,
            core,
        })
    }

    /// Receives and sends. Returns the reason if the server closed the connection, and a denial
    /// with the error if it refused the client.
    fn tend(&mut self, at: Now) -> Result<Option<CloseReason>, (Broken, Option<Denial>)> {
        let Self { stream, core, .. } = self;
        let Some(stream) = stream else {
            return Ok(None);
        };
        let connection = ConnectionId::SERVER;
        let plain = |broken| (broken, None);
        let has_room = core.events.len() < MAX_EVENTS;
        while has_room
            && let Some(control) = stream.receive(at, &mut core.traffic).map_err(plain)?
        {
            match control {
                Control::Answer(answer) => match answer[..] {
                    [] => {
                        stream.is_open = true;
                        core.events.push_back(CarrierEvent::Connected {
                            connection,
                            client: ClientId(0),
                            data: Vec::new(),
                        });
                    }
                    [kind, ..] => {
                        return Err((Broken::Closed, Denial::from_code(kind, 0)));
                    }
                },
                Control::Close(reason) => return Ok(Some(reason)),
                Control::Hello(_) => return Err(plain(Broken::Violation)),
            }
        }
        let finished = core.finish_turn(connection, stream, at);
        finished.map(|()| None).map_err(plain)
    }

    fn end(&mut self, reason: CloseReason, denial: Option<Denial>) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        self.core.events.push_back(match denial {
            Some(denial) => CarrierEvent::Failed(denial.into()),
            None if stream.is_open => CarrierEvent::Closed {
                connection: ConnectionId::SERVER,
                reason,
            },
            None => CarrierEvent::Failed(ConnectError::TimedOut),
        });
    }
}

impl Core {
    fn new() -> io::Result<Self> {
        let clock = Clock::start();
        Ok(Self {
            poll: Poll::new()?,
            ready: Events::with_capacity(256),
            attended: AttendedClock::new(clock.now(), MAX_STEP),
            clock,
            events: VecDeque::new(),
            traffic: Traffic::default(),
        })
    }

    /// Waits until a socket is ready, for `span` at most, and returns the time afterwards.
    fn sleep(&mut self, span: Duration) -> Now {
        // A signal ends the wait early; then the caller polls again.
        let _ = self.poll.poll(&mut self.ready, Some(span));
        self.attended.advance_both(self.clock.now())
    }

    /// Collects events of a stream, handles its timers, and sends.
    fn finish_turn(
        &mut self,
        connection: ConnectionId,
        stream: &mut Stream,
        at: Now,
    ) -> Result<(), Broken> {
        // There is no lobby over TCP, so its messages would never be polled.
        if stream.exchange.poll_lobby().is_some() {
            return Err(Broken::Violation);
        }
        while let Some(received) = stream.poll_event() {
            self.events.push_back(CarrierEvent::Received {
                connection,
                received,
            });
        }
        match stream.handle_timeout(at.now)? {
            Some(Silence::Begins) => self.events.push_back(CarrierEvent::Silent(connection)),
            Some(Silence::Ends) => self.events.push_back(CarrierEvent::Resumed(connection)),
            None => {}
        }
        stream.transmit(at, &mut self.traffic)
    }

    /// How long to sleep: until the deadline, or until a stream has something to do.
    fn pause(&self, deadline: Time, due: Option<Time>) -> Duration {
        let due = due.map(|due| self.attended.on_callers_clock(due));
        let until = due.map_or(deadline, |due| due.min(deadline));
        // The system's timers have a resolution of a millisecond.
        until.since(self.clock.now()).max(RESOLUTION)
    }
}

impl Endpoint for TcpServer {
    fn core(&mut self) -> &mut Core {
        &mut self.core
    }

    fn drive(&mut self, span: Duration) {
        let at = self.core.sleep(span);
        let mut may_accept = false;
        for event in &self.core.ready {
            match event.token() {
                LISTENER => may_accept = true,
                Token(token) => {
                    if let Some(stream) = self.streams.get_mut(&ConnectionId(token as u64)) {
                        stream.is_readable |= event.is_readable() || event.is_read_closed();
                    }
                }
            }
        }
        if may_accept {
            self.accept(at.now);
        }
        let ids: Vec<ConnectionId> = self.streams.keys().copied().collect();
        for id in ids {
            if let Err(broken) = self.tend(id, at) {
                self.end(id, broken.into());
            }
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        self.streams.values().map(Stream::deadline).min()
    }
}

impl Endpoint for TcpClient {
    fn core(&mut self) -> &mut Core {
        &mut self.core
    }

    fn drive(&mut self, span: Duration) {
        let at = self.core.sleep(span);
        let Some(stream) = &mut self.stream else {
            return;
        };
        for event in &self.core.ready {
            stream.is_readable |= event.is_readable() || event.is_read_closed();
        }
        match self.tend(at) {
            Ok(None) => {}
            Ok(Some(reason)) => self.end(reason, None),
            Err((broken, denial)) => self.end(broken.into(), denial),
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        self.stream.as_ref().map(Stream::deadline)
    }
}

fn open_exchange(stream: Option<&mut Stream>) -> Result<&mut Exchange, BlobError> {
    let stream = stream.filter(|stream| stream.is_open);
    Ok(&mut stream.ok_or(BlobError::NotConnected)?.exchange)
}

impl Carrier for TcpServer {
    fn now(&self) -> Time {
        self.core.clock.now()
    }

    fn poll(&mut self) -> Option<CarrierEvent> {
        self.poll_event()
    }

    fn wait_until(&mut self, deadline: Time) -> Option<CarrierEvent> {
        self.poll_event_until(deadline)
    }

    fn send(
        &mut self,
        connection: ConnectionId,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let stream = self.streams.get_mut(&connection);
        let stream = stream.filter(|stream| stream.is_open);
        let stream = stream.ok_or(SendError::NotConnected)?;
        stream.exchange.send(channel, message)
    }

    fn offer_blob(
        &mut self,
        connection: ConnectionId,
        label: &[u8],
        bytes: Vec<u8>,
    ) -> Result<BlobId, BlobError> {
        let exchange = open_exchange(self.streams.get_mut(&connection))?;
        exchange.offer_blob(label, bytes)
    }

    fn accept_blob(&mut self, connection: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        open_exchange(self.streams.get_mut(&connection))?.accept_blob(blob)
    }

    fn cancel_blob(&mut self, connection: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        open_exchange(self.streams.get_mut(&connection))?.cancel_blob(blob)
    }

    fn request(
        &mut self,
        connection: ConnectionId,
        message: &[u8],
        timeout: Duration,
    ) -> Result<RequestId, SendError> {
        let now = self.core.attended.advance(self.core.clock.now());
        let stream = self.streams.get_mut(&connection);
        let stream = stream.filter(|stream| stream.is_open);
        let stream = stream.ok_or(SendError::NotConnected)?;
        stream.exchange.request(message, timeout, now)
    }

    fn respond(
        &mut self,
        connection: ConnectionId,
        request: RequestId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let stream = self.streams.get_mut(&connection);
        let stream = stream.filter(|stream| stream.is_open);
        let stream = stream.ok_or(SendError::NotConnected)?;
        stream.exchange.respond(request, message)
    }

    fn push_input(&mut self, _: InputTick, _: Input) -> Result<(), InputError> {
        Err(InputError::NotConnected)
    }

    fn flush(&mut self) {
        let at = self.core.attended.advance_both(self.core.clock.now());
        let mut broken = Vec::new();
        for (id, stream) in &mut self.streams {
            if let Err(why) = stream.transmit(at, &mut self.core.traffic) {
                broken.push((*id, why));
            }
        }
        for (id, why) in broken {
            self.end(id, why.into());
        }
    }

    fn close(&mut self, connection: ConnectionId, reason: CloseReason) {
        if let Some(stream) = self.streams.get_mut(&connection) {
            let at = self.core.attended.advance_both(self.core.clock.now());
            stream.put_control(&Control::Close(reason));
            let _ = stream.transmit(at, &mut self.core.traffic);
            self.end(connection, reason);
        }
    }

    fn shut_down(&mut self, reason: CloseReason) {
        let ids: Vec<ConnectionId> = self.streams.keys().copied().collect();
        for id in ids {
            self.close(id, reason);
        }
    }

    fn capacity(&mut self, connection: ConnectionId) -> Capacity {
        let now = self.core.clock.now();
        let stream = self.streams.get_mut(&connection);
        stream.map_or(Capacity::NONE, |stream| stream.capacity(now))
    }

    fn pause(&mut self, connection: ConnectionId, is_paused: bool) {
        if let Some(stream) = self.streams.get_mut(&connection) {
            stream.exchange.pause(is_paused);
        }
    }

    fn statistics(&self, connection: ConnectionId) -> Option<Statistics> {
        self.streams.get(&connection).map(Stream::statistics)
    }

    fn traffic(&self) -> Traffic {
        self.core.traffic
    }
}

impl Carrier for TcpClient {
    fn now(&self) -> Time {
        self.core.clock.now()
    }

    fn poll(&mut self) -> Option<CarrierEvent> {
        self.poll_event()
    }

    fn wait_until(&mut self, deadline: Time) -> Option<CarrierEvent> {
        self.poll_event_until(deadline)
    }

    fn send(
        &mut self,
        _: ConnectionId,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let stream = self.stream.as_mut().filter(|stream| stream.is_open);
        let stream = stream.ok_or(SendError::NotConnected)?;
        stream.exchange.send(channel, message)
    }

    fn offer_blob(
        &mut self,
        _: ConnectionId,
        label: &[u8],
        bytes: Vec<u8>,
    ) -> Result<BlobId, BlobError> {
        open_exchange(self.stream.as_mut())?.offer_blob(label, bytes)
    }

    fn accept_blob(&mut self, _: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        open_exchange(self.stream.as_mut())?.accept_blob(blob)
    }

    fn cancel_blob(&mut self, _: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        open_exchange(self.stream.as_mut())?.cancel_blob(blob)
    }

    fn request(
        &mut self,
        _: ConnectionId,
        message: &[u8],
        timeout: Duration,
    ) -> Result<RequestId, SendError> {
        let now = self.core.attended.advance(self.core.clock.now());
        let stream = self.stream.as_mut().filter(|stream| stream.is_open);
        let stream = stream.ok_or(SendError::NotConnected)?;
        stream.exchange.request(message, timeout, now)
    }

    fn respond(
        &mut self,
        _: ConnectionId,
        request: RequestId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let stream = self.stream.as_mut().filter(|stream| stream.is_open);
        let stream = stream.ok_or(SendError::NotConnected)?;
        stream.exchange.respond(request, message)
    }

    fn push_input(&mut self, tick: InputTick, input: Input) -> Result<(), InputError> {
        let stream = self.stream.as_mut().filter(|stream| stream.is_open);
        let stream = stream.ok_or(InputError::NotConnected)?;
        stream.exchange.push_input(tick, input)
    }

    fn flush(&mut self) {
        let at = self.core.attended.advance_both(self.core.clock.now());
        let sent = match &mut self.stream {
            Some(stream) => stream.transmit(at, &mut self.core.traffic),
            None => Ok(()),
        };
        if let Err(broken) = sent {
            self.end(broken.into(), None);
        }
    }

    fn close(&mut self, _: ConnectionId, reason: CloseReason) {
        if let Some(stream) = &mut self.stream {
            let at = self.core.attended.advance_both(self.core.clock.now());
            stream.put_control(&Control::Close(reason));
            let _ = stream.transmit(at, &mut self.core.traffic);
            self.end(reason, None);
        }
    }

    fn shut_down(&mut self, reason: CloseReason) {
        self.close(ConnectionId::SERVER, reason);
    }

    fn statistics(&self, _: ConnectionId) -> Option<Statistics> {
        self.stream.as_ref().map(Stream::statistics)
    }

    fn remote_time(&mut self, _: ConnectionId) -> Option<Time> {
        let now = self.core.clock.now();
        self.stream.as_mut()?.exchange.remote_clock().read(now)
    }

    fn traffic(&self) -> Traffic {
        self.core.traffic
    }

    fn explain(&self, error: ConnectError) -> Box<dyn std::error::Error + Send + Sync> {
        match error {
            ConnectError::TimedOut => Box::new(NobodyAnswers {
                server: self.server,
            }),
            other => Box::new(other),
        }
    }
}

/// Why a TCP client is not connected.
#[derive(Debug, Error)]
#[error("nobody answers at {server} over TCP: is the server running, and is this its port?")]
struct NobodyAnswers {
    server: SocketAddr,
}

fn write_hello(protocol: ProtocolId, client: ClientId, data: &[u8]) -> Vec<u8> {
    let mut hello = protocol.0.to_vec();
    hello.extend(client.0.to_le_bytes());
    hello.extend(data);
    hello
}

fn read_hello(hello: &[u8]) -> Option<(ProtocolId, ClientId, Vec<u8>)> {
    let mut reader = Reader::new(hello);
    let protocol = ProtocolId(reader.array()?);
    let client = ClientId(reader.u64()?);
    let data = reader.rest();
    (data.len() <= MAX_DATA).then(|| (protocol, client, data.to_vec()))
}

const LISTENER: Token = Token(0);
const STREAM: Token = Token(1);
/// As long as in a token.
const MAX_DATA: usize = 256;
/// While this many events wait to be polled, nothing is read.
const MAX_EVENTS: usize = 4096;
const MAX_STEP: Duration = Duration::from_secs(2);
const RESOLUTION: Duration = Duration::from_millis(1);
