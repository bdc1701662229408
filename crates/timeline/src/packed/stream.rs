//! What one receiver is sent. Messages are made when they are asked for, so that a slow receiver's do not
//! pile up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::coder::Coder;
use super::message::{Kind, Layer, Message, SteppedOperation, read_request};
use super::sender::SendError;
use super::source::{PropertyOperation, Source};
use super::steps::{PackedConfig, Row, SteppedKeyframe};
use crate::timeline::{PropertyId, Timeline};
use crate::value::Value;

/// The messages to one receiver.
///
/// Messages are numbered as batches are, but not alike: a history has several numbers, and so has a batch
/// that is too long for one message.
pub(super) struct Stream<V: Value> {
    coder: Coder,
    base_time: i64,
    /// The number of the last message.
    sequence: u64,
    /// The last batch of the source that was sent, or begun.
    batch: u64,
    /// The batches of the newest numbers; `None` for parts of something.
    numbers: VecDeque<Option<u64>>,
    /// What the next message is, if it continues no message before.
    restart: Option<Kind>,
    /// Parts of the batch that was begun.
    parts: VecDeque<Vec<PropertyOperation>>,
    history: Option<History<V>>,
    /// Whether the receiver asked for anything yet.
    is_asked: bool,
}

impl<V: Value> Stream<V> {
    pub(super) fn new() -> Self {
        Self {
            coder: Coder::new(Row::layout::<V>()),
            base_time: 0,
            sequence: 0,
            batch: 0,
            numbers: VecDeque::new(),
            restart: None,
            parts: VecDeque::new(),
            history: None,
            is_asked: false,
        }
    }

    /// Takes a request.
    pub(super) fn handle(
        &mut self,
        message: &[u8],
        source: &mut Source<V>,
    ) -> Result<(), SendError> {
        let from = read_request(message).ok_or(SendError::Malformed)?;
        self.is_asked = true;
        source.flush_before_history();
        match self.resume_at(from) {
            Some(batch) if batch > source.newest() || source.batch(batch).is_some() => {
                let known = self.sequence + 1 - from;
                self.numbers.truncate(self.numbers.len() - known as usize);
                self.sequence = from - 1;
                self.batch = batch - 1;
                self.parts.clear();
                self.begin_anew(Kind::Resume { from });
            }
            _ => self.begin_history(source),
        }
        Ok(())
    }

    /// The batch with which the message of a number starts; `None` if it starts with a part of something.
    fn resume_at(&self, from: u64) -> Option<u64> {
        let is_whole = self.history.is_none() && self.parts.is_empty();
        if from == self.sequence + 1 {
            return is_whole.then_some(self.batch + 1);
        }
        let from_end = usize::try_from(self.sequence.checked_sub(from)?).ok()?;
        let index = self.numbers.len().checked_sub(from_end.checked_add(1)?)?;
        // All later numbers are batches, too: a part sent later begins with a history.
        let later = self.numbers.range(index..).all(Option::is_some);
        self.numbers[index].filter(|_| is_whole && later)
    }

    /// The next message.
    pub(super) fn poll_transmit(&mut self, source: &mut Source<V>) -> Option<Vec<u8>> {
        if !self.is_asked {
            return None;
        }
        loop {
            let (kind, count, operations) = self.next(source)?;
            let message = self.message(kind, count, &operations, source.base_time());
            let is_too_long = message.len() > source.config().max_message;
            if is_too_long && operations.len() > 1 {
                self.divide(kind, count, operations);
                continue;
            }
            self.sequence += count;
            self.base_time = source.base_time();
            while self.numbers.len() > source.config().history {
                self.numbers.pop_front();
            }
            return Some(message);
        }
    }

    /// Takes what the next message contains: its kind, its numbers, and its operations.
    fn next(&mut self, source: &mut Source<V>) -> Option<(Kind, u64, Vec<PropertyOperation>)> {
        let max = source.config().max_operations();
        if let Some(part) = self.parts.pop_front() {
            return Some(self.part(part));
        }
        if let Some(history) = &mut self.history {
            let part = history.next(max, source.config());
            if self.restart.is_some() || !part.is_empty() {
                return Some(self.part(part));
            }
            self.history = None;
        }
        let missing = source.newest().saturating_sub(self.batch);
        if missing > 0 && source.batch(self.batch + 1).is_none() {
            // More happened than is kept since a message was asked for.
            source.flush_before_history();
            self.begin_history(source);
            return self.next(source);
        }
        if missing == 0 && self.restart.is_none() {
            return None;
        }
        let kind = self.restart.take().unwrap_or(Kind::Batch);
        let mut operations = Vec::new();
        let mut count = 0;
        while let Some(batch) = source.batch(self.batch + 1) {
            // A resume takes as many batches as fit.
            if count > 0 && (kind == Kind::Batch || operations.len() + batch.len() > max) {
                break;
            }
            operations.extend_from_slice(batch);
            self.batch += 1;
            self.numbers.push_back(Some(self.batch));
            count += 1;
        }
        Some((kind, count, operations))
    }

    /// A part of something, as a message. The first part of a history has the number of the message before.
    fn part(&mut self, operations: Vec<PropertyOperation>) -> (Kind, u64, Vec<PropertyOperation>) {
        let kind = self.restart.take().unwrap_or(Kind::Batch);
        let count = u64::from(kind != Kind::History);
        self.numbers.extend((0..count).map(|_| None));
        (kind, count, operations)
    }

    /// Puts back what does not fit into a message, to be sent in parts. The codec has learned from it and
    /// starts anew.
    fn divide(&mut self, kind: Kind, count: u64, mut operations: Vec<PropertyOperation>) {
        self.numbers.truncate(self.numbers.len() - count as usize);
        let second = operations.split_off(operations.len() / 2);
        self.parts.push_front(second);
        self.parts.push_front(operations);
        let from = self.sequence + 1;
        self.begin_anew(match kind {
            Kind::History => Kind::History,
            Kind::Batch | Kind::Resume { .. } => Kind::Resume { from },
        });
    }

    fn begin_history(&mut self, source: &mut Source<V>) {
        let is_begun = self.restart == Some(Kind::History) && self.batch == source.newest();
        if is_begun && self.history.is_some() {
            return;
        }
        self.history = Some(History::new(source.copy(), source.config()));
        self.sequence = self.sequence.max(source.newest());
        self.batch = source.newest();
        self.numbers.clear();
        self.parts.clear();
        self.begin_anew(Kind::History);
    }

    fn begin_anew(&mut self, kind: Kind) {
        self.coder = Coder::new(self.coder.layout());
        self.restart = Some(kind);
    }

    /// Operations on different properties may change places, so each layer has one of each property.
    fn message(
        &mut self,
        kind: Kind,
        count: u64,
        operations: &[PropertyOperation],
        now: i64,
    ) -> Vec<u8> {
        let mut layers: Vec<Vec<&PropertyOperation>> = Vec::new();
        let mut depths: BTreeMap<u32, usize> = BTreeMap::new();
        for operation in operations {
            let depth = depths.entry(operation.0).or_default();
            if *depth == layers.len() {
                layers.push(Vec::new());
            }
            layers[*depth].push(operation);
            *depth += 1;
        }
        let mut coded = Vec::new();
        for layer in layers {
            let mut adds = Vec::new();
            let mut edits = Vec::new();
            for (property, operation) in layer {
                match operation {
                    SteppedOperation::Add(keyframe) => adds.push((*property, keyframe)),
                    SteppedOperation::Edit(edit) => edits.push((*property, edit.clone())),
                }
            }
            let packet = match adds.is_empty() {
                true => Vec::new(),
                false => self.coder.encode(now, &adds),
            };
            coded.push(Layer {
                adds: packet.into(),
                edits,
            });
        }
        let base_time = match kind {
            Kind::Batch => now.wrapping_sub(self.base_time),
            Kind::Resume { .. } | Kind::History => now,
        };
        let message = Message {
            kind,
            sequence: self.sequence + count,
            base_time,
            layers: coded,
        };
        message.to_bytes()
    }
}

/// A timeline that is sent in parts: the first keyframes of all properties, the second ones, and so on, as
/// in layers.
struct History<V: Value> {
    timeline: Arc<Timeline<V>>,
    /// What comes before: keyframes with the values at which integrals start whose beginning was dropped.
    starts: Vec<PropertyOperation>,
    /// The properties that have this many keyframes and more, in descending order, without those of which
    /// this one was sent.
    left: Vec<PropertyId>,
    index: usize,
}

impl<V: Value> History<V> {
    fn new(timeline: Arc<Timeline<V>>, config: &PackedConfig<V>) -> Self {
        let starts = timeline.curves().filter_map(|(property, curve)| {
            let stepped = SteppedKeyframe::of(&curve.start()?, config)?;
            Some((property.0, SteppedOperation::Add(stepped)))
        });
        let mut starts: Vec<PropertyOperation> = starts.collect();
        starts.reverse();
        let mut history = Self {
            starts,
            timeline,
            left: Vec::new(),
            index: 0,
        };
        history.begin_layer();
        history
    }

    fn begin_layer(&mut self) {
        let long = |&(_, curve): &(PropertyId, &crate::curve::Curve<V>)| curve.len() > self.index;
        let curves = self.timeline.curves().filter(long);
        self.left = curves.map(|(property, _)| property).collect();
        self.left.reverse();
    }

    /// The next additions, at most `max`; empty at the end.
    fn next(&mut self, max: usize, config: &PackedConfig<V>) -> Vec<PropertyOperation> {
        let mut operations = Vec::new();
        while operations.len() < max {
            if let Some(start) = self.starts.pop() {
                operations.push(start);
                continue;
            }
            let Some(property) = self.left.pop() else {
                self.index += 1;
                self.begin_layer();
                match self.left.is_empty() {
                    true => break,
                    false => continue,
                }
            };
            let keyframe = self
                .timeline
                .curve(property)
                .map(|curve| curve.keyframe(self.index));
            let stepped = keyframe.and_then(|keyframe| SteppedKeyframe::of(&keyframe, config));
            operations.extend(stepped.map(|stepped| (property.0, SteppedOperation::Add(stepped))));
        }
        operations
    }
}
