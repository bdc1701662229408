//! What the schema means for coding: worked out once, the same at both ends.

use alloc::{sync::Arc, vec::Vec};

use prescient_schema::{Class, Field, Kind, Schema, Shape};

/// What does not change during a connection.
#[derive(Debug)]
pub(crate) struct Layout {
    pub schema: Arc<Schema>,
    /// Number of the first field of each class among all fields of the schema.
    pub first_field: Vec<u32>,
    pub shapes: Vec<Vec<Shape>>,
    /// Order in which fields are coded: rates of change before what they change.
    pub order: Vec<Vec<u16>>,
    /// The same without the fields that are only sent when an entity appears.
    pub updates: Vec<Vec<u16>>,
    /// Whether a class can be served at other than full precision.
    pub has_levels: Vec<bool>,
    /// For each field, the field that is its declared rate of change.
    pub rates: Vec<Vec<Option<u16>>>,
    /// The fields of each class that are containers, and those that refer to entities.
    pub contents: Vec<Vec<u16>>,
    pub references: Vec<Vec<u16>>,
    pub has_references: bool,
    /// For each field, what its items are made of.
    pub items: Vec<Vec<Items>>,
}

/// The columns of a container's items.
#[derive(Debug, Default)]
pub(crate) struct Items {
    pub shapes: Vec<Shape>,
    /// The number of the first of them; they count on behind all fields of the schema.
    pub first: u32,
}

impl Layout {
    pub fn new(schema: Arc<Schema>) -> Self {
        let mut first_field = Vec::new();
        let mut next = 0;
        for class in &schema.classes {
            first_field.push(next);
            next += class.fields.len() as u32 + 1;
        }
        let shapes = schema
            .classes
            .iter()
            .map(|class| {
                class
                    .fields
                    .iter()
                    .map(|field| field.kind.shape())
                    .collect()
            })
            .collect();
        let order: Vec<Vec<u16>> = schema
            .classes
            .iter()
            .map(|class| {
                let is_rate = |&f: &u16| class.fields[usize::from(f)].derivative_of.is_some();
                let all = 0..class.fields.len() as u16;
                all.clone()
                    .filter(is_rate)
                    .chain(all.filter(|f| !is_rate(f)))
                    .collect()
            })
            .collect();
        let updates = order
            .iter()
            .zip(&schema.classes)
            .map(|(order, class)| {
                let lasting = |f: &u16| !class.fields[usize::from(*f)].only_on_spawn;
                order.iter().copied().filter(lasting).collect()
            })
            .collect();
        let rates = schema
            .classes
            .iter()
            .map(|class| {
                let mut rates = alloc::vec![None; class.fields.len()];
                for (index, field) in class.fields.iter().enumerate() {
                    if let Some(derivative) = field.derivative_of
                        && let Some(rate) = rates.get_mut(usize::from(derivative.of))
                    {
                        *rate = Some(index as u16);
                    }
                }
                rates
            })
            .collect();
        let has_levels = schema
            .classes
            .iter()
            .map(|class| class.fields.iter().any(knows_levels))
            .collect();
        let columns = |is: fn(Shape) -> bool| -> Vec<Vec<u16>> {
            let of_class = |class: &Class| {
                let fields = (0..).zip(&class.fields);
                let found = fields.filter(|(_, field)| is(field.kind.shape()));
                found.map(|(at, _)| at).collect()
            };
            schema.classes.iter().map(of_class).collect()
        };
        let contents = columns(|shape| shape == Shape::Content);
        let references = columns(|shape| shape == Shape::Reference);
        let mut items = |field: &Field| {
            let item = field.kind.container().map_or(&[][..], |of| of.item);
            let first = next;
            next += item.len() as u32;
            Items {
                shapes: item.iter().map(|column| column.kind.shape()).collect(),
                first,
            }
        };
        let items = schema
            .classes
            .iter()
            .map(|class| class.fields.iter().map(&mut items).collect())
            .collect();
        Self {
            has_references: references.iter().any(|fields| !fields.is_empty()),
            contents,
            references,
            items,
            schema,
            first_field,
            shapes,
            order,
            updates,
            has_levels,
            rates,
        }
    }
}

fn knows_levels(field: &Field) -> bool {
    let formats = matches!(&field.kind, Kind::Custom(float) if !float.is_uniform());
    field.coarser != [0; 4] || formats && field.priority.get() > 0
}
