//! The sending end, for one receiver or for many.

use std::collections::BTreeMap;

use super::source::Source;
use super::steps::PackedConfig;
use super::stream::Stream;
use crate::curve::{EditError, Keyframe};
use crate::plan::PlanError;
use crate::time::Time;
use crate::timeline::{Operation, PropertyId, Timeline};
use crate::value::Value;

/// Why an operation or a message of the receiver is refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The timeline refuses the operation.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A component has more than 2⁵³ steps. Use a larger step.
    #[error("a component has more than 2^53 steps")]
    TooManySteps,
    /// The future cannot be planned.
    #[error(transparent)]
    Plan(PlanError),
    /// The bytes are not a request of a receiver.
    #[error("not a request of a receiver")]
    Malformed,
}

/// Sends operations to one receiver, packed per interval. For several receivers use a [`Broadcast`].
pub struct Sender<V: Value>(Broadcast<(), V>);

impl<V: Value> Sender<V> {
    /// A sender without properties, at time zero.
    pub fn new(config: PackedConfig<V>) -> Self {
        Self(Broadcast::new(config))
    }

    /// Applies an operation, rounded to steps, and sends it with the next batch.
    ///
    /// # Errors
    ///
    /// If the timeline refuses it, or a component is too large.
    pub fn apply(&mut self, operation: &Operation<V>) -> Result<(), SendError> {
        self.0.apply(operation)
    }

    /// [`Broadcast::follow`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn follow(
        &mut self,
        property: PropertyId,
        from: Time,
        future: &[Keyframe<V>],
    ) -> Result<usize, SendError> {
        self.0.follow(property, from, future)
    }

    /// What the receiver will have: all operations, rounded.
    pub fn timeline(&self) -> &Timeline<V> {
        self.0.timeline()
    }

    /// Sends what waits at once: call it after urgent operations.
    pub fn flush(&mut self, now: Time) {
        self.0.flush(now);
    }

    /// Sends what waits if the interval is over.
    pub fn handle_timeout(&mut self, now: Time) {
        self.0.handle_timeout(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn next_timeout(&self) -> Time {
        self.0.next_timeout()
    }

    /// Takes a message of the receiver: answers with the batches that it misses, or with the whole timeline.
    ///
    /// # Errors
    ///
    /// If it is not a request.
    pub fn handle(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.0.handle((), message)
    }

    /// The next message for the receiver. It is made now: a receiver that is slow to take messages makes
    /// none pile up.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.0.poll_transmit(())
    }
}

/// Sends operations to any number of receivers, packed per interval. Each begins when it asks, and gets
/// what it misses; `K` names receivers.
pub struct Broadcast<K: Ord + Copy, V: Value> {
    source: Source<V>,
    streams: BTreeMap<K, Stream<V>>,
}

impl<K: Ord + Copy, V: Value> Broadcast<K, V> {
    /// One without properties and receivers, at time zero.
    pub fn new(config: PackedConfig<V>) -> Self {
        Self {
            source: Source::new(config),
            streams: BTreeMap::new(),
        }
    }

    /// Applies an operation, rounded to steps, and sends it with the next batch.
    ///
    /// # Errors
    ///
    /// If the timeline refuses it, or a component is too large.
    pub fn apply(&mut self, operation: &Operation<V>) -> Result<(), SendError> {
        self.source.apply(operation)
    }

    /// Lets a curve follow these keyframes after `from`, and leaves it as it is until then: applies the
    /// edits of [`plan`](crate::plan) and returns their number. Keyframes that are there already cost
    /// nothing, and a mere delay costs one edit.
    ///
    /// # Errors
    ///
    /// If the future cannot be planned, or a component is too large.
    pub fn follow(
        &mut self,
        property: PropertyId,
        from: Time,
        future: &[Keyframe<V>],
    ) -> Result<usize, SendError> {
        self.source.follow(property, from, future)
    }

    /// What the receivers will have: all operations, rounded.
    pub fn timeline(&self) -> &Timeline<V> {
        self.source.timeline()
    }

    /// Sends what waits at once: call it after urgent operations.
    pub fn flush(&mut self, now: Time) {
        self.source.flush(now);
    }

    /// Sends what waits if the interval is over.
    pub fn handle_timeout(&mut self, now: Time) {
        self.source.handle_timeout(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn next_timeout(&self) -> Time {
        self.source.next_timeout()
    }

    /// Takes a message of a receiver: answers with the batches that it misses, or with the whole timeline.
    ///
    /// # Errors
    ///
    /// If it is not a request.
    pub fn handle(&mut self, receiver: K, message: &[u8]) -> Result<(), SendError> {
        if let Some(stream) = self.streams.get_mut(&receiver) {
            return stream.handle(message, &mut self.source);
        }
        let mut stream = Stream::new();
        stream.handle(message, &mut self.source)?;
        self.streams.insert(receiver, stream);
        Ok(())
    }

    /// The next message for a receiver. It is made now: a receiver that is slow to take messages makes none
    /// pile up.
    pub fn poll_transmit(&mut self, receiver: K) -> Option<Vec<u8>> {
        let stream = self.streams.get_mut(&receiver)?;
        stream.poll_transmit(&mut self.source)
    }

    /// The receivers that asked for something, ascending.
    pub fn receivers(&self) -> impl Iterator<Item = K> {
        self.streams.keys().copied()
    }

    /// Forgets a receiver. False if there is none.
    pub fn remove(&mut self, receiver: K) -> bool {
        self.streams.remove(&receiver).is_some()
    }
}
