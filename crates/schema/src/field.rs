//! One field of a class: the meaning of its integers and how they may be coarsened.

use alloc::{string::String, vec::Vec};

use crate::{CustomFloat, Step};

/// One column of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name, unique within its class; nested fields are joined with dots (`body.velocity.x`).
    pub name: String,
    /// The meaning of the integer.
    pub kind: FieldKind,
    /// The degradation priority; priority 0 is never degraded.
    pub priority: Priority,
    /// Sent when the entity appears and never again; later changes are not replicated.
    pub only_on_spawn: bool,
    /// Peers without this field may still connect, if both ends are tolerant.
    pub optional: bool,
    /// Set if this field is the rate of change of another one.
    pub derivative_of: Option<Derivative>,
    /// Low bits rounded away at each precision level: 0 at level 0, never fewer at a higher level,
    /// all 0 for priority 0 and for kinds that are not coarsened this way (symbols, exact floats,
    /// and custom floats, whose formats define their precision).
    pub coarser: [u8; 4],
}

impl Field {
    /// A field of the given kind with everything else at its default.
    pub fn new(name: impl Into<String>, kind: FieldKind) -> Self {
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

    /// The value that a client receives at `level`. It depends on the exact value alone, so errors
    /// never accumulate.
    ///
    /// Integer arithmetic only: the nearest multiple, halves upwards, that the field's width can
    /// hold; applying a level twice changes nothing. A field of priority 0 is returned unchanged,
    /// and so is one that is only sent on spawn, which is always at full precision.
    pub fn at_level(&self, level: Level, value: i64) -> i64 {
        if self.priority.get() == 0 || self.only_on_spawn {
            return value;
        }
        if let FieldKind::Custom(float) = &self.kind {
            return float.at_level(level, value);
        }
        match (self.coarser[level.index()], self.kind.shape()) {
            (0, _) => value,
            (shift, Shape::Number { bits, signed }) => coarsen(value, shift, bits, signed),
            _ => value,
        }
    }
}

fn coarsen(value: i64, shift: u8, bits: u8, signed: bool) -> i64 {
    let bits = u32::from(bits.clamp(1, 64));
    let shift = u32::from(shift).min(bits - 1);
    if shift == 0 {
        return value;
    }
    if bits == 64 && !signed {
        let half = 1u64 << (shift - 1);
        return ((value as u64).saturating_add(half) >> shift << shift) as i64;
    }
    let half = 1i64 << (shift - 1);
    let max = i64::MAX >> (64 - bits) << u32::from(!signed) | i64::from(!signed);
    (value.saturating_add(half) >> shift).min(max >> shift) << shift
}

/// The meaning of a field's integer.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
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
    /// One of several named states without order; the integer is the position of its name.
    Variant {
        /// The names, all different.
        names: Vec<String>,
    },
    /// A number counted in steps of a declared size.
    Step {
        /// The size of one step.
        step: Step,
        /// Signed width of the count; numbers beyond it saturate.
        bits: u8,
    },
    /// Every bit of an `f32`, as an integer that sorts like the number.
    F32,
    /// Every bit of an `f64`, as an integer that sorts like the number.
    F64,
    /// A float in a chosen format, as an integer that sorts like the number.
    Custom(CustomFloat),
    /// UTF-8, as the [cell](crate::Content::cell) of its content.
    Text {
        /// Maximum number of bytes.
        max_len: u32,
    },
    /// Bytes, as the cell of their content.
    Bytes {
        /// Maximum number of bytes.
        max_len: u32,
    },
    /// An ordered list of items, as the cell of its content.
    List {
        /// The columns of an item.
        item: Vec<Field>,
        /// Maximum number of items.
        max_len: u32,
    },
    /// Items sorted by unique keys, as the cell of their content.
    Map {
        /// The columns of an item, those of its key first.
        item: Vec<Field>,
        /// Number of columns of the key.
        key: u8,
        /// Maximum number of items.
        max_len: u32,
    },
    /// An entity, as the cell of an [`EntityRef`](crate::EntityRef).
    Reference {
        /// The class that the entity must have; other tables of the same type count as well
        /// (`car.private` for `car`).
        class: Option<String>,
    },
}

impl FieldKind {
    /// Named states.
    pub fn variants(names: &[&str]) -> Self {
        FieldKind::Variant {
            names: names.iter().map(|name| String::from(*name)).collect(),
        }
    }

    /// How the codec treats values of this kind.
    pub fn shape(&self) -> Shape {
        let number = |bits, signed| Shape::Number { bits, signed };
        match self {
            FieldKind::Int { bits, signed } => number(*bits, *signed),
            FieldKind::Enum { values } => Shape::Symbol { values: *values },
            FieldKind::Bool => Shape::Symbol { values: 2 },
            FieldKind::Variant { names } => Shape::Symbol {
                values: names.len() as u32,
            },
            FieldKind::Step { bits, .. } => number(*bits, true),
            FieldKind::F32 => number(32, true),
            FieldKind::F64 => number(64, true),
            FieldKind::Custom(float) => number(float.format(Level::EXACT).bits(), true),
            FieldKind::Text { .. }
            | FieldKind::Bytes { .. }
            | FieldKind::List { .. }
            | FieldKind::Map { .. } => Shape::Content,
            FieldKind::Reference { .. } => Shape::Reference,
        }
    }

    /// The size of one unit; `None` for symbols and for floats, whose units differ in size.
    pub fn unit(&self) -> Option<Step> {
        match self {
            FieldKind::Int { .. } => Some(Step::ONE),
            FieldKind::Step { step, .. } => Some(*step),
            _ => None,
        }
    }

    /// Whether a field of this kind can have this value.
    pub fn admits(&self, value: i64) -> bool {
        match self.shape() {
            Shape::Symbol { values } => (0..i64::from(values)).contains(&value),
            Shape::Number { bits: 64, .. } => true,
            Shape::Number { bits, signed: true } => {
                let max = i64::MAX >> (64 - u32::from(bits));
                (!max..=max).contains(&value)
            }
            Shape::Number { bits, .. } => value >= 0 && value >> bits == 0,
            Shape::Content | Shape::Reference => value >= 0,
        }
    }
}

/// The ways a field can be modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A point on a line, predicted by arithmetic and corrected by a residual.
    Number {
        /// Width at which residuals wrap.
        bits: u8,
        /// Whether values are sign-extended from that width.
        signed: bool,
    },
    /// An unordered state, predicted by learned transitions.
    Symbol {
        /// Number of states.
        values: u32,
    },
    /// A container's content, sent as changes since a version that both ends have.
    Content,
    /// A reference to another entity, sent as the receiver's id of it.
    Reference,
}

/// The order in which fields and entities are degraded: 0 never, 3 first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// `None` above 3.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 4 { Some(Self(value)) } else { None }
    }

    /// The priority, 0 to 3.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// One of four precision levels; level 0 is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u8);

impl Level {
    /// Full precision.
    pub const EXACT: Self = Self(0);

    /// `None` above 3.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 4 { Some(Self(value)) } else { None }
    }

    /// The level as an index, 0 to 3.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Declares a field to be the rate of change of another field of the same class.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bits: u8, signed: bool, coarser: [u8; 4]) -> Field {
        Field {
            priority: Priority(1),
            coarser,
            ..Field::new("n", FieldKind::Int { bits, signed })
        }
    }

    #[test]
    fn coarser_values_stay_within_their_width() {
        let byte = number(8, false, [0, 1, 4, 7]);
        assert_eq!(byte.at_level(Level(1), 255), 254);
        assert_eq!(byte.at_level(Level(2), 255), 240);
        assert_eq!(byte.at_level(Level(3), 64), 128);
        let signed = number(8, true, [0, 1, 4, 7]);
        assert_eq!(signed.at_level(Level(2), 127), 112);
        assert_eq!(signed.at_level(Level(2), -128), -128);
        assert_eq!(signed.at_level(Level(2), -120), -112);
        let widest = number(64, false, [0, 1, 8, 8]);
        assert_eq!(widest.at_level(Level(2), -1), !0xff);
        assert_eq!(widest.at_level(Level(1), i64::MIN), i64::MIN);
        let widest = number(64, true, [0, 1, 8, 63]);
        assert_eq!(widest.at_level(Level(1), i64::MAX), i64::MAX - 1);
        assert_eq!(widest.at_level(Level(3), i64::MIN), i64::MIN);
    }

    #[test]
    fn priority_zero_is_never_degraded() {
        let mut field = number(32, true, [0, 4, 8, 12]);
        assert_eq!(field.at_level(Level(3), 12345), 12288);
        field.priority = Priority(0);
        assert_eq!(field.at_level(Level(3), 12345), 12345);
    }
}
