//! Path MTU discovery, after RFC 8899.
//!
//! Every path carries 1200 bytes; most carry more, and larger packets have less overhead. A probe
//! is a packet padded to the size in question; only its acknowledgement proves that the size
//! passes. The largest size is probed first, because most paths carry it; then a binary search
//! follows.
//!
//! A path may shrink without notice, which RFC 8899 calls a black hole: large packets are lost
//! while small ones pass. Then the size falls back to 1200 at once.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::{BASE_DATAGRAM, MAX_DATAGRAM, Path, Time};

/// The search for the largest datagram that passes. Sizes are of UDP payloads.
#[derive(Clone, Debug)]
pub(crate) struct PathMtu {
    /// The largest size known to pass.
    size: usize,
    /// The smallest size believed not to pass.
    too_large: usize,
    ceiling: usize,
    state: State,
    /// How often a probe of the present size was lost.
    losses: u32,
    /// Packets above the base size that were lost since one was acknowledged.
    large_lost: u32,
    /// Packets of up to the base size that were acknowledged since then.
    small_arrived: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next probe may be sent at this time.
    Waiting(Time),
    /// A probe of this size is in flight; it counts as lost at this time.
    Probing { size: usize, until: Time },
}

impl Path for PathMtu {
    fn max_packet(&self) -> usize {
        self.size()
    }

    fn on_acknowledged(&mut self, size: usize, is_probe: bool, now: Time) {
        match is_probe {
            true => self.on_probe_acknowledged(size, now),
            false => self.on_packet_acknowledged(size),
        }
    }

    fn on_lost(&mut self, size: usize, is_probe: bool, now: Time) {
        match is_probe {
            true => self.on_probe_lost(size, now),
            false => self.on_packet_lost(size, now),
        }
    }
}

impl PathMtu {
    /// Starts the search at 1200 bytes.
    pub(crate) fn new(peer: SocketAddr, now: Time) -> Self {
        let ceiling = match peer.ip().to_canonical() {
            std::net::IpAddr::V4(_) => MAX_DATAGRAM,
            std::net::IpAddr::V6(_) => LARGEST_IPV6,
        };
        Self {
            size: BASE_DATAGRAM,
            too_large: ceiling + 1,
            ceiling,
            state: State::Waiting(now),
            losses: 0,
            large_lost: 0,
            small_arrived: 0,
        }
    }

    /// The largest datagram to send.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The size of the probe to send now, if one is due. It counts as sent.
    ///
    /// At most one probe is in flight. Its loss is no sign of congestion.
    pub(crate) fn next_probe(&mut self, now: Time) -> Option<usize> {
        if let State::Probing { size, until } = self.state
            && now >= until
        {
            self.on_probe_lost(size, now);
        }
        let State::Waiting(from) = self.state else {
            return None;
        };
        if now < from {
            return None;
        }
        if self.size == self.ceiling {
            return None;
        }
        if self.is_found() {
            // The pause after the last search is over; sizes that failed then may pass now.
            self.too_large = self.ceiling + 1;
        }
        let size = self.candidate();
        let until = now.after(PROBE_LIFETIME);
        self.state = State::Probing { size, until };
        Some(size)
    }

    /// When [`next_probe`](Self::next_probe) has to be called if nothing happens until then; `None`
    /// if the search is complete.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        match self.state {
            State::Waiting(_) if self.size == self.ceiling => None,
            State::Waiting(from) => Some(from),
            State::Probing { until, .. } => Some(until),
        }
    }

    /// A probe of this size was acknowledged, perhaps after it was declared lost.
    pub(crate) fn on_probe_acknowledged(&mut self, size: usize, now: Time) {
        self.size = self.size.max(size.min(self.ceiling));
        self.too_large = self.too_large.max(self.size + 1);
        self.forget_losses();
        if matches!(self.state, State::Probing { size: tried, .. } if tried <= size) {
            self.continue_search(now);
        }
    }

    /// A probe of this size was lost. It takes three losses to conclude that the size does not
    /// pass.
    pub(crate) fn on_probe_lost(&mut self, size: usize, now: Time) {
        if !matches!(self.state, State::Probing { size: tried, .. } if tried == size) {
            return;
        }
        self.losses += 1;
        if self.losses >= PROBES {
            self.losses = 0;
            self.too_large = self.too_large.min(size);
        }
        self.continue_search(now);
    }

    /// A packet other than a probe was acknowledged.
    pub(crate) fn on_packet_acknowledged(&mut self, size: usize) {
        if size > BASE_DATAGRAM {
            self.large_lost = 0;
            self.small_arrived = 0;
        } else if self.large_lost > 0 {
            self.small_arrived = self.small_arrived.saturating_add(1);
        }
    }

    /// A packet other than a probe was declared lost.
    pub(crate) fn on_packet_lost(&mut self, size: usize, now: Time) {
        if size <= BASE_DATAGRAM || self.size == BASE_DATAGRAM {
            return;
        }
        self.large_lost += 1;
        let small_pass =
            self.large_lost >= BLACK_HOLE_LOST && self.small_arrived >= BLACK_HOLE_PASSED;
        // If only large packets are sent, their number alone decides. A blackout looks the same;
        // falling back then costs a few probes.
        if small_pass || self.large_lost >= BLACK_HOLE_LOST_ALONE {
            self.size = BASE_DATAGRAM;
            self.too_large = self.ceiling + 1;
            self.state = State::Waiting(now.after(REST_AFTER_BLACK_HOLE));
            self.forget_losses();
        }
    }

    /// Starts over on a new path.
    pub(crate) fn on_path_changed(&mut self, peer: SocketAddr, now: Time) {
        *self = Self::new(peer, now);
    }

    fn forget_losses(&mut self) {
        self.losses = 0;
        self.large_lost = 0;
        self.small_arrived = 0;
    }

    fn continue_search(&mut self, now: Time) {
        let pause = if self.is_found() {
            REST
        } else {
            Duration::ZERO
        };
        self.state = State::Waiting(now.after(pause));
    }

    /// Whether no further probe is worth it.
    fn is_found(&self) -> bool {
        self.size == self.ceiling || self.too_large - self.size <= PRECISION
    }

    fn candidate(&self) -> usize {
        match self.too_large > self.ceiling {
            true => self.ceiling,
            false => (self.size + self.too_large) / 2,
        }
    }
}

/// What an Ethernet frame leaves for UDP over IPv6.
const LARGEST_IPV6: usize = 1452;
/// The search stops at this distance.
const PRECISION: usize = 16;
/// Lost probes until a size counts as too large.
const PROBES: u32 = 3;
/// The time after which a probe counts as lost even without a report.
const PROBE_LIFETIME: Duration = Duration::from_secs(1);
/// The pause before a search is repeated.
const REST: Duration = Duration::from_secs(60);
const REST_AFTER_BLACK_HOLE: Duration = Duration::from_secs(5);
/// A black hole is detected if this many large packets in a row were lost and this many small ones
/// passed.
const BLACK_HOLE_LOST: u32 = 5;
const BLACK_HOLE_PASSED: u32 = 3;
const BLACK_HOLE_LOST_ALONE: u32 = 12;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(80);

    /// A path that carries up to `carries` bytes, and a game that sends a small and a full packet
    /// every 33 milliseconds.
    struct Path {
        mtu: PathMtu,
        now: Time,
        carries: usize,
        /// In percent.
        loss: u64,
        /// Whether small packets are sent.
        small: bool,
        seed: u64,
        /// When each packet was sent, whether it is a probe, its size, and whether it arrives.
        in_flight: VecDeque<(Time, bool, usize, bool)>,
        probes: usize,
        /// Full packets that arrived.
        full: usize,
    }

    fn peer() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 4000))
    }

    impl Path {
        fn new(seed: u64, carries: usize, loss: u64) -> Self {
            let now = Time::from_micros(0);
            Self {
                mtu: PathMtu::new(peer(), now),
                now,
                carries,
                loss,
                small: true,
                seed,
                in_flight: VecDeque::new(),
                probes: 0,
                full: 0,
            }
        }

        fn send(&mut self, is_probe: bool, size: usize) {
            self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            let arrives = size <= self.carries && (self.seed >> 33) % 100 >= self.loss;
            self.in_flight
                .push_back((self.now, is_probe, size, arrives));
        }

        fn run(&mut self, span: Duration) {
            let end = self.now.after(span);
            while self.now < end {
                while let Some(&(at, is_probe, size, arrives)) = self.in_flight.front()
                    && self.now.since(at) >= ROUND_TRIP
                {
                    self.in_flight.pop_front();
                    match (is_probe, arrives) {
                        (true, true) => self.mtu.on_probe_acknowledged(size, self.now),
                        (true, false) => self.mtu.on_probe_lost(size, self.now),
                        (false, true) => self.mtu.on_packet_acknowledged(size),
                        (false, false) => self.mtu.on_packet_lost(size, self.now),
                    }
                    self.full += usize::from(arrives && !is_probe && size > 300);
                }
                if let Some(size) = self.mtu.next_probe(self.now) {
                    self.probes += 1;
                    self.send(true, size);
                }
                if self.small {
                    self.send(false, 200);
                }
                self.send(false, self.mtu.size());
                self.now = self.now.after(Duration::from_millis(33));
            }
        }
    }

    /// Fails if the search gives a size up at its first loss (`PROBES` of 1 with loss), or if it
    /// never ends (`is_found` always false).
    #[test]
    fn every_size_is_found_with_few_probes() {
        for seed in 0..20 {
            for carries in (1200..=1600).step_by(7) {
                for loss in [0, 5] {
                    let mut path = Path::new(seed, carries, loss);
                    path.run(Duration::from_secs(20));
                    let found = path.mtu.size();
                    let max = carries.min(MAX_DATAGRAM);
                    assert!(
                        found <= max && max - found <= PRECISION,
                        "{carries}: {found}"
                    );
                    assert!(path.probes <= 24, "{carries}: {} probes", path.probes);
                }
            }
        }
    }

    /// Case 12. Fails if lost packets are not counted (`self.large_lost += 1` in
    /// `on_packet_lost`).
    #[test]
    fn a_path_that_shrinks_heals_within_three_seconds() {
        for seed in 0..20 {
            for (loss, small) in [(0, true), (0, false), (5, true), (20, true), (20, false)] {
                let mut path = Path::new(seed, 1472, loss);
                path.small = small;
                path.run(Duration::from_secs(10));
                path.carries = 1200;
                path.run(Duration::from_secs(3));
                assert_eq!(path.mtu.size(), 1200, "seed {seed}, loss {loss}");
                path.full = 0;
                path.run(Duration::from_secs(3));
                assert!(path.full > 60, "seed {seed}: {} arrived", path.full);
                // When the path recovers, so does the size. With a loss of 20 % not for good: five
                // losses in a row now and then look like a black hole.
                path.carries = 1472;
                let regained = (0..90).any(|_| {
                    path.run(Duration::from_secs(1));
                    path.mtu.size() == 1472
                });
                assert!(regained, "seed {seed}, loss {loss}");
            }
        }
    }

    /// Fails if no small packets have to pass (`small_arrived` left out of `small_pass`): a short
    /// burst of losses would count as a black hole.
    #[test]
    fn neither_loss_nor_a_short_blackout_is_a_black_hole() {
        for seed in 0..20 {
            let mut path = Path::new(seed, 1472, 5);
            path.run(Duration::from_secs(10));
            for _ in 0..20 {
                path.loss = 100;
                path.run(Duration::from_millis(300));
                path.loss = 5;
                path.run(Duration::from_secs(3));
                assert_eq!(path.mtu.size(), 1472, "seed {seed}");
            }
        }
    }

    /// Fails if a probe without a report blocks the search (without the check of `until` in
    /// `next_probe`), or if its late acknowledgement is ignored.
    #[test]
    fn forgotten_probes_are_given_up_and_late_answers_believed() {
        let mut now = Time::from_micros(0);
        let mut mtu = PathMtu::new("[2001:db8::1]:1".parse().expect("an address"), now);
        assert_eq!(mtu.next_probe(now), Some(LARGEST_IPV6));
        assert_eq!(mtu.next_probe(now), None, "one at a time");
        for _ in 0..2 {
            now = mtu.next_timeout().expect("searching");
            assert_eq!(mtu.next_probe(now), Some(LARGEST_IPV6));
        }
        now = mtu.next_timeout().expect("searching");
        assert_eq!(mtu.next_probe(now), Some((1200 + LARGEST_IPV6) / 2));
        mtu.on_probe_acknowledged(LARGEST_IPV6, now);
        assert_eq!(mtu.size(), LARGEST_IPV6);
        assert_eq!((mtu.next_timeout(), mtu.next_probe(now)), (None, None));
        mtu.on_path_changed(peer(), now);
        assert_eq!((mtu.size(), mtu.next_probe(now)), (1200, Some(1472)));
    }
}
