//! Queries about the shown world.

use prescient_codec::{LastRow, Tick};
use prescient_schema::{Content, EntityRef, Library, Source, State};

use super::departed::Departed;
use super::schema_adapter::table_of;
use super::{Client, EntityHandle};
use crate::entity_types::EntityType;
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

    /// An entity's value in its first table, with its visible optional tables; `None` if it has
    /// another type or is gone. An entity that was removed can be read with its last value until
    /// [`poll_change`](Self::poll_change) returns `None` after its
    /// [`Removed`](super::Change::Removed) or an event about it.
    pub fn get<T: State>(&self, entity: EntityHandle) -> Option<T> {
        self.get_table(entity, T::TABLES.first()?)
    }

    /// An entity's value in a table that is not optional, with its visible optional tables; `None`
    /// if that table is not visible. With authority, this is the value last [`set`](Self::set).
    pub fn get_table<T: State>(&self, entity: EntityHandle, table: &str) -> Option<T> {
        let (entity_type, number) = table_of::<T>(self.shown_world.entity_types(), table)?;
        if let Some(departed) = self.departed(entity) {
            return self.last::<T>(departed, table, entity_type, number);
        }
        if self.shown_world.entry(entity)?.entity_type != entity_type {
            return None;
        }
        let library = self.shown_world.decoder.world();
        let class =
            |table: u8| self.shown_world.entity_types().tables(entity_type)[usize::from(table)];
        let mut value: T = match self.authority.latest(entity, number) {
            Some(parcel) => T::from_row_in(table, &parcel?.row, parcel?).ok()?,
            None => {
                let row = self.shown_world.row(entity, usize::from(number))?;
                self.adapter.value(table, class(number), row, library)?
            }
        };
        for table in T::OPTIONAL_TABLES {
            let Some((_, number)) = table_of::<T>(self.shown_world.entity_types(), table) else {
                continue;
            };
            match self.authority.latest(entity, number) {
                Some(None) => {}
                Some(Some(parcel)) => {
                    let mut source = Source::with(&parcel.row, parcel);
                    value.read_table(table, &mut source).ok()?;
                }
                None => {
                    if let Some(row) = self.shown_world.row(entity, usize::from(number)) {
                        let class = class(number);
                        self.adapter
                            .read_table(&mut value, table, class, row, library)?;
                    }
                }
            }
        }
        Some(value)
    }

    /// The last value of a removed entity.
    fn last<T: State>(
        &self,
        departed: &Departed,
        table: &str,
        entity_type: EntityType,
        number: u8,
    ) -> Option<T> {
        if departed.entity_type != entity_type {
            return None;
        }
        let row = departed.last_row(usize::from(number))?;
        // The last column of a further table refers to the entity.
        let cells = |row: &LastRow, number: u8| row.row().len() - usize::from(number > 0);
        let own = row.row().get(..cells(row, number))?;
        let mut value: T = self.adapter.value(table, row.class(), own, row)?;
        for table in T::OPTIONAL_TABLES {
            let found = table_of::<T>(self.shown_world.entity_types(), table);
            if let Some((_, number)) = found
                && let Some(row) = departed.last_row(usize::from(number))
            {
                let own = row.row().get(..cells(row, number))?;
                self.adapter
                    .read_table(&mut value, table, row.class(), own, row)?;
            }
        }
        Some(value)
    }

    /// A removed entity, if the program has not polled its removal yet, or is about to handle it.
    fn departed(&self, entity: EntityHandle) -> Option<&Departed> {
        let departed = self.shown_world.departed.get(entity)?;
        let is_told = self.departed.contains(&entity);
        (is_told || self.shown_world.is_leaving(entity)).then_some(departed)
    }

    /// The indices of an entity's visible tables, ascending and as in [`row`](Self::row).
    pub fn tables(&self, entity: EntityHandle) -> impl Iterator<Item = usize> {
        self.shown_world.tables(entity)
    }

    /// Whether the table with this index is visible: the entity has it, and the server shows it.
    pub fn has_table(&self, entity: EntityHandle, table: usize) -> bool {
        self.shown_world.tables(entity).any(|other| other == table)
    }

    /// The index and the class of an entity's table, if the entity is a `T`.
    fn table<T: State>(&self, entity: EntityHandle, table: &str) -> Option<(u8, u16)> {
        let entity_types = self.shown_world.entity_types();
        let (entity_type, number) = table_of::<T>(entity_types, table)?;
        let is_it = self.shown_world.entry(entity)?.entity_type == entity_type;
        let class = entity_types.tables(entity_type)[usize::from(number)];
        is_it.then_some((number, class))
    }

    /// The name of an entity's type; `None` if it is gone.
    pub fn type_name(&self, entity: EntityHandle) -> Option<&str> {
        let entity_type = match self.departed(entity) {
            Some(departed) => departed.entity_type,
            None => self.shown_world.entry(entity)?.entity_type,
        };
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

    /// An entity's values in its first table at the recent ticks that were confirmed, oldest
    /// first; read from the back for the newest. Nothing is copied before it is asked for. Empty if
    /// the entity has another type or is gone.
    ///
    /// A tick is confirmed if a packet of it covered the entity, also if it stated no change. If
    /// packets are too small for all entities, ticks in which it was not this entity's turn are
    /// missing, and so are those whose packets were lost: what the server had then is not known
    /// here. These are the server's values also of entities that this client has authority over.
    ///
    /// [`ClientConfig::with_history`](super::ClientConfig::with_history) says how far this reaches back.
    /// Never before the entity appeared here.
    pub fn samples<T: State>(
        &self,
        entity: EntityHandle,
    ) -> impl DoubleEndedIterator<Item = (Tick, T)> {
        let table = T::TABLES.first().copied().unwrap_or_default();
        self.table_samples(entity, table)
    }

    /// Like [`samples`](Self::samples), in another table; empty if that table is not visible. The
    /// tables of an entity may be confirmed at different ticks.
    pub fn table_samples<T: State>(
        &self,
        entity: EntityHandle,
        table: &str,
    ) -> impl DoubleEndedIterator<Item = (Tick, T)> {
        let found = self.table::<T>(entity, table);
        found.into_iter().flat_map(move |(number, class)| {
            let rows = self.shown_world.sample_rows(entity, usize::from(number));
            let library = self.shown_world.decoder.world();
            let value = move |row| self.adapter.value(table, class, row, library);
            rows.filter_map(move |(tick, row)| Some((tick, value(row)?)))
        })
    }

    /// Like [`samples`](Self::samples), as rows of the table with this index, with the columns of
    /// the server's schema.
    pub fn sample_rows(
        &self,
        entity: EntityHandle,
        table: usize,
    ) -> impl DoubleEndedIterator<Item = (Tick, &[i64])> {
        self.shown_world.sample_rows(entity, table)
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
                Some(parcel) => &parcel?.row,
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
    /// reference is empty. It may have been removed, while [`get`](Self::get) has its last value.
    pub fn resolve(&self, reference: EntityRef) -> Option<EntityHandle> {
        let id = reference.index()?;
        let departed = || {
            let departed = self.shown_world.departed.newest(id)?;
            self.departed(departed).map(|_| departed)
        };
        self.shown_world.by_id(id).or_else(departed)
    }

    /// The reference to an entity, for use in a value or in an event's payload.
    pub fn reference(&self, entity: EntityHandle) -> Option<EntityRef> {
        self.shown_world.entry(entity)?;
        Some(EntityRef::new(entity.id, 0))
    }
}
