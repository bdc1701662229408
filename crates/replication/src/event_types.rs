//! The event types of a schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use prescient_schema::{Event, EventDelivery, FieldKind, Parcel, Schema};

use crate::checked_row;
use crate::entity_types::{EntityType, EntityTypes};
use crate::typed_event::EventError;

/// The events of a schema, by class and by name.
#[derive(Debug)]
pub(crate) struct EventTypes {
    /// `None` for classes of entities.
    classes: Vec<Option<EventType>>,
    names: BTreeMap<Arc<str>, u16>,
}

/// A class of events.
#[derive(Debug)]
pub(crate) struct EventType {
    pub name: Arc<str>,
    pub delivery: EventDelivery,
    /// The names of its columns.
    fields: Vec<String>,
    /// The columns that are references, and the type that an entity must have there.
    pub references: Vec<(usize, Option<EntityType>)>,
}

impl EventTypes {
    pub(crate) fn of(schema: &Schema, entity_types: &EntityTypes) -> Self {
        let classes = schema.classes.iter().map(|class| {
            let fields = class.fields.iter().enumerate();
            let references = fields.filter_map(|(column, field)| match &field.kind {
                FieldKind::Reference { class } => {
                    let class = class.as_ref();
                    Some((column, class.and_then(|name| entity_types.find(name))))
                }
                _ => None,
            });
            let names = class.fields.iter().map(|field| field.name.clone());
            Some(EventType {
                fields: names.collect(),
                name: class.name.as_str().into(),
                delivery: class.event?,
                references: references.collect(),
            })
        });
        let classes: Vec<Option<EventType>> = classes.collect();
        let numbers = (0..).zip(&classes);
        let names =
            numbers.filter_map(|(number, event)| Some((event.as_ref()?.name.clone(), number)));
        Self {
            names: names.collect(),
            classes,
        }
    }

    pub(crate) fn get(&self, class: u16) -> Option<&EventType> {
        self.classes.get(usize::from(class))?.as_ref()
    }

    /// The class of an event, and its values.
    pub(crate) fn parcel<T: Event>(&self, event: &T) -> Result<(u16, Parcel), EventError> {
        let mut parcel = Parcel::default();
        let (variant, misfit) = checked_row::write_event(event, &mut parcel);
        let name = T::CLASSES.get(variant).copied().unwrap_or_default();
        let class = self.names.get(name).copied();
        let class = class.ok_or_else(|| EventError::unknown::<T>(variant))?;
        match (misfit, self.get(class)) {
            (Some((column, misfit)), Some(event_type)) => Err(EventError::DoesNotFit {
                field: event_type.field(column),
                misfit,
            }),
            _ => Ok((class, parcel)),
        }
    }
}

impl EventType {
    /// The name of a column, for errors: `Kill.damage`.
    pub(crate) fn field(&self, column: usize) -> String {
        let event = self.name.strip_prefix("event ").unwrap_or(&self.name);
        let field = self.fields.get(column).map_or("?", String::as_str);
        format!("{event}.{field}")
    }
}
