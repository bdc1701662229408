//! Digests of the shared model, by which two ends detect that theirs differ.

use alloc::vec::Vec;

use crate::{check::Checksum, model::context_model::SLICES, population::Phase, units::Tick};

use super::{ClassField, EntityKey, EntityStates, Rows, SharedModel};

impl SharedModel {
    /// A digest of a part of the model and of the rows that it refers to. All parts pass within
    /// [`SLICES`] rounds, entities at rest more slowly. Rows are included only of ids for which
    /// `is_known` states that both ends have them.
    pub(crate) fn digest(
        &self,
        round: u32,
        now: Tick,
        rows: &dyn Rows,
        is_known: &dyn Fn(u32) -> bool,
    ) -> u64 {
        let slice = round % SLICES;
        let entity_states = &self.entity_states;
        let mut sum = Checksum::new(self.context_model.digest(slice));
        sum.add(u64::from(entity_states.fold_count));
        for (class, state) in entity_states.classes.iter().enumerate() {
            let first = entity_states.layout.classes[class].first_page;
            let start = (slice + SLICES - first % SLICES) % SLICES;
            for field in state
                .fields
                .iter()
                .skip(start as usize)
                .step_by(SLICES as usize)
            {
                field.add_to(&mut sum);
            }
            let own_page = entity_states.layout.classes[class].own_page();
            if own_page % SLICES == slice {
                for word in state.relations.words() {
                    sum.add(word);
                }
            }
        }
        let mut buffer = Vec::new();
        for &id in entity_states
            .active
            .iter()
            .filter(|&&id| id % SLICES == slice)
        {
            let Some(entity) = entity_states.population.active(id) else {
                continue;
            };
            entity_states.add_entity(&mut sum, id);
            let samples = entity_states.samples(entity_states.folds_known(&entity.head), now);
            if is_known(id) && samples.count > 0 {
                let class = entity.head.class;
                let (tick, level) = (samples.ticks[0], entity.head.level);
                let row = rows.row(EntityKey { id, class }, tick, level, &mut buffer);
                sum.add_row(row.unwrap_or_default());
            }
        }
        let count = entity_states.population.len() as u32;
        for step in 0..count.min(RESTING_PER_ROUND) {
            let id = round.wrapping_mul(RESTING_PER_ROUND).wrapping_add(step) % count;
            if entity_states.phase(id) == Phase::Resting {
                entity_states.add_entity(&mut sum, id);
                if is_known(id) {
                    let row = entity_states.rest_row(id, rows, &mut buffer);
                    sum.add_row(row.unwrap_or_default());
                }
            }
        }
        sum.value()
    }

    /// A digest of the whole model, for tests and for locating a difference.
    pub(crate) fn full_digest(&self) -> u64 {
        let mut sum = Checksum::new(0);
        for slice in 0..SLICES {
            sum.add(self.context_model.digest(slice));
        }
        sum.add(u64::from(self.entity_states.fold_count));
        sum.add(u64::from(self.entity_states.last_partial));
        for tick in &self.entity_states.folds {
            sum.add(tick.0);
        }
        for &(id, sequence) in &self.entity_states.releveled {
            sum.add(u64::from(id) << 32 | u64::from(sequence.0));
        }
        for &id in &self.entity_states.active {
            sum.add(u64::from(id));
        }
        for id in 0..self.entity_states.population.len() as u32 {
            self.entity_states.add_entity(&mut sum, id);
        }
        for class in &self.entity_states.classes {
            for field in &class.fields {
                field.add_to(&mut sum);
            }
            for word in class.ranking.words().chain(class.relations.words()) {
                sum.add(word);
            }
            if let Some(row) = &class.reference {
                sum.add_row(row);
            }
        }
        sum.value()
    }
}

impl EntityStates {
    fn add_entity(&self, sum: &mut Checksum, id: u32) {
        let status = self.population.status(id);
        if status.phase == Phase::Absent {
            return;
        }
        sum.add(u64::from(id) << 32 | u64::from(status.class) << 8 | status.phase as u64);
        sum.add(u64::from(self.level(id)));
        let Some(entity) = self.population.active(id) else {
            return;
        };
        let head = &entity.head;
        sum.add(head.covered);
        sum.add(u64::from(head.covered_at) << 32 | u64::from(head.moved_at));
        sum.add(u64::from(head.surprised) << 32 | u64::from(head.surprised_at));
        for field in &entity.fields {
            let small = u64::from(field.surprised) << 16
                | u64::from(field.period_and_predictor) << 8
                | u64::from(field.last)
                | u64::from(field.recent) << 24;
            sum.add(u64::from(field.history) << 32 | small);
            sum.add(field.costs.bits());
        }
    }
}

impl ClassField {
    fn add_to(&self, sum: &mut Checksum) {
        sum.add(self.costs.bits());
        for word in self.repeats.words() {
            sum.add(word);
        }
    }
}

const RESTING_PER_ROUND: u32 = 8;
