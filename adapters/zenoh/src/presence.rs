//! Which peers are in a group: Zenoh's liveliness tokens.

use zenoh::handlers::{RingChannel, RingChannelHandler};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::sample::{Sample, SampleKind};
use zenoh::{Session, Wait};

use crate::{MAX_WAITING, ZenohError};

/// A peer has joined or left a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PresenceEvent {
    /// A peer is in the group. Its name is one part of a key.
    Joined(String),
    /// A peer has left, or its connection is lost.
    Left(String),
}

/// Membership of a group, under the keys `<group>/<peer>`.
pub struct ZenohPresence {
    own: String,
    group: String,
    samples: Subscriber<RingChannelHandler<Sample>>,
    _token: LivelinessToken,
}

impl ZenohPresence {
    /// Joins a group until this is dropped.
    pub fn new(session: &Session, group: &str, own: &str) -> Result<Self, ZenohError> {
        let samples = session
            .liveliness()
            .declare_subscriber(format!("{group}/*"))
            .history(true)
            .with(RingChannel::new(MAX_WAITING))
            .wait()?;
        let token = session.liveliness();
        Ok(Self {
            samples,
            _token: token.declare_token(format!("{group}/{own}")).wait()?,
            own: own.to_owned(),
            group: group.to_owned(),
        })
    }

    /// The next event about another peer.
    pub fn poll(&mut self) -> Option<PresenceEvent> {
        loop {
            let sample = self.samples.try_recv().ok()??;
            let key = sample.key_expr().as_str();
            let peer = key.strip_prefix(&self.group)?.trim_start_matches('/');
            if peer == self.own {
                continue;
            }
            let peer = peer.to_owned();
            return Some(match sample.kind() {
                SampleKind::Put => PresenceEvent::Joined(peer),
                SampleKind::Delete => PresenceEvent::Left(peer),
            });
        }
    }
}
