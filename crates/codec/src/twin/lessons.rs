//! What a packet says about entities, taken into the book.

use alloc::vec::Vec;

use crate::{
    log::Log,
    population::{Entity, Phase},
    predict::bit_length,
};

use super::{FieldState, Twin, Undo};

impl Twin {
    pub(super) fn note_coverage(&mut self, covered: &[u32]) {
        let fold = self.book.fold_count;
        let mut next = covered.iter().copied().peekable();
        for at in 0..self.book.active.len() {
            let id = self.book.active[at];
            while next.peek().is_some_and(|&c| c < id) {
                next.next();
            }
            let is_covered = next.peek() == Some(&id);
            let known = |entity: &Entity| entity.head.covered_at == fold;
            if self.book.population.active(id).is_none_or(known) {
                continue;
            }
            if let Some(entity) = self.change(id) {
                entity.head.cover(fold, is_covered);
            }
        }
    }

    /// A change of precision makes older samples useless, and also those of later packets that
    /// were coded before it was known and do not say it themselves.
    pub(super) fn note_levels(&mut self, log: &Log) {
        if log.levels.is_empty() && self.book.releveled.is_empty() {
            return;
        }
        let fold = self.book.fold_count;
        self.journal.note(|| Undo::Releveled {
            old: self.book.releveled.clone(),
        });
        self.book
            .releveled
            .retain(|&(_, changed_by)| changed_by > log.cursor);
        let mut said: Vec<u32> = log.levels.iter().map(|&(id, _)| id).collect();
        said.sort_unstable();
        for at in 0..self.book.releveled.len() {
            let (id, _) = self.book.releveled[at];
            if said.binary_search(&id).is_ok() {
                continue;
            }
            if let Some(entity) = self.change(id) {
                entity.head.cover(fold, false);
            }
        }
        let mut changed = Vec::new();
        for &(id, level) in &log.levels {
            if self.book.phase(id) == Phase::Absent {
                continue;
            }
            let old = self.book.level(id);
            if old != level {
                if let Some(Entity { head, .. }) = self.change(id) {
                    head.level = level;
                    head.covered = 1;
                    head.covered_at = fold;
                }
                let old = self.book.population.set_level(id, level);
                self.journal.note(|| Undo::Level { id, old });
                changed.push((id, log.sequence));
            }
        }
        let mut ids: Vec<u32> = changed.iter().map(|&(id, _)| id).collect();
        ids.sort_unstable();
        let releveled = &mut self.book.releveled;
        releveled.retain(|(id, _)| ids.binary_search(id).is_err());
        releveled.extend(changed);
    }

    pub(super) fn note_surprises(&mut self, log: &Log) {
        let fold = self.book.fold_count;
        for group in log.surprises.chunk_by(|a, b| a.id == b.id) {
            let id = group[0].id;
            let Some(Entity { head, .. }) = self.change(id) else {
                continue;
            };
            let passed = fold - head.surprised_at;
            head.surprised = head.surprised.checked_shl(passed).unwrap_or(0) | 1;
            head.surprised_at = fold;
            let class = usize::from(head.class);
            let ranking = &mut self.book.classes[class].ranking;
            if ranking.begins(fold) && self.journal.kept {
                ranking.save(&mut self.journal.rankings);
                self.journal.note(|| Undo::Ranking {
                    class: class as u16,
                });
            }
            ranking.note(group.iter().map(|surprise| surprise.field));
            let Some(entity) = self.book.population.active_mut(id) else {
                continue;
            };
            let states = &mut entity.fields;
            if self.journal.kept {
                self.journal.fields.extend_from_slice(states);
                self.journal.note(|| Undo::FieldStates { id });
            }
            for state in states.iter_mut() {
                state.pass(passed);
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
                let shared = &mut self.book.classes[class].fields[at];
                let place = (class as u16, at as u16);
                if let Some(costs) = &surprise.costs {
                    let old = shared.costs;
                    self.journal.note(|| Undo::ClassCosts { place, old });
                    shared.costs.learn(costs);
                }
                if repeats {
                    if self.journal.kept {
                        self.journal.repeats.push(shared.repeats);
                        self.journal.note(|| Undo::Repeats { place });
                    }
                    shared.repeats.learn(surprise.residual);
                }
            }
            for state in states.iter_mut() {
                state.follow_rhythm();
            }
            entity.head.expects_motion = self.book.layout.classes[class].has_contract
                || states.iter().any(FieldState::expects_motion);
        }
        for (state, class) in self.book.classes.iter_mut().zip(&self.book.layout.classes) {
            if state.ranking.is_touched(fold) {
                state.ranking.sort(class);
            }
        }
    }
}
