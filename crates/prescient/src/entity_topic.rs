//! Versioned sync of the entities that a peer owns: topics with an [`EntitySetCodec`].

use prescient_named::{
    Answer, ConsumerConfig, NameError, NameRef, ProducerConfig, Time, Update, VersionLog,
};
use prescient_schema::State;

use crate::entity_set::{EntitySet, EntitySetCodec, EntitySetError};
use crate::topic::{Publication, Replica, TopicConsumer, TopicProducer};

/// The versions that a producer keeps: consumers that hold an older one get the set whole.
const KEPT_VERSIONS: usize = 64;

/// Publishes the entities of one type that a peer owns.
///
/// The order of calls is that of [`TopicProducer`]. Publish when an entity has changed, if what consumers
/// [have seen](TopicProducer::seen) makes it worth while.
pub type EntityProducer<T> = TopicProducer<EntityVersions<T>>;

/// Keeps a replica of what an [`EntityProducer`] publishes.
pub type EntityConsumer<T> = TopicConsumer<EntityReplica<T>>;

/// Recent versions of a set of entities.
pub struct EntityVersions<T> {
    codec: EntitySetCodec<T>,
    log: VersionLog<EntitySet<T>>,
}

impl<T: State + Clone> EntityVersions<T> {
    /// No version yet.
    pub fn new(codec: EntitySetCodec<T>) -> Self {
        Self {
            codec,
            log: VersionLog::new(KEPT_VERSIONS),
        }
    }

    /// Adds a version, which is the newest.
    pub fn insert(&mut self, version: u64, now: Time, set: EntitySet<T>) {
        self.log.insert(version, now, set);
    }

    /// A recent version, and when it was published.
    pub fn get(&self, version: u64) -> Option<(Time, &EntitySet<T>)> {
        self.log.get(version)
    }
}

impl<T: State + Clone> Publication for EntityVersions<T> {
    fn answer(&self, base: Option<u64>) -> Option<Answer> {
        let (_, _, newest) = self.log.newest()?;
        let base = base.and_then(|base| self.log.get(base));
        let base = base.map(|(_, set)| set);
        Some(Answer {
            content: self.codec.encode(base, newest).ok()?,
            is_delta: base.is_some(),
        })
    }
}

/// Consumers that wait for the next version.
pub struct SeenSet<'a, T> {
    /// The set that they hold and when it was published; `None` if it is not known.
    pub held: Option<(Time, &'a EntitySet<T>)>,
    /// See [`Request::answer_by`](prescient_named::Request::answer_by).
    pub answer_by: Time,
}

impl<T: State + Clone> TopicProducer<EntityVersions<T>> {
    /// A producer of `/<topic>/sync`; see [`Producer::new`](prescient_named::Producer::new).
    pub fn new(
        topic: NameRef<'_>,
        config: ProducerConfig,
        first: u64,
        codec: EntitySetCodec<T>,
    ) -> Result<Self, NameError> {
        Self::with_publication(topic, config, first, EntityVersions::new(codec))
    }

    /// What consumers hold, for each floor at which some wait.
    pub fn seen(&self, now: Time) -> impl Iterator<Item = SeenSet<'_, T>> {
        self.waiting(now).map(|request| SeenSet {
            held: request.base.and_then(|base| self.publication.log.get(base)),
            answer_by: request.answer_by,
        })
    }

    /// Publishes a version and returns its number.
    pub fn publish(&mut self, now: Time, set: EntitySet<T>) -> u64 {
        self.publish_with(|versions, version| {
            versions.insert(version, now, set);
            version
        })
    }
}

/// The newest version of a set of entities.
pub struct EntityReplica<T> {
    codec: EntitySetCodec<T>,
    held: EntitySet<T>,
}

impl<T: State + Clone> EntityReplica<T> {
    /// No version yet.
    pub fn new(codec: EntitySetCodec<T>) -> Self {
        Self {
            codec,
            held: EntitySet::default(),
        }
    }

    /// The newest set that arrived; empty before the first.
    pub fn set(&self) -> &EntitySet<T> {
        &self.held
    }
}

impl<T: State + Clone> Replica for EntityReplica<T> {
    type Applied = Update;
    type Error = EntitySetError;

    fn apply(&mut self, update: Update) -> Result<Update, EntitySetError> {
        let base = update.base.is_some().then_some(&self.held);
        self.held = self.codec.decode(base, &update.content)?;
        Ok(update)
    }
}

impl<T: State + Clone> TopicConsumer<EntityReplica<T>> {
    /// A consumer of `/<topic>/sync`; see [`Consumer::new`](prescient_named::Consumer::new).
    pub fn new(
        now: Time,
        topic: NameRef<'_>,
        config: ConsumerConfig,
        first: u64,
        codec: EntitySetCodec<T>,
        key: [u8; 16],
    ) -> Result<Self, NameError> {
        let held = EntitySet::default();
        Self::with_replica(
            now,
            topic,
            config,
            first,
            EntityReplica { codec, held },
            key,
        )
    }

    /// The newest set that arrived; empty before the first.
    pub fn set(&self) -> &EntitySet<T> {
        self.replica.set()
    }
}
