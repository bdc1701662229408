//! State kept per validated address (handshake rate, open connections) and the used tokens.
//! Addresses that are not validated take no memory.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use prescient_channels::Time;

use crate::config::Limits;
use crate::token::UnixTime;

/// Groups addresses for limits: an IPv4 host, or an IPv6 network of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Host([u8; 4]),
    Network([u8; 8]),
}

impl Origin {
    pub(crate) fn of(address: SocketAddr) -> Self {
        match address.ip().to_canonical() {
            IpAddr::V4(ip) => Self::Host(ip.octets()),
            IpAddr::V6(ip) => {
                let [a, b, c, d, e, f, g, h, ..] = ip.octets();
                Self::Network([a, b, c, d, e, f, g, h])
            }
        }
    }
}

/// Connections and handshake allowance of an origin.
struct OriginUsage {
    connections: usize,
    /// In millionths of a handshake, so that a microsecond refills a whole number of them.
    allowance: u64,
    refilled: Time,
}

/// All origins with connections or recent handshakes.
pub(crate) struct Origins {
    origins: BTreeMap<Origin, OriginUsage>,
    limits: Limits,
    swept: Time,
}

impl Origins {
    pub(crate) fn new(limits: Limits, now: Time) -> Self {
        Self {
            origins: BTreeMap::new(),
            limits,
            swept: now,
        }
    }

    /// Takes one handshake from an origin's allowance, which refills over time.
    pub(crate) fn try_handshake(&mut self, origin: Origin, now: Time) -> bool {
        self.sweep(now);
        if !self.origins.contains_key(&origin) && self.origins.len() >= self.limits.memory {
            return false;
        }
        let full = self.full();
        let rate = u64::from(self.limits.handshakes_per_address);
        let usage = self.origins.entry(origin).or_insert(OriginUsage {
            connections: 0,
            allowance: full,
            refilled: now,
        });
        usage.refill(rate, full, now);
        let allowed = usage.allowance >= MILLION;
        if allowed {
            usage.allowance -= MILLION;
        }
        allowed
    }

    /// Whether an origin has an entry or may have one.
    pub(crate) fn has_entry_for(&self, origin: Origin) -> bool {
        self.origins.contains_key(&origin) || self.origins.len() < self.limits.memory
    }

    /// How many connections an origin has, of any state.
    pub(crate) fn connections(&self, origin: Origin) -> usize {
        let usage = self.origins.get(&origin);
        usage.map_or(0, |usage| usage.connections)
    }

    pub(crate) fn enter(&mut self, origin: Origin, now: Time) {
        let full = self.full();
        let usage = self.origins.entry(origin).or_insert(OriginUsage {
            connections: 0,
            allowance: full,
            refilled: now,
        });
        usage.connections += 1;
    }

    /// Ends a connection of an origin. An origin that becomes idle is removed at once: a client may
    /// change its address often, and `sweep` runs only at handshakes.
    pub(crate) fn leave(&mut self, origin: Origin, now: Time) {
        let (rate, full) = (u64::from(self.limits.handshakes_per_address), self.full());
        let Some(usage) = self.origins.get_mut(&origin) else {
            return;
        };
        usage.connections = usage.connections.saturating_sub(1);
        usage.refill(rate, full, now);
        if usage.is_idle(full) {
            self.origins.remove(&origin);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.origins.len()
    }

    /// Removes idle origins, at most once per second.
    fn sweep(&mut self, now: Time) {
        if now.since(self.swept) < SWEEP {
            return;
        }
        self.swept = now;
        let (rate, full) = (u64::from(self.limits.handshakes_per_address), self.full());
        self.origins.retain(|_, usage| {
            usage.refill(rate, full, now);
            !usage.is_idle(full)
        });
    }

    fn full(&self) -> u64 {
        u64::from(self.limits.handshakes_per_address) * MILLION
    }
}

impl OriginUsage {
    fn refill(&mut self, rate: u64, full: u64, now: Time) {
        let micros = now.as_micros().saturating_sub(self.refilled.as_micros());
        self.allowance = (self.allowance.saturating_add(micros.saturating_mul(rate))).min(full);
        self.refilled = now;
    }

    /// Whether removing this entry changes nothing.
    fn is_idle(&self, full: u64) -> bool {
        self.connections == 0 && self.allowance >= full
    }
}

/// Tokens that have been used. A token is remembered until it expires; after that, its expiry
/// denies it.
#[derive(Default)]
pub(crate) struct UsedTokens {
    used: BTreeMap<[u8; 24], (UnixTime, u64)>,
    /// Tokens that expire up to this time may have been removed. Without this bound, a wall clock
    /// that jumps ahead and back would make used tokens valid again.
    forgotten: UnixTime,
    swept: UnixTime,
}

impl UsedTokens {
    /// The connection for which a token was used.
    pub(crate) fn find(&self, nonce: &[u8; 24]) -> Option<u64> {
        self.used.get(nonce).map(|&(_, connection)| connection)
    }

    pub(crate) fn is_expired(&self, expires: UnixTime, unix: UnixTime) -> bool {
        expires <= unix.max(self.forgotten)
    }

    pub(crate) fn remember(&mut self, nonce: [u8; 24], expires: UnixTime, connection: u64) {
        self.used.insert(nonce, (expires, connection));
    }

    /// Removes expired tokens, at most once per second of the wall clock.
    pub(crate) fn sweep(&mut self, unix: UnixTime) {
        if unix == self.swept {
            return;
        }
        self.swept = unix;
        let forgotten = &mut self.forgotten;
        self.used.retain(|_, &mut (expires, _)| {
            let keep = expires > unix;
            if !keep {
                *forgotten = expires.max(*forgotten);
            }
            keep
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.used.len()
    }
}

const MILLION: u64 = 1_000_000;
const SWEEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(last: u8) -> Origin {
        Origin::Host([10, 0, 0, last])
    }

    #[test]
    fn ten_handshakes_a_second_and_not_one_more() {
        let start = Time::from_micros(1 << 32);
        let mut origins = Origins::new(Limits::default(), start);
        let mut allowed = 0;
        for millisecond in 0..10_000 {
            let now = start.after(Duration::from_millis(millisecond));
            allowed += u32::from(origins.try_handshake(origin(1), now));
        }
        assert_eq!(allowed, 10 + 99);
        assert!(origins.try_handshake(origin(2), start));
    }

    #[test]
    fn origins_are_forgotten_and_never_too_many() {
        let start = Time::from_micros(1 << 32);
        let limits = Limits::default().with_memory(100);
        let mut origins = Origins::new(limits, start);
        let accepted = (0..=255).filter(|&last| origins.try_handshake(origin(last), start));
        assert_eq!(accepted.count(), 100);
        assert_eq!(origins.len(), 100);
        origins.enter(origin(1), start);
        let later = start.after(Duration::from_secs(2));
        assert!(origins.try_handshake(origin(200), later));
        assert_eq!(origins.len(), 2);
    }

    /// Fails if `leave` keeps idle origins.
    #[test]
    fn moving_on_leaves_nothing_behind() {
        let now = Time::from_micros(1 << 32);
        let mut origins = Origins::new(Limits::default(), now);
        origins.enter(origin(0), now);
        for last in 1..=255 {
            origins.leave(origin(last - 1), now);
            origins.enter(origin(last), now);
            assert_eq!(origins.len(), 1);
        }
    }

    /// Fails if `has_entry_for` ignores the limit `memory`.
    #[test]
    fn nobody_moves_in_when_the_memory_is_full() {
        let now = Time::from_micros(1 << 32);
        let limits = Limits::default().with_memory(3);
        let mut origins = Origins::new(limits, now);
        (0..3).for_each(|last| origins.enter(origin(last), now));
        assert!(origins.has_entry_for(origin(2)) && !origins.has_entry_for(origin(3)));
    }

    #[test]
    fn neighbours_in_one_network_are_one_origin() {
        let of = |text: &str| Origin::of(text.parse().expect("an address"));
        assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::ffff:1]:2"));
        assert_ne!(of("[2001:db8::1]:1"), of("[2001:db8:0:1::1]:1"));
        assert_eq!(of("[::ffff:10.0.0.1]:1"), of("10.0.0.1:1"));
        assert_ne!(of("10.0.0.1:1"), of("10.0.0.2:1"));
    }
}
