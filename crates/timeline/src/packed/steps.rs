//! The steps of times and values, which both ends must agree on.

use std::sync::Arc;

use prescient_codec::{Config, Layout, Policy};
use prescient_schema::{Class, Field, FieldKind, Schema};

use super::message::{SteppedEdit, SteppedOperation};
use crate::curve::{Edit, Interpolation, Keyframe};
use crate::time::{Span, Time};
use crate::timeline::TimelineConfig;
use crate::value::Value;

/// The settings of both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct PackedConfig<V> {
    pub(super) value_step: f64,
    pub(super) time_step: i64,
    pub(super) interval: Span,
    pub(super) history: usize,
    pub(super) max_message: usize,
    pub(super) timeline: TimelineConfig<V>,
}

/// Why a setting is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackedConfigError {
    /// A step is not above zero, or not a number.
    #[error("a step is not above zero")]
    Step,
    /// Messages would be too short.
    #[error("messages of less than 256 bytes are too short")]
    Message,
}

impl<V: Value> PackedConfig<V> {
    /// Values are rounded to multiples of this step. Times are rounded to milliseconds, messages are made
    /// every 100 milliseconds, and 256 of them are kept for receivers that miss some.
    ///
    /// # Errors
    ///
    /// If the step is not above zero.
    pub fn new(value_step: f64) -> Result<Self, PackedConfigError> {
        if !value_step.is_finite() || value_step <= 0.0 {
            return Err(PackedConfigError::Step);
        }
        Ok(Self {
            value_step,
            time_step: 1000,
            interval: Span::from_millis(100),
            history: 256,
            max_message: 32 << 10,
            timeline: TimelineConfig::default(),
        })
    }

    /// Times are rounded to multiples of this step.
    ///
    /// # Errors
    ///
    /// If the step is not above zero.
    pub fn time_step(mut self, step: Span) -> Result<Self, PackedConfigError> {
        if step <= Span::ZERO {
            return Err(PackedConfigError::Step);
        }
        self.time_step = step.as_micros();
        Ok(self)
    }

    /// The time between two messages; operations wait at most this long.
    pub fn interval(mut self, interval: Span) -> Self {
        self.interval = interval;
        self
    }

    /// How many messages the sender keeps for receivers that miss some. A receiver that missed more gets
    /// the whole timeline again.
    pub fn history(mut self, messages: usize) -> Self {
        self.history = messages;
        self
    }

    /// The longest message in bytes; 32 KiB by default. More is sent in several. A message with a single
    /// keyframe of a property can be longer; with values of few components it never is.
    ///
    /// # Errors
    ///
    /// If it is less than 256.
    pub fn max_message(mut self, bytes: usize) -> Result<Self, PackedConfigError> {
        if bytes < MIN_MESSAGE {
            return Err(PackedConfigError::Message);
        }
        self.max_message = bytes;
        Ok(self)
    }

    /// The limits of both timelines and the configuration of their curves.
    pub fn timeline(mut self, timeline: TimelineConfig<V>) -> Self {
        self.timeline = timeline;
        self
    }

    /// What both ends must have alike, to compare it: the number of components and the steps.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = (V::COMPONENTS as u64).to_le_bytes().to_vec();
        out.extend(self.value_step.to_le_bytes());
        out.extend(self.time_step.to_le_bytes());
        out
    }

    /// How many operations most probably fit into a message.
    pub(super) fn max_operations(&self) -> usize {
        let each = TYPICAL_NUMBER * (V::COMPONENTS + Row::VALUE - 1);
        (self.max_message / each).max(1)
    }

    /// The time in steps.
    pub(super) fn time_steps(&self, time: Time) -> i64 {
        let micros = time.as_micros();
        let half = self.time_step / 2;
        micros.saturating_add(half).div_euclid(self.time_step)
    }

    pub(super) fn time(&self, steps: i64) -> Time {
        Time::from_micros(steps.saturating_mul(self.time_step))
    }

    pub(super) fn span(&self, steps: i64) -> Span {
        Span::from_micros(steps.saturating_mul(self.time_step))
    }

    /// The components in steps; `None` if one is too large.
    pub(super) fn value_steps(&self, value: V) -> Option<Vec<i64>> {
        let step = |index| {
            let steps = (value.component(index) / self.value_step).round();
            (steps.abs() <= MAX_STEPS).then_some(steps as i64)
        };
        (0..V::COMPONENTS).map(step).collect()
    }

    pub(super) fn value(&self, steps: &[i64]) -> V {
        let components: Vec<f64> = steps.iter().map(|&n| n as f64 * self.value_step).collect();
        V::from_components(&components)
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

/// The last keyframe of a property, as a row of the codec.
///
/// The rows of properties without a new keyframe do not change. Those with one change in their
/// [`Row::IS_ODD`] at least.
pub(super) struct Row;

impl Row {
    /// The property; it never changes.
    pub(super) const PROPERTY: usize = 0;
    /// Whether the number of the property's keyframes is odd.
    pub(super) const IS_ODD: usize = 1;
    /// Time since the message's base time.
    pub(super) const TIME: usize = 2;
    pub(super) const INTERPOLATION: usize = 3;
    /// The first component; the others follow.
    pub(super) const VALUE: usize = 4;

    pub(super) fn layout<V: Value>() -> Arc<Layout> {
        let number = |name: &str| {
            let kind = FieldKind::Int {
                bits: 64,
                signed: true,
            };
            Field::new(name, kind)
        };
        let mut property = number("property");
        property.only_on_spawn = true;
        let kinds = FieldKind::Enum {
            values: INTERPOLATIONS.len() as u32,
        };
        let mut fields = vec![
            property,
            Field::new("is_odd", FieldKind::Bool),
            number("time"),
            Field::new("interpolation", kinds),
        ];
        fields.extend((0..V::COMPONENTS).map(|index| number(&format!("value[{index}]"))));
        let classes = vec![Class::new("keyframe", fields)];
        Arc::new(Layout::new(Arc::new(Schema { classes })))
    }

    pub(super) fn config() -> Config {
        Config::default().with_policy(Policy::Immediate)
    }
}

/// A keyframe in steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SteppedKeyframe {
    pub time: i64,
    pub interpolation: i64,
    pub value: Vec<i64>,
}

impl SteppedKeyframe {
    pub(super) fn of<V: Value>(keyframe: &Keyframe<V>, config: &PackedConfig<V>) -> Option<Self> {
        let same = |kind: &Option<Interpolation>| *kind == keyframe.interpolation;
        Some(Self {
            time: config.time_steps(keyframe.time),
            interpolation: INTERPOLATIONS.iter().position(same)? as i64,
            value: config.value_steps(keyframe.value)?,
        })
    }

    pub(super) fn keyframe<V: Value>(&self, config: &PackedConfig<V>) -> Option<Keyframe<V>> {
        let index = usize::try_from(self.interpolation).ok()?;
        Some(Keyframe {
            time: config.time(self.time),
            value: config.value(&self.value),
            interpolation: *INTERPOLATIONS.get(index)?,
        })
    }
}

const INTERPOLATIONS: [Option<Interpolation>; 6] = [
    None,
    Some(Interpolation::Step),
    Some(Interpolation::Linear),
    Some(Interpolation::Smooth),
    Some(Interpolation::Spherical),
    Some(Interpolation::Velocity),
];

/// More bytes than a number of a keyframe takes in most games.
const TYPICAL_NUMBER: usize = 5;

const MIN_MESSAGE: usize = 256;

/// Up to here every integer is a float.
const MAX_STEPS: f64 = (1u64 << 53) as f64;
