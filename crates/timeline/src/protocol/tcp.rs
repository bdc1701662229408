//! Blocking TCP drivers of server and client, with the standard library alone.
//!
//! One thread per connection reads bytes and sends them to the caller's thread, where `wait` does the rest.
//! Each frame is a separate write with `TCP_NODELAY`.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::frame::FRAME_BYTES;
use super::{Client, Server, ServerEvent, StreamId};

/// A [`Server`] on a TCP socket.
#[derive(Debug)]
pub struct TcpServer {
    server: Server,
    address: SocketAddr,
    connections: BTreeMap<StreamId, Connection>,
    max_connections: usize,
    frames_per_wait: usize,
    sender: SyncSender<Arrival>,
    /// `None` only while the server is dropped.
    arrivals: Option<Receiver<Arrival>>,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

/// A message from another thread.
enum Arrival {
    Connected(TcpStream),
    Bytes(StreamId, Vec<u8>),
    Ended(StreamId),
}

impl TcpServer {
    /// Listens at an address; the protocol's port is [`PORT`](super::PORT).
    ///
    /// # Errors
    ///
    /// As the operating system says.
    pub fn bind(address: impl ToSocketAddrs, server: Server) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let (sender, arrivals) = sync_channel(MAX_ARRIVALS);
        let stop = Arc::new(AtomicBool::new(false));
        let acceptor = thread::spawn({
            let (sender, stop) = (sender.clone(), stop.clone());
            move || accept(&listener, &sender, &stop)
        });
        Ok(Self {
            server,
            address,
            connections: BTreeMap::new(),
            max_connections: 256,
            frames_per_wait: usize::MAX,
            sender,
            arrivals: Some(arrivals),
            stop,
            acceptor: Some(acceptor),
        })
    }

    /// The local address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The most connections; 256 by default. Further ones are closed at once.
    pub fn set_max_connections(&mut self, max: usize) {
        self.max_connections = max;
    }

    /// The most frames per client in one [`wait`](Self::wait); unlimited by default. The protocol's own
    /// implementation takes one frame from each read; with 1 and a pause between waits it loses none.
    pub fn set_frames_per_wait(&mut self, frames: usize) {
        self.frames_per_wait = frames;
    }

    /// The server, to change keyframes and look up values.
    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// Sends all frames and waits for bytes, for at most `timeout`.
    pub fn wait(&mut self, timeout: Duration) {
        self.flush();
        let Some(arrivals) = &self.arrivals else {
            return;
        };
        let first = arrivals.recv_timeout(timeout).ok();
        let more: Vec<Arrival> = arrivals.try_iter().take(MAX_ARRIVALS).collect();
        for arrival in first.into_iter().chain(more) {
            self.handle(arrival);
        }
        self.flush();
    }

    /// The next event, the oldest first. Closes the connection of a client that stalled.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        let event = self.server.poll_event()?;
        if let ServerEvent::Stalled(stream) = event {
            self.close(stream);
        }
        Some(event)
    }

    /// The number of connections.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    fn handle(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Connected(stream) if self.connections.len() < self.max_connections => {
                // It fails if the connection is broken already.
                let _ = self.adopt(stream);
            }
            Arrival::Connected(_) => {}
            Arrival::Bytes(stream, bytes) => self.server.handle_bytes(stream, &bytes),
            Arrival::Ended(stream) => self.close(stream),
        }
    }

    fn adopt(&mut self, stream: TcpStream) -> io::Result<()> {
        let connection = Connection::new(stream)?;
        let reading = connection.stream.try_clone()?;
        let id = self.server.handle_connected();
        let sender = self.sender.clone();
        thread::spawn(move || {
            let hand_over = |bytes| sender.send(Arrival::Bytes(id, bytes)).is_ok();
            read(reading, hand_over);
            let _ = sender.send(Arrival::Ended(id));
        });
        self.connections.insert(id, connection);
        Ok(())
    }

    fn flush(&mut self) {
        let server = &mut self.server;
        let mut broken = Vec::new();
        for (&id, connection) in &mut self.connections {
            let next = || server.poll_transmit(id);
            if connection.flush(next, self.frames_per_wait).is_err() {
                broken.push(id);
            }
        }
        for id in broken {
            self.close(id);
        }
    }

    fn close(&mut self, stream: StreamId) {
        self.server.handle_disconnected(stream);
        self.connections.remove(&stream);
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        self.connections.clear();
        // Unblocks threads that wait to send, before the acceptor is joined.
        self.arrivals = None;
        self.stop.store(true, Ordering::Relaxed);
        let woken = TcpStream::connect_timeout(&reachable(self.address), WAKE_TIMEOUT).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
    }
}

/// A [`Client`] on a TCP connection.
#[derive(Debug)]
pub struct TcpClient {
    client: Client,
    connection: Connection,
    arrivals: Receiver<Vec<u8>>,
    connected: bool,
}

impl TcpClient {
    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// As the operating system says.
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        let connection = Connection::new(TcpStream::connect(address)?)?;
        let reading = connection.stream.try_clone()?;
        let (sender, arrivals) = sync_channel(MAX_ARRIVALS);
        thread::spawn(move || read(reading, |bytes| sender.send(bytes).is_ok()));
        Ok(Self {
            client: Client::new(),
            connection,
            arrivals,
            connected: true,
        })
    }

    /// Sends all frames and waits for bytes, for at most `timeout`. False once the connection has ended and
    /// all received bytes were handled.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let client = &mut self.client;
        let next = || client.poll_transmit();
        if self.connection.flush(next, usize::MAX).is_err() {
            self.connected = false;
        }
        match self.arrivals.recv_timeout(timeout) {
            Ok(bytes) => {
                self.client.handle_bytes(&bytes);
                for bytes in self.arrivals.try_iter().take(MAX_ARRIVALS) {
                    self.client.handle_bytes(&bytes);
                }
                true
            }
            Err(error) => {
                let ended = error == std::sync::mpsc::RecvTimeoutError::Disconnected;
                self.connected &= !ended;
                self.connected
            }
        }
    }

    /// The client, to look up values and poll events.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// A socket, and a frame that was written in part.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    begun: Option<([u8; FRAME_BYTES], usize)>,
}

impl Connection {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // A client that does not read must not delay the others.
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Self {
            stream,
            begun: None,
        })
    }

    /// Writes frames, one write each, until there are no more, the socket's buffer is full, or the limit is
    /// reached.
    fn flush(
        &mut self,
        mut next: impl FnMut() -> Option<[u8; FRAME_BYTES]>,
        limit: usize,
    ) -> io::Result<()> {
        for _ in 0..limit {
            let Some((frame, mut sent)) = self.begun.take().or_else(|| Some((next()?, 0))) else {
                return Ok(());
            };
            while sent < FRAME_BYTES {
                match self.stream.write(&frame[sent..]) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(count) => sent += count,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if is_full(&error) => {
                        self.begun = Some((frame, sent));
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

impl Drop for Connection {
    /// Also ends the thread that reads.
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn accept(listener: &TcpListener, sender: &SyncSender<Arrival>, stop: &AtomicBool) {
    for stream in listener.incoming() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // Ignores connections that failed before they were accepted.
        let Ok(stream) = stream else { continue };
        if sender.send(Arrival::Connected(stream)).is_err() {
            return;
        }
    }
}

/// Reads until the connection ends or the receiver is dropped.
fn read(mut stream: TcpStream, hand_over: impl Fn(Vec<u8>) -> bool) {
    let mut buffer = [0; 64 * FRAME_BYTES];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) if hand_over(buffer[..count].to_vec()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// An address at which this machine reaches a server that may listen on all addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

const MAX_ARRIVALS: usize = 1024;
const WRITE_TIMEOUT: Duration = Duration::from_millis(1);
const WAKE_TIMEOUT: Duration = Duration::from_secs(1);
