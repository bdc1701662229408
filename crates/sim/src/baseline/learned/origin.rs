//! The common start of both ends, and the step from past ticks to the next.

use std::sync::Arc;

use prescient_schema::Schema;

use super::{
    super::{archive::Past, snapshot::Snapshot},
    ledger::Ledger,
    model::Model,
    walk::{Coder, Walk},
};
use crate::harness::ReceiveError;

/// The schema, and an untrained model.
pub(super) struct Origin {
    pub(super) schema: Arc<Schema>,
    initial: Model,
    learning: bool,
}

impl Origin {
    pub(super) fn new(schema: Arc<Schema>, learning: bool) -> Self {
        let initial = Model::new(&schema);
        Self {
            schema,
            initial,
            learning,
        }
    }

    /// Codes a tick against the known ones, newest first. As in [`Walk::run`], the receiver passes
    /// no snapshot and gets it back.
    pub(super) fn advance(
        &self,
        tick: u64,
        known: &[&Past<Model>],
        coder: &mut impl Coder,
        truth: Option<&Snapshot>,
        ledger: Option<&mut Ledger>,
    ) -> Result<Past<Model>, ReceiveError> {
        let newest = known.first().map_or(&self.initial, |past| &past.model);
        let mut model = newest.clone();
        let samples: Vec<_> = known
            .iter()
            .map(|past| (tick - past.tick, &past.snapshot))
            .collect();
        let walk = Walk {
            schema: &self.schema,
            samples: &samples,
            learning: self.learning,
        };
        let items = walk.run(&mut model, coder, truth, ledger)?;
        Ok(Past {
            tick,
            snapshot: Arc::new(items),
            model,
        })
    }
}
