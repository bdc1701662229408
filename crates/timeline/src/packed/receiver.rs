//! The receiving end.

use std::sync::Arc;

use prescient_codec::{Decoder, Layout, Slot};

use super::message::{Kind, Layer, Message, SteppedOperation, write_request};
use super::steps::{PackedConfig, Row, SteppedKeyframe, stepped_edit};
use crate::curve::EditError;
use crate::time::Time;
use crate::timeline::{Operation, PropertyId, Timeline};
use crate::value::Value;

/// Why a message was not applied.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// A message before it is missing, or was damaged. The receiver asks for it; this one comes again.
    #[error("a message before this one is missing")]
    Missing,
    /// The bytes are not a message of a sender. The receiver asks for it again.
    #[error("not a message of a sender, or a damaged one")]
    Malformed,
    /// The timeline refused an operation, because its limits are lower than the sender's. The others were
    /// applied.
    #[error(transparent)]
    Refused(EditError),
}

/// Receives operations.
pub struct Receiver<V: Value> {
    config: PackedConfig<V>,
    timeline: Timeline<V>,
    layout: Arc<Layout>,
    decoder: Decoder,
    /// The last batch that was applied.
    sequence: u64,
    base_time: i64,
    /// The batch to ask for, until it arrives.
    wanted: Option<u64>,
    is_asked: bool,
    /// Messages that were of no use since it asked.
    useless: u32,
}

impl<V: Value> Receiver<V> {
    /// A receiver that asks for everything.
    pub fn new(config: PackedConfig<V>) -> Self {
        let layout = Row::layout::<V>();
        Self {
            timeline: Timeline::new(config.timeline.clone()),
            decoder: Decoder::with_layout(layout.clone(), Row::config()),
            layout,
            sequence: 0,
            base_time: 0,
            wanted: Some(0),
            is_asked: false,
            useless: 0,
            config,
        }
    }

    /// The curves.
    pub fn timeline(&self) -> &Timeline<V> {
        &self.timeline
    }

    /// Sets the present time, which only matters for
    /// [`TimelineConfig::max_ahead`](crate::TimelineConfig::max_ahead).
    pub fn set_now(&mut self, now: Time) {
        self.timeline.set_now(now);
    }

    /// The request for what is missing, once, and again if many messages arrive but no answer;
    /// [`ask_again`](Self::ask_again) if it may be lost.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        let from = self.wanted.filter(|_| !self.is_asked)?;
        (self.is_asked, self.useless) = (true, 0);
        Some(write_request(from))
    }

    /// Lets [`poll_transmit`](Self::poll_transmit) return the request again, if it was not answered.
    pub fn ask_again(&mut self) {
        self.is_asked = false;
    }

    /// Asks for what follows: the connection is a new one, at whose other end the sender may know nothing of
    /// this receiver.
    pub fn handle_reconnected(&mut self) {
        self.ask();
        self.is_asked = false;
    }

    /// Applies a message.
    ///
    /// # Errors
    ///
    /// If one before it is missing, or it is damaged: then nothing was applied, and the receiver asks. If
    /// operations exceed the limits of the timeline: then the others were applied.
    pub fn handle(&mut self, message: &[u8]) -> Result<(), ReceiveError> {
        let Some(message) = Message::read(message) else {
            self.ask();
            return Err(ReceiveError::Malformed);
        };
        let continues = match message.kind {
            Kind::Batch => self.wanted.is_none() && message.sequence == self.sequence + 1,
            Kind::Resume { from } => from == self.sequence + 1,
            Kind::History => true,
        };
        if !continues {
            let is_repeated = message.kind == Kind::Batch && message.sequence <= self.sequence;
            if !is_repeated {
                self.ask();
                self.useless += 1;
            }
            if self.useless > PATIENCE {
                self.ask_again();
            }
            return Err(ReceiveError::Missing);
        }
        let base_time = match message.kind {
            Kind::Batch => self.base_time.wrapping_add(message.base_time),
            Kind::Resume { .. } | Kind::History => message.base_time,
        };
        if message.kind != Kind::Batch {
            self.decoder = Decoder::with_layout(self.layout.clone(), Row::config());
        }
        let mut operations = Vec::new();
        for layer in &message.layers {
            if self.decode(layer, base_time, &mut operations).is_none() {
                self.ask();
                return Err(ReceiveError::Malformed);
            }
        }
        if message.kind == Kind::History {
            let properties: Vec<_> = self.timeline.curves().map(|(id, _)| id).collect();
            for property in properties {
                self.timeline.forget(property);
            }
        }
        (self.sequence, self.base_time) = (message.sequence, base_time);
        (self.wanted, self.is_asked) = (None, false);
        let mut refused = None;
        for operation in &operations {
            if let Err(error) = self.timeline.apply(operation) {
                refused.get_or_insert(error);
            }
        }
        refused.map_or(Ok(()), |error| Err(ReceiveError::Refused(error)))
    }

    fn ask(&mut self) {
        if self.wanted.is_none() {
            self.wanted = Some(self.sequence + 1);
            self.is_asked = false;
        }
    }

    fn decode(
        &mut self,
        layer: &Layer<'_>,
        base_time: i64,
        operations: &mut Vec<Operation<V>>,
    ) -> Option<()> {
        let mut push = |property, operation: &SteppedOperation| {
            let property = PropertyId(property);
            let edit = stepped_edit(operation, &self.config)?;
            operations.push(Operation { property, edit });
            Some(())
        };
        if !layer.adds.is_empty() {
            let applied = self.decoder.decode(&layer.adds).ok()?;
            let archive = self.decoder.world();
            let changes = archive.changes(applied.tick)?;
            let mut slots: Vec<Slot> = [&changes.spawned[..], &changes.changed].concat();
            slots.sort_unstable();
            slots.dedup();
            for slot in slots {
                let row = archive.latest(slot)?;
                let keyframe = SteppedKeyframe {
                    time: row[Row::TIME].wrapping_add(base_time),
                    interpolation: row[Row::INTERPOLATION],
                    value: row[Row::VALUE..].to_vec(),
                };
                let property = u32::try_from(row[Row::PROPERTY]).ok()?;
                push(property, &SteppedOperation::Add(keyframe))?;
            }
        }
        for (property, edit) in &layer.edits {
            push(*property, &SteppedOperation::Edit(edit.clone()))?;
        }
        Some(())
    }
}

/// Messages that may be under way before the answer to a request.
const PATIENCE: u32 = 64;
