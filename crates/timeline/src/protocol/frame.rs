//! The encoding of frames.
//!
//! A frame has 112 bits. Bits are numbered from the most significant of the first byte on.

use crate::time::Time;

/// The length of a frame.
pub const FRAME_BYTES: usize = 14;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A client's request for the base time, with 0, or the server's answer, in milliseconds since 1970.
    Sync {
        /// 96 bits.
        base_time: u128,
    },
    /// Adds a keyframe with this value.
    Add(KeyframeKey, u32),
    /// Removes the keyframes at a time.
    Remove(KeyframeKey),
    /// Moves a keyframe by this number of milliseconds: 26 bits and a sign.
    Move(KeyframeKey, i32),
}

/// The property and the time of a keyframe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyframeKey {
    /// Milliseconds since the base time, 26 bits.
    pub time: u32,
    /// The property's number, 24 bits.
    pub property: u32,
}

impl KeyframeKey {
    /// The absolute time.
    pub(super) fn after(self, base_time: i64) -> Time {
        Time::from_millis(base_time.saturating_add(self.time.into()))
    }
}

/// A number does not fit its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Range {
    /// The base time takes more than 96 bits.
    #[error("the base time takes more than 96 bits")]
    BaseTime,
    /// The time takes more than 26 bits: it is more than 18.6 hours after the base time.
    #[error("the time is more than 18.6 hours after the base time")]
    Time,
    /// The property takes more than 24 bits.
    #[error("the property's number takes more than 24 bits")]
    Property,
    /// The offset takes more than 26 bits: it is more than 18.6 hours.
    #[error("the offset is more than 18.6 hours")]
    Offset,
}

/// A frame of an unknown type or method. Ignore it: later versions of the protocol may define it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The type is neither sync nor open.
    #[error("frames of type {0} are not known")]
    Type(u8),
    /// The type has no such method.
    #[error("frames of type {kind} have no method {method}")]
    Method {
        /// The type.
        kind: u8,
        /// The method.
        method: u8,
    },
}

impl Frame {
    /// Encodes the frame; unused bits are 0.
    ///
    /// # Errors
    ///
    /// If a number does not fit its field.
    pub fn to_bytes(self) -> Result<[u8; FRAME_BYTES], Range> {
        let mut bits = Bits(0);
        match self {
            Self::Sync { base_time } => {
                bits.put(TYPE, TYPE_SYNC);
                bits.put(METHOD, METHOD_META);
                bits.put(BASE_TIME, fitting(base_time, BASE_TIME, Range::BaseTime)?);
            }
            Self::Add(key, value) => {
                bits.put_key(METHOD_ADD, key)?;
                bits.put(VALUE, value.into());
            }
            Self::Remove(key) => bits.put_key(METHOD_REMOVE, key)?,
            Self::Move(key, offset) => {
                bits.put_key(METHOD_MOVE, key)?;
                bits.put(
                    OFFSET,
                    fitting(offset.unsigned_abs(), OFFSET, Range::Offset)?,
                );
                bits.put(NEGATIVE, u128::from(offset < 0));
            }
        }
        Ok(bits.into_bytes())
    }

    /// Decodes a frame; unused bits are ignored.
    ///
    /// # Errors
    ///
    /// If its type or method is unknown.
    pub fn from_bytes(bytes: &[u8; FRAME_BYTES]) -> Result<Self, FrameError> {
        let bits = Bits::from_bytes(bytes);
        let (kind, method) = (bits.get(TYPE), bits.get(METHOD));
        let key = KeyframeKey {
            time: bits.get(TIME) as u32,
            property: bits.get(PROPERTY) as u32,
        };
        match (kind, method) {
            (TYPE_SYNC, METHOD_META) => Ok(Self::Sync {
                base_time: bits.get(BASE_TIME),
            }),
            (TYPE_OPEN, METHOD_ADD) => Ok(Self::Add(key, bits.get(VALUE) as u32)),
            (TYPE_OPEN, METHOD_REMOVE) => Ok(Self::Remove(key)),
            (TYPE_OPEN, METHOD_MOVE) => {
                let distance = bits.get(OFFSET) as i32;
                let negative = bits.get(NEGATIVE) == 1;
                Ok(Self::Move(key, if negative { -distance } else { distance }))
            }
            (TYPE_SYNC | TYPE_OPEN, _) => Err(FrameError::Method {
                kind: kind as u8,
                method: method as u8,
            }),
            _ => Err(FrameError::Type(kind as u8)),
        }
    }
}

/// Splits a byte stream into frames.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    begun: [u8; FRAME_BYTES],
    length: usize,
}

impl Reassembly {
    /// Takes bytes from the front of `bytes`. Returns a frame when it is complete, `None` when `bytes` is
    /// empty.
    pub fn take(&mut self, bytes: &mut &[u8]) -> Option<[u8; FRAME_BYTES]> {
        let count = bytes.len().min(FRAME_BYTES - self.length);
        let (taken, rest) = bytes.split_at(count);
        self.begun[self.length..][..count].copy_from_slice(taken);
        self.length += count;
        *bytes = rest;
        (self.length == FRAME_BYTES).then(|| {
            self.length = 0;
            self.begun
        })
    }
}

/// A frame as a number; its first bit is the most significant.
struct Bits(u128);

/// The first bit of a field, and the number of its bits.
type Field = (u32, u32);

impl Bits {
    fn put(&mut self, (start, count): Field, number: u128) {
        self.0 |= number << (FRAME_BITS - start - count);
    }

    fn put_key(&mut self, method: u128, key: KeyframeKey) -> Result<(), Range> {
        self.put(TYPE, TYPE_OPEN);
        self.put(METHOD, method);
        self.put(TIME, fitting(key.time, TIME, Range::Time)?);
        self.put(PROPERTY, fitting(key.property, PROPERTY, Range::Property)?);
        Ok(())
    }

    fn get(&self, (start, count): Field) -> u128 {
        self.0 >> (FRAME_BITS - start - count) & ((1 << count) - 1)
    }

    fn into_bytes(self) -> [u8; FRAME_BYTES] {
        let [_, _, bytes @ ..] = self.0.to_be_bytes();
        bytes
    }

    fn from_bytes(bytes: &[u8; FRAME_BYTES]) -> Self {
        let mut wide = [0; 16];
        wide[2..].copy_from_slice(bytes);
        Self(u128::from_be_bytes(wide))
    }
}

fn fitting(number: impl Into<u128>, (_, count): Field, error: Range) -> Result<u128, Range> {
    let number = number.into();
    if number >> count == 0 {
        Ok(number)
    } else {
        Err(error)
    }
}

const FRAME_BITS: u32 = 8 * FRAME_BYTES as u32;
const TYPE: Field = (0, 2);
const METHOD: Field = (2, 4);
const BASE_TIME: Field = (8, 96);
const TIME: Field = (6, 26);
const PROPERTY: Field = (32, 24);
const VALUE: Field = (56, 32);
const OFFSET: Field = (56, 26);
const NEGATIVE: Field = (88, 1);

const TYPE_SYNC: u128 = 0;
const TYPE_OPEN: u128 = 1;
const METHOD_ADD: u128 = 0;
const METHOD_REMOVE: u128 = 1;
const METHOD_MOVE: u128 = 2;
const METHOD_META: u128 = 3;
