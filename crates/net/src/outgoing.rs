//! Sending datagrams, as many in one system call as the system supports: to several receivers, or as
//! segments of one batch to the same receiver.
//!
//! A datagram that cannot be sent is treated as lost, which the transport expects of every network.
//! It is counted, and no connection ends because of it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use prescient_channels::BASE_DATAGRAM;
use prescient_transport::Transmit;

use crate::error::SendFailure;
use crate::port::is_refusal;
use crate::statistics::SocketStatistics;

/// Datagrams that wait for a system call.
pub(crate) struct Outgoing {
    waiting: VecDeque<Transmit>,
    /// How many of them are sent without segmentation, because a batch of them failed.
    unsegmented: usize,
    /// Memory for segments.
    segments: Vec<u8>,
}

/// Datagrams for one system call.
pub(crate) enum Batch<'a> {
    /// Datagrams of the same length to one receiver; the last may be shorter.
    Segments {
        to: SocketAddr,
        bytes: &'a [u8],
        segment: usize,
        is_ecn_capable: bool,
    },
    /// Any datagrams; the system may send only the first ones.
    Several(&'a [Transmit]),
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
            waiting: VecDeque::new(),
            unsegmented: 0,
            segments: Vec::new(),
        }
    }

    /// Sends what `poll` returns, several datagrams in one call of `send`, which returns how many it
    /// sent. False if the socket's send buffer is full; what was not sent is kept, and `poll` is not
    /// called further.
    pub(crate) fn flush(
        &mut self,
        max_segments: usize,
        mut poll: impl FnMut() -> Option<Transmit>,
        mut send: impl FnMut(&Batch<'_>) -> io::Result<usize>,
        statistics: &mut SocketStatistics,
        destination: &mut Destination,
    ) -> bool {
        loop {
            while self.waiting.len() < MAX_WAITING
                && let Some(transmit) = poll()
            {
                self.waiting.push_back(transmit);
            }
            let datagrams = self.waiting.make_contiguous();
            let Some(first) = datagrams.first() else {
                return true;
            };
            if destination.address != first.to {
                *destination = Destination::new(first.to);
            }
            let together = match self.unsegmented {
                0 => segments(datagrams, max_segments),
                _ => 1,
            };
            let batch = if together > 1 {
                self.segments.clear();
                for datagram in &datagrams[..together] {
                    self.segments.extend_from_slice(&datagram.bytes);
                }
                Batch::Segments {
                    to: first.to,
                    bytes: &self.segments,
                    segment: first.bytes.len(),
                    is_ecn_capable: first.is_ecn_capable,
                }
            } else {
                let several = match self.unsegmented {
                    0 => before_segments(datagrams, max_segments),
                    left => left.min(datagrams.len()),
                };
                Batch::Several(&datagrams[..several])
            };
            let sent = attempt(&batch, &mut send, statistics, destination);
            let gone = match sent {
                Ok(sent) => {
                    // A call that reports success without progress would be repeated for ever.
                    let sent = sent.clamp(1, datagrams.len());
                    let bytes = datagrams[..sent].iter().map(|it| it.bytes.len()).sum();
                    statistics.sent(sent, bytes);
                    destination.address = datagrams[sent - 1].to;
                    sent
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                // Tries them one by one, so that not all of them are lost.
                Err(_) if together > 1 => {
                    self.unsegmented = together;
                    continue;
                }
                // The system reports the error of the first datagram that it could not send.
                Err(error) => {
                    statistics.not_sent(&error);
                    destination.failure = SendFailure::of(&error).or(destination.failure);
                    1
                }
            };
            self.waiting.drain(..gone);
            self.unsegmented = self.unsegmented.saturating_sub(gone);
        }
    }
}

/// How many of the first datagrams have the same receiver and length; only the last may be shorter.
fn segments(datagrams: &[Transmit], max_segments: usize) -> usize {
    let Some((first, rest)) = datagrams.split_first() else {
        return 0;
    };
    let segment = first.bytes.len();
    let (mut count, mut total) = (1, segment);
    for datagram in rest {
        let length = datagram.bytes.len();
        let is_room = count < max_segments && total + length <= MAX_BATCH;
        // A datagram above the base size may be an MTU probe, which may be too long to be sent. It
        // is sent alone: some systems disable batches for good after one that was too long.
        let is_last = (1..segment).contains(&length) && segment <= BASE_DATAGRAM;
        let is_alike = datagram.to == first.to && datagram.is_ecn_capable == first.is_ecn_capable;
        if !is_alike || !is_room || !(length == segment || is_last) {
            break;
        }
        (count, total) = (count + 1, total + length);
        if is_last {
            break;
        }
    }
    count
}

/// How many datagrams there are before the next that can be sent as segments of a batch.
fn before_segments(datagrams: &[Transmit], max_segments: usize) -> usize {
    let starts = |&at: &usize| segments(&datagrams[at..], max_segments) > 1;
    (1..datagrams.len()).find(starts).unwrap_or(datagrams.len())
}

/// Sends, and repeats that once if the system only reported an earlier datagram.
fn attempt(
    batch: &Batch<'_>,
    send: &mut impl FnMut(&Batch<'_>) -> io::Result<usize>,
    statistics: &mut SocketStatistics,
    destination: &mut Destination,
) -> io::Result<usize> {
    match send(batch) {
        Err(error) if is_refusal(&error) => {
            statistics.undeliverable += 1;
            destination.failure = Some(SendFailure::NobodyListens);
            send(batch)
        }
        sent => sent,
    }
}

/// Datagrams that are polled before they are sent.
const MAX_WAITING: usize = 64;
/// To the system, a batch of segments is one IP datagram, including headers.
const MAX_BATCH: usize = 65_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn transmit(port: u16, length: usize) -> Transmit {
        Transmit {
            to: SocketAddr::from(([127, 0, 0, 1], port)),
            bytes: vec![port as u8; length].into(),
            is_ecn_capable: false,
        }
    }

    /// Sends some datagrams; `send` decides how many of them the system sends at most with each call.
    /// Returns the calls: the port of the first datagram, and the length of each.
    fn run(
        outgoing: &mut Outgoing,
        transmits: Vec<Transmit>,
        mut send: impl FnMut() -> io::Result<usize>,
    ) -> (Vec<(u16, Vec<usize>)>, SocketStatistics, bool) {
        let mut transmits = transmits.into_iter();
        let mut statistics = SocketStatistics::default();
        let mut calls = Vec::new();
        let taken = outgoing.flush(
            4,
            || transmits.next(),
            |batch| {
                let limit = send()?;
                let (to, mut lengths): (_, Vec<usize>) = match *batch {
                    Batch::Segments {
                        to, bytes, segment, ..
                    } => (to, bytes.chunks(segment).map(<[u8]>::len).collect()),
                    Batch::Several(datagrams) => {
                        let lengths = datagrams.iter().map(|it| it.bytes.len());
                        (datagrams[0].to, lengths.collect())
                    }
                };
                lengths.truncate(limit);
                let sent = lengths.len();
                calls.push((to.port(), lengths));
                Ok(sent)
            },
            &mut statistics,
            &mut Destination::NONE.clone(),
        );
        (calls, statistics, taken)
    }

    /// Fails if a shorter datagram does not end its batch, if batches exceed what the system
    /// supports, if receivers are confused, or if datagrams to different receivers take a call each.
    #[test]
    fn datagrams_go_together() {
        let sizes = [(1, 10), (1, 10), (1, 7), (1, 10), (2, 10), (2, 11)];
        let more = std::iter::repeat_n((3, 5), 6);
        let transmits = sizes.into_iter().chain(more);
        let transmits = transmits.map(|(port, length)| transmit(port, length));
        let all = || Ok(usize::MAX);
        let (calls, statistics, taken) = run(&mut Outgoing::new(), transmits.collect(), all);
        assert!(taken);
        let wanted = [
            (1, vec![10, 10, 7]),
            (1, vec![10, 10, 11]),
            (3, vec![5; 4]),
            (3, vec![5; 2]),
        ];
        assert_eq!(calls, wanted);
        assert_eq!(statistics.datagrams_sent, 12);
        assert_eq!(statistics.send_calls, 4);
        assert_eq!(statistics.bytes_sent, 88);
    }

    /// Fails if datagrams that ask for marks and others become one batch.
    #[test]
    fn what_asks_for_marks_is_sent_apart() {
        let transmits = (0..6).map(|number| Transmit {
            is_ecn_capable: number >= 2,
            ..transmit(1, 9)
        });
        let (calls, ..) = run(&mut Outgoing::new(), transmits.collect(), || Ok(usize::MAX));
        assert_eq!(calls, [(1, vec![9; 2]), (1, vec![9; 4])]);
    }

    /// Fails if a datagram that may be too long is a segment of a batch of shorter ones.
    #[test]
    fn a_probe_is_no_segment() {
        let transmits = [1400, 1200, 1300, 1300, 1200].map(|length| transmit(1, length));
        let (calls, ..) = run(&mut Outgoing::new(), transmits.into(), || Ok(usize::MAX));
        let lengths: Vec<_> = calls.into_iter().map(|(_, lengths)| lengths).collect();
        assert_eq!(lengths, [vec![1400, 1200], vec![1300, 1300], vec![1200]]);
    }

    /// Fails if an earlier datagram that was refused costs a later one, or is not counted.
    #[test]
    fn a_refusal_of_before_costs_nothing() {
        let mut calls = 0;
        let (sent, statistics, _) = run(&mut Outgoing::new(), vec![transmit(1, 9)], || {
            calls += 1;
            match calls {
                1 => Err(ErrorKind::ConnectionRefused.into()),
                _ => Ok(usize::MAX),
            }
        });
        assert_eq!(sent, [(1, vec![9])]);
        assert_eq!(statistics.undeliverable, 1);
        assert_eq!(statistics.not_sent.total(), 0);
    }

    /// Fails if a datagram is lost or sent twice when the socket is full, or when the system sends
    /// only the first ones.
    #[test]
    fn what_a_full_socket_refuses_goes_out_later() {
        let mut outgoing = Outgoing::new();
        let transmits = (1..=3).map(|port| transmit(port, 9)).collect();
        let mut room = 1;
        let (calls, _, taken) = run(&mut outgoing, transmits, || {
            if room == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            room -= 1;
            Ok(1)
        });
        assert_eq!((calls, taken), (vec![(1, vec![9])], false));
        let all = || Ok(usize::MAX);
        let (calls, _, taken) = run(&mut outgoing, vec![transmit(4, 9)], all);
        assert_eq!(calls, [(2, vec![9; 3])]);
        assert!(taken);
    }

    /// Fails if a batch that failed is not retried without segments, if a failed datagram is retried
    /// for ever, or if it is not counted.
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
            let (sent, statistics, taken) = run(&mut Outgoing::new(), transmits, || {
                calls += 1;
                match calls {
                    // The batch of segments fails, and then the second datagram.
                    1 | 3 => Err(kind.into()),
                    2 => Ok(1),
                    _ => Ok(usize::MAX),
                }
            });
            assert!(taken);
            assert_eq!(sent, [(5, vec![8]), (5, vec![8, 8])]);
            assert_eq!(statistics.not_sent.total(), 1);
            assert_eq!(statistics.datagrams_sent, 3);
        }
        if cfg!(any(windows, target_os = "linux")) {
            let (_, statistics, _) = run(&mut Outgoing::new(), vec![transmit(5, 8)], || {
                Err(io::Error::from_raw_os_error(long))
            });
            assert_eq!(statistics.not_sent.too_long, 1);
        }
    }
}
