//! The model that both ends hold identically.
//!
//! A [`SharedModel`] changes only when a packet is folded, and both ends fold the same packets in
//! the same order. It contains everything on which parsing a packet depends: probabilities, which
//! entities are active, their recent surprises, and the ticks at which both ends have their rows.
//! It does not contain the rows: each end reads them from its own archive at these ticks.

mod digest;
mod entity_states;
mod field;
mod journal;
mod observations;
mod phases;
pub(crate) mod relations;
mod rows;

use alloc::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
    vec::Vec,
};

use crate::{
    config::Config,
    kept::KeptRow,
    layout::{ClassLayout, Layout},
    log::Log,
    model::context_model::{ContextModel, Learning},
    population::{Entity, Population},
    ranking::Ranking,
    units::Tick,
};

use entity_states::MAX_FOLDS;
pub(crate) use entity_states::{ClassField, ClassState, EntityStates, ExpectedMotion, Head, Reach};
pub(crate) use field::FieldState;
use journal::{Journal, Undo};
pub(crate) use relations::Relations;
pub(crate) use rows::{EntityKey, Rows, Views};

/// The shared model of one connection.
#[derive(Clone, Debug)]
pub(crate) struct SharedModel {
    pub context_model: ContextModel,
    pub entity_states: EntityStates,
    learning: bool,
    journal: Journal,
}

impl SharedModel {
    /// Only an `undoable` shared model can [roll back](Self::roll_back); the sender does not need
    /// that and is spared the copies.
    pub(crate) fn new(layout: Arc<Layout>, config: &Config, undoable: bool) -> Self {
        let learning = config.context_learning();
        let fresh = |class: &ClassLayout| ClassState {
            fields: alloc::vec![ClassField::default(); class.shapes.len()].into(),
            ranking: Ranking::new(class),
            relations: Relations::default(),
            reference: None,
        };
        let (classes, start) = match &layout.prior {
            Some(prior) => (prior.classes.clone(), Some(prior.start.clone())),
            None => (layout.classes.iter().map(fresh).collect(), None),
        };
        let entity_states = EntityStates {
            layout,
            population: Population::default(),
            active: Vec::new(),
            classes,
            folds: Vec::new(),
            fold_count: 0,
            last_partial: 0,
            history: config.history,
            releveled: Vec::new(),
            rest_rows: BTreeMap::new(),
        };
        let journal = Journal {
            enabled: undoable,
            ..Journal::default()
        };
        Self {
            context_model: ContextModel::new(
                entity_states.layout.pages,
                learning,
                config.profile.contexts(),
                config.profile.page_bits(),
                start,
            ),
            entity_states,
            learning: learning != Learning::Off,
            journal,
        }
    }

    /// Learns from a packet that both ends know to be applied.
    pub(crate) fn fold<const N: usize>(&mut self, log: &Log, rows: &dyn Rows) {
        if !self.journal.enabled {
            self.context_model.commit();
        } else if self.journal.start.is_none() {
            self.journal.start = Some(self.context_model.mark());
        }
        // The packets of a tick make one fold: each adds what it covers.
        let continues = self.entity_states.folds.last() == Some(&log.tick);
        if !continues {
            self.begin_fold(log.tick);
        }
        if self.learning {
            self.context_model.replay::<N>(&log.decisions);
        }
        for &id in &log.despawns {
            self.remove(id);
        }
        for &(id, class) in &log.spawns {
            self.appear(id, class);
        }
        for &id in &log.moved {
            let fold = self.entity_states.fold_count;
            match self.entity_mut(id) {
                Some(entity) => entity.head.moved_at = fold,
                None => self.wake(id),
            }
        }
        if !log.full {
            self.entity_states.last_partial = self.entity_states.fold_count;
            match continues {
                true => self.add_coverage(&log.covered),
                false => self.note_coverage(&log.covered),
            }
        }
        self.note_levels(log);
        if self.learning {
            self.note_surprises(log);
            self.note_relations(log);
            for (class, row) in &log.references {
                let state = &mut self.entity_states.classes[usize::from(*class)];
                let old = state.reference.replace(row.clone());
                self.journal
                    .record(|| Undo::Reference { class: *class, old });
            }
        }
        if self.entity_states.fold_count.is_multiple_of(SWEEP) {
            self.sweep(rows);
        }
    }

    /// Begins the fold of another tick.
    fn begin_fold(&mut self, tick: Tick) {
        let states = &mut self.entity_states;
        let oldest = (states.folds.len() == MAX_FOLDS).then(|| states.folds.remove(0));
        let last_partial = states.last_partial;
        self.journal.record(|| Undo::Fold {
            oldest,
            last_partial,
        });
        states.folds.push(tick);
        states.fold_count += 1;
    }

    /// Makes all changes final.
    pub(crate) fn commit(&mut self) {
        self.context_model.commit();
        self.journal.start = None;
        self.journal.clear();
    }

    /// Undoes all changes since the last [`commit`](Self::commit).
    pub(crate) fn roll_back(&mut self) {
        if let Some(start) = self.journal.start.take() {
            self.context_model.rewind(start);
        }
        let used = self.journal.len();
        while let Some(step) = self.journal.steps.pop() {
            self.undo(step);
        }
        self.journal.shrink(used);
    }

    /// Saves the row of a resting entity before the archive gets another one.
    pub(crate) fn keep_rest_row(&mut self, id: u32, row: &[i64], rows: &dyn Rows) {
        if let Entry::Vacant(entry) = self.entity_states.rest_rows.entry(id) {
            let class = self.entity_states.population.status(id).class;
            if let Some(kept) = KeptRow::new(&self.entity_states.layout, class, row, rows) {
                entry.insert(kept);
                self.journal.record(|| Undo::RestRow { id, old: None });
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let classes: usize = self
            .entity_states
            .classes
            .iter()
            .map(|class| class.fields.len() * size_of::<ClassField>() + class.relations.bytes())
            .sum();
        self.context_model.bytes()
            + self.entity_states.population.bytes()
            + self.entity_states.active.capacity() * 4
            + classes
    }

    /// The record of an active entity, after saving its head to the journal.
    #[inline]
    fn entity_mut(&mut self, id: u32) -> Option<&mut Entity> {
        let entity = self.entity_states.population.active_mut(id)?;
        if self.journal.enabled {
            self.journal.heads.push(entity.head);
            self.journal.steps.push(Undo::Head { id });
        }
        Some(entity)
    }

    /// Drops the saved row of a resting entity: the entity is active again or removed, or the
    /// archive has the same row.
    pub(crate) fn drop_rest_row(&mut self, id: u32) {
        if let Some(old) = self.entity_states.rest_rows.remove(&id) {
            self.journal.record(|| Undo::RestRow { id, old: Some(old) });
        }
    }
}

/// Ticks that archives must reach back, unless [`Config::history`](crate::Config::history) is more.
/// Older rows are never used for predictions.
pub const HISTORY: u32 = 128;

/// Folds between searches for active entities that can be put to rest.
const SWEEP: u32 = 8;
