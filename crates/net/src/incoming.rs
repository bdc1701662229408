//! The receive buffers: a socket returns several buffers per call, each with several datagrams of
//! one sender.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta};

use crate::socket::unmapped;

/// Datagrams that were received together and are returned one by one.
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
    /// How many buffers were filled, which one is next, and how much of that was returned.
    filled: usize,
    next: usize,
    offset: usize,
}

/// What the system says of a datagram besides its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// When it arrived on the wall clock, where that is known.
    pub(crate) arrived: Option<Duration>,
    /// Whether a router marked it instead of dropping it (ECN, congestion experienced).
    pub(crate) is_marked: bool,
}

impl Incoming {
    pub(crate) fn new() -> Self {
        Self {
            // The system allocates no pages that were never written to.
            bytes: vec![0; BATCH_SIZE * BUFFER],
            metas: [RecvMeta::default(); BATCH_SIZE],
            filled: 0,
            next: 0,
            offset: 0,
        }
    }

    /// Fills the buffers, all of which must have been consumed. `receive` makes one system call.
    pub(crate) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        (self.filled, self.next, self.offset) = (0, 0, 0);
        let mut rest = self.bytes.chunks_exact_mut(BUFFER);
        let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(rest.next().unwrap_or_default()));
        self.filled = receive(&mut buffers, &mut self.metas)?.min(BATCH_SIZE);
        Ok(())
    }

    /// The next datagram, its sender, and what the system says of it.
    pub(crate) fn next(&mut self) -> Option<(SocketAddr, &[u8], Envelope)> {
        while self.next < self.filled {
            let meta = &self.metas[self.next];
            let from = unmapped(meta.addr);
            let start = self.offset;
            let end = meta.len.min(BUFFER).min(start.saturating_add(meta.stride));
            // Port 0 cannot be answered, and trying to makes some systems disable batches.
            if start < end && from.port() != 0 {
                self.offset = end;
                let first = self.next * BUFFER;
                let envelope = Envelope {
                    arrived: meta.timestamp,
                    is_marked: meta.ecn == Some(EcnCodepoint::Ce),
                };
                return Some((from, &self.bytes[first + start..first + end], envelope));
            }
            self.next += 1;
            self.offset = 0;
        }
        None
    }
}

/// The longest batch. Systems put as many datagrams of one sender into a buffer as fit.
const BUFFER: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the last datagram of a buffer is assumed to be as long as the others, or if all have
    /// the time or the mark of the first buffer.
    #[test]
    fn buffers_come_apart_at_their_strides() {
        let mut incoming = Incoming::new();
        let filled = incoming.fill(|buffers, metas| {
            for (number, (length, stride)) in [(25, 10), (0, 0), (3, 3)].into_iter().enumerate() {
                buffers[number][..length].fill(number as u8);
                metas[number].addr = SocketAddr::from(([127, 0, 0, 1], 7));
                metas[number].len = length;
                metas[number].stride = stride;
                metas[number].timestamp = Some(Duration::from_secs(number as u64));
                metas[number].ecn =
                    [Some(EcnCodepoint::Ect0), None, Some(EcnCodepoint::Ce)][number];
            }
            metas[3].len = 9;
            metas[3].stride = 9;
            metas[3].addr.set_port(0);
            Ok(4)
        });
        filled.expect("nothing failed");
        let mut lengths = Vec::new();
        while let Some((from, bytes, envelope)) = incoming.next() {
            assert_eq!(from.port(), 7);
            let arrived = Some(Duration::from_secs(bytes[0].into()));
            let is_marked = bytes[0] == 2;
            assert_eq!(envelope, Envelope { arrived, is_marked });
            lengths.push((bytes[0], bytes.len()));
        }
        assert_eq!(lengths, [(0, 10), (0, 10), (0, 5), (2, 3)]);
    }
}
