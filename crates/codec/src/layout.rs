//! The schema as the coder needs it: computed once, and identical at both ends.

use alloc::{sync::Arc, vec::Vec};

use prescient_schema::{Class, Derivative, Field, FieldKind, Schema, Shape};

use crate::{
    config::Profile,
    predict::{ALL, DECLARED, HOLD, Width},
    prior::{BoundPrior, Prior, PriorMismatch},
};

/// A schema as the coder needs it: computed once, and shared by the encoders of a world, and by the
/// decoders of its readers in the same program ([`Encoder::with_layout`](crate::Encoder::with_layout),
/// [`Decoder::with_layout`](crate::Decoder::with_layout)).
#[derive(Debug)]
pub struct Layout {
    pub(crate) schema: Arc<Schema>,
    pub(crate) classes: Vec<ClassLayout>,
    /// Pages of the context model: one per field and class, one per column of a container's items,
    /// and page 0 for everything else.
    pub(crate) pages: u32,
    /// Whether any field refers to an entity.
    pub(crate) has_references: bool,
    /// Whether any class has a group field, or is one of several tables.
    pub(crate) has_groups: bool,
    /// The prior with which the model starts.
    pub(crate) prior: Option<BoundPrior>,
}

/// One class of the schema.
#[derive(Debug)]
pub(crate) struct ClassLayout {
    /// Page of the first field; the page after that of the last field is the class's own.
    pub first_page: u32,
    pub shapes: Vec<Shape>,
    pub widths: Vec<Width>,
    /// For each field, the predictors that apply to it, and those of them that need only one
    /// sample.
    pub predictors: Vec<(u8, u8)>,
    /// The order in which fields are coded: rates of change before the fields that they change.
    pub order: Vec<u16>,
    /// `order` without the fields that never change after the spawn.
    pub updates: Vec<u16>,
    /// The numbers among `updates`, in schema order, between which relations are searched for; none
    /// if the class has a contract or rates of change.
    pub numbers: Vec<u16>,
    /// Whether it can be sent at coarser precision.
    pub has_levels: bool,
    pub has_contract: bool,
    /// Whether the class has neither a contract nor rates of change.
    pub is_plain: bool,
    /// For each field, the field that is its declared rate of change.
    pub rates: Vec<Option<Rate>>,
    /// For each field, whether it is itself a rate of change.
    pub is_rate: Vec<bool>,
    /// The fields that are containers, and the fields that are references.
    pub contents: Vec<u16>,
    pub references: Vec<u16>,
    /// For each field, the columns of its items.
    pub items: Vec<Items>,
    /// The field of a further table that refers to its entity.
    pub entity: Option<u16>,
    /// Whether it is the first of several tables.
    pub has_tables: bool,
}

/// The columns of a container's items.
#[derive(Debug, Default)]
pub(crate) struct Items {
    pub shapes: Vec<Shape>,
    /// Page of the first column. These pages follow those of all fields.
    pub first_page: u32,
}

/// A declared rate of change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// The field that is the rate.
    pub field: u16,
    pub ratio: Derivative,
}

impl Layout {
    /// The layout of a schema, for connections that start without a prior.
    pub fn new(schema: Arc<Schema>) -> Self {
        Self::of(schema, true)
    }

    /// The layout of a schema whose contracts are not used: receivers that lack them can decode the
    /// packets, if their schema has the same classes without contracts. For recordings.
    pub fn without_contracts(schema: Arc<Schema>) -> Self {
        Self::of(schema, false)
    }

    fn of(schema: Arc<Schema>, has_contracts: bool) -> Self {
        // Page 0 belongs to no field.
        let mut pages = 1;
        let mut classes: Vec<ClassLayout> = schema
            .classes
            .iter()
            .map(|class| {
                let first_page = pages;
                pages += class.fields.len() as u32 + 1;
                ClassLayout::new(class, first_page, has_contracts)
            })
            .collect();
        for items in classes.iter_mut().flat_map(|class| &mut class.items) {
            items.first_page = pages;
            pages += items.shapes.len() as u32;
        }
        for (first, _) in schema.classes.iter().filter_map(first_table) {
            let mut names = schema.classes.iter().map(|class| &class.name);
            if let Some(at) = names.position(|name| name == first) {
                classes[at].has_tables = true;
            }
        }
        let has_group = |class: &Class| class.group.is_some() || first_table(class).is_some();
        Self {
            has_groups: schema.classes.iter().any(has_group),
            has_references: classes.iter().any(|class| !class.references.is_empty()),
            schema,
            classes,
            pages,
            prior: None,
        }
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// A layout for a connection that starts from a prior.
    pub fn with_prior(
        schema: Arc<Schema>,
        prior: &Prior,
        profile: Profile,
    ) -> Result<Self, PriorMismatch> {
        let mut layout = Self::new(schema);
        layout.prior = Some(prior.bind(&layout, profile)?);
        Ok(layout)
    }
}

impl ClassLayout {
    fn new(class: &Class, first_page: u32, has_contracts: bool) -> Self {
        let has_contract = has_contracts && class.contract.is_some();
        let mut order: Vec<u16> = (0..class.fields.len() as u16).collect();
        order.sort_by_cached_key(|&field| core::cmp::Reverse(rank(class, field)));
        let updates = order.iter().copied();
        let updates = updates.filter(|&f| is_updated(&class.fields[usize::from(f)]));
        let updates = updates.collect();
        let mut rates = alloc::vec![None; class.fields.len()];
        for (field, declared) in class.fields.iter().enumerate() {
            if let Some(ratio) = declared.derivative_of
                && let Some(rate) = rates.get_mut(usize::from(ratio.of))
                // If rates form a cycle, one of them is coded after the field that it changes.
                && order.iter().find(|&&f| f == ratio.of || usize::from(f) == field)
                    != Some(&ratio.of)
            {
                let field = field as u16;
                *rate = Some(Rate { field, ratio });
            }
        }
        let columns = |shape: Shape| {
            let fields = (0..).zip(&class.fields);
            let found = fields.filter(move |(_, field)| field.kind.shape() == shape);
            found.map(|(at, _)| at).collect()
        };
        let items = |field: &Field| {
            let item = field.kind.container().map_or(&[][..], |of| of.item);
            Items {
                shapes: item.iter().map(|column| column.kind.shape()).collect(),
                first_page: 0,
            }
        };
        let predictors = |(field, rate): (&Field, &Option<Rate>)| {
            let contract = if has_contract { DECLARED } else { 0 };
            match field.kind.shape() {
                Shape::Number { .. } if rate.is_some() => (ALL, DECLARED),
                Shape::Number { .. } => (ALL, contract),
                Shape::Symbol { .. } => (HOLD | contract, contract),
                Shape::Content | Shape::Reference => (HOLD, 0),
            }
        };
        let shapes: Vec<Shape> = class.fields.iter().map(|f| f.kind.shape()).collect();
        let is_plain = !has_contract && rates.iter().all(Option::is_none);
        let is_number = |at: &u16| {
            let field = &class.fields[usize::from(*at)];
            is_updated(field) && matches!(field.kind.shape(), Shape::Number { .. })
        };
        let numbers = (0..class.fields.len() as u16).filter(is_number);
        Self {
            numbers: numbers.filter(|_| is_plain).collect(),
            widths: shapes.iter().map(|&shape| Width::new(shape)).collect(),
            predictors: class.fields.iter().zip(&rates).map(predictors).collect(),
            contents: columns(Shape::Content),
            references: columns(Shape::Reference),
            items: class.fields.iter().map(items).collect(),
            first_page,
            shapes,
            order,
            updates,
            has_levels: class.fields.iter().any(has_coarser_levels),
            has_contract,
            is_plain,
            rates,
            is_rate: class
                .fields
                .iter()
                .map(|f| f.derivative_of.is_some())
                .collect(),
            entity: first_table(class).map(|(_, field)| field),
            has_tables: false,
        }
    }

    /// The page of decisions that are about the class and none of its fields.
    pub(crate) fn own_page(&self) -> u32 {
        self.first_page + self.shapes.len() as u32
    }
}

/// The name of the first table, and the field that refers to its entity, if the class is a further
/// table of several: the replication names it like the first with a dot and more, and adds the
/// column.
fn first_table(class: &Class) -> Option<(&str, u16)> {
    let (first, _) = class.name.split_once('.')?;
    let last = class.fields.last()?;
    let refers = matches!(&last.kind, FieldKind::Reference { class: Some(to) } if to == first);
    (refers && last.name == "entity").then(|| (first, class.fields.len() as u16 - 1))
}

/// Whether a field can change after the spawn. A reference can even if it is sent only on spawn,
/// because the entity that it names may become visible or invisible to the receiver.
fn is_updated(field: &Field) -> bool {
    !field.only_on_spawn || field.kind.shape() == Shape::Reference
}

/// Length of the chain of rates that starts at a field: 0 for a position, 1 for a velocity, 2 for
/// an acceleration; the number of fields if the chain is a cycle.
fn rank(class: &Class, field: u16) -> usize {
    let of = |field: &u16| {
        let rate = class.fields.get(usize::from(*field))?.derivative_of?;
        Some(rate.of)
    };
    let chain = core::iter::successors(Some(field), of);
    chain.take(class.fields.len() + 1).count() - 1
}

fn has_coarser_levels(field: &Field) -> bool {
    let formats = matches!(&field.kind, FieldKind::Custom(float) if !float.is_uniform());
    !field.only_on_spawn && (field.coarser != [0; 4] || formats && field.priority.get() > 0)
}
