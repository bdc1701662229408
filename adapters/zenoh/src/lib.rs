//! Topics over [Eclipse Zenoh](https://zenoh.io), for games whose peers are spread over several sites: Zenoh's routers
//! connect them, and nobody runs NDN forwarders.
//!
//! The traits are those of named data. What implements [`Publication`] can be published by a [`ZenohPublisher`], what
//! implements [`Replica`] is kept up to date by a [`ZenohSubscriber`], and [`ZenohOwner`] and [`ZenohInteractor`] carry
//! the signed packets of [`InteractionOwner`] and [`Interactor`], so that an owner's hook decides in the same way.
//! [`ZenohPresence`] finds peers.
//!
//! | | named data | Zenoh |
//! |---|---|---|
//! | an update | answers an Interest that waits | is pushed to subscribers |
//! | who lacks a version | gets the newest by its next Interest | queries it |
//! | many consumers | share one packet on every link, and caches | share one packet on every link between routers |
//! | authenticity | every packet is signed | that of the sessions (TLS and access control of the routers); interactions are signed |
//!
//! Zenoh does not aggregate requests and stores nothing in the network.
//!
//! Sessions of peers behind a router have Zenoh's mode `client`: sessions of mode `peer` reach only those that they are
//! connected to directly.
//!
//! Each type takes a clone of an open session. Call `poll` once per frame: nothing here blocks, apart from the calls
//! of Zenoh itself. `now` only has to advance; any origin will do.

mod interact;
mod presence;
mod publish;
mod subscribe;

pub use interact::{ZenohInteractor, ZenohOwner};
pub use presence::{PresenceEvent, ZenohPresence};
pub use publish::ZenohPublisher;
pub use subscribe::{SubscribeError, ZenohSubscriber};

pub use prescient;
pub use prescient::named::{InteractionOwner, Interactor, Time};
pub use prescient::{Publication, Replica};
pub use zenoh;

use thiserror::Error;

/// Zenoh refused a call, or a session is closed.
#[derive(Debug, Error)]
#[error("zenoh: {0}")]
pub struct ZenohError(zenoh::Error);

impl From<zenoh::Error> for ZenohError {
    fn from(error: zenoh::Error) -> Self {
        Self(error)
    }
}

/// The most samples and queries that wait for `poll`; beyond it the oldest are dropped.
const MAX_WAITING: usize = 256;

/// A version on the wire: its number, the number of its base or 0, and the content.
fn write_version(version: u64, base: Option<u64>, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + content.len());
    bytes.extend(version.to_be_bytes());
    bytes.extend(base.unwrap_or(0).to_be_bytes());
    bytes.extend(content);
    bytes
}

fn read_version(bytes: &[u8]) -> Option<(u64, Option<u64>, &[u8])> {
    let (version, rest) = bytes.split_first_chunk()?;
    let (base, content) = rest.split_first_chunk()?;
    let (version, base) = (u64::from_be_bytes(*version), u64::from_be_bytes(*base));
    let is_sound = version > 0 && base < version;
    is_sound.then_some((version, (base > 0).then_some(base), content))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the base is not read, or one that is not older than its version is accepted.
    #[test]
    fn versions_come_back_and_nonsense_is_refused() {
        for (version, base) in [(1, None), (9, Some(8)), (u64::MAX, Some(1))] {
            let bytes = write_version(version, base, b"content");
            assert_eq!(read_version(&bytes), Some((version, base, &b"content"[..])));
        }
        for length in 0..16 {
            assert_eq!(read_version(&[1; 16][..length]), None);
        }
        assert_eq!(read_version(&write_version(0, None, b"")), None);
        assert_eq!(read_version(&write_version(4, Some(4), b"")), None);
    }
}
