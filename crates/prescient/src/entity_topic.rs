//! Versioned sync of the entities that a peer owns: [`Producer`] and [`Consumer`] with an [`EntitySetCodec`].

use prescient_named::{
    Consumer, ConsumerConfig, ConsumerStatistics, Data, Interest, NameError, NameRef, Producer,
    ProducerConfig, ProducerStatistics, Time, Update, UpdateError, VersionLog,
};
use prescient_schema::State;
use thiserror::Error;

use crate::entity_set::{EntitySet, EntitySetCodec, EntitySetError};

/// The versions that a producer keeps: consumers that hold an older one get the set whole.
const KEPT_VERSIONS: usize = 64;

/// Publishes the entities of one type that a peer owns, without sockets and clocks.
///
/// 1. [`EntityProducer::new`], and register [`prefix`](Self::prefix) at the forwarder.
/// 2. [`handle_interest`](Self::handle_interest) with received Interests; send what it returns.
/// 3. [`publish`](Self::publish) when an entity has changed, if what consumers [have seen](Self::seen) makes it
///    worth while.
/// 4. After these calls: [`poll_transmit`](Self::poll_transmit) until it returns false.
pub struct EntityProducer<T> {
    producer: Producer,
    codec: EntitySetCodec<T>,
    log: VersionLog<EntitySet<T>>,
}

impl<T: State + Clone> EntityProducer<T> {
    /// A producer of `/<topic>/sync`; see [`Producer::new`].
    pub fn new(
        topic: NameRef<'_>,
        config: ProducerConfig,
        first: u64,
        codec: EntitySetCodec<T>,
    ) -> Result<Self, NameError> {
        Ok(Self {
            producer: Producer::new(topic, config, first)?,
            codec,
            log: VersionLog::new(KEPT_VERSIONS),
        })
    }

    /// `/<topic>/sync`.
    pub fn prefix(&self) -> NameRef<'_> {
        self.producer.prefix()
    }

    /// Counts since the start.
    pub fn statistics(&self) -> ProducerStatistics {
        self.producer.statistics()
    }

    /// Handles an Interest below [`prefix`](Self::prefix); see [`Producer::handle_interest`].
    pub fn handle_interest(&mut self, now: Time, interest: &Interest<'_>) -> Option<&[u8]> {
        self.producer.handle_interest(now, interest)
    }

    /// For each floor at which consumers wait: the set that they hold and when it was published; `None` if it is
    /// not known.
    pub fn seen(&self, now: Time) -> impl Iterator<Item = Option<(Time, &EntitySet<T>)>> {
        let waiting = self.producer.waiting(now);
        waiting.map(|request| request.base.and_then(|base| self.log.get(base)))
    }

    /// Publishes a version and returns its number.
    pub fn publish(&mut self, now: Time, set: EntitySet<T>) -> u64 {
        let version = self.producer.publish();
        self.log.insert(version, now, set);
        version
    }

    /// Replaces the content of `bytes` by the next answer to send. False if there is none.
    pub fn poll_transmit(&mut self, now: Time, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        while let Some(request) = self.producer.poll_request(now) {
            let Some((_, _, newest)) = self.log.newest() else {
                return false;
            };
            let base = request.base.and_then(|base| self.log.get(base));
            let base = base.map(|(_, set)| set);
            let Ok(content) = self.codec.encode(base, newest) else {
                continue;
            };
            let is_delta = base.is_some();
            let answered = self
                .producer
                .answer(now, request, is_delta, &content, bytes);
            if answered.is_ok() {
                return true;
            }
            bytes.clear();
        }
        false
    }
}

/// Why Data was not applied. What is held has not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TopicError {
    /// It is not an answer to the present Interest, or not authentic.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// Its content cannot be decoded. The consumer starts again with a whole set.
    #[error(transparent)]
    Set(#[from] EntitySetError),
}

/// Keeps a replica of what an [`EntityProducer`] publishes, without sockets and clocks; the order of calls is that
/// of [`Consumer`].
pub struct EntityConsumer<T> {
    consumer: Consumer,
    codec: EntitySetCodec<T>,
    held: EntitySet<T>,
}

impl<T: State + Clone> EntityConsumer<T> {
    /// A consumer of `/<topic>/sync`; see [`Consumer::new`].
    pub fn new(
        now: Time,
        topic: NameRef<'_>,
        config: ConsumerConfig,
        first: u64,
        codec: EntitySetCodec<T>,
        key: [u8; 16],
    ) -> Result<Self, NameError> {
        Ok(Self {
            consumer: Consumer::new(now, topic, config, first, key)?,
            codec,
            held: EntitySet::default(),
        })
    }

    /// `/<topic>/sync`.
    pub fn prefix(&self) -> NameRef<'_> {
        self.consumer.prefix()
    }

    /// Counts since the start.
    pub fn statistics(&self) -> ConsumerStatistics {
        self.consumer.statistics()
    }

    /// The newest set that arrived; empty before the first.
    pub fn set(&self) -> &EntitySet<T> {
        &self.held
    }

    /// Sends no Interest before a time; see [`Consumer::pause`].
    pub fn pause(&mut self, until: Time) {
        self.consumer.pause(until);
    }

    /// When to call [`poll_transmit`](Self::poll_transmit).
    pub fn next_timeout(&self) -> Time {
        self.consumer.next_timeout()
    }

    /// Replaces the content of `bytes` by the next Interest to send. False if there is none at this time.
    pub fn poll_transmit(&mut self, now: Time, bytes: &mut Vec<u8>) -> bool {
        self.consumer.poll_transmit(now, bytes)
    }

    /// Handles a Nack; see [`Consumer::handle_nack`].
    pub fn handle_nack(&mut self, now: Time, interest: &Interest<'_>) {
        self.consumer.handle_nack(now, interest);
    }

    /// Handles Data. Returns the version if a new one is held now.
    pub fn handle_data(
        &mut self,
        now: Time,
        data: &Data<'_>,
    ) -> Result<Option<Update>, TopicError> {
        let Some(update) = self.consumer.handle_data(now, data)? else {
            return Ok(None);
        };
        let base = update.base.is_some().then_some(&self.held);
        match self.codec.decode(base, &update.content) {
            Ok(set) => {
                self.held = set;
                Ok(Some(update))
            }
            Err(error) => {
                self.consumer.restart(now);
                Err(error.into())
            }
        }
    }
}
