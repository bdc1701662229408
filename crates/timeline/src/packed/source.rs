//! The curves of the sending end, and the batches that their changes were sent in.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::message::{SteppedEdit, SteppedOperation};
use super::sender::SendError;
use super::steps::{PackedConfig, SteppedKeyframe, stepped_edit};
use crate::curve::{Edit, EditError, Keyframe};
use crate::plan::PlanError;
use crate::time::Time;
use crate::timeline::{Operation, PropertyId, Timeline};
use crate::value::Value;

/// An operation on a property, in steps.
pub(super) type PropertyOperation = (u32, SteppedOperation);

/// What any number of receivers are sent.
pub(super) struct Source<V: Value> {
    config: PackedConfig<V>,
    timeline: Timeline<V>,
    /// Operations since the last batch.
    waiting: Vec<PropertyOperation>,
    flushed: Time,
    base_time: i64,
    /// Batches for receivers that miss some, the newest last.
    kept: VecDeque<Vec<PropertyOperation>>,
    /// The number of the newest batch; they are numbered from 1.
    newest: u64,
    /// The timeline after a batch, while a history of it is sent.
    copy: (u64, Weak<Timeline<V>>),
}

impl<V: Value> Source<V> {
    pub(super) fn new(config: PackedConfig<V>) -> Self {
        Self {
            timeline: Timeline::new(config.timeline.clone()),
            waiting: Vec::new(),
            flushed: Time::ZERO,
            base_time: 0,
            kept: VecDeque::new(),
            newest: 0,
            copy: (0, Weak::new()),
            config,
        }
    }

    pub(super) fn config(&self) -> &PackedConfig<V> {
        &self.config
    }

    pub(super) fn timeline(&self) -> &Timeline<V> {
        &self.timeline
    }

    /// The base time of the newest batch.
    pub(super) fn base_time(&self) -> i64 {
        self.base_time
    }

    /// The number of the newest batch.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// A batch, if it is still kept.
    pub(super) fn batch(&self, number: u64) -> Option<&[PropertyOperation]> {
        let from_end = usize::try_from(self.newest.checked_sub(number)?).ok()?;
        let index = self.kept.len().checked_sub(from_end.checked_add(1)?)?;
        Some(&self.kept[index])
    }

    /// The timeline as of the newest batch. What waits must have been flushed.
    pub(super) fn copy(&mut self) -> Arc<Timeline<V>> {
        let (number, copy) = &self.copy;
        if let Some(copy) = copy.upgrade()
            && *number == self.newest
        {
            return copy;
        }
        let copy = Arc::new(self.timeline.clone());
        self.copy = (self.newest, Arc::downgrade(&copy));
        copy
    }

    pub(super) fn apply(&mut self, operation: &Operation<V>) -> Result<(), SendError> {
        let config = &self.config;
        let stepped = match operation.edit {
            Edit::Add(keyframe) => SteppedOperation::Add(stepped_keyframe(&keyframe, config)?),
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

    /// Plans with keyframes and a begin that are rounded first, so that those that are there already are
    /// found.
    pub(super) fn follow(
        &mut self,
        property: PropertyId,
        from: Time,
        future: &[Keyframe<V>],
    ) -> Result<usize, SendError> {
        let config = &self.config;
        let from = config.time(config.time_steps(from));
        let rounded = future.iter().map(|keyframe| {
            let keyframe = stepped_keyframe(keyframe, config)?.keyframe(config);
            keyframe.ok_or(SendError::TooManySteps)
        });
        let rounded: Vec<Keyframe<V>> = rounded.collect::<Result<_, _>>()?;
        let operations = self.timeline.plan(property, from, &rounded);
        let operations = operations.map_err(|error| match error {
            PlanError::Edit(error) => SendError::Edit(error),
            other => SendError::Plan(other),
        })?;
        for operation in &operations {
            self.apply(operation)?;
        }
        Ok(operations.len())
    }

    /// Makes batches of what waits.
    pub(super) fn flush(&mut self, now: Time) {
        self.timeline.set_now(now);
        self.flushed = now;
        if self.waiting.is_empty() {
            return;
        }
        self.base_time = self.config.time_steps(now);
        let mut rest = std::mem::take(&mut self.waiting);
        while !rest.is_empty() {
            let later = rest.split_off(self.config.max_operations().min(rest.len()));
            self.kept.push_back(rest);
            self.newest += 1;
            rest = later;
        }
        while self.kept.len() > self.config.history {
            self.kept.pop_front();
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if now >= self.next_timeout() {
            self.flush(now);
        }
    }

    pub(super) fn next_timeout(&self) -> Time {
        self.flushed + self.config.interval
    }

    /// What waits belongs to a later batch, but the timeline contains it already: makes a batch of it, so
    /// that a history of the timeline ends there.
    pub(super) fn flush_before_history(&mut self) {
        self.flush(self.flushed);
    }
}

/// Rounds a keyframe; the timeline would refuse what is not finite only after that.
fn stepped_keyframe<V: Value>(
    keyframe: &Keyframe<V>,
    config: &PackedConfig<V>,
) -> Result<SteppedKeyframe, SendError> {
    keyframe.value.check().map_err(EditError::from)?;
    SteppedKeyframe::of(keyframe, config).ok_or(SendError::TooManySteps)
}
