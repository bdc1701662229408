//! Folds what a packet stated about entities into the entity states: which it covered, their
//! precision, and their surprises.

use alloc::vec::Vec;

use crate::{
    log::Log,
    population::{Entity, Phase},
    predict::bit_length,
};

use super::{ExpectedMotion, SharedModel, Undo};

impl SharedModel {
    pub(super) fn note_coverage(&mut self, covered: &[u32]) {
        let fold = self.entity_states.fold_count;
        let mut next = covered.iter().copied().peekable();
        for at in 0..self.entity_states.active.len() {
            let id = self.entity_states.active[at];
            while next.peek().is_some_and(|&c| c < id) {
                next.next();
            }
            let is_covered = next.peek() == Some(&id);
            let known = |entity: &Entity| entity.head.covered_at == fold;
            if self.entity_states.population.active(id).is_none_or(known) {
                continue;
            }
            if let Some(entity) = self.entity_mut(id) {
                entity.head.cover(fold, is_covered);
            }
        }
    }

    /// Adds the entities that a further packet of the newest fold's tick covered.
    pub(super) fn add_coverage(&mut self, covered: &[u32]) {
        let fold = self.entity_states.fold_count;
        for &id in covered {
            if let Some(entity) = self.entity_mut(id) {
                entity.head.cover(fold, true);
            }
        }
    }

    /// Applies changes of precision. Samples from before the change are dropped, and so are those
    /// of later packets that were coded before the change was folded and do not state it
    /// themselves.
    pub(super) fn note_levels(&mut self, log: &Log) {
        if log.levels.is_empty() && self.entity_states.releveled.is_empty() {
            return;
        }
        let fold = self.entity_states.fold_count;
        self.journal.record(|| Undo::Releveled {
            old: self.entity_states.releveled.clone(),
        });
        self.entity_states
            .releveled
            .retain(|&(_, changed_by)| changed_by > log.cursor);
        let mut stated: Vec<u32> = log.levels.iter().map(|&(id, _)| id).collect();
        stated.sort_unstable();
        for at in 0..self.entity_states.releveled.len() {
            let (id, _) = self.entity_states.releveled[at];
            // What another packet of the tick covered stays covered.
            let is_covered = log.full || log.covered.binary_search(&id).is_ok();
            if !is_covered || stated.binary_search(&id).is_ok() {
                continue;
            }
            if let Some(entity) = self.entity_mut(id) {
                entity.head.cover(fold, false);
            }
        }
        let mut changed = Vec::new();
        for &(id, level) in &log.levels {
            if self.entity_states.phase(id) == Phase::Absent {
                continue;
            }
            let old = self.entity_states.level(id);
            if old != level {
                if let Some(Entity { head, .. }) = self.entity_mut(id) {
                    head.level = level;
                    head.covered = 1;
                    head.covered_at = fold;
                }
                let old = self.entity_states.population.set_level(id, level);
                self.journal.record(|| Undo::Level { id, old });
                changed.push((id, log.sequence));
            }
        }
        let mut ids: Vec<u32> = changed.iter().map(|&(id, _)| id).collect();
        ids.sort_unstable();
        let releveled = &mut self.entity_states.releveled;
        releveled.retain(|(id, _)| ids.binary_search(id).is_err());
        releveled.extend(changed);
    }

    pub(super) fn note_surprises(&mut self, log: &Log) {
        let fold = self.entity_states.fold_count;
        for group in log.surprises.chunk_by(|a, b| a.id == b.id) {
            let id = group[0].id;
            let Some(Entity { head, .. }) = self.entity_mut(id) else {
                continue;
            };
            let passed = fold - head.surprised_at;
            head.surprised = head.surprised.checked_shl(passed).unwrap_or(0) | 1;
            head.surprised_at = fold;
            let class = usize::from(head.class);
            let ranking = &mut self.entity_states.classes[class].ranking;
            if ranking.mark_changed(log.sequence) && self.journal.enabled {
                ranking.save(&mut self.journal.rankings);
                self.journal.record(|| Undo::Ranking {
                    class: class as u16,
                });
            }
            ranking.note(group.iter().map(|surprise| surprise.field));
            let Some(entity) = self.entity_states.population.active_mut(id) else {
                continue;
            };
            let states = &mut entity.fields;
            if self.journal.enabled {
                self.journal.fields.extend_from_slice(states);
                self.journal.record(|| Undo::FieldStates { id });
            }
            for state in states.iter_mut() {
                state.age(passed);
            }
            for surprise in group {
                let at = usize::from(surprise.field);
                let Some(state) = states.get_mut(at) else {
                    continue;
                };
                state.surprise(surprise);
                let repeats = bit_length(surprise.residual) > 5;
                if !repeats && surprise.costs.is_none() {
                    continue;
                }
                let shared = &mut self.entity_states.classes[class].fields[at];
                let place = (class as u16, at as u16);
                if let Some(costs) = &surprise.costs {
                    let old = shared.costs;
                    self.journal.record(|| Undo::ClassCosts { place, old });
                    shared.costs.learn(costs);
                }
                if repeats {
                    if self.journal.enabled {
                        self.journal.repeats.push(shared.repeats);
                        self.journal.record(|| Undo::Repeats { place });
                    }
                    shared.repeats.learn(surprise.residual);
                }
            }
            for state in states.iter_mut() {
                state.update_period();
            }
            let has_contract = self.entity_states.layout.classes[class].has_contract;
            entity.head.expected_motion = ExpectedMotion::new(has_contract, states);
        }
        for group in log.surprises.chunk_by(|a, b| a.id == b.id) {
            if let Some(entity) = self.entity_states.population.active(group[0].id) {
                let class = entity.head.class;
                self.advance_search(class, log.sequence);
            }
        }
        for (state, class) in self
            .entity_states
            .classes
            .iter_mut()
            .zip(&self.entity_states.layout.classes)
        {
            if state.ranking.is_changed_by(log.sequence) {
                state.ranking.sort(class, state.relations.adopted());
            }
        }
    }
}
