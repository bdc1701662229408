//! Errors of schemas.

use alloc::string::String;
use core::fmt;

use crate::StepError;

/// Why a schema, or a part of it, is refused.
#[derive(Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// The class with the error; `None` if it is in the schema as a whole.
    pub class: Option<String>,
    /// The field with the error; `None` if it is in the class as a whole.
    pub field: Option<String>,
    /// The error.
    pub fault: Fault,
}

crate::debug_as_display!(SchemaError);

impl SchemaError {
    /// The type has no such table.
    pub fn no_such_table(class: &str, table: &str) -> Self {
        Self::class(class, Fault::NoSuchTable(table.into()))
    }

    pub(crate) fn schema(fault: Fault) -> Self {
        Self {
            class: None,
            field: None,
            fault,
        }
    }

    pub(crate) fn class(class: &str, fault: Fault) -> Self {
        Self {
            class: Some(class.into()),
            ..Self::schema(fault)
        }
    }

    pub(crate) fn field(class: &str, field: &str, fault: Fault) -> Self {
        Self {
            field: Some(field.into()),
            ..Self::class(class, fault)
        }
    }
}

/// Names are escaped, as in a [`Difference`](crate::Difference).
impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(class) = &self.class {
            crate::difference::write_class(f, class)?;
            if let Some(field) = &self.field {
                write!(f, ", field `{}`", field.escape_debug())?;
            }
            f.write_str(": ")?;
        }
        self.fault.fmt(f)
    }
}

impl core::error::Error for SchemaError {}

/// The errors a schema can have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// More than [`Schema::MAX_CLASSES`](crate::Schema::MAX_CLASSES).
    TooManyClasses,
    /// More than [`Class::MAX_FIELDS`](crate::Class::MAX_FIELDS).
    TooManyFields,
    /// Another class, field or variant has the same name.
    DuplicateName,
    /// A name is empty or longer than 255 bytes.
    BadName,
    /// A width of 0 or of more than 64 bits.
    BadWidth(u8),
    /// An enumeration without values.
    NoValues,
    /// The step is not a positive ratio.
    BadStep(StepError),
    /// Level 0 is not exact, a level is finer than the one before, or rounds all bits away.
    BadLevels([u8; 4]),
    /// Levels on a kind that cannot be coarsened by rounding bits away.
    LevelsOnExact,
    /// Levels on a field of priority 0, which is never degraded.
    LevelsOnPriorityZero,
    /// A role (owner, position, group, keys, rate) names a field that does not exist.
    NoSuchField(String),
    /// A role has an index that no field has.
    BadIndex(u16),
    /// A role that takes one field names something that is flattened to several.
    SeveralFields,
    /// A role is declared twice.
    DeclaredTwice,
    /// A field is declared as the rate of change of itself.
    RateOfItself,
    /// A rate between fields that are not both numbers with a unit.
    RateWithoutUnits,
    /// The ratio of the two units does not fit a [`Derivative`](crate::Derivative).
    RateOutOfRange,
    /// A container inside a container.
    NestedContainer,
    /// A reference inside a container.
    ReferenceInContainer,
    /// Items without columns.
    EmptyItem,
    /// A container of no items, or of more than [`Content::MAX_CELLS`](crate::Content::MAX_CELLS)
    /// integers.
    BadLength(u32),
    /// A map whose key has no columns, or more columns than its items.
    BadKey(u8),
    /// A column of an item has a property that only columns of a class can have.
    DeclaredOnItem,
    /// A reference to a class that is not in the schema.
    NoSuchClass(String),
    /// The type has no table of that name.
    NoSuchTable(String),
    /// Keys in a field that is not an unsigned integer, or that is sent only on spawn.
    KeysWithoutBits,
    /// An optional table that is not a further table of an earlier class.
    OptionalFirstTable,
    /// A field in a table of its own, inside another field.
    NestedTable,
    /// An event, or a field of one, has a property that only concerns the state of entities.
    ReplicatedEvent,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::TooManyClasses => "too many classes",
            Self::TooManyFields => "too many fields",
            Self::DuplicateName => "the name is used twice",
            Self::BadName => "a name must have 1 to 255 bytes",
            Self::KeysWithoutBits => "keys need an unsigned integer that is not `only_on_spawn`",
            Self::BadWidth(bits) => return write!(f, "a width of {bits} bits is not in 1 to 64"),
            Self::NoValues => "an enumeration needs at least one value",
            Self::BadStep(error) => return error.fmt(f),
            Self::BadLevels(levels) => {
                return write!(
                    f,
                    "levels {levels:?} must start at 0, not decrease, and stay below the width"
                );
            }
            Self::LevelsOnExact => "only integers and stepped floats have levels",
            Self::LevelsOnPriorityZero => "priority 0 is never degraded, so it has no levels",
            Self::NoSuchField(name) => {
                return write!(f, "there is no field `{}`", name.escape_debug());
            }
            Self::BadIndex(index) => return write!(f, "there is no field {index}"),
            Self::SeveralFields => {
                "a single field is needed here, but this is flattened to several"
            }
            Self::DeclaredTwice => "declared twice",
            Self::RateOfItself => "a field cannot be its own rate of change",
            Self::RateWithoutUnits => "a rate needs integers or stepped floats on both sides",
            Self::RateOutOfRange => "the ratio of the two steps does not fit 32 bits",
            Self::NestedContainer => "a container cannot hold containers",
            Self::ReferenceInContainer => "a container cannot hold references to entities",
            Self::EmptyItem => "items need at least one column",
            Self::BadLength(max_len) => {
                return write!(
                    f,
                    "a maximum of {max_len} items is not in 1 to 65536 integers"
                );
            }
            Self::BadKey(columns) => return write!(f, "a key cannot have {columns} columns"),
            Self::DeclaredOnItem => "this cannot be declared inside a container",
            Self::NoSuchClass(class) => {
                return write!(f, "there is no class `{}`", class.escape_debug());
            }
            Self::NoSuchTable(table) => {
                return write!(f, "there is no table `{}`", table.escape_debug());
            }
            Self::OptionalFirstTable => "only a further table of an earlier class can be optional",
            Self::ReplicatedEvent => {
                "an event has no owner, position, group, keys, levels, priorities, rates or tables"
            }
            Self::NestedTable => "only a field of the entity's own type can have its own table",
        };
        f.write_str(text)
    }
}
