//! An application's connection to a forwarder: ours, or a real NFD.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use prescient_channels::Time;
use prescient_net::{Clock, SystemEntropy};
use prescient_transport::Entropy;
use thiserror::Error;

use super::memory::MemoryEnd;
use super::{BUFFER, DATAGRAM_MTU, OpenError};
use crate::control::{Command, CommandError, ControlResponse};
use crate::data::Data;
use crate::error::EncodeError;
use crate::interest::{Interest, InterestBuilder};
use crate::link::{self, LinkPacket, NackReason, Reassembly};
use crate::name::Name;
use crate::signature::{SignatureStamp, Signer};
use crate::stream::Deframer;
use crate::tlv::MAX_PACKET;

/// An application's end of a face. It sends and receives whole packets, and blocks the caller's thread. Over UDP to
/// another machine, packets that are longer than a datagram should be travel in fragments.
///
/// ```no_run
/// use std::time::Duration;
/// use prescient_named::{AppFace, Data, InterestBuilder, Name, Signer};
///
/// let mut face = AppFace::connect_tcp("127.0.0.1:6363".parse()?)?;
/// face.register("/game/0/anna".parse()?, &Signer::digest())?;
/// let name: Name = "/game/0/ben/status".parse()?;
/// let packet = face.request(InterestBuilder::new(name.view()).must_be_fresh())?;
/// println!("{:?}", Data::decode(&packet)?.content());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AppFace {
    carrier: Carrier,
    deframer: Deframer,
    /// The longest packet that is sent in one piece.
    mtu: usize,
    /// The sequence number of the next fragment.
    sequence: u64,
    reassembly: Reassembly,
    clock: Clock,
    /// Milliseconds since 1970 at the start of the clock, and at the last signed command.
    started: u64,
    signed: u64,
    entropy: SystemEntropy,
    buffer: Vec<u8>,
    is_neighbour: bool,
}

enum Carrier {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    Udp(UdpSocket),
    Memory(MemoryEnd),
}

impl Carrier {
    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(packet),
            #[cfg(unix)]
            Self::Unix(stream) => stream.write_all(packet),
            Self::Udp(socket) => socket.send(packet).map(|_| ()),
            Self::Memory(end) => end.send(packet),
        }
    }
}

/// Why a request was not answered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The connection failed: connect again.
    #[error("the connection failed: {0}")]
    Face(#[from] io::Error),
    /// The Interest was not written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The command was not written.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// No answer arrived within the Interest's lifetime: request again.
    #[error("no answer arrived in time")]
    TimedOut,
    /// A Nack answered the Interest.
    #[error("the Interest was refused: {0:?}")]
    Nack(NackReason),
    /// The forwarder refused the command.
    #[error("the forwarder refused with {code}: {text:?}")]
    Refused {
        /// The status code.
        code: u64,
        /// The status as text.
        text: String,
    },
    /// The answer to a command is not a response.
    #[error("the answer is not a response to a command")]
    Malformed,
}

impl AppFace {
    /// Connects to a forwarder by TCP.
    pub fn connect_tcp(address: SocketAddr) -> Result<Self, OpenError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let is_neighbour = !address.ip().is_loopback();
        Self::new(Carrier::Tcp(stream), is_neighbour, usize::MAX)
    }

    /// Connects to a forwarder by its Unix socket; NFD's is `/run/nfd/nfd.sock`.
    #[cfg(unix)]
    pub fn connect_unix(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::new(Carrier::Unix(UnixStream::connect(path)?), false, usize::MAX)
    }

    /// Connects to a forwarder by UDP.
    pub fn connect_udp(address: SocketAddr) -> Result<Self, OpenError> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        let mtu = match address.ip().is_loopback() {
            true => MAX_PACKET,
            false => DATAGRAM_MTU,
        };
        // Forwarders treat UDP faces as those of other machines.
        Self::new(Carrier::Udp(socket), true, mtu)
    }

    pub(super) fn memory(end: MemoryEnd) -> Result<Self, OpenError> {
        Self::new(Carrier::Memory(end), false, usize::MAX)
    }

    fn new(carrier: Carrier, is_neighbour: bool, mtu: usize) -> Result<Self, OpenError> {
        let entropy = SystemEntropy::new();
        let mut face = Self {
            carrier,
            deframer: Deframer::default(),
            mtu,
            sequence: 0,
            reassembly: Reassembly::default(),
            clock: Clock::start(),
            started: Clock::unix().0 * 1000,
            signed: 0,
            entropy: entropy.map_err(|error| OpenError::Randomness(error.to_string()))?,
            buffer: vec![0; BUFFER],
            is_neighbour,
        };
        // An earlier application may have sent from the same port.
        face.sequence = u64::from_be_bytes(face.random());
        Ok(face)
    }

    /// Sends a packet, with or without a link header.
    pub fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        if packet.len() <= self.mtu {
            return self.carrier.send(packet);
        }
        let whole = LinkPacket::decode(packet).ok();
        let whole = whole.filter(|whole| whole.header.fragment.is_none());
        let whole = whole.ok_or(ErrorKind::InvalidInput)?;
        let mut fragments = Vec::new();
        let add = |fragment| fragments.push(fragment);
        link::split(
            whole.header,
            whole.packet,
            self.mtu,
            &mut self.sequence,
            add,
        );
        let mut fragments = fragments.iter();
        fragments.try_for_each(|fragment| self.carrier.send(fragment))
    }

    /// The next packet, with or without a link header; `None` if none arrives within this time.
    pub fn receive(&mut self, max_wait: Duration) -> io::Result<Option<Vec<u8>>> {
        let deadline = self.clock.now().after(max_wait);
        while let Some(packet) = self.receive_piece(deadline)? {
            if let Some(whole) = self.join(packet) {
                return Ok(Some(whole));
            }
            if self.clock.now() >= deadline {
                break;
            }
        }
        Ok(None)
    }

    /// The whole packet that a received one is, or is the last fragment of.
    fn join(&mut self, packet: Vec<u8>) -> Option<Vec<u8>> {
        let came = LinkPacket::decode(&packet).ok();
        let Some((came, fragment)) = came.and_then(|came| Some((came, came.header.fragment?)))
        else {
            return Some(packet);
        };
        let now = self.clock.now();
        let (header, whole) = self
            .reassembly
            .insert(now, came.header, fragment, came.packet)?;
        let mut joined = Vec::new();
        header.encode(&whole, &mut joined);
        // Data of the full length is not decoded with a header; what that says is not needed to use it.
        if joined.len() > MAX_PACKET && header.nack.is_none() {
            return Some(whole);
        }
        Some(joined)
    }

    /// The next packet or fragment.
    fn receive_piece(&mut self, deadline: Time) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Carrier::Memory(end) = &self.carrier {
                let received = end.receive(deadline.since(self.clock.now()));
                return received.map_err(|_| ErrorKind::ConnectionAborted.into());
            }
            match self.deframer.next_packet() {
                Ok(Some(packet)) => return Ok(Some(packet.to_vec())),
                Ok(None) => {}
                Err(_) => return Err(ErrorKind::InvalidData.into()),
            }
            let Some(length) = self.read(deadline)? else {
                return Ok(None);
            };
            if let Carrier::Udp(_) = self.carrier {
                return Ok(Some(self.buffer[..length].to_vec()));
            }
            if length == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.deframer.push(&self.buffer[..length]);
        }
    }

    /// Sends an Interest with a new nonce, and waits for the Data that answers it. Drops other packets that
    /// arrive meanwhile. Does not check the Data's signature.
    pub fn request(&mut self, interest: InterestBuilder<'_>) -> Result<Vec<u8>, RequestError> {
        let mut packet = Vec::new();
        let nonce = self.random();
        interest.nonce(nonce).encode(&mut packet)?;
        self.answer_to(&packet, nonce)
    }

    /// Registers a prefix: the forwarder sends Interests with it to this face from now on.
    pub fn register(&mut self, prefix: Name, signer: &Signer) -> Result<(), RequestError> {
        self.command(Command::register(prefix), signer)
    }

    /// Removes the registration of a prefix.
    pub fn unregister(&mut self, prefix: Name, signer: &Signer) -> Result<(), RequestError> {
        self.command(Command::unregister(prefix), signer)
    }

    fn command(&mut self, command: Command, signer: &Signer) -> Result<(), RequestError> {
        let command = if self.is_neighbour {
            command.from_neighbour()
        } else {
            command
        };
        let (stamp_nonce, nonce) = (self.random::<8>(), self.random());
        // Forwarders accept commands under a key only in the order of their times.
        let time = self.started + self.clock.now().as_micros() / 1000;
        self.signed = time.max(self.signed + 1);
        let stamp = SignatureStamp {
            nonce: Some(&stamp_nonce),
            time: Some(self.signed),
            sequence: None,
        };
        let mut packet = Vec::new();
        command.sign(signer, stamp, nonce, &mut packet)?;
        let answer = self.answer_to(&packet, nonce)?;
        let content = Data::decode(&answer).map(|data| data.content());
        let response = content.and_then(ControlResponse::decode);
        match response.map_err(|_| RequestError::Malformed)? {
            response if response.is_ok() => Ok(()),
            response => Err(RequestError::Refused {
                code: response.code,
                text: response.text,
            }),
        }
    }

    /// Sends an Interest, and waits for the Data or Nack that answers it.
    fn answer_to(&mut self, packet: &[u8], nonce: [u8; 4]) -> Result<Vec<u8>, RequestError> {
        let malformed = |_| RequestError::Malformed;
        let interest = Interest::decode(packet).map_err(malformed)?;
        self.send(packet)?;
        let deadline = self.clock.now().after(interest.lifetime());
        while let Some(received) = self.receive(deadline.since(self.clock.now()))? {
            let Ok(came) = LinkPacket::decode(&received) else {
                continue;
            };
            if let Ok(data) = Data::decode(came.packet)
                && interest.is_answered_by(data.name(), || data.implicit_digest())
            {
                return Ok(came.packet.to_vec());
            }
            if let Some(reason) = came.header.nack
                && let Ok(refused) = Interest::decode(came.packet)
                && refused.name() == interest.name()
                && refused.nonce() == Some(nonce)
            {
                return Err(RequestError::Nack(reason));
            }
        }
        Err(RequestError::TimedOut)
    }

    fn read(&mut self, deadline: Time) -> io::Result<Option<usize>> {
        loop {
            // The system refuses a timeout of zero.
            let left = deadline.since(self.clock.now());
            let left = Some(left.max(Duration::from_millis(1)));
            let read = match &mut self.carrier {
                Carrier::Tcp(stream) => {
                    stream.set_read_timeout(left)?;
                    stream.read(&mut self.buffer)
                }
                #[cfg(unix)]
                Carrier::Unix(stream) => {
                    stream.set_read_timeout(left)?;
                    stream.read(&mut self.buffer)
                }
                Carrier::Udp(socket) => {
                    socket.set_read_timeout(left)?;
                    socket.recv(&mut self.buffer)
                }
                Carrier::Memory(_) => return Ok(None),
            };
            match read {
                Ok(length) => return Ok(Some(length)),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(None),
                    ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
    }

    fn random<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.entropy.fill(&mut bytes);
        bytes
    }
}
