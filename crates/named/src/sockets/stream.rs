//! TCP and Unix sockets: listeners, and streams with their send buffers.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use mio::net::{UnixListener, UnixStream};
use mio::{Interest as Readiness, Registry, Token};
use prescient_channels::Time;

use crate::forwarder::{FaceConfig, FaceId};
use crate::stream::Deframer;

/// The most bytes in a stream's send buffer; further packets are dropped.
const MAX_UNSENT: usize = 1 << 20;

/// The time without progress after which a stream with unsent bytes is stalled.
const STALL: Duration = Duration::from_secs(20);

pub(super) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener, Box<Path>),
}

impl Listener {
    pub(super) fn tcp(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok((Self::Tcp(listener), address))
    }

    #[cfg(unix)]
    pub(super) fn unix(path: &Path) -> io::Result<Self> {
        Ok(Self::Unix(UnixListener::bind(path)?, path.into()))
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => listener.register(registry, token, Readiness::READABLE),
            #[cfg(unix)]
            Self::Unix(listener, _) => listener.register(registry, token, Readiness::READABLE),
        }
    }

    /// The next connection, and the configuration of its face.
    pub(super) fn accept(&self) -> io::Result<(Stream, FaceConfig)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept()?;
                // Avoids delays; a socket without this option works, too.
                let _ = stream.set_nodelay(true);
                let config = if from.ip().to_canonical().is_loopback() {
                    FaceConfig::local()
                } else {
                    FaceConfig::remote()
                };
                Ok((Stream::Tcp(stream), config))
            }
            #[cfg(unix)]
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                Ok((Stream::Unix(stream), FaceConfig::local()))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Self::Unix(_, path) = self {
            // It fails if the path was removed already.
            let _ = std::fs::remove_file(path);
        }
    }
}

pub(super) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Stream {
    pub(super) fn connect_tcp(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        let _ = stream.set_nodelay(true);
        Ok(Self::Tcp(stream))
    }

    #[cfg(unix)]
    pub(super) fn connect_unix(path: &Path) -> io::Result<Self> {
        Ok(Self::Unix(UnixStream::connect(path)?))
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let both = Readiness::READABLE | Readiness::WRITABLE;
        match self {
            Self::Tcp(stream) => stream.register(registry, token, both),
            #[cfg(unix)]
            Self::Unix(stream) => stream.register(registry, token, both),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            #[cfg(unix)]
            Self::Unix(stream) => stream.write(bytes),
        }
    }
}

/// A stream that is a face.
pub(super) struct StreamFace {
    stream: Stream,
    face: FaceId,
    pub(super) deframer: Deframer,
    /// Bytes that the system has not accepted yet.
    unsent: Vec<u8>,
    /// Since when the system has accepted no bytes.
    stuck: Option<Time>,
}

impl StreamFace {
    pub(super) fn new(stream: Stream, face: FaceId) -> Self {
        Self {
            stream,
            face,
            deframer: Deframer::default(),
            unsent: Vec::new(),
            stuck: None,
        }
    }

    pub(super) fn face(&self) -> FaceId {
        self.face
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }

    /// False if the packet was dropped, which leaves none of its bytes in the stream.
    pub(super) fn send(&mut self, packet: &[u8], now: Time) -> bool {
        if self.unsent.len() + packet.len() > MAX_UNSENT {
            return false;
        }
        self.unsent.extend_from_slice(packet);
        self.flush(now);
        true
    }

    /// Writes as much as the system accepts. Errors are reported by the next read.
    pub(super) fn flush(&mut self, now: Time) {
        let mut written = 0;
        while written < self.unsent.len() {
            match self.stream.write(&self.unsent[written..]) {
                Ok(0) => break,
                Ok(length) => written += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.unsent.drain(..written);
        self.stuck = match (self.unsent.is_empty(), written, self.stuck) {
            (true, ..) => None,
            (false, 0, Some(since)) => Some(since),
            _ => Some(now),
        };
    }

    pub(super) fn is_stalled(&self, now: Time) -> bool {
        self.stuck.is_some_and(|since| now.since(since) >= STALL)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::forwarder::{Forwarder, ForwarderConfig};

    /// Fails if a stream is never stalled although the other end does not read, or still is when it reads
    /// again.
    #[test]
    fn a_stream_that_is_not_read_stalls() {
        let mut forwarder = Forwarder::new(ForwarderConfig::default(), [0; 16]);
        let face = forwarder.add_face(&FaceConfig::local()).expect("room");
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let mut stream = StreamFace::new(Stream::Unix(ours), face);
        let start = Time::from_micros(1);
        let mut dropped = 0;
        for _ in 0..1000 {
            dropped += u32::from(!stream.send(&[6; 8000], start));
            assert!(stream.unsent.len() <= MAX_UNSENT);
        }
        assert!(dropped > 0);
        let almost = start.after(STALL - Duration::from_micros(1));
        stream.flush(almost);
        assert!(!stream.is_stalled(almost));
        let later = start.after(STALL);
        assert!(stream.is_stalled(later));
        let mut buffer = vec![0; 1 << 16];
        while theirs.read(&mut buffer).is_ok() {
            stream.flush(later);
        }
        assert!(stream.unsent.is_empty());
        assert!(!stream.is_stalled(later.after(STALL)));
    }
}
