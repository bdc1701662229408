//! References to other entities.
//!
//! A reference is a handle issued by a server's archive or a client's decoder. The two ends use
//! different handles for the same entity, so a reference is valid only at the end that issued it.

use core::{fmt, marker::PhantomData};

use crate::{ClassBuilder, Declaration, FieldKind, ReadError, Sink, Source, State, Value};

/// A reference to an entity of any class, or to none.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityRef(i64);

impl EntityRef {
    /// No entity.
    pub const NONE: Self = Self(0);

    /// A reference to the entity at `index` with this `generation` (below 2³¹). For archives and
    /// decoders: users get references from them.
    pub const fn new(index: u32, generation: u32) -> Self {
        Self(((generation as i64 & 0x7FFF_FFFF) << 32 | index as i64) + 1)
    }

    /// The reference in a column; `None` if the value is not one.
    pub const fn from_cell(cell: i64) -> Option<Self> {
        if cell >= 0 { Some(Self(cell)) } else { None }
    }

    /// The value of a column with this reference.
    pub const fn cell(self) -> i64 {
        self.0
    }

    /// Whether it refers to no entity.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Index of the entity.
    pub const fn index(self) -> Option<u32> {
        match self.0 {
            0 => None,
            cell => Some((cell - 1) as u32),
        }
    }

    /// How many entities had this index before.
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

/// A reference to an entity of type `T`, or to none.
pub struct Ref<T> {
    entity: EntityRef,
    is: PhantomData<fn() -> T>,
}

impl<T> Ref<T> {
    /// No entity.
    pub const NONE: Self = Self::to(EntityRef::NONE);

    /// Declares an entity to be a `T`; not checked.
    pub const fn to(entity: EntityRef) -> Self {
        Self {
            entity,
            is: PhantomData,
        }
    }

    /// The reference without the type.
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

// Derived, these would require the same traits of `T`.
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

impl<T> From<Ref<T>> for EntityRef {
    fn from(reference: Ref<T>) -> Self {
        reference.entity_ref()
    }
}

impl<T> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entity.fmt(f)
    }
}
