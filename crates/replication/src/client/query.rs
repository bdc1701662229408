//! Queries about the shown world.

use prescient_codec::Tick;
use prescient_schema::{Content, EntityRef, Library, State};

use super::schema_adapter::table_of;
use super::{Client, EntityHandle};
use crate::grid::Position;

impl Client {
    /// The newest tick of which a packet was applied.
    pub fn tick(&self) -> Option<Tick> {
        self.shown_world.tick()
    }

    /// The newest tick whose whole visible state was received.
    pub fn complete_tick(&self) -> Option<Tick> {
        self.shown_world.complete_tick()
    }

    /// All visible entities.
    pub fn entities(&self) -> impl Iterator<Item = EntityHandle> {
        self.shown_world.entities()
    }

    /// An entity's value in its first table; `None` if it has another type or is gone.
    pub fn get<T: State>(&self, entity: EntityHandle) -> Option<T> {
        self.get_table(entity, T::TABLES.first()?)
    }

    /// An entity's value in a table; `None` if that table is not visible. With authority, this is
    /// the value last [`set`](Self::set).
    pub fn get_table<T: State>(&self, entity: EntityHandle, table: &str) -> Option<T> {
        let (entity_type, number) = table_of::<T>(self.shown_world.entity_types(), table)?;
        if self.shown_world.entry(entity)?.entity_type != entity_type {
            return None;
        }
        if let Some(parcel) = self.authority.latest(entity, number) {
            return T::from_row_in(table, &parcel.row, parcel).ok();
        }
        let row = self.shown_world.row(entity, usize::from(number))?;
        let class = self.shown_world.entity_types().tables(entity_type)[usize::from(number)];
        let library = self.shown_world.decoder.world();
        self.adapter.value(table, class, row, library)
    }

    /// The name of an entity's type; `None` if it is gone.
    pub fn type_name(&self, entity: EntityHandle) -> Option<&str> {
        let entity_type = self.shown_world.entry(entity)?.entity_type;
        let class = usize::from(
            *self
                .shown_world
                .entity_types()
                .tables(entity_type)
                .first()?,
        );
        let schema = self.shown_world.decoder.world().schema();
        schema.classes.get(class).map(|class| class.name.as_str())
    }

    /// An entity's row in the table with this index, with the columns of the server's schema;
    /// `None` if that table is not visible.
    pub fn row(&self, entity: EntityHandle, table: usize) -> Option<&[i64]> {
        self.shown_world.row(entity, table)
    }

    /// Resolves a container's cell (a content hash) in a [`row`](Self::row) to its content.
    pub fn content(&self, cell: i64) -> Option<&Content> {
        self.shown_world.decoder.world().content(cell)
    }

    /// The tick of an entity's values in a table. Ticks differ between entities if packets are too
    /// small for all.
    pub fn tick_of(&self, entity: EntityHandle, table: usize) -> Option<Tick> {
        self.shown_world.tick_of(entity, table)
    }

    /// The position of an entity relative to another, exact at any distance from the origin. `None`
    /// if one of them is gone or has no position, or if their positions have different steps.
    pub fn offset(&self, entity: EntityHandle, from: EntityHandle) -> Option<Position> {
        let coordinates = |entity: EntityHandle| {
            let entity_type = self.shown_world.entry(entity)?.entity_type;
            let class = usize::from(self.shown_world.entity_types().tables(entity_type)[0]);
            let class = &self.shown_world.decoder.world().schema().classes[class];
            let row = match self.authority.latest(entity, 0) {
                Some(parcel) => &parcel.row,
                None => self.shown_world.row(entity, 0)?,
            };
            let fields = class.position.iter().map(|&field| usize::from(field));
            let pairs: Option<Vec<_>> = fields
                .map(|field| Some((row.get(field)?, class.fields.get(field)?.kind.unit()?)))
                .collect();
            pairs
        };
        let (entity, from) = (coordinates(entity)?, coordinates(from)?);
        if entity.is_empty() || entity.len() != from.len() {
            return None;
        }
        let mut offset = Position::default();
        for (axis, ((to, unit), (from, other))) in
            offset.0.iter_mut().zip(entity.into_iter().zip(from))
        {
            if unit != other {
                return None;
            }
            *axis = unit.value(to.wrapping_sub(*from));
        }
        Some(offset)
    }

    /// The entity that a reference in a value refers to; `None` if it is not visible yet, or the
    /// reference is empty.
    pub fn resolve(&self, reference: EntityRef) -> Option<EntityHandle> {
        self.shown_world.by_id(reference.index()?)
    }

    /// The reference to an entity, for use in a value or in an event's payload.
    pub fn reference(&self, entity: EntityHandle) -> Option<EntityRef> {
        self.shown_world.entry(entity)?;
        Some(EntityRef::new(entity.id, 0))
    }
}
