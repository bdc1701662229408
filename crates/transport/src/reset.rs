//! Stateless resets: a server tells a client that it has no state of its connection.
//!
//! A server that was killed and restarted has lost the keys of its connections, and without this
//! its clients would wait until they time out. It still has the token key and its addresses, from
//! which it derives a reset token for each connection id. The client receives that token during the
//! handshake; after a restart the server derives it again from the connection id of a packet.

use std::net::SocketAddr;
use std::time::Duration;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use subtle::ConstantTimeEq;

use prescient_channels::Time;

use crate::key_schedule::{MAC_LEN, Secret, mac};
use crate::packet_protection::TAG_LEN;
use crate::token::{TokenKey, address_to_bytes};

/// Proof of a stateless reset; a secret of the server and one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResetToken(pub(crate) [u8; MAC_LEN]);

impl ResetToken {
    /// Compares in constant time.
    pub(crate) fn is(&self, claimed: &Self) -> bool {
        self.0.ct_eq(&claimed.0).into()
    }

    /// Seals the token for the client that is accepted with `answer`. An accept key seals nothing
    /// else, so the nonce of zeros does not repeat.
    pub(crate) fn seal(&self, key: &Secret, answer: &[u8]) -> [u8; SEALED_RESET_LEN] {
        let mut sealed = [0; SEALED_RESET_LEN];
        let (text, tag) = sealed.split_at_mut(MAC_LEN);
        text.copy_from_slice(&self.0);
        let made = cipher(key)
            .seal_in_place_separate_tag(zeros(), Aad::from(answer), text)
            .expect("16 bytes are not too long");
        tag.copy_from_slice(made.as_ref());
        sealed
    }

    /// Opens what [`seal`](Self::seal) sealed; `None` if it is not authentic.
    pub(crate) fn open(
        key: &Secret,
        answer: &[u8],
        sealed: [u8; SEALED_RESET_LEN],
    ) -> Option<Self> {
        let mut sealed = sealed;
        let opened = cipher(key).open_in_place(zeros(), Aad::from(answer), &mut sealed);
        Some(Self(opened.ok()?.try_into().ok()?))
    }
}

fn cipher(key: &Secret) -> LessSafeKey {
    let key = UnboundKey::new(&CHACHA20_POLY1305, &**key);
    LessSafeKey::new(key.expect("a key of ChaCha20-Poly1305 has 32 bytes"))
}

fn zeros() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// Derives the reset tokens of a server, and limits how many resets it sends.
pub(crate) struct Resets {
    key: Secret,
    per_second: u32,
    left: u32,
    refilled: Time,
}

impl Resets {
    /// The addresses are part of the key: servers that share a [`TokenKey`] must not reveal each
    /// other's tokens.
    pub(crate) fn new(
        key: &TokenKey,
        addresses: &[SocketAddr],
        per_second: u32,
        now: Time,
    ) -> Self {
        let mut addresses: Vec<_> = addresses.iter().copied().map(address_to_bytes).collect();
        addresses.sort_unstable();
        addresses.dedup();
        Self {
            key: key.follow(&[b"reset", addresses.as_flattened()].concat()),
            per_second,
            left: per_second,
            refilled: now,
        }
    }

    pub(crate) fn token(&self, connection: u64) -> ResetToken {
        ResetToken(mac(&self.key, &[&connection.to_le_bytes()]))
    }

    /// The token for a stateless reset that answers a packet of an unknown connection; `None` if
    /// the limit per second is reached.
    pub(crate) fn give_away(&mut self, connection: u64, now: Time) -> Option<ResetToken> {
        if now.since(self.refilled) >= SECOND {
            self.refilled = now;
            self.left = self.per_second;
        }
        self.left = self.left.checked_sub(1)?;
        Some(self.token(connection))
    }
}

/// A token and its authentication tag.
pub(crate) const SEALED_RESET_LEN: usize = MAC_LEN + TAG_LEN;
const SECOND: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    fn resets(key: u8, addresses: &[&str]) -> Resets {
        let key = TokenKey::new([key; 32]).expect("not the public one");
        let addresses = addresses
            .iter()
            .map(|text| text.parse().expect("an address"));
        Resets::new(&key, &addresses.collect::<Vec<_>>(), 3, Time::default())
    }

    /// Fails if the addresses are left out of the key (`key.follow(b"reset")`), or the connection
    /// out of the token.
    #[test]
    fn a_token_is_for_one_connection_of_one_server() {
        let (here, there) = ("192.0.2.1:4000", "192.0.2.2:4000");
        let ours = resets(1, &[here, there]);
        let is = |other: &Resets, connection| ours.token(7).is(&other.token(connection));
        assert!(
            is(&resets(1, &[there, here, here]), 7),
            "however it is written"
        );
        assert!(!is(&ours, 8));
        assert!(!is(&resets(1, &[here]), 7));
        assert!(!is(&resets(2, &[here, there]), 7));
    }

    /// Fails if `seal` does not encrypt the token, or if `open` does not authenticate the answer.
    #[test]
    fn only_the_client_learns_its_token() {
        let token = resets(1, &[]).token(7);
        let (key, other) = (Zeroizing::new([3; 32]), Zeroizing::new([4; 32]));
        let sealed = token.seal(&key, b"answer");
        assert_ne!(sealed[..MAC_LEN], token.0);
        let opened = ResetToken::open(&key, b"answer", sealed).expect("ours");
        assert!(opened.is(&token));
        assert!(ResetToken::open(&key, b"Answer", sealed).is_none());
        assert!(ResetToken::open(&other, b"answer", sealed).is_none());
    }

    /// Fails if `give_away` does not count, or never refills.
    #[test]
    fn so_many_in_a_second_and_not_one_more() {
        let mut resets = resets(1, &[]);
        let start = Time::from_micros(1 << 32);
        for second in 0..3 {
            let now = start.after(SECOND * second);
            let given = (0..10).filter(|&name| resets.give_away(name, now).is_some());
            assert_eq!(given.count(), 3);
        }
    }
}
