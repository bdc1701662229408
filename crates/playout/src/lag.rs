//! Lag compensation: which tick a client saw when it acted, and what was where in it.

use prescient_schema::{
    ClassBuilder, Declaration, NumberVisitor, ReadError, Sink, Source, State, Value,
};

use crate::error::RewindError;
use crate::interpolate::{linear, slerp};

/// The tick that a client drew, in 256ths. A client sends it with a shot: as a field of a typed
/// input or event, or its bytes in a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenTick(u64);

impl Value for SeenTick {
    fn describe(name: &str, how: &Declaration, table: &str, class: &mut ClassBuilder) {
        u64::describe(name, how, table, class);
    }

    fn width(how: &Declaration, table: &str) -> usize {
        u64::width(how, table)
    }

    fn write(&self, how: &Declaration, table: &str, row: &mut impl Sink) {
        self.0.write(how, table, row);
    }

    fn read(how: &Declaration, table: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
        u64::read(how, table, row).map(Self)
    }
}

impl SeenTick {
    /// The bytes of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 8;

    /// The nearest 256th of a tick; negative ticks and NaN are 0.
    pub fn new(tick: f64) -> Self {
        // `as` saturates.
        Self((tick * PARTS + 0.5) as u64)
    }

    /// The tick with its fraction.
    pub fn tick(self) -> f64 {
        self.0 as f64 / PARTS
    }

    /// For the payload of an event, or the fields of an input.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        self.0.to_le_bytes()
    }

    /// Reads the bytes of [`to_bytes`](Self::to_bytes) from the beginning of a payload; `None` if
    /// it is too short.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(Self(u64::from_le_bytes(bytes.try_into().ok()?)))
    }
}

/// How far a server believes a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RewindLimits {
    /// Ticks before the present beyond which nothing is rewound: the others' patience with being
    /// hit behind cover.
    pub max_ticks: f64,
}

impl RewindLimits {
    /// The tick to rewind to: what the client claims, but neither in the future nor too far back.
    /// A clamped claim still is a hit or a miss, only not quite of what the client saw.
    pub fn bound(&self, claimed: f64, present: f64) -> Result<f64, RewindError> {
        if !claimed.is_finite() || !present.is_finite() {
            return Err(RewindError::NotANumber);
        }
        Ok(claimed.min(present).max(present - self.max_ticks.max(0.0)))
    }
}

/// The state of an entity a share of the way between two ticks, as clients draw it: `earlier`, with
/// its numbers moved towards `later`. What is stepped remains.
pub fn between<T: State>(table: &str, mut earlier: T, mut later: T, share: f64) -> T {
    let mut read = Read {
        numbers: Vec::new(),
    };
    later.visit_numbers(&Declaration::PLAIN, table, &mut read);
    let mut draw = Towards {
        later: &read.numbers,
        column: 0,
        share: if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        },
    };
    earlier.visit_numbers(&Declaration::PLAIN, table, &mut draw);
    earlier
}

struct Read {
    numbers: Vec<f64>,
}

impl NumberVisitor for Read {
    fn skip(&mut self, columns: usize) {
        self.numbers.extend(std::iter::repeat_n(f64::NAN, columns));
    }

    fn number(&mut self, _: &Declaration, value: f64) -> f64 {
        self.numbers.push(value);
        value
    }

    fn rotation(&mut self, how: &Declaration, value: [f64; 4]) -> [f64; 4] {
        value.map(|part| self.number(how, part))
    }
}

struct Towards<'a> {
    later: &'a [f64],
    column: usize,
    share: f64,
}

impl NumberVisitor for Towards<'_> {
    fn skip(&mut self, columns: usize) {
        self.column += columns;
    }

    fn number(&mut self, how: &Declaration, value: f64) -> f64 {
        let later = self.later.get(self.column).copied().unwrap_or(f64::NAN);
        self.column += 1;
        let limit = how.show.snap_beyond.unwrap_or(f64::INFINITY);
        let is_stepped = how.show.method == Some(prescient_schema::ShowMethod::Stepped);
        let moved = linear(value, later, self.share);
        let jumps = (later - value).abs() > limit;
        if is_stepped || jumps || !moved.is_finite() {
            value
        } else {
            moved
        }
    }

    fn rotation(&mut self, how: &Declaration, value: [f64; 4]) -> [f64; 4] {
        let later = self.later.get(self.column..self.column + 4);
        self.column += 4;
        let is_stepped = how.show.method == Some(prescient_schema::ShowMethod::Stepped);
        match later.and_then(|later| <[f64; 4]>::try_from(later).ok()) {
            Some(later) if !is_stepped && later.iter().all(|part| part.is_finite()) => {
                slerp(value, later, self.share)
            }
            _ => value,
        }
    }
}

const PARTS: f64 = 256.0;
