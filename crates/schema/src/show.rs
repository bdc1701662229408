//! How a client shows a number between the ticks at which it knows it.
//!
//! This is a choice of one end: it is no part of a schema, its fingerprint or any byte that is sent.
//! `prescient-playout` does the showing; [`Value::visit_numbers`](crate::Value::visit_numbers) lets
//! it read and replace the numbers of a value of any type.

use crate::Declaration;

/// How a field is shown; what is `None` is at the default of its type.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Show {
    /// How values follow from samples. The default is [`Hermite`](ShowMethod::Hermite) for floats,
    /// and [`Stepped`](ShowMethod::Stepped) for everything else.
    pub method: Option<ShowMethod>,
    /// How a wrong guess is mended. The default is [`Exponential`](Converge::Exponential).
    pub converge: Option<Converge>,
    /// Errors beyond this, in units of the field, are mended at once, and two samples further apart
    /// are a jump that is not drawn through. There is no such limit by default.
    pub snap_beyond: Option<f64>,
}

impl Show {
    /// Nothing declared.
    pub const DEFAULT: Self = Self {
        method: None,
        converge: None,
        snap_beyond: None,
    };

    /// This, for a part of a field: what the field declares wins.
    fn within(self, container: Self) -> Self {
        Self {
            method: container.method.or(self.method),
            converge: container.converge.or(self.converge),
            snap_beyond: container.snap_beyond.or(self.snap_beyond),
        }
    }
}

/// How a shown number follows from the samples of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShowMethod {
    /// The value of the newest sample that is not later than the shown tick.
    Stepped,
    /// A straight line between two samples.
    Linear,
    /// A cubic between two samples that also has the rates of change of both: the declared velocity
    /// (`velocity_of`) where there is one, and one that follows from the neighbours where not.
    Hermite,
    /// Dead reckoning of order 1: from the newest sample to the server's present, at its rate of
    /// change.
    Velocity,
    /// Dead reckoning of order 2: also at the rate at which that changes.
    Acceleration,
}

/// How the error of a guess is mended once a newer sample tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Converge {
    /// At once.
    Snap,
    /// A share of the rest in every frame.
    Exponential,
    /// Along the old motion, ever less of it, until only the new one is left.
    Projective,
    /// Along a cubic that leaves with the old motion's speed and arrives with the new one's.
    Cubic,
}

/// Reads and replaces the numbers of a value, in the order of its columns.
pub trait NumberVisitor {
    /// Columns that are not shown as numbers.
    fn skip(&mut self, columns: usize);

    /// The number of the next column; returns what replaces it.
    fn number(&mut self, how: &Declaration, value: f64) -> f64;

    /// A rotation, as the `x`, `y`, `z` and `w` of a unit quaternion in the next four columns;
    /// returns what replaces it.
    fn rotation(&mut self, how: &Declaration, value: [f64; 4]) -> [f64; 4];
}

impl Declaration {
    /// This declaration for a part of a declared field, as far as showing goes; `slot` holds it if
    /// it is another.
    #[doc(hidden)]
    pub fn shown_within<'a>(&'a self, container: &Self, slot: &'a mut Option<Self>) -> &'a Self {
        if container.show == Show::DEFAULT {
            return self;
        }
        slot.insert(Self {
            show: self.show.within(container.show),
            ..*self
        })
    }
}
