//! A topic's publisher.

use prescient::Publication;
use zenoh::handlers::{RingChannel, RingChannelHandler};
use zenoh::pubsub::Publisher;
use zenoh::query::{Query, Queryable};
use zenoh::{Session, Wait};

use crate::{MAX_WAITING, ZenohError, write_version};

/// Publishes a topic under the key `<topic>/sync`.
///
/// 1. [`publish_with`](Self::publish_with) when something has changed: the new version is pushed to all subscribers,
///    as a delta from the version before.
/// 2. [`poll`](Self::poll) once per frame: it answers those who lack versions.
pub struct ZenohPublisher<P> {
    publication: P,
    publisher: Publisher<'static>,
    queries: Queryable<RingChannelHandler<Query>>,
    key: String,
    /// The first version, and the next one.
    first: u64,
    next: u64,
}

impl<P: Publication> ZenohPublisher<P> {
    /// A publisher whose first version has the number `first`. It must be higher than any version of an earlier life;
    /// see [`first_version`](prescient::named::first_version).
    pub fn new(
        session: &Session,
        topic: &str,
        first: u64,
        publication: P,
    ) -> Result<Self, ZenohError> {
        let key = format!("{topic}/sync");
        let first = first.max(1);
        let queries = session
            .declare_queryable(key.clone())
            .with(RingChannel::new(MAX_WAITING))
            .wait()?;
        Ok(Self {
            publication,
            publisher: session.declare_publisher(key.clone()).wait()?,
            queries,
            key,
            first,
            next: first,
        })
    }

    /// The present publication.
    pub fn publication(&self) -> &P {
        &self.publication
    }

    /// Publishes a version: `change` gets its number.
    pub fn publish_with<R>(
        &mut self,
        change: impl FnOnce(&mut P, u64) -> R,
    ) -> Result<R, ZenohError> {
        let version = self.next;
        self.next += 1;
        let changed = change(&mut self.publication, version);
        let before = (version > self.first).then(|| version - 1);
        if let Some(bytes) = self.version_for(before) {
            self.publisher.put(bytes).wait()?;
        }
        Ok(changed)
    }

    /// Answers queries of subscribers that lack versions.
    pub fn poll(&mut self) -> Result<(), ZenohError> {
        while let Ok(Some(query)) = self.queries.try_recv() {
            let held = query
                .payload()
                .map(|payload| payload.to_bytes().into_owned());
            let held = held.and_then(|held| <[u8; 8]>::try_from(held).ok());
            let held = held.map(u64::from_be_bytes);
            let held = held.filter(|held| (self.first..self.next).contains(held));
            if let Some(bytes) = self.version_for(held) {
                query.reply(self.key.clone(), bytes).wait()?;
            }
        }
        Ok(())
    }

    /// The newest version, as a delta if the subscriber's version is kept.
    fn version_for(&self, held: Option<u64>) -> Option<Vec<u8>> {
        let newest = self.next.checked_sub(1).filter(|it| *it >= self.first)?;
        // A subscriber that holds the newest version gets it whole.
        let held = held.filter(|held| *held < newest);
        let answer = self.publication.answer(held)?;
        let base = held.filter(|_| answer.is_delta);
        Some(write_version(newest, base, &answer.content))
    }
}
