//! Everything that was learned up to one tick.
//!
//! The document archives the whole dataset per tick on both ends and continues from the newest
//! acknowledged one. Classes are shared between copies until they learn, so a copy costs what it
//! touches.

use std::sync::Arc;

use prescient_schema::{Schema, Shape};

use super::{buckets::bucket, distribution::Distribution, transitions::Transitions};

/// Zero, constant, linear, quadratic, cubic: as many samples each as its number.
pub(super) const PREDICTORS: usize = 5;

/// The dataset of one tick.
#[derive(Clone, Debug)]
pub(in super::super) struct Model {
    pub(super) classes: Vec<Arc<ClassModel>>,
    pub(super) sets: Arc<SetModel>,
    /// How many packets it has learned from.
    pub(super) taught: u64,
}

/// What is known of a class's fields.
#[derive(Clone, Debug)]
pub(super) struct ClassModel {
    pub(super) fields: Vec<FieldModel>,
}

/// What is known of a field.
#[derive(Clone, Debug)]
pub(super) enum FieldModel {
    Number(Box<NumberModel>),
    Symbol(Transitions),
}

/// The errors that each predictor makes on a field.
#[derive(Clone, Debug)]
pub(super) struct NumberModel {
    pub(super) errors: [Distribution; PREDICTORS],
    /// The predictor to use, by number of samples available.
    pub(super) best: [u8; PREDICTORS],
}

/// How many entities leave and come, and what they are.
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
    /// Chooses the cheapest predictors; once per packet, before anything of it is coded.
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
            // The higher order wins a tie, as nothing is known at the start.
            let cost = errors.expected_cost();
            if cost <= best.0 {
                best = (cost, predictor as u8);
            }
            self.best[predictor] = best.1;
        }
    }

    /// Learns what each usable predictor would have erred by.
    pub(super) fn learn(&mut self, value: i64, predictions: &[i64]) {
        for (errors, prediction) in self.errors.iter_mut().zip(predictions) {
            errors.record(bucket(value.wrapping_sub(*prediction)));
        }
    }
}
