//! The sending end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use prescient_codec::history::Archive;
use prescient_codec::{Encoder, HISTORY, Layout, Slot, Tick};

use super::message::{Kind, Layer, Message, SteppedEdit, SteppedOperation, read_request};
use super::steps::{PackedConfig, Row, SteppedKeyframe};
use crate::curve::{Edit, EditError};
use crate::time::Time;
use crate::timeline::{Operation, Timeline};
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
    /// The bytes are not a request of a receiver.
    #[error("not a request of a receiver")]
    Malformed,
}

/// Sends operations to one receiver, packed per interval.
pub struct Sender<V: Value> {
    config: PackedConfig<V>,
    timeline: Timeline<V>,
    coder: Coder,
    /// Operations since the last batch, in steps.
    waiting: Vec<(u32, SteppedOperation)>,
    flushed: Time,
    /// Batches for receivers that miss some, the newest last.
    kept: VecDeque<Vec<(u32, SteppedOperation)>>,
    sequence: u64,
    base_time: i64,
    /// Whether the receiver asked for anything yet.
    has_receiver: bool,
    messages: VecDeque<Vec<u8>>,
}

impl<V: Value> Sender<V> {
    /// A sender without properties, at time zero.
    pub fn new(config: PackedConfig<V>) -> Self {
        Self {
            timeline: Timeline::new(config.timeline.clone()),
            coder: Coder::new(Row::layout::<V>()),
            waiting: Vec::new(),
            flushed: Time::ZERO,
            kept: VecDeque::new(),
            sequence: 0,
            base_time: 0,
            has_receiver: false,
            messages: VecDeque::new(),
            config,
        }
    }

    /// Applies an operation, rounded to steps, and sends it with the next batch.
    ///
    /// # Errors
    ///
    /// If the timeline refuses it, or a component is too large.
    pub fn apply(&mut self, operation: &Operation<V>) -> Result<(), SendError> {
        let config = &self.config;
        let stepped = match operation.edit {
            Edit::Add(keyframe) => {
                // The timeline refuses what is not finite, before it is rounded.
                keyframe.value.check().map_err(EditError::from)?;
                let keyframe = SteppedKeyframe::of(&keyframe, config);
                SteppedOperation::Add(keyframe.ok_or(SendError::TooManySteps)?)
            }
            Edit::Remove { time } => {
                let time = config.time_steps(time);
                SteppedOperation::Edit(SteppedEdit::Remove { time })
            }
            Edit::Move { time, by } => {
                let steps = config.time_steps(time);
                let by = config.time_steps(time + by) - steps;
                SteppedOperation::Edit(SteppedEdit::Move { time: steps, by })
            }
            Edit::MoveWithin { from, to, by } => {
                let by = config.time_steps(Time::ZERO + by);
                let [from, to] = [from, to].map(|time| config.time_steps(time));
                SteppedOperation::Edit(SteppedEdit::MoveWithin { from, to, by })
            }
            Edit::Clear => SteppedOperation::Edit(SteppedEdit::Clear),
        };
        let edit = stepped_edit(&stepped, config).ok_or(SendError::TooManySteps)?;
        let property = operation.property;
        self.timeline.apply(&Operation { property, edit })?;
        self.waiting.push((property.0, stepped));
        Ok(())
    }

    /// What the receiver will have: all operations, rounded.
    pub fn timeline(&self) -> &Timeline<V> {
        &self.timeline
    }

    /// Sends what waits at once: call it after urgent operations.
    pub fn flush(&mut self, now: Time) {
        self.timeline.set_now(now);
        self.flushed = now;
        if self.waiting.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.waiting);
        self.sequence += 1;
        let base_time = self.config.time_steps(now);
        let moved = base_time.wrapping_sub(self.base_time);
        self.base_time = base_time;
        if self.has_receiver {
            self.send(Kind::Batch, moved, &batch);
        }
        self.kept.push_back(batch);
        while self.kept.len() > self.config.history {
            self.kept.pop_front();
        }
    }

    /// Sends what waits if the interval is over.
    pub fn handle_timeout(&mut self, now: Time) {
        if now >= self.next_timeout() {
            self.flush(now);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn next_timeout(&self) -> Time {
        self.flushed + self.config.interval
    }

    /// Takes a message of the receiver: answers with the batches that it misses, or with the whole timeline.
    ///
    /// # Errors
    ///
    /// If it is not a request.
    pub fn handle(&mut self, message: &[u8]) -> Result<(), SendError> {
        let from = read_request(message).ok_or(SendError::Malformed)?;
        self.has_receiver = true;
        // What waits belongs to a later batch, but the timeline contains it already.
        self.flush(self.flushed);
        self.messages.clear();
        self.coder = Coder::new(self.coder.layout.clone());
        let missing = (self.sequence + 1).checked_sub(from);
        let first = missing.and_then(|missing| {
            let missing = usize::try_from(missing).ok()?;
            self.kept.len().checked_sub(missing)
        });
        match first {
            Some(first) if from > 0 => {
                let batches: Vec<_> = self.kept.range(first..).flatten().cloned().collect();
                self.send(Kind::Resume { from }, self.base_time, &batches);
            }
            _ => {
                let mut operations = Vec::new();
                for (property, curve) in self.timeline.curves() {
                    let stepped = |keyframe| SteppedKeyframe::of(&keyframe, &self.config);
                    let keyframes = curve.keyframes().filter_map(stepped);
                    let adds = keyframes.map(SteppedOperation::Add);
                    operations.extend(adds.map(|add| (property.0, add)));
                }
                self.send(Kind::History, self.base_time, &operations);
            }
        }
        Ok(())
    }

    /// The next message for the receiver.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.messages.pop_front()
    }

    /// Operations on different properties may change places, so each layer has one of each property.
    fn send(&mut self, kind: Kind, base_time: i64, operations: &[(u32, SteppedOperation)]) {
        let mut layers: Vec<Vec<&(u32, SteppedOperation)>> = Vec::new();
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
                false => self.coder.encode(self.base_time, &adds),
            };
            coded.push(Layer {
                adds: packet.into(),
                edits,
            });
        }
        let message = Message {
            kind,
            sequence: self.sequence,
            base_time,
            layers: coded,
        };
        self.messages.push_back(message.to_bytes());
    }
}

/// The edit that both ends apply.
pub(super) fn stepped_edit<V: Value>(
    operation: &SteppedOperation,
    config: &PackedConfig<V>,
) -> Option<Edit<V>> {
    Some(match operation {
        SteppedOperation::Add(keyframe) => Edit::Add(keyframe.keyframe(config)?),
        SteppedOperation::Edit(edit) => match *edit {
            SteppedEdit::Remove { time } => Edit::Remove {
                time: config.time(time),
            },
            SteppedEdit::Move { time, by } => Edit::Move {
                time: config.time(time),
                by: config.span(by),
            },
            SteppedEdit::MoveWithin { from, to, by } => Edit::MoveWithin {
                from: config.time(from),
                to: config.time(to),
                by: config.span(by),
            },
            SteppedEdit::Clear => Edit::Clear,
        },
    })
}

/// The codec's end: an archive with one entity per property.
struct Coder {
    layout: Arc<Layout>,
    archive: Archive,
    encoder: Encoder,
    slots: BTreeMap<u32, (Slot, Vec<i64>)>,
}

impl Coder {
    fn new(layout: Arc<Layout>) -> Self {
        Self {
            archive: Archive::new(layout.schema().clone(), HISTORY),
            encoder: Encoder::with_layout(layout.clone(), Row::config()),
            layout,
            slots: BTreeMap::new(),
        }
    }

    /// A packet with these keyframes, each of another property.
    fn encode(&mut self, base_time: i64, adds: &[(u32, &SteppedKeyframe)]) -> Vec<u8> {
        let next = self.archive.newest().map_or(1, |tick| tick.0 + 1);
        let mut shown = Vec::new();
        // Rows within the ranges of their fields, and increasing ticks, are not refused.
        if let Ok(mut capture) = self.archive.begin(Tick(next)) {
            for &(property, keyframe) in adds {
                let known = self.slots.get(&property);
                let is_odd = known.is_none_or(|(_, row)| row[Row::IS_ODD] == 0);
                let mut row = vec![0; Row::VALUE];
                row[Row::PROPERTY] = i64::from(property);
                row[Row::IS_ODD] = i64::from(is_odd);
                row[Row::TIME] = keyframe.time.wrapping_sub(base_time);
                row[Row::INTERPOLATION] = keyframe.interpolation;
                row.extend_from_slice(&keyframe.value);
                let slot = match known {
                    Some(&(slot, _)) => capture.write(slot, &row).ok().map(|()| slot),
                    None => capture
                        .spawn(0, &row)
                        .ok()
                        .inspect(|&slot| shown.push(slot)),
                };
                if let Some(slot) = slot {
                    self.slots.insert(property, (slot, row));
                }
            }
            capture.finish();
        }
        for slot in shown {
            self.encoder.show(slot, &self.archive);
        }
        let packet = self.encoder.encode(&self.archive, None);
        packet.map_or_else(|_| Vec::new(), |packet| packet.bytes)
    }
}
