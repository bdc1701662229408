//! A topic's subscriber.

use std::collections::VecDeque;
use std::time::Duration;

use prescient::Replica;
use prescient::named::{Time, Update};
use thiserror::Error;
use zenoh::handlers::{FifoChannelHandler, RingChannel, RingChannelHandler};
use zenoh::pubsub::Subscriber;
use zenoh::query::Reply;
use zenoh::sample::Sample;
use zenoh::{Session, Wait};

use crate::{MAX_WAITING, ZenohError, read_version};

/// The time after which a query is given up, and the next one may be sent.
const QUERY_TIMEOUT: Duration = Duration::from_secs(1);

/// The most pushed versions that are kept while an older one is missing.
const MAX_EARLY: usize = 64;

/// Keeps a replica of what a [`ZenohPublisher`](crate::ZenohPublisher) publishes.
///
/// Call [`poll`](Self::poll) until it returns `None`, once per frame. Pushed versions are applied as they arrive; if
/// one was missed, and at first, the newest is queried.
pub struct ZenohSubscriber<R> {
    session: Session,
    key: String,
    replica: R,
    samples: Subscriber<RingChannelHandler<Sample>>,
    /// The version that the replica holds.
    held: Option<u64>,
    early: VecDeque<Vec<u8>>,
    query: Option<FifoChannelHandler<Reply>>,
    /// No query is sent before this time.
    query_at: Time,
    is_behind: bool,
}

/// Why a version was not applied.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SubscribeError<E> {
    /// Its bytes are malformed. It is ignored.
    #[error("malformed version")]
    Malformed,
    /// The replica refused its content. The newest version is queried whole.
    #[error(transparent)]
    Content(E),
    /// Zenoh refused a query.
    #[error(transparent)]
    Zenoh(#[from] ZenohError),
}

impl<R: Replica> ZenohSubscriber<R> {
    /// A subscriber that holds no version.
    pub fn new(session: &Session, topic: &str, replica: R) -> Result<Self, ZenohError> {
        let key = format!("{topic}/sync");
        let samples = session
            .declare_subscriber(key.clone())
            .with(RingChannel::new(MAX_WAITING))
            .wait()?;
        Ok(Self {
            session: session.clone(),
            key,
            replica,
            samples,
            held: None,
            early: VecDeque::new(),
            query: None,
            query_at: Time::default(),
            is_behind: true,
        })
    }

    /// The replica that is kept up to date.
    pub fn replica(&self) -> &R {
        &self.replica
    }

    /// The replica that is kept up to date.
    pub fn replica_mut(&mut self) -> &mut R {
        &mut self.replica
    }

    /// The version that is held.
    pub fn version(&self) -> Option<u64> {
        self.held
    }

    /// Applies the next version and returns the result; `None` if there is none yet.
    pub fn poll(&mut self, now: Time) -> Option<Result<R::Applied, SubscribeError<R::Error>>> {
        while let Some(bytes) = self.next_bytes() {
            let Some((version, base, content)) = read_version(&bytes) else {
                return Some(Err(SubscribeError::Malformed));
            };
            if self.held.is_some_and(|held| version <= held) {
                continue;
            }
            if base.is_some() && base != self.held {
                self.is_behind = true;
                if self.early.len() == MAX_EARLY {
                    self.early.pop_front();
                }
                self.early.push_back(bytes);
                continue;
            }
            let update = Update {
                version,
                base,
                content: content.to_vec(),
                rtt: Duration::ZERO,
                waited: Duration::ZERO,
            };
            return Some(match self.replica.apply(update) {
                Ok(applied) => {
                    self.held = Some(version);
                    self.is_behind = false;
                    Ok(applied)
                }
                Err(error) => {
                    self.held = None;
                    self.is_behind = true;
                    Err(SubscribeError::Content(error))
                }
            });
        }
        if self.is_behind && self.query.is_none() && self.query_at <= now {
            self.query_at = now.after(QUERY_TIMEOUT);
            let held = self.held.unwrap_or(0).to_be_bytes();
            let query = self.session.get(self.key.clone());
            match query.payload(held).timeout(QUERY_TIMEOUT).wait() {
                Ok(replies) => self.query = Some(replies),
                Err(error) => return Some(Err(SubscribeError::Zenoh(error.into()))),
            }
        }
        None
    }

    /// An early version that fits now, or else one from the network.
    fn next_bytes(&mut self) -> Option<Vec<u8>> {
        let held = self.held;
        let fits = |bytes: &Vec<u8>| {
            read_version(bytes).is_some_and(|(_, base, _)| base.is_none() || base == held)
        };
        if let Some(place) = self.early.iter().position(fits) {
            return self.early.remove(place);
        }
        if let Some(replies) = &self.query {
            match replies.try_recv() {
                Ok(Some(reply)) => {
                    if let Ok(sample) = reply.result() {
                        return Some(sample.payload().to_bytes().into_owned());
                    }
                }
                Ok(None) => {}
                // All queried peers have answered.
                Err(_) => self.query = None,
            }
        }
        let sample = self.samples.try_recv().ok()??;
        Some(sample.payload().to_bytes().into_owned())
    }
}
