//! Derivation of a connection's keys.
//!
//! The token's secret authenticates both ends. The exchange of ephemeral keys gives forward
//! secrecy: stealing the token or the backend's key later does not decrypt the connection. Both are
//! inputs of the derivation, together with the transcript of the handshake.

use ring::{digest, hkdf, hmac};
use subtle::ConstantTimeEq;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use crate::entropy::{Entropy, random};

/// 32 secret bytes that are erased when they are dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// One end's ephemeral key pair, for one connection only.
pub(crate) struct Ephemeral(StaticSecret);

impl Ephemeral {
    pub(crate) fn new(entropy: &mut dyn Entropy) -> Self {
        let bytes = Zeroizing::new(random::<32>(entropy));
        Self(StaticSecret::from(*bytes))
    }

    pub(crate) fn public(&self) -> [u8; 32] {
        PublicKey::from(&self.0).to_bytes()
    }

    /// The shared secret; `None` if the other end's public key is one of the few that make it
    /// predictable.
    fn exchange(&self, other: &[u8; 32]) -> Option<Secret> {
        let shared = self.0.diffie_hellman(&PublicKey::from(*other));
        shared
            .was_contributory()
            .then(|| Zeroizing::new(shared.to_bytes()))
    }
}

/// The keys of a connection.
pub(crate) struct ConnectionKeys {
    /// Seals packets to the server.
    pub(crate) up: Secret,
    /// Seals packets to the client.
    pub(crate) down: Secret,
    /// Seals the reset token in the accept packet, which proves that the server has the keys.
    pub(crate) accept: Secret,
}

impl ConnectionKeys {
    /// `opening` is the part of the request that is the same in every copy, `answer` the server's
    /// answer to it.
    pub(crate) fn derive(
        token_secret: &Secret,
        own: &Ephemeral,
        other: &[u8; 32],
        opening: &[u8],
        answer: &[u8],
    ) -> Option<Self> {
        let mut secrets = Zeroizing::new([0; 64]);
        secrets[..32].copy_from_slice(&**token_secret);
        secrets[32..].copy_from_slice(&*own.exchange(other)?);
        let mut transcript = digest::Context::new(&digest::SHA256);
        transcript.update(opening);
        transcript.update(answer);
        let transcript = transcript.finish();
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, SALT).extract(&*secrets);
        Some(Self {
            up: expand(&root, &[b"up", transcript.as_ref()]),
            down: expand(&root, &[b"down", transcript.as_ref()]),
            accept: expand(&root, &[b"accept", transcript.as_ref()]),
        })
    }
}

/// Derives a key from a secret, one-way.
pub(crate) fn follow(secret: &Secret, label: &[u8]) -> Secret {
    let root = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &**secret);
    expand(&root, &[label])
}

fn expand(root: &hkdf::Prk, info: &[&[u8]]) -> Secret {
    let mut key = Zeroizing::new([0; 32]);
    root.expand(info, hkdf::HKDF_SHA256)
        .and_then(|made| made.fill(&mut *key))
        .expect("32 bytes are one block of HKDF-SHA256");
    key
}

pub(crate) const MAC_LEN: usize = 16;

/// Half of an HMAC-SHA256 over parts that have fixed lengths.
pub(crate) fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; MAC_LEN] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in parts {
        context.update(part);
    }
    let mut short = [0; MAC_LEN];
    short.copy_from_slice(&context.sign().as_ref()[..MAC_LEN]);
    short
}

/// Whether a MAC is right, compared in constant time.
pub(crate) fn mac_is(key: &[u8; 32], parts: &[&[u8]], claimed: &[u8; MAC_LEN]) -> bool {
    mac(key, parts).ct_eq(claimed).into()
}

const SALT: &[u8] = b"prescient transport 1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_get_the_same_keys_and_only_from_the_same_words() {
        let mut next = 0u8;
        let mut entropy = |bytes: &mut [u8]| {
            bytes.fill_with(|| {
                next = next.wrapping_add(1);
                next
            });
        };
        let (client, server) = (Ephemeral::new(&mut entropy), Ephemeral::new(&mut entropy));
        let secret = Zeroizing::new([7; 32]);
        let keys = |own: &Ephemeral, other: &Ephemeral, secret: &Secret, opening: &[u8]| {
            ConnectionKeys::derive(secret, own, &other.public(), opening, b"answer")
                .expect("honest keys")
        };
        let ours = keys(&client, &server, &secret, b"opening");
        let theirs = keys(&server, &client, &secret, b"opening");
        assert_eq!(
            (&ours.up, &ours.down, &ours.accept),
            (&theirs.up, &theirs.down, &theirs.accept)
        );
        assert_ne!(ours.up, ours.down);
        assert_ne!(ours.up, keys(&client, &server, &secret, b"Opening").up);
        let other = Zeroizing::new([8; 32]);
        assert_ne!(ours.up, keys(&client, &server, &other, b"opening").up);
        assert!(ConnectionKeys::derive(&secret, &client, &[0; 32], b"", b"").is_none());
    }
}
