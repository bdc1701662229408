//! One end of a TCP stream: packets of an exchange as frames.
//!
//! A frame is its payload's length (`u16`, little endian), its kind (a byte) and the payload. A
//! stream loses nothing, so packets are numbered by their order.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use mio::net::TcpStream;
use prescient_channels::{
    Capacity, CloseReason, Exchange, Fault, MAX_DATAGRAM, Now, Path, Received, Statistics, Time,
    Traffic,
};

/// A frame that is not a packet of the exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// The client's first frame.
    Hello(Vec<u8>),
    /// The server's answer: what it has against the client, if anything.
    Answer(Vec<u8>),
    Close(CloseReason),
}

/// Why a stream is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The other end or the system closed it.
    Closed,
    /// The other end violated the protocol.
    Violation,
    Stalled,
}

impl From<Broken> for CloseReason {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Closed => Self::TimedOut,
            Broken::Violation => Self::Violation,
            Broken::Stalled => Self::Stalled,
        }
    }
}

impl From<Fault> for Broken {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Stalled => Self::Stalled,
            _ => Self::Violation,
        }
    }
}

pub(super) struct Stream {
    pub(super) socket: TcpStream,
    pub(super) exchange: Exchange,
    /// Whether packets of the exchange may be sent and received.
    pub(super) is_open: bool,
    /// The socket may have more to read.
    pub(super) is_readable: bool,
    received: Vec<u8>,
    unsent: Vec<u8>,
    packets_sent: u64,
    packets_received: u64,
    since: Time,
    last_received: Time,
    last_sent: Time,
    is_silent: bool,
    counts: Statistics,
}

impl Stream {
    pub(super) fn new(socket: TcpStream, exchange: Exchange, now: Time) -> Self {
        // Packets are complete when they are written; waiting for more delays them.
        let _ = socket.set_nodelay(true);
        Self {
            socket,
            exchange,
            is_open: false,
            is_readable: true,
            received: Vec::new(),
            unsent: Vec::new(),
            packets_sent: 0,
            packets_received: 0,
            since: now,
            last_received: now,
            last_sent: now,
            is_silent: false,
            counts: Statistics::default(),
        }
    }

    /// Reads and handles what has arrived. Control frames are returned one at a time: call it again
    /// after each.
    pub(super) fn receive(
        &mut self,
        at: Now,
        traffic: &mut Traffic,
    ) -> Result<Option<Control>, Broken> {
        for _ in 0..MAX_READS {
            if let Some(control) = self.handle_frame(at)? {
                return Ok(Some(control));
            }
            if !self.is_readable {
                return Ok(None);
            }
            let mut chunk = [0; CHUNK];
            match self.socket.read(&mut chunk) {
                Ok(0) => return Err(Broken::Closed),
                Ok(length) => {
                    self.received.extend_from_slice(&chunk[..length]);
                    self.last_received = at.now;
                    self.counts.bytes_received += length as u64;
                    traffic.bytes_received += length as u64;
                    traffic.packets_received += 1;
                }
                Err(error) if is_temporary(&error) => self.is_readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Broken::Closed),
            }
        }
        self.handle_frame(at)
    }

    /// Handles frames that are complete, up to the next control frame.
    fn handle_frame(&mut self, at: Now) -> Result<Option<Control>, Broken> {
        let mut taken = 0;
        let mut control = None;
        while control.is_none()
            && let Some((header, rest)) = self.received[taken..].split_first_chunk::<HEADER>()
        {
            let length = usize::from(u16::from_le_bytes([header[0], header[1]]));
            if length > MAX_FRAME {
                return Err(Broken::Violation);
            }
            let Some(payload) = rest.get(..length) else {
                break;
            };
            match header[2] {
                PACKET if self.is_open => {
                    let next = self.packets_sent;
                    let sequence = self.packets_received;
                    self.packets_received += 1;
                    self.counts.packets_received += 1;
                    let exchange = &mut self.exchange;
                    exchange.handle_body(sequence, payload, next, at, &mut Wire)?;
                }
                HELLO if !self.is_open => control = Some(Control::Hello(payload.to_vec())),
                ANSWER if !self.is_open => control = Some(Control::Answer(payload.to_vec())),
                CLOSE => {
                    let code = payload.try_into().map_err(|_| Broken::Violation)?;
                    let reason = CloseReason::from_code(u32::from_le_bytes(code));
                    control = Some(Control::Close(reason));
                }
                _ => return Err(Broken::Violation),
            }
            taken += HEADER + length;
        }
        self.received.drain(..taken);
        Ok(control)
    }

    /// Writes packets of what waits to be sent, as far as the socket takes them.
    pub(super) fn transmit(&mut self, at: Now, traffic: &mut Traffic) -> Result<(), Broken> {
        loop {
            while self.is_open
                && self.unsent.len() < MAX_UNSENT
                && let Some(body) = self.exchange.poll_body(self.packets_sent, 0, at, &mut Wire)
            {
                self.packets_sent += 1;
                self.counts.packets_sent += 1;
                self.put(PACKET, &body);
            }
            if self.unsent.is_empty() {
                return Ok(());
            }
            match self.socket.write(&self.unsent) {
                Ok(0) => return Err(Broken::Closed),
                Ok(length) => {
                    self.unsent.drain(..length);
                    self.last_sent = at.now;
                    self.counts.bytes_sent += length as u64;
                    traffic.bytes_sent += length as u64;
                    traffic.packets_sent += 1;
                }
                Err(error) if is_temporary(&error) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Broken::Closed),
            }
        }
    }

    pub(super) fn put_control(&mut self, control: &Control) {
        match control {
            Control::Hello(payload) => self.put(HELLO, payload),
            Control::Answer(payload) => self.put(ANSWER, payload),
            Control::Close(reason) => self.put(CLOSE, &reason.to_code().to_le_bytes()),
        }
    }

    fn put(&mut self, kind: u8, payload: &[u8]) {
        let length = u16::try_from(payload.len()).expect("frames are shorter than MAX_FRAME");
        self.unsent.extend(length.to_le_bytes());
        self.unsent.push(kind);
        self.unsent.extend(payload);
    }

    /// How much can be sent now: nothing while the socket does not take what it is given.
    pub(super) fn capacity(&mut self, now: Time) -> Capacity {
        match self.unsent.is_empty() {
            true => self.exchange.capacity(0, now, &Wire),
            false => Capacity::NONE,
        }
    }

    /// Does what is due; the result says whether the other end fell silent or is back.
    pub(super) fn handle_timeout(&mut self, now: Time) -> Result<Option<Silence>, Broken> {
        let quiet = now.since(self.last_received);
        let is_late = !self.is_open && now.since(self.since) >= HELLO_TIMEOUT;
        if quiet >= TIMEOUT || is_late {
            return Err(Broken::Closed);
        }
        if !self.is_open {
            return Ok(None);
        }
        self.exchange.handle_timeout(now, &mut Wire)?;
        if now.since(self.last_sent) >= KEEP_ALIVE {
            self.last_sent = now;
            self.exchange.ping();
        }
        let was_silent = std::mem::replace(&mut self.is_silent, quiet >= QUIET);
        Ok(match (was_silent, self.is_silent) {
            (false, true) => Some(Silence::Begins),
            (true, false) => Some(Silence::Ends),
            _ => None,
        })
    }

    /// When [`handle_timeout`](Self::handle_timeout) or [`transmit`](Self::transmit) has to be
    /// called.
    pub(super) fn deadline(&self) -> Time {
        if self.is_readable {
            return Time::default();
        }
        let keep_alive = self.last_sent.after(KEEP_ALIVE);
        let exchange = self.exchange.deadline();
        exchange.map_or(keep_alive, |due| due.min(keep_alive))
    }

    pub(super) fn poll_event(&mut self) -> Option<Received> {
        self.exchange.poll_event()
    }

    pub(super) fn statistics(&self) -> Statistics {
        let buffered = self.exchange.buffered();
        let mut statistics = self.counts;
        statistics.round_trip = self.exchange.round_trip();
        statistics.rate_allowed = self.exchange.rate();
        statistics.datagram = Wire.max_packet();
        statistics.waiting = buffered.waiting;
        statistics.incomplete = buffered.incomplete;
        statistics.blobs = buffered.blobs;
        statistics
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    Begins,
    Ends,
}

/// A stream carries frames of any size; packets are as long as in datagrams, so that a message does
/// not wait for a long one before it.
struct Wire;

impl Path for Wire {
    fn max_packet(&self) -> usize {
        MAX_DATAGRAM
    }

    fn on_acknowledged(&mut self, _: usize, _: bool, _: Time) {}

    fn on_lost(&mut self, _: usize, _: bool, _: Time) {}
}

fn is_temporary(error: &io::Error) -> bool {
    // A stream that is still connecting is not connected.
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::NotConnected
    )
}

const HEADER: usize = 3;
const PACKET: u8 = 0;
const HELLO: u8 = 1;
const ANSWER: u8 = 2;
const CLOSE: u8 = 3;
const MAX_FRAME: usize = MAX_DATAGRAM;
const CHUNK: usize = 16 << 10;
/// Reads in a row, so that one stream does not hold up the others.
const MAX_READS: usize = 8;
/// Bytes that the socket does not accept wait in the exchange, where newer state replaces older.
const MAX_UNSENT: usize = 16 << 10;
const KEEP_ALIVE: Duration = Duration::from_secs(1);
const QUIET: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(60);
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
