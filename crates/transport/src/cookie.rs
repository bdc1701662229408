//! The cookie of a challenge, by which a server validates addresses without keeping state.
//!
//! The source address of a datagram can be spoofed. The server therefore answers the first request
//! with a cookie: a MAC over address, time and request. Only the owner of the address receives it,
//! and only a request with a valid cookie makes the server do work. Because the cookie covers the
//! request, a request that was damaged on the way is challenged again and not denied.

use std::net::SocketAddr;
use std::time::Duration;

use zeroize::Zeroizing;

use prescient_channels::Time;

use crate::entropy::{Entropy, random};
use crate::key_schedule::{MAC_LEN, Secret, mac, mac_is};
use crate::packet::Cookie;
use crate::token::address_to_bytes;

/// The key of a server's cookies. It is new at every start, so cookies from before a restart are
/// invalid.
pub(crate) struct CookieKey(Secret);

impl CookieKey {
    pub(crate) fn new(entropy: &mut dyn Entropy) -> Self {
        Self(Zeroizing::new(random(entropy)))
    }

    pub(crate) fn issue(&self, from: SocketAddr, opening: &[u8], now: Time) -> Cookie {
        Cookie {
            made: now,
            tag: self.tag(from, opening, now),
        }
    }

    /// Whether this cookie was issued to this address for this request within `LIFETIME`.
    pub(crate) fn made(
        &self,
        cookie: &Cookie,
        from: SocketAddr,
        opening: &[u8],
        now: Time,
    ) -> bool {
        let fresh = cookie.made <= now && now.since(cookie.made) <= LIFETIME;
        let (address, time) = mac_inputs(from, cookie.made);
        fresh && mac_is(&self.0, &[&address, &time, opening], &cookie.tag)
    }

    fn tag(&self, from: SocketAddr, opening: &[u8], made: Time) -> [u8; MAC_LEN] {
        let (address, time) = mac_inputs(from, made);
        mac(&self.0, &[&address, &time, opening])
    }
}

fn mac_inputs(from: SocketAddr, made: Time) -> ([u8; 19], [u8; 8]) {
    (address_to_bytes(from), made.as_micros().to_le_bytes())
}

const LIFETIME: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_one_address_one_request_and_five_seconds() {
        let cookie_key = CookieKey::new(&mut |bytes: &mut [u8]| bytes.fill(3));
        let from: SocketAddr = "10.0.0.1:5".parse().expect("an address");
        let now = Time::from_micros(77_000_000);
        let cookie = cookie_key.issue(from, b"request", now);
        let made = |from: &str, opening: &[u8], now| {
            cookie_key.made(&cookie, from.parse().expect("an address"), opening, now)
        };
        assert!(made("10.0.0.1:5", b"request", now));
        assert!(made("10.0.0.1:5", b"request", now.after(LIFETIME)));
        assert!(!made("10.0.0.1:6", b"request", now));
        assert!(!made("10.0.0.2:5", b"request", now));
        assert!(!made("10.0.0.1:5", b"Request", now));
        assert!(!made(
            "10.0.0.1:5",
            b"request",
            Time::from_micros(76_999_999)
        ));
        assert!(!made("10.0.0.1:5", b"request", now.after(LIFETIME * 2)));
        let other = CookieKey::new(&mut |bytes: &mut [u8]| bytes.fill(4));
        assert!(!other.made(&cookie, from, b"request", now));
    }
}
