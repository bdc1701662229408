//! A ledger of the bits spent.

use prescient_schema::Schema;

use crate::harness::LedgerRow;

/// Bits by class and field; kept by the sender only, since no packet depends on it.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// Per class and field: bits of new entities, bits of known ones.
    fields: Vec<Vec<[f64; 2]>>,
    pub(super) header: f64,
    pub(super) set: f64,
}

impl Ledger {
    pub(super) fn new(schema: &Schema) -> Self {
        let fields = schema
            .classes
            .iter()
            .map(|class| vec![[0.0; 2]; class.fields.len()]);
        Self {
            fields: fields.collect(),
            header: 0.0,
            set: 0.0,
        }
    }

    pub(super) fn charge(&mut self, class: usize, field: usize, known: bool, bits: f64) {
        self.fields[class][field][usize::from(known)] += bits;
    }

    pub(super) fn rows(&self, schema: &Schema) -> Vec<LedgerRow> {
        let row = |class: &str, field: &str, cause: &str, bits| LedgerRow {
            class: class.into(),
            field: field.into(),
            cause: cause.into(),
            bits,
        };
        let mut rows = vec![
            row("", "", "header", self.header),
            row("", "", "visible set", self.set),
        ];
        for (class, fields) in schema.classes.iter().zip(&self.fields) {
            for (field, &[spawn, surprise]) in class.fields.iter().zip(fields) {
                rows.push(row(&class.name, &field.name, "spawn", spawn));
                rows.push(row(&class.name, &field.name, "surprise", surprise));
            }
        }
        rows
    }
}
