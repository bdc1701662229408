//! Topics of named data: what a peer publishes, and replicas of it. [`TopicProducer`] and [`TopicConsumer`] do what
//! all topics have in common; what is published is a [`Publication`], what is kept of it a [`Replica`].

use prescient_named::{
    Answer, Consumer, ConsumerConfig, ConsumerStatistics, Data, Interest, NameError, NameRef,
    Producer, ProducerConfig, ProducerStatistics, Request, Time, Update, UpdateError,
};
use thiserror::Error;

/// The state that a peer publishes under a topic. The [`TopicProducer`] numbers its versions.
///
/// ```
/// use prescient::named::{
///     Answer, ConsumerConfig, Data, Interest, Name, ProducerConfig, Signer, Time, Update,
/// };
/// use prescient::{Publication, Replica, TopicConsumer, TopicError, TopicProducer};
///
/// #[derive(Debug, PartialEq)]
/// struct Score(u8);
///
/// impl Publication for Score {
///     fn answer(&self, _base: Option<u64>) -> Option<Answer> {
///         Some(Answer { content: vec![self.0], is_delta: false })
///     }
/// }
///
/// impl Replica for Score {
///     type Applied = u8;
///     type Error = ();
///
///     fn apply(&mut self, update: Update) -> Result<u8, ()> {
///         self.0 = *update.content.first().ok_or(())?;
///         Ok(self.0)
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (now, topic): (Time, Name) = (Time::from_micros(0), "/game/0/anna/score".parse()?);
/// let (own, theirs) = (ProducerConfig::new(Signer::digest()), ConsumerConfig::new(Signer::digest().verifier()));
/// let mut anna = TopicProducer::with_publication(topic.view(), own, 1, Score(0))?;
/// let mut ben = TopicConsumer::with_replica(now, topic.view(), theirs, 1, Score(0), [7; 16])?;
/// assert_eq!(anna.prefix(), ben.prefix()); // to register at a forwarder, which carries packets
/// anna.publish_with(|score, _version| score.0 = 3);
/// let mut packet = Vec::new();
/// for _ in 0..4 {
///     if ben.poll_transmit(now, &mut packet) {
///         anna.handle_interest(now, &Interest::decode(&packet)?);
///     }
///     if anna.poll_transmit(now, &mut packet) {
///         let brought: Result<Option<u8>, TopicError<()>> = ben.handle_data(now, &Data::decode(&packet)?);
///         assert_eq!(brought, Ok(Some(3)));
///     }
/// }
/// assert_eq!(ben.replica(), anna.publication());
/// ben.pause(Time::from_micros(500_000)); // nothing is asked for before
/// # Ok(())
/// # }
/// ```
pub trait Publication {
    /// The newest version for consumers that hold the version `base`, or none; `None` if there is no answer yet.
    fn answer(&self, base: Option<u64>) -> Option<Answer>;
}

/// Publishes a topic, without sockets and clocks.
///
/// 1. Make one, and register [`prefix`](Self::prefix) at the forwarder.
/// 2. [`handle_interest`](Self::handle_interest) with received Interests; send what it returns.
/// 3. `publish` when something has changed.
/// 4. After these calls: [`poll_transmit`](Self::poll_transmit) until it returns false.
pub struct TopicProducer<P> {
    pub(crate) producer: Producer,
    pub(crate) publication: P,
}

impl<P: Publication> TopicProducer<P> {
    /// A producer of `/<topic>/sync`; see [`Producer::new`]. [`EntityProducer`](crate::EntityProducer) and
    /// [`SpectatorProducer`](crate::SpectatorProducer) have constructors of their own.
    pub fn with_publication(
        topic: NameRef<'_>,
        config: ProducerConfig,
        first: u64,
        publication: P,
    ) -> Result<Self, NameError> {
        Ok(Self {
            producer: Producer::new(topic, config, first)?,
            publication,
        })
    }

    /// `/<topic>/sync`, the prefix to register.
    pub fn prefix(&self) -> NameRef<'_> {
        self.producer.prefix()
    }

    /// Counts since the start.
    pub fn statistics(&self) -> ProducerStatistics {
        self.producer.statistics()
    }

    /// The present publication.
    pub fn publication(&self) -> &P {
        &self.publication
    }

    /// Publishes a version: `change` gets its number.
    pub fn publish_with<R>(&mut self, change: impl FnOnce(&mut P, u64) -> R) -> R {
        let version = self.producer.publish();
        change(&mut self.publication, version)
    }

    /// Handles an Interest below [`prefix`](Self::prefix); see [`Producer::handle_interest`].
    pub fn handle_interest(&mut self, now: Time, interest: &Interest<'_>) -> Option<&[u8]> {
        self.producer.handle_interest(now, interest)
    }

    /// All requests that wait.
    pub fn waiting(&self, now: Time) -> impl Iterator<Item = Request> {
        self.producer.waiting(now)
    }

    /// Replaces the content of `bytes` by the next answer to send. False if there is none.
    pub fn poll_transmit(&mut self, now: Time, bytes: &mut Vec<u8>) -> bool {
        let publication = &self.publication;
        let answer = |request: &Request| publication.answer(request.base);
        self.producer.poll_transmit(now, answer, bytes)
    }
}

/// A consumer's copy of a publication.
pub trait Replica {
    /// The result of applying an update.
    type Applied;
    /// Why an update cannot be applied.
    type Error;

    /// Applies a version. After an error the consumer starts again with a whole version.
    fn apply(&mut self, update: Update) -> Result<Self::Applied, Self::Error>;
}

/// Why Data was not applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TopicError<E> {
    /// It is not an answer to the present Interest, or not authentic.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// Its content cannot be applied. The consumer starts again with a whole version.
    #[error(transparent)]
    Content(E),
}

/// Keeps a replica of what a [`TopicProducer`] publishes, without sockets and clocks; the order of calls is that of
/// [`Consumer`].
pub struct TopicConsumer<R> {
    consumer: Consumer,
    pub(crate) replica: R,
}

impl<R: Replica> TopicConsumer<R> {
    /// A consumer of `/<topic>/sync`; see [`Consumer::new`]. [`EntityConsumer`](crate::EntityConsumer) and
    /// [`SpectatorConsumer`](crate::SpectatorConsumer) have constructors of their own.
    pub fn with_replica(
        now: Time,
        topic: NameRef<'_>,
        config: ConsumerConfig,
        first: u64,
        replica: R,
        key: [u8; 16],
    ) -> Result<Self, NameError> {
        Ok(Self {
            consumer: Consumer::new(now, topic, config, first, key)?,
            replica,
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

    /// The replica that is kept up to date.
    pub fn replica(&self) -> &R {
        &self.replica
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

    /// Handles Data. Returns what a new version brings, if there is one.
    pub fn handle_data(
        &mut self,
        now: Time,
        data: &Data<'_>,
    ) -> Result<Option<R::Applied>, TopicError<R::Error>> {
        let Some(update) = self.consumer.handle_data(now, data)? else {
            return Ok(None);
        };
        match self.replica.apply(update) {
            Ok(applied) => Ok(Some(applied)),
            Err(error) => {
                self.consumer.restart(now);
                Err(TopicError::Content(error))
            }
        }
    }
}
