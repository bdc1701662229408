//! What a socket did; what a connection saw, its machine knows.

use std::io;

use crate::error::SendFailure;

/// What went through a socket, and what did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketStatistics {
    /// Datagrams that the system took.
    pub datagrams_sent: u64,
    /// Their bytes, without IP and UDP headers.
    pub bytes_sent: u64,
    /// Calls that it took them with.
    pub send_calls: u64,
    /// Datagrams that arrived, whatever they were.
    pub datagrams_received: u64,
    /// Their bytes, without IP and UDP headers.
    pub bytes_received: u64,
    /// Calls to receive, also those that found nothing.
    pub receive_calls: u64,
    /// Calls to receive that failed, other than for want of anything to receive.
    pub receive_errors: u64,
    /// How often somebody on the way said that a datagram did not arrive.
    pub undeliverable: u64,
    /// Datagrams that the system did not take.
    pub not_sent: NotSent,
}

/// Datagrams that the system did not take, by reason. Each counts as lost on the way; no
/// connection ends because of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotSent {
    /// No way led there: the network is down, or has changed.
    pub no_route: u64,
    /// Something on this machine forbade it, a firewall perhaps.
    pub forbidden: u64,
    /// Longer than the interface carries.
    pub too_long: u64,
    /// Any other reason, such as no memory for it.
    pub other: u64,
}

impl NotSent {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.no_route + self.forbidden + self.too_long + self.other
    }
}

impl SocketStatistics {
    pub(crate) fn sent(&mut self, bytes: usize, segment: usize) {
        self.send_calls += 1;
        self.datagrams_sent += bytes.div_ceil(segment.max(1)) as u64;
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
