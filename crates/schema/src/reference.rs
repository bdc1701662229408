//! References to other entities.
//!
//! Where entities live is the business of whoever holds them, so a reference is a number that a
//! server's archive or a client's decoder hands out and takes back. Two ends have different
//! numbers for the same entity: a reference is worth something only where it came from.

use core::{fmt, marker::PhantomData};

use crate::{ClassBuilder, Declaration, FieldKind, ReadError, Sink, Source, State, Value};

/// A reference to an entity of any class, or to none.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityRef(i64);

impl EntityRef {
    /// No entity.
    pub const NONE: Self = Self(0);

    /// A reference to the entity at `index`, which is the `generation`-th there (from 0, below
    /// 2³¹). Ask the archive for one instead of making it up.
    pub const fn new(index: u32, generation: u32) -> Self {
        Self(((generation as i64 & 0x7FFF_FFFF) << 32 | index as i64) + 1)
    }

    /// The reference that a column holds; `None` if it cannot.
    pub const fn from_cell(cell: i64) -> Option<Self> {
        if cell >= 0 { Some(Self(cell)) } else { None }
    }

    /// The value of a column that holds this.
    pub const fn cell(self) -> i64 {
        self.0
    }

    /// Whether it refers to no entity.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Where the entity is.
    pub const fn index(self) -> Option<u32> {
        match self.0 {
            0 => None,
            cell => Some((cell - 1) as u32),
        }
    }

    /// How many entities were there before it.
    pub const fn generation(self) -> u32 {
        match self.0 {
            0 => 0,
            cell => ((cell - 1) >> 32) as u32,
        }
    }
}

impl fmt::Debug for EntityRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.index(), self.generation()) {
            (None, _) => f.write_str("none"),
            (Some(index), 0) => write!(f, "#{index}"),
            (Some(index), generation) => write!(f, "#{index}.{generation}"),
        }
    }
}

impl Value for EntityRef {
    fn describe(name: &str, how: &Declaration, _: &str, class: &mut ClassBuilder) {
        class.field(how.column(name, FieldKind::Reference { class: None }));
    }

    fn width(_: &Declaration, _: &str) -> usize {
        1
    }

    fn write(&self, _: &Declaration, _: &str, row: &mut impl Sink) {
        row.put(self.0);
    }

    fn read(_: &Declaration, _: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
        row.take(Self::from_cell)
    }
}

/// A reference to an entity that is a `T`, or to none.
pub struct Ref<T> {
    entity: EntityRef,
    is: PhantomData<fn() -> T>,
}

impl<T> Ref<T> {
    /// No entity.
    pub const NONE: Self = Self::to(EntityRef::NONE);

    /// Says that an entity is a `T`.
    pub const fn to(entity: EntityRef) -> Self {
        Self {
            entity,
            is: PhantomData,
        }
    }

    /// The same reference without the type.
    pub const fn entity_ref(self) -> EntityRef {
        self.entity
    }
}

impl<T: State> Value for Ref<T> {
    fn describe(name: &str, how: &Declaration, _: &str, class: &mut ClassBuilder) {
        let kind = FieldKind::Reference {
            class: Some(T::NAME.into()),
        };
        class.field(how.column(name, kind));
    }

    fn width(_: &Declaration, _: &str) -> usize {
        1
    }

    fn write(&self, how: &Declaration, table: &str, row: &mut impl Sink) {
        self.entity.write(how, table, row);
    }

    fn read(how: &Declaration, table: &str, row: &mut Source<'_>) -> Result<Self, ReadError> {
        EntityRef::read(how, table, row).map(Self::to)
    }
}

// Derived, these would ask the same of `T`.
impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<T> {}

impl<T> Default for Ref<T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T> PartialEq for Ref<T> {
    fn eq(&self, other: &Self) -> bool {
        self.entity == other.entity
    }
}

impl<T> Eq for Ref<T> {}

impl<T> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entity.fmt(f)
    }
}
