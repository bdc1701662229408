//! The attributes of a Rust field, before its type turns them into columns.
//!
//! One Rust field may become many columns (a vector, a nested struct, an array of them), and all of
//! them inherit its attributes.

use alloc::string::String;

use crate::{CustomFloat, Field, FieldKind, Priority, Step};

/// The attributes of one Rust field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Declaration {
    /// How floats become integers.
    pub form: Form,
    /// A width other than the type's own.
    pub bits: Option<u8>,
    /// The degradation priority. The default is 1 if levels are declared, else 0.
    pub priority: Option<Priority>,
    /// Low bits rounded away at each level. The default is `[0, 1, 2, 3]` for stepped floats of a
    /// priority other than 0, and none for everything else.
    pub levels: Option<[u8; 4]>,
    /// Maximum number of items of a container. The default is 4096, or what fits
    /// [`Content::MAX_CELLS`](crate::Content::MAX_CELLS).
    pub max_len: Option<u32>,
    /// A byte buffer instead of a list of numbers.
    pub bytes: bool,
    /// See [`Field::only_on_spawn`].
    pub only_on_spawn: bool,
    /// See [`Field::optional`].
    pub optional: bool,
    /// A value that does not fit becomes the nearest one that does: [`Sink::note_misfit`]. Not part
    /// of the schema, because only the end that sets values needs it.
    ///
    /// [`Sink::note_misfit`]: crate::Sink::note_misfit
    pub saturate: bool,
}

impl Declaration {
    /// No attributes.
    pub const PLAIN: Self = Self {
        form: Form::Natural,
        bits: None,
        priority: None,
        levels: None,
        max_len: None,
        bytes: false,
        only_on_spawn: false,
        optional: false,
        saturate: false,
    };

    /// This declaration for a part of a declared field: attributes about sending are those of the
    /// outer field, attributes about representation those of the part.
    pub fn within(&self, container: &Self) -> Self {
        Self {
            priority: container.priority.or(self.priority),
            only_on_spawn: self.only_on_spawn || container.only_on_spawn,
            optional: self.optional || container.optional,
            ..*self
        }
    }

    /// The column of a scalar.
    pub fn column(&self, name: impl Into<String>, kind: FieldKind) -> Field {
        let wants_levels = match &kind {
            FieldKind::Custom(float) => !float.is_uniform(),
            _ => self.levels.is_some(),
        };
        let unset = Priority::new(u8::from(wants_levels)).unwrap_or_default();
        let priority = self.priority.unwrap_or(unset);
        let (kind, coarser) = match (priority.get(), kind) {
            // The part declares levels, but the outer field has priority 0: never degraded.
            (0, FieldKind::Custom(float)) => {
                let finest = float.format(crate::Level::EXACT);
                (FieldKind::Custom(CustomFloat::uniform(finest)), [0; 4])
            }
            (0, kind) => (kind, [0; 4]),
            (_, kind @ FieldKind::Step { .. }) => (kind, self.levels.unwrap_or([0, 1, 2, 3])),
            (_, kind @ FieldKind::Int { .. }) => (kind, self.levels.unwrap_or_default()),
            (_, kind) => (kind, [0; 4]),
        };
        Field {
            priority,
            coarser,
            only_on_spawn: self.only_on_spawn,
            optional: self.optional,
            ..Field::new(name, kind)
        }
    }
}

/// How a float becomes an integer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// Integers as they are, floats bit for bit.
    Natural,
    /// Floats counted in steps. Far from zero a step may be finer than the float's own spacing and
    /// cannot be read back exactly: at 100,000 units an `f32` moves in steps of 1/128.
    Step(Step),
    /// Floats in chosen formats.
    Custom(CustomFloat),
}
