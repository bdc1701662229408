//! Values that do not fit their fields.

use prescient_schema::{Content, Declaration, Event, Misfit, Parcel, Schema, Sink, State};

use crate::entity_types::{EntityType, EntityTypes};

/// Writes the row of a value in a table and checks whether it fits; returns how many values were
/// changed because their fields saturate, or the first that does not fit and its column.
pub(crate) fn write<T: State>(
    value: &T,
    table: &str,
    parcel: &mut Parcel,
) -> Result<u64, (usize, Misfit)> {
    parcel.row.clear();
    parcel.contents.clear();
    let mut row = CheckedRow::new(parcel);
    value.write(&Declaration::PLAIN, table, &mut row);
    match row.refused {
        None => Ok(row.saturated),
        Some(refused) => Err(refused),
    }
}

/// Writes the row of an event and checks whether it fits; returns its variant and the first column
/// that does not fit.
pub(crate) fn write_event<T: Event>(
    event: &T,
    parcel: &mut Parcel,
) -> (usize, Option<(usize, Misfit)>) {
    let mut row = CheckedRow::new(parcel);
    (event.write(&mut row), row.refused)
}

/// The name of a column of a table, for errors: `Tank.position[0]`.
pub(crate) fn column_name(
    schema: &Schema,
    entity_types: &EntityTypes,
    entity_type: EntityType,
    table: usize,
    column: usize,
) -> String {
    let class = entity_types.tables(entity_type).get(table);
    let class = class.and_then(|&class| schema.classes.get(usize::from(class)));
    let field = class.and_then(|class| class.fields.get(column));
    let name = |class: &str, field: &str| format!("{class}.{field}");
    match (class, field) {
        (Some(class), Some(field)) => name(&class.name, &field.name),
        _ => column.to_string(),
    }
}

struct CheckedRow<'a> {
    parcel: &'a mut Parcel,
    refused: Option<(usize, Misfit)>,
    saturated: u64,
}

impl<'a> CheckedRow<'a> {
    fn new(parcel: &'a mut Parcel) -> Self {
        Self {
            parcel,
            refused: None,
            saturated: 0,
        }
    }
}

impl Sink for CheckedRow<'_> {
    fn put(&mut self, value: i64) {
        self.parcel.put(value);
    }

    fn put_content(&mut self, content: Content) {
        self.parcel.put_content(content);
    }

    fn note_misfit(&mut self, misfit: Misfit, saturate: bool) {
        match saturate {
            true => self.saturated += 1,
            false => {
                self.refused.get_or_insert((self.parcel.row.len(), misfit));
            }
        }
    }
}
