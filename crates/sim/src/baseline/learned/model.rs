//! The learned dataset of one tick.
//!
//! The document archives the whole dataset per tick on both ends and continues from the newest
//! acknowledged one. Copies share their classes until a class learns, so a copy costs only what it
//! changes.

use std::sync::Arc;

use prescient_schema::{Schema, Shape};

use super::{buckets::bucket, distribution::Distribution, transitions::Transitions};

/// Zero, constant, linear, quadratic, cubic: predictor `n` needs `n` samples.
pub(super) const PREDICTORS: usize = 5;

/// The dataset of one tick.
#[derive(Clone, Debug)]
pub(in super::super) struct Model {
    pub(super) classes: Vec<Arc<ClassModel>>,
    pub(super) sets: Arc<SetModel>,
    /// Number of packets it has learned from.
    pub(super) taught: u64,
}

/// The models of a class's fields.
#[derive(Clone, Debug)]
pub(super) struct ClassModel {
    pub(super) fields: Vec<FieldModel>,
}

/// The model of a field.
#[derive(Clone, Debug)]
pub(super) enum FieldModel {
    Number(Box<NumberModel>),
    Symbol(Transitions),
}

/// The error distributions of each predictor on a field.
#[derive(Clone, Debug)]
pub(super) struct NumberModel {
    pub(super) errors: [Distribution; PREDICTORS],
    /// The predictor to use, by number of samples available.
    pub(super) best: [u8; PREDICTORS],
}

/// How many entities leave and enter the visible set, and their classes.
#[derive(Clone, Debug)]
pub(super) struct SetModel {
    pub(super) left_count: Distribution,
    pub(super) left_gap: Distribution,
    pub(super) came_count: Distribution,
    pub(super) came_gap: Distribution,
    pub(super) class: Transitions,
}

impl Model {
    pub(super) fn new(schema: &Schema) -> Self {
        let field = |shape| match shape {
            Shape::Symbol { values } => FieldModel::Symbol(Transitions::new(values)),
            _ => FieldModel::Number(Box::new(NumberModel {
                errors: std::array::from_fn(|_| Distribution::new()),
                best: [0, 1, 2, 3, 4],
            })),
        };
        let classes = schema.classes.iter().map(|class| {
            let fields = class.fields.iter().map(|known| field(known.kind.shape()));
            Arc::new(ClassModel {
                fields: fields.collect(),
            })
        });
        let sets = SetModel {
            left_count: Distribution::new(),
            left_gap: Distribution::new(),
            came_count: Distribution::new(),
            came_gap: Distribution::new(),
            class: Transitions::new(schema.classes.len() as u32),
        };
        Self {
            classes: classes.collect(),
            sets: Arc::new(sets),
            taught: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let field = |field: &FieldModel| match field {
            FieldModel::Number(_) => size_of::<NumberModel>(),
            FieldModel::Symbol(transitions) => transitions.bytes(),
        };
        let classes = self
            .classes
            .iter()
            .flat_map(|class| &class.fields)
            .map(field);
        size_of::<SetModel>() + classes.sum::<usize>()
    }
}

impl ClassModel {
    /// Chooses the cheapest predictors; once per packet, before it is coded.
    pub(super) fn choose(&mut self) {
        for field in &mut self.fields {
            if let FieldModel::Number(number) = field {
                number.choose();
            }
        }
    }
}

impl NumberModel {
    fn choose(&mut self) {
        let mut best = (u64::MAX, 0);
        for (predictor, errors) in self.errors.iter().enumerate() {
            // The higher order wins a tie, because all costs are equal at the start.
            let cost = errors.expected_cost();
            if cost <= best.0 {
                best = (cost, predictor as u8);
            }
            self.best[predictor] = best.1;
        }
    }

    /// Records the errors of all usable predictors.
    pub(super) fn learn(&mut self, value: i64, predictions: &[i64]) {
        for (errors, prediction) in self.errors.iter_mut().zip(predictions) {
            errors.record(bucket(value.wrapping_sub(*prediction)));
        }
    }
}
