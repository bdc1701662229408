//! Measurement of rates.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::{BytesPerSecond, Time};

/// Measures a rate in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    since: Time,
    bytes: u64,
    last: u64,
}

impl Meter {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            since: now,
            bytes: 0,
            last: 0,
        }
    }

    /// Counts a datagram.
    pub(crate) fn note(&mut self, length: usize, peer: SocketAddr, now: Time) {
        self.advance(now);
        let headers = if peer.is_ipv4() { IPV4 } else { IPV6 };
        self.bytes += (length + headers) as u64;
    }

    pub(crate) fn advance(&mut self, now: Time) {
        let passed = now.since(self.since);
        if passed >= SECOND {
            let rate = u128::from(self.bytes) * SECOND.as_micros() / passed.as_micros();
            self.last = rate as u64;
            self.bytes = 0;
            self.since = now;
        }
    }

    pub(crate) fn rate(&self) -> BytesPerSecond {
        BytesPerSecond(self.last)
    }
}

const SECOND: Duration = Duration::from_secs(1);
const IPV4: usize = 20 + 8;
const IPV6: usize = 40 + 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if headers are left out, or if bytes of a finished second still count.
    #[test]
    fn a_rate_is_that_of_the_last_second_with_headers() {
        let peer = "192.0.2.1:1".parse().expect("an address");
        let mut meter = Meter::new(Time::from_micros(0));
        for tenth in 0..25 {
            meter.note(72, peer, Time::from_micros(tenth * 100_000));
        }
        assert_eq!(meter.rate(), BytesPerSecond(1000));
        meter.advance(Time::from_micros(7_000_000));
        assert_eq!(meter.rate(), BytesPerSecond(100));
        meter.advance(Time::from_micros(9_000_000));
        assert_eq!(meter.rate(), BytesPerSecond(0));
    }
}
