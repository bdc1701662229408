//! What the schema means for coding: worked out once, the same at both ends.

use alloc::{sync::Arc, vec::Vec};

use prescient_schema::{Class, Derivative, Field, Kind, Schema, Shape};

/// What does not change during a connection.
#[derive(Debug)]
pub(crate) struct Layout {
    pub schema: Arc<Schema>,
    pub classes: Vec<ClassLayout>,
    /// Pages of the model: one per field and class, and one for everything else.
    pub pages: u32,
}

/// One class of the schema.
#[derive(Debug)]
pub(crate) struct ClassLayout {
    /// Page of the first field; the one behind the last field is the class's own.
    pub first_page: u32,
    pub shapes: Vec<Shape>,
    /// Order in which fields are coded: rates of change before what they change.
    pub order: Vec<u16>,
    /// The same without the fields that are only sent when an entity appears.
    pub updates: Vec<u16>,
    /// Whether it can be served at other than full precision.
    pub has_levels: bool,
    pub has_contract: bool,
    /// For each field, the field that is its declared rate of change.
    pub rates: Vec<Option<Rate>>,
}

/// A declared rate of change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// The field that is the rate.
    pub field: u16,
    pub ratio: Derivative,
}

impl Layout {
    pub fn new(schema: Arc<Schema>) -> Self {
        // Page 0 of the model belongs to no field.
        let mut pages = 1;
        let classes = schema
            .classes
            .iter()
            .map(|class| {
                let first_page = pages;
                pages += class.fields.len() as u32 + 1;
                ClassLayout::new(class, first_page)
            })
            .collect();
        Self {
            schema,
            classes,
            pages,
        }
    }
}

impl ClassLayout {
    fn new(class: &Class, first_page: u32) -> Self {
        let is_rate = |&f: &u16| class.fields[usize::from(f)].derivative_of.is_some();
        let all = 0..class.fields.len() as u16;
        let rest = all.clone().filter(|f| !is_rate(f));
        let order: Vec<u16> = all.filter(is_rate).chain(rest).collect();
        let lasting = |f: &u16| !class.fields[usize::from(*f)].only_on_spawn;
        let updates = order.iter().copied().filter(lasting).collect();
        let mut rates = alloc::vec![None; class.fields.len()];
        for (field, declared) in class.fields.iter().enumerate() {
            if let Some(ratio) = declared.derivative_of
                && let Some(rate) = rates.get_mut(usize::from(ratio.of))
            {
                let field = field as u16;
                *rate = Some(Rate { field, ratio });
            }
        }
        Self {
            first_page,
            shapes: class.fields.iter().map(|f| f.kind.shape()).collect(),
            order,
            updates,
            has_levels: class.fields.iter().any(knows_levels),
            has_contract: class.contract.is_some(),
            rates,
        }
    }

    /// The page of what is about the class and none of its fields.
    pub fn own_page(&self) -> u32 {
        self.first_page + self.shapes.len() as u32
    }
}

fn knows_levels(field: &Field) -> bool {
    let formats = matches!(&field.kind, Kind::Custom(float) if !float.is_uniform());
    field.coarser != [0; 4] || formats && field.priority.get() > 0
}
