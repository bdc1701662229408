//! The messages, writer above reader.

use std::borrow::Cow;

use prescient_codec::numbers::{put, put_bytes, put_signed, take, take_bytes, take_signed};

use super::steps::SteppedKeyframe;

/// A message of the sender.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub kind: Kind,
    /// The number of the last batch in it; batches are numbered from 1.
    pub sequence: u64,
    /// To which times are relative, in steps.
    pub base_time: i64,
    pub layers: Vec<Layer<'a>>,
}

/// What a message continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The message before.
    Batch,
    /// Batch `from - 1`; the codec starts anew.
    Resume {
        /// The first batch in it.
        from: u64,
    },
    /// Nothing: it contains the whole timeline. The codec starts anew.
    History,
}

/// Operations of which no two are on the same property.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layer<'a> {
    /// The added keyframes: a packet of the codec, or nothing.
    pub adds: Cow<'a, [u8]>,
    /// The others.
    pub edits: Vec<(u32, SteppedEdit)>,
}

/// An operation other than an addition, in steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SteppedEdit {
    Remove { time: i64 },
    Move { time: i64, by: i64 },
    MoveWithin { from: i64, to: i64, by: i64 },
    Clear,
}

/// An operation in steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SteppedOperation {
    Add(SteppedKeyframe),
    Edit(SteppedEdit),
}

impl<'a> Message<'a> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self.kind {
            Kind::Batch => out.push(BATCH),
            Kind::Resume { .. } => out.push(RESUME),
            Kind::History => out.push(HISTORY),
        }
        put(&mut out, self.sequence);
        if let Kind::Resume { from } = self.kind {
            put(&mut out, self.sequence + 1 - from);
        }
        put_signed(&mut out, self.base_time);
        for layer in &self.layers {
            put_bytes(&mut out, &layer.adds);
            put(&mut out, layer.edits.len() as u64);
            for (property, edit) in &layer.edits {
                put(&mut out, u64::from(*property));
                match *edit {
                    SteppedEdit::Remove { time } => {
                        out.push(0);
                        put_signed(&mut out, time);
                    }
                    SteppedEdit::Move { time, by } => {
                        out.push(1);
                        put_signed(&mut out, time);
                        put_signed(&mut out, by);
                    }
                    SteppedEdit::MoveWithin { from, to, by } => {
                        out.push(2);
                        put_signed(&mut out, from);
                        put_signed(&mut out, to);
                        put_signed(&mut out, by);
                    }
                    SteppedEdit::Clear => out.push(3),
                }
            }
        }
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None` for anything else.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&kind, mut from) = bytes.split_first()?;
        let from = &mut from;
        // A sender never reaches the last number, so the next one exists.
        let sequence = take(from)?;
        sequence.checked_add(1)?;
        let kind = match kind {
            BATCH => Kind::Batch,
            RESUME => {
                let count = take(from)?;
                let before = sequence.checked_sub(count)?;
                Kind::Resume { from: before + 1 }
            }
            HISTORY => Kind::History,
            _ => return None,
        };
        let base_time = take_signed(from)?;
        let mut layers = Vec::new();
        while !from.is_empty() {
            let adds = take_bytes(from)?;
            let count = take(from)?;
            let mut edits = Vec::new();
            for _ in 0..count {
                let property = u32::try_from(take(from)?).ok()?;
                let (&kind, rest) = from.split_first()?;
                *from = rest;
                let edit = match kind {
                    0 => SteppedEdit::Remove {
                        time: take_signed(from)?,
                    },
                    1 => SteppedEdit::Move {
                        time: take_signed(from)?,
                        by: take_signed(from)?,
                    },
                    2 => SteppedEdit::MoveWithin {
                        from: take_signed(from)?,
                        to: take_signed(from)?,
                        by: take_signed(from)?,
                    },
                    3 => SteppedEdit::Clear,
                    _ => return None,
                };
                edits.push((property, edit));
            }
            layers.push(Layer {
                adds: adds.into(),
                edits,
            });
        }
        Some(Self {
            kind,
            sequence,
            base_time,
            layers,
        })
    }
}

/// A receiver's request for everything from a batch on; 0 for the whole timeline.
pub(super) fn write_request(from: u64) -> Vec<u8> {
    let mut out = vec![REQUEST];
    put(&mut out, from);
    out
}

/// Reads what [`write_request`] wrote.
pub(super) fn read_request(bytes: &[u8]) -> Option<u64> {
    let (&kind, mut rest) = bytes.split_first()?;
    let from = take(&mut rest)?;
    (kind == REQUEST && rest.is_empty()).then_some(from)
}

const BATCH: u8 = 1;
const RESUME: u8 = 2;
const HISTORY: u8 = 3;
const REQUEST: u8 = 16;
