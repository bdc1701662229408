//! Sending datagrams: several to one receiver in one system call, if the system supports that.
//!
//! A datagram that cannot be sent is treated as lost, which the transport expects of every network.
//! It is counted, and no connection ends because of it.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use prescient_channels::BASE_DATAGRAM;
use prescient_transport::Transmit;

use crate::error::SendFailure;
use crate::port::is_refusal;
use crate::statistics::SocketStatistics;

/// Datagrams to one receiver that wait to be sent together, and the next one, which does not fit.
pub(crate) struct Outgoing {
    to: SocketAddr,
    bytes: Vec<u8>,
    /// The length of each datagram but the last.
    segment: usize,
    next: Option<Transmit>,
}

/// Datagrams for one system call.
pub(crate) struct Batch<'a> {
    pub(crate) to: SocketAddr,
    pub(crate) bytes: &'a [u8],
    pub(crate) segment: usize,
}

/// The address that was last sent to, and the last error of sending there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    pub(crate) address: SocketAddr,
    pub(crate) failure: Option<SendFailure>,
}

impl Destination {
    /// Before anything was sent.
    pub(crate) const NONE: Self = Self::new(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));

    const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            failure: None,
        }
    }
}

impl Outgoing {
    pub(crate) fn new() -> Self {
        Self {
            to: Destination::NONE.address,
            bytes: Vec::new(),
            segment: 0,
            next: None,
        }
    }

    /// Sends what `poll` returns, up to `max_segments` datagrams in one call of `send`. False if
    /// the socket's send buffer is full; what was not sent is kept, and `poll` is not called
    /// further.
    pub(crate) fn flush(
        &mut self,
        max_segments: usize,
        mut poll: impl FnMut() -> Option<Transmit>,
        mut send: impl FnMut(&Batch<'_>) -> io::Result<()>,
        statistics: &mut SocketStatistics,
        destination: &mut Destination,
    ) -> bool {
        loop {
            if self.bytes.is_empty() {
                self.gather(max_segments, &mut poll);
            }
            if self.bytes.is_empty() {
                return true;
            }
            if destination.address != self.to {
                *destination = Destination::new(self.to);
            }
            if !self.send(&mut send, statistics, destination) {
                return false;
            }
        }
    }

    /// Gathers datagrams as long as they have the same receiver and length; only the last may be
    /// shorter.
    fn gather(&mut self, max_segments: usize, poll: &mut impl FnMut() -> Option<Transmit>) {
        while let Some(transmit) = self.next.take().or_else(&mut *poll) {
            if self.bytes.is_empty() {
                self.to = transmit.to;
                self.segment = transmit.bytes.len();
                self.bytes.extend_from_slice(&transmit.bytes);
                continue;
            }
            let length = transmit.bytes.len();
            let is_whole = self.bytes.len().is_multiple_of(self.segment);
            let is_room = self.bytes.len() < max_segments.saturating_mul(self.segment)
                && self.bytes.len() + length <= MAX_BATCH;
            // A datagram above the base size may be an MTU probe, which may be too long to be sent.
            // It is sent alone: some systems disable batches for good after one that was too long.
            let fits = length == self.segment
                || (1..self.segment).contains(&length) && self.segment <= BASE_DATAGRAM;
            if !is_whole || !is_room || !fits || transmit.to != self.to {
                self.next = Some(transmit);
                return;
            }
            self.bytes.extend_from_slice(&transmit.bytes);
        }
    }

    fn send(
        &mut self,
        send: &mut impl FnMut(&Batch<'_>) -> io::Result<()>,
        statistics: &mut SocketStatistics,
        destination: &mut Destination,
    ) -> bool {
        let whole = Batch {
            to: self.to,
            bytes: &self.bytes,
            segment: self.segment,
        };
        match attempt(&whole, send, statistics, destination) {
            Ok(()) => {
                statistics.sent(self.bytes.len(), self.segment);
                self.bytes.clear();
                return true;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            // Tries them one by one, so that not all of them are lost.
            Err(_) if self.bytes.len() > self.segment => {}
            Err(error) => {
                self.lose(&error, statistics, destination);
                self.bytes.clear();
                return true;
            }
        }
        while !self.bytes.is_empty() {
            let length = self.segment.min(self.bytes.len());
            let single = Batch {
                to: self.to,
                bytes: &self.bytes[..length],
                segment: length,
            };
            match attempt(&single, send, statistics, destination) {
                Ok(()) => statistics.sent(length, length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => self.lose(&error, statistics, destination),
            }
            self.bytes.drain(..length);
        }
        true
    }

    fn lose(
        &self,
        error: &io::Error,
        statistics: &mut SocketStatistics,
        destination: &mut Destination,
    ) {
        statistics.not_sent(error);
        destination.failure = SendFailure::of(error).or(destination.failure);
    }
}

/// Sends, and repeats that once if the system only reported an earlier datagram.
fn attempt(
    batch: &Batch<'_>,
    send: &mut impl FnMut(&Batch<'_>) -> io::Result<()>,
    statistics: &mut SocketStatistics,
    destination: &mut Destination,
) -> io::Result<()> {
    match send(batch) {
        Err(error) if is_refusal(&error) => {
            statistics.undeliverable += 1;
            destination.failure = Some(SendFailure::NobodyListens);
            send(batch)
        }
        sent => sent,
    }
}

/// To the system, a batch is one IP datagram, including headers.
const MAX_BATCH: usize = 65_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn transmit(port: u16, length: usize) -> Transmit {
        Transmit {
            to: SocketAddr::from(([127, 0, 0, 1], port)),
            bytes: vec![port as u8; length],
        }
    }

    /// Sends some datagrams; `send` decides what the system does with each call.
    fn run(
        outgoing: &mut Outgoing,
        transmits: Vec<Transmit>,
        mut send: impl FnMut(&Batch<'_>) -> io::Result<()>,
    ) -> (Vec<(u16, usize, usize)>, SocketStatistics, bool) {
        let mut transmits = transmits.into_iter();
        let mut statistics = SocketStatistics::default();
        let mut calls = Vec::new();
        let taken = outgoing.flush(
            4,
            || transmits.next(),
            |batch| {
                send(batch)?;
                calls.push((batch.to.port(), batch.bytes.len(), batch.segment));
                Ok(())
            },
            &mut statistics,
            &mut Destination::NONE.clone(),
        );
        (calls, statistics, taken)
    }

    /// Fails if a shorter datagram does not end its batch, if batches exceed what the system
    /// supports, or if receivers are confused.
    #[test]
    fn equal_datagrams_to_one_receiver_go_together() {
        let sizes = [(1, 10), (1, 10), (1, 7), (1, 10), (2, 10), (2, 11)];
        let more = std::iter::repeat_n((3, 5), 6);
        let transmits = sizes.into_iter().chain(more);
        let transmits = transmits.map(|(port, length)| transmit(port, length));
        let (calls, statistics, taken) = run(&mut Outgoing::new(), transmits.collect(), |_| Ok(()));
        assert!(taken);
        let wanted = [
            (1, 27, 10),
            (1, 10, 10),
            (2, 10, 10),
            (2, 11, 11),
            (3, 20, 5),
            (3, 10, 5),
        ];
        assert_eq!(calls, wanted);
        assert_eq!(statistics.datagrams_sent, 12);
        assert_eq!(statistics.send_calls, 6);
        assert_eq!(statistics.bytes_sent, 88);
    }

    /// Fails if a datagram that may be too long is sent together with shorter ones.
    #[test]
    fn a_probe_goes_alone() {
        let transmits = [1400, 1200, 1300, 1300, 1200].map(|length| transmit(1, length));
        let (calls, ..) = run(&mut Outgoing::new(), transmits.into(), |_| Ok(()));
        let lengths: Vec<_> = calls.iter().map(|(_, length, _)| *length).collect();
        assert_eq!(lengths, [1400, 1200, 2600, 1200]);
    }

    /// Fails if an earlier datagram that was refused costs a later one, or is not counted.
    #[test]
    fn a_refusal_of_before_costs_nothing() {
        let mut calls = 0;
        let (sent, statistics, _) = run(&mut Outgoing::new(), vec![transmit(1, 9)], |_| {
            calls += 1;
            match calls {
                1 => Err(ErrorKind::ConnectionRefused.into()),
                _ => Ok(()),
            }
        });
        assert_eq!(sent, [(1, 9, 9)]);
        assert_eq!(statistics.undeliverable, 1);
        assert_eq!(statistics.not_sent.total(), 0);
    }

    /// Fails if a datagram is lost or sent twice when the socket is full.
    #[test]
    fn what_a_full_socket_refuses_goes_out_later() {
        let mut outgoing = Outgoing::new();
        let transmits = (1..=3).map(|port| transmit(port, 9)).collect();
        let mut room = 1;
        let (calls, _, taken) = run(&mut outgoing, transmits, |_| {
            if room == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            room -= 1;
            Ok(())
        });
        assert_eq!((calls.len(), taken), (1, false));
        let (calls, _, taken) = run(&mut outgoing, vec![transmit(4, 9)], |_| Ok(()));
        assert_eq!(calls, [(2, 9, 9), (3, 9, 9), (4, 9, 9)]);
        assert!(taken);
    }

    /// Fails if a batch that failed is not retried one by one, if a failed datagram is retried for
    /// ever, or if it is not counted.
    #[test]
    fn errors_cost_the_datagram_alone_and_are_counted() {
        let long = if cfg!(windows) { 10040 } else { 90 };
        let kinds = [
            ErrorKind::NetworkUnreachable,
            ErrorKind::PermissionDenied,
            ErrorKind::OutOfMemory,
        ];
        for kind in kinds {
            let transmits = (0..4).map(|_| transmit(5, 8)).collect();
            let mut calls = 0;
            let (sent, statistics, taken) = run(&mut Outgoing::new(), transmits, |_| {
                calls += 1;
                match calls {
                    // The batch fails, and then the second datagram.
                    1 | 3 => Err(kind.into()),
                    _ => Ok(()),
                }
            });
            assert!(taken);
            assert_eq!(sent, [(5, 8, 8); 3]);
            assert_eq!(statistics.not_sent.total(), 1);
            assert_eq!(statistics.datagrams_sent, 3);
        }
        if cfg!(any(windows, target_os = "linux")) {
            let (_, statistics, _) = run(&mut Outgoing::new(), vec![transmit(5, 8)], |_| {
                Err(io::Error::from_raw_os_error(long))
            });
            assert_eq!(statistics.not_sent.too_long, 1);
        }
    }
}
