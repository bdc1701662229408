//! Undo log of the shared model, so that a packet that is refused after folding leaves it
//! unchanged.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use crate::{
    buffer,
    kept::KeptRow,
    model::{context_model::ContextMark, repeats::Repeats},
    population::{Entity, EntityStatus},
    predict::{Costs, relation::Relation},
    units::{Sequence, Tick},
};

use super::{
    FieldState, Head, SharedModel,
    relations::{Candidate, Search},
};

/// The changes since the last commit. Large old values are in lists of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    pub(super) enabled: bool,
    /// The context model at the last commit, if anything was folded since.
    pub(super) start: Option<ContextMark>,
    pub(super) steps: Vec<Undo>,
    /// Old values of [`Undo::Head`].
    pub(super) heads: Vec<Head>,
    /// Old values of [`Undo::FieldStates`], one entity after the other.
    pub(super) fields: Vec<FieldState>,
    /// Old values of [`Undo::Repeats`].
    pub(super) repeats: Vec<Repeats>,
    /// Old values of [`Undo::Ranking`].
    pub(super) rankings: Vec<u32>,
    /// Old values of [`Undo::Search`].
    pub(super) candidates: Vec<Candidate>,
}

impl Journal {
    /// Length of each list, for [`shrink`](Self::shrink).
    pub(super) fn len(&self) -> [usize; 6] {
        [
            self.steps.len(),
            self.heads.len(),
            self.fields.len(),
            self.repeats.len(),
            self.rankings.len(),
            self.candidates.len(),
        ]
    }

    pub(super) fn clear(&mut self) {
        let used = self.len();
        self.steps.clear();
        self.heads.clear();
        self.fields.clear();
        self.repeats.clear();
        self.rankings.clear();
        self.candidates.clear();
        self.shrink(used);
    }

    /// Frees memory after a peak. Packets without folds do not count: they use none of it.
    pub(super) fn shrink(&mut self, lengths: [usize; 6]) {
        let [steps, heads, fields, repeats, rankings, candidates] = lengths;
        if steps > 0 {
            buffer::shrink(&mut self.candidates, candidates);
            buffer::shrink(&mut self.steps, steps);
            buffer::shrink(&mut self.heads, heads);
            buffer::shrink(&mut self.fields, fields);
            buffer::shrink(&mut self.repeats, repeats);
            buffer::shrink(&mut self.rankings, rankings);
        }
    }

    #[inline]
    pub(super) fn record(&mut self, step: impl FnOnce() -> Undo) {
        if self.enabled {
            self.steps.push(step());
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Undo {
    Fold {
        oldest: Option<Tick>,
        last_partial: u32,
    },
    Head {
        id: u32,
    },
    Level {
        id: u32,
        old: u8,
    },
    EntityStatus {
        id: u32,
        len: usize,
        old: EntityStatus,
        record: Option<Box<Entity>>,
    },
    FieldStates {
        id: u32,
    },
    Activated {
        at: usize,
    },
    Deactivated {
        at: usize,
        id: u32,
    },
    Releveled {
        old: Vec<(u32, Sequence)>,
    },
    RestRow {
        id: u32,
        old: Option<KeptRow>,
    },
    Ranking {
        class: u16,
    },
    ClassCosts {
        place: (u16, u16),
        old: Costs,
    },
    Repeats {
        place: (u16, u16),
    },
    Reference {
        class: u16,
        old: Option<Arc<KeptRow>>,
    },
    Relation {
        place: (u16, u16),
        old: Option<Relation>,
    },
    Search {
        class: u16,
        old: Search,
        /// The number of its candidates.
        len: usize,
    },
}

impl SharedModel {
    pub(super) fn undo(&mut self, step: Undo) {
        match step {
            Undo::Fold {
                oldest,
                last_partial,
            } => {
                self.entity_states.folds.pop();
                if let Some(tick) = oldest {
                    self.entity_states.folds.insert(0, tick);
                }
                self.entity_states.fold_count -= 1;
                self.entity_states.last_partial = last_partial;
            }
            Undo::Head { id } => {
                let old = self.journal.heads.pop();
                if let (Some(entity), Some(old)) =
                    (self.entity_states.population.active_mut(id), old)
                {
                    entity.head = old;
                }
            }
            Undo::Level { id, old } => {
                self.entity_states.population.set_level(id, old);
            }
            Undo::EntityStatus {
                id,
                len,
                old,
                record,
            } => {
                self.entity_states
                    .population
                    .put(id, old, record.map(|record| *record));
                self.entity_states.population.truncate(len);
            }
            Undo::FieldStates { id } => {
                let Some(entity) = self.entity_states.population.active_mut(id) else {
                    return;
                };
                let states = &mut entity.fields;
                let start = self.journal.fields.len() - states.len();
                states.copy_from_slice(&self.journal.fields[start..]);
                self.journal.fields.truncate(start);
            }
            Undo::Activated { at } => {
                self.entity_states.active.remove(at);
            }
            Undo::Deactivated { at, id } => self.entity_states.active.insert(at, id),
            Undo::Releveled { old } => self.entity_states.releveled = old,
            Undo::RestRow { id, old } => {
                match old {
                    Some(row) => self.entity_states.rest_rows.insert(id, row),
                    None => self.entity_states.rest_rows.remove(&id),
                };
            }
            Undo::Ranking { class } => {
                let layout = &self.entity_states.layout.classes[usize::from(class)];
                let state = &mut self.entity_states.classes[usize::from(class)];
                let relations = state.relations.adopted();
                let ranking = &mut state.ranking;
                ranking.restore(layout, relations, &mut self.journal.rankings);
            }
            Undo::ClassCosts {
                place: (class, field),
                old,
            } => {
                self.entity_states.classes[usize::from(class)].fields[usize::from(field)].costs =
                    old
            }
            Undo::Repeats {
                place: (class, field),
            } => {
                if let Some(old) = self.journal.repeats.pop() {
                    self.entity_states.classes[usize::from(class)].fields[usize::from(field)]
                        .repeats = old;
                }
            }
            Undo::Relation { place, old } => self.undo_relation(place, old),
            Undo::Search { class, old, len } => self.undo_search(class, old, len),
            Undo::Reference { class, old } => {
                self.entity_states.classes[usize::from(class)].reference = old
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if `clear` keeps the memory of a peak, or frees memory in use because of packets
    /// without folds.
    #[test]
    fn memory_follows_use() {
        let mut journal = Journal {
            enabled: true,
            ..Journal::default()
        };
        let fold = |journal: &mut Journal, steps: u32| {
            for id in 0..steps {
                journal.record(|| Undo::Head { id });
            }
            journal.clear();
            journal.steps.capacity()
        };
        let peak = fold(&mut journal, 100_000);
        assert!(peak >= 100_000);
        for _ in 0..20 {
            fold(&mut journal, 1000);
        }
        let room = fold(&mut journal, 1000);
        assert!((1000..=4096).contains(&room), "room for {room}");
        for _ in 0..20 {
            assert_eq!(fold(&mut journal, 0), room);
        }
    }
}
