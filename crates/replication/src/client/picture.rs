//! What a program can ask about what is shown.

use prescient_codec::Tick;
use prescient_schema::{Content, EntityRef, Library, State};

use super::reading::table_of;
use super::{Client, Object};
use crate::grid::Place;

impl Client {
    /// The newest tick of which something was applied.
    pub fn tick(&self) -> Option<Tick> {
        self.scene.tick()
    }

    /// The newest tick of which everything was shown that there was to see.
    pub fn complete_tick(&self) -> Option<Tick> {
        self.scene.complete_tick()
    }

    /// Everything that is shown.
    pub fn objects(&self) -> impl Iterator<Item = Object> {
        self.scene.objects()
    }

    /// An object as its first table has it; `None` if it is of another type or gone.
    pub fn get<T: State>(&self, object: Object) -> Option<T> {
        self.get_table(object, T::TABLES.first()?)
    }

    /// An object as a table has it; `None` if that table is not shown. What this client is in
    /// charge of is as it was last [`set`](Self::set).
    pub fn get_table<T: State>(&self, object: Object, table: &str) -> Option<T> {
        let (kind, number) = table_of::<T>(self.scene.kinds(), table)?;
        if self.scene.entry(object)?.kind != kind {
            return None;
        }
        if let Some(parcel) = self.author.latest(object, number) {
            return T::from_row_in(table, &parcel.row, parcel).ok();
        }
        let row = self.scene.row(object, usize::from(number))?;
        let class = self.scene.kinds().tables(kind)[usize::from(number)];
        let library = self.scene.decoder.world();
        self.reading.value(table, class, row, library)
    }

    /// The name of an object's type; `None` if it is gone.
    pub fn kind_of(&self, object: Object) -> Option<&str> {
        let kind = self.scene.entry(object)?.kind;
        let class = usize::from(*self.scene.kinds().tables(kind).first()?);
        let schema = self.scene.decoder.world().schema();
        schema.classes.get(class).map(|class| class.name.as_str())
    }

    /// An object as one of its tables has it, by number, in the columns of the server's schema;
    /// `None` if that table is not shown.
    pub fn row(&self, object: Object, table: usize) -> Option<&[i64]> {
        self.scene.row(object, table)
    }

    /// What the column of a container holds that a [`row`](Self::row) has this cell of; `None` if
    /// that is nothing.
    pub fn content(&self, cell: i64) -> Option<&Content> {
        self.scene.decoder.world().content(cell)
    }

    /// The tick that a table of an object is shown as of. Where packets are too short for all,
    /// that is not the same for all.
    pub fn tick_of(&self, object: Object, table: usize) -> Option<Tick> {
        self.scene.tick_of(object, table)
    }

    /// Where an object is as seen from another, both as they are shown: exact however far both are
    /// from the origin of the world. `None` if one of them is gone or has no position, or they
    /// count theirs in different steps.
    pub fn offset(&self, object: Object, from: Object) -> Option<Place> {
        let coordinates = |object: Object| {
            let kind = self.scene.entry(object)?.kind;
            let class = usize::from(self.scene.kinds().tables(kind)[0]);
            let class = &self.scene.decoder.world().schema().classes[class];
            let row = match self.author.latest(object, 0) {
                Some(parcel) => &parcel.row,
                None => self.scene.row(object, 0)?,
            };
            let fields = class.position.iter().map(|&field| usize::from(field));
            let pairs: Option<Vec<_>> = fields
                .map(|field| Some((row.get(field)?, class.fields.get(field)?.kind.unit()?)))
                .collect();
            pairs
        };
        let (object, from) = (coordinates(object)?, coordinates(from)?);
        if object.is_empty() || object.len() != from.len() {
            return None;
        }
        let mut offset = Place::default();
        for (axis, ((to, unit), (from, other))) in
            offset.0.iter_mut().zip(object.into_iter().zip(from))
        {
            if unit != other {
                return None;
            }
            *axis = unit.value(to.wrapping_sub(*from));
        }
        Some(offset)
    }

    /// The object that a reference in a value refers to; `None` if it is not there yet, or refers
    /// to nothing.
    pub fn resolve(&self, reference: EntityRef) -> Option<Object> {
        self.scene.by_number(reference.index()?)
    }

    /// What a reference to an object is, to be put into a value or an event's own bytes.
    pub fn reference(&self, object: Object) -> Option<EntityRef> {
        self.scene.entry(object)?;
        Some(EntityRef::new(object.id, 0))
    }
}
