//! One field of a class: what its integers mean and how they may be coarsened.

use alloc::string::String;

/// One scalar of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name, unique within its class; nested fields are joined with dots (`body.velocity.x`).
    pub name: String,
    /// What the integer stands for.
    pub kind: Kind,
    /// How reluctantly precision is given up; priority 0 is never degraded.
    pub priority: Priority,
    /// Sent when the entity appears and never again; later changes are not replicated.
    pub only_on_spawn: bool,
    /// A peer that does not know this field may still connect, if both sides allow it.
    pub optional: bool,
    /// This field is the rate of change of another one.
    pub derivative_of: Option<Derivative>,
    /// How many low bits are rounded away at each precision level.
    pub coarser: [u8; 4],
}

impl Field {
    /// A field of the given kind with everything else at its default.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            priority: Priority::default(),
            only_on_spawn: false,
            optional: false,
            derivative_of: None,
            coarser: [0; 4],
        }
    }

    /// The value a client holds when it is served at `level`: a pure function of the truth, so
    /// error never accumulates.
    pub fn at_level(&self, level: Level, value: i64) -> i64 {
        let shift = u32::from(self.coarser[level.index()]);
        if shift == 0 {
            return value;
        }
        let half = 1i64 << (shift - 1);
        (value.saturating_add(half) >> shift) << shift
    }
}

/// What the integer of a field stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number on a continuum, `bits` wide (1 to 64); arithmetic on it wraps at that width.
    Int {
        /// Width in bits.
        bits: u8,
        /// Whether the integer is sign-extended from its width.
        signed: bool,
    },
    /// One of `values` states without order.
    Enum {
        /// Number of states; the integer lies in `0..values`.
        values: u32,
    },
    /// Yes or no, as 1 or 0.
    Bool,
}

impl Kind {
    /// How the codec treats values of this kind.
    pub fn shape(&self) -> Shape {
        match *self {
            Kind::Int { bits, signed } => Shape::Number { bits, signed },
            Kind::Enum { values } => Shape::Symbol { values },
            Kind::Bool => Shape::Symbol { values: 2 },
        }
    }
}

/// The two ways a field can be modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A point on a line: predicted by arithmetic, corrected by a residual.
    Number {
        /// Width at which residuals wrap.
        bits: u8,
        /// Whether values are sign-extended from that width.
        signed: bool,
    },
    /// A state of a machine: predicted by learned transitions.
    Symbol {
        /// Number of states.
        values: u32,
    },
}

/// How reluctantly a field or object is degraded: 0 never, 3 first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// `None` above 3.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 4 { Some(Self(value)) } else { None }
    }

    /// The number, 0 to 3.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// One of four strengths of quantisation; level 0 is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u8);

impl Level {
    /// Full precision.
    pub const EXACT: Self = Self(0);

    /// `None` above 3.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 4 { Some(Self(value)) } else { None }
    }

    /// The number as an index, 0 to 3.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Says that a field is the rate of change of another field of the same class.
///
/// One unit of the derivative moves the other field by `numerator / denominator` of its own units
/// per tick. A ratio of integers, because both ends must compute the same prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Derivative {
    /// Index of the field that this one is the derivative of.
    pub of: u16,
    /// Units of `of` per tick, times `denominator`, for one unit of this field.
    pub numerator: i32,
    /// Never zero.
    pub denominator: u32,
}
