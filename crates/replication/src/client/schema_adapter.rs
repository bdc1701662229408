//! Reads the rows of a server whose schema differs.

use std::borrow::Cow;

use prescient_schema::{Difference, Library, Projection, Schema, Source, State, Tolerance};

use crate::entity_types::EntityTypes;

/// The client's own schema, and the projection of the server's rows to it.
pub(super) struct SchemaAdapter {
    pub own: Schema,
    pub tolerance: Tolerance,
    /// `None` while the schemas are equal or assumed to be.
    projection: Option<Projection>,
}

impl SchemaAdapter {
    pub(super) fn new(own: Schema, tolerance: Tolerance) -> Self {
        Self {
            own,
            tolerance,
            projection: None,
        }
    }

    /// Switches to the server's schema, or returns the differences that prevent it, where `here` is
    /// the server's side.
    pub(super) fn adapt(
        &mut self,
        server: &Schema,
        allows: Tolerance,
    ) -> Result<(), Vec<Difference>> {
        let both = Projection::between((server, allows), (&self.own, self.tolerance))?;
        self.projection = (!both.is_identity()).then_some(both);
        Ok(())
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.projection.is_some()
    }

    /// A value from a row of the server's class with this index.
    pub(super) fn value<T: State>(
        &self,
        table: &str,
        class: u16,
        row: &[i64],
        library: &dyn Library,
    ) -> Option<T> {
        T::from_row_in(table, &self.own_row(class, row)?, library).ok()
    }

    /// Reads a row of the server's optional table with this class into a value.
    pub(super) fn read_table<T: State>(
        &self,
        value: &mut T,
        table: &str,
        class: u16,
        row: &[i64],
        library: &dyn Library,
    ) -> Option<()> {
        let row = self.own_row(class, row)?;
        let mut source = Source::with(&row, library);
        value.read_table(table, &mut source).ok()?;
        source.finish().ok()
    }

    /// A row with the columns of the client's own schema.
    fn own_row<'a>(&self, class: u16, row: &'a [i64]) -> Option<Cow<'a, [i64]>> {
        let Some(projection) = &self.projection else {
            return Some(Cow::Borrowed(row));
        };
        let class = projection.class(class)?;
        let mut own = vec![0; class.columns.len()];
        class.apply(row, &mut own);
        Some(Cow::Owned(own))
    }
}

/// The server's type and table index for a table of `T`.
pub(super) fn table_of<T: State>(
    entity_types: &EntityTypes,
    table: &str,
) -> Option<(crate::entity_types::EntityType, u8)> {
    match T::TABLES.iter().position(|&name| name == table)? {
        0 => entity_types.class(T::NAME),
        _ => entity_types.class(&format!("{}.{table}", T::NAME)),
    }
}
