//! Statistics of sockets; those of connections are in `prescient_transport`.

use std::io;

use crate::error::SendFailure;

/// Datagrams and bytes that a socket sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStatistics {
    /// Datagrams that were passed to the system.
    pub datagrams_sent: u64,
    /// Their bytes, without IP and UDP headers.
    pub bytes_sent: u64,
    /// System calls that sent them.
    pub send_calls: u64,
    /// Datagrams that were received, valid or not.
    pub datagrams_received: u64,
    /// Their bytes, without IP and UDP headers.
    pub bytes_received: u64,
    /// Calls to receive, including those that found nothing.
    pub receive_calls: u64,
    /// Calls to receive that failed for another reason than that there was nothing to receive.
    pub receive_errors: u64,
    /// ICMP reports of datagrams that were not delivered.
    pub undeliverable: u64,
    /// Datagrams that the system did not send.
    pub not_sent: NotSent,
}

/// Datagrams that the system did not send, by reason. Each is treated as lost; none ends a
/// connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotSent {
    /// There was no route: the network is down, or has changed.
    pub no_route: u64,
    /// This host forbade it, perhaps by a firewall.
    pub forbidden: u64,
    /// It was longer than the MTU of the interface.
    pub too_long: u64,
    /// Any other reason, such as a lack of memory.
    pub other: u64,
}

impl NotSent {
    /// The sum of all reasons.
    pub fn total(&self) -> u64 {
        self.no_route + self.forbidden + self.too_long + self.other
    }
}

impl SocketStatistics {
    pub(crate) fn sent(&mut self, datagrams: usize, bytes: usize) {
        self.send_calls += 1;
        self.datagrams_sent += datagrams as u64;
        self.bytes_sent += bytes as u64;
    }

    pub(crate) fn received(&mut self, bytes: usize) {
        self.datagrams_received += 1;
        self.bytes_received += bytes as u64;
    }

    pub(crate) fn not_sent(&mut self, error: &io::Error) {
        let reason = match SendFailure::of(error) {
            Some(SendFailure::NoRoute) => &mut self.not_sent.no_route,
            Some(SendFailure::Forbidden) => &mut self.not_sent.forbidden,
            _ if quinn_udp::is_msg_size_err(error) => &mut self.not_sent.too_long,
            _ => &mut self.not_sent.other,
        };
        *reason += 1;
    }
}
