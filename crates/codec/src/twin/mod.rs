//! What both ends hold identically: the model as of the fold point.
//!
//! A [`Twin`] changes only when a packet is folded, and both ends fold the same packets in the
//! same order. Everything that affects how a packet is parsed is in here: probabilities, which
//! entities are active, what each was last seen to do, and at which ticks both ends know it.
//! Values are not: each end reads them from its own archive, at ticks the twin names.

mod book;
mod digest;
mod field;
mod journal;
mod lessons;
mod phases;
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
    model::bank::{Bank, Learning},
    population::{Entity, Population},
    ranking::Ranking,
};

use book::FOLDS;
pub(crate) use book::{Book, ClassField, ClassState, Head};
pub(crate) use field::FieldState;
use journal::{Journal, Undo};
pub(crate) use rows::{EntityKey, Rows, Views};

/// The shared model of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Twin {
    pub bank: Bank,
    pub book: Book,
    learning: bool,
    journal: Journal,
}

impl Twin {
    /// Only an `undoable` twin can roll back; the other end is spared the copies that this takes.
    pub fn new(layout: Arc<Layout>, config: &Config, undoable: bool) -> Self {
        let learning = config.bank_learning();
        let fresh = |class: &ClassLayout| ClassState {
            fields: alloc::vec![ClassField::default(); class.shapes.len()].into(),
            ranking: Ranking::new(class),
            reference: None,
        };
        let (classes, start) = match &layout.beginning {
            Some(beginning) => (beginning.classes.clone(), Some(beginning.start.clone())),
            None => (layout.classes.iter().map(fresh).collect(), None),
        };
        let book = Book {
            layout,
            population: Population::default(),
            active: Vec::new(),
            classes,
            folds: Vec::new(),
            fold_count: 0,
            last_partial: 0,
            releveled: Vec::new(),
            rest_rows: BTreeMap::new(),
        };
        let journal = Journal {
            kept: undoable,
            ..Journal::default()
        };
        Self {
            bank: Bank::new(
                book.layout.pages,
                learning,
                config.profile.contexts(),
                config.profile.page_bits(),
                start,
            ),
            book,
            learning: learning != Learning::Off,
            journal,
        }
    }

    /// Learns from a packet that both ends know to be applied.
    pub fn fold<const N: usize>(&mut self, log: &Log, rows: &dyn Rows) {
        if !self.journal.kept {
            self.bank.settle();
        } else if self.journal.start.is_none() {
            self.journal.start = Some(self.bank.mark());
        }
        self.journal.note(|| Undo::Fold {
            oldest: (self.book.folds.len() == FOLDS).then(|| self.book.folds[0]),
            last_partial: self.book.last_partial,
        });
        if self.book.folds.len() == FOLDS {
            self.book.folds.remove(0);
        }
        self.book.folds.push(log.tick);
        self.book.fold_count += 1;
        if self.learning {
            self.bank.replay::<N>(&log.decisions);
        }
        for &id in &log.despawns {
            self.remove(id);
        }
        for &(id, class) in &log.spawns {
            self.appear(id, class);
        }
        for &id in &log.moved {
            let fold = self.book.fold_count;
            match self.change(id) {
                Some(entity) => entity.head.moved_at = fold,
                None => self.wake(id),
            }
        }
        if !log.full {
            self.book.last_partial = self.book.fold_count;
            self.note_coverage(&log.covered);
        }
        self.note_levels(log);
        if self.learning {
            self.note_surprises(log);
            for (class, row) in &log.references {
                let state = &mut self.book.classes[usize::from(*class)];
                let old = state.reference.replace(row.clone());
                self.journal.note(|| Undo::Reference { class: *class, old });
            }
        }
        if self.book.fold_count.is_multiple_of(SWEEP) {
            self.sweep(rows);
        }
    }

    /// Makes everything since the last commit final.
    pub fn commit(&mut self) {
        self.bank.settle();
        self.journal.start = None;
        self.journal.clear();
    }

    /// Takes back everything since the last [`commit`](Self::commit).
    pub fn roll_back(&mut self) {
        if let Some(start) = self.journal.start.take() {
            self.bank.rewind(start);
        }
        let used = self.journal.len();
        while let Some(step) = self.journal.steps.pop() {
            self.take_back(step);
        }
        self.journal.ease(used);
    }

    /// Keeps the row of a resting entity whose archive is about to say something else.
    pub fn keep_rest_row(&mut self, id: u32, row: &[i64], rows: &dyn Rows) {
        if let Entry::Vacant(entry) = self.book.rest_rows.entry(id) {
            let class = self.book.population.seat(id).class;
            if let Some(kept) = KeptRow::new(&self.book.layout, class, row, rows) {
                entry.insert(kept);
                self.journal.note(|| Undo::RestRow { id, old: None });
            }
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let classes: usize = self
            .book
            .classes
            .iter()
            .map(|class| class.fields.len() * size_of::<ClassField>())
            .sum();
        self.bank.bytes() + self.book.population.bytes() + self.book.active.capacity() * 4 + classes
    }

    /// An active entity whose head is about to change.
    #[inline]
    fn change(&mut self, id: u32) -> Option<&mut Entity> {
        let entity = self.book.population.active_mut(id)?;
        if self.journal.kept {
            self.journal.heads.push(entity.head);
            self.journal.steps.push(Undo::Head { id });
        }
        Some(entity)
    }

    /// Forgets the row kept for an entity at rest: it moves again, is gone, or the archive says
    /// the same.
    pub fn drop_rest_row(&mut self, id: u32) {
        if let Some(old) = self.book.rest_rows.remove(&id) {
            self.journal.note(|| Undo::RestRow { id, old: Some(old) });
        }
    }
}

/// A baseline older than this many ticks is no baseline; archives must reach this far back.
pub const HISTORY: u32 = 128;

/// How often the active list is searched for entities to put to rest, in folds.
const SWEEP: u32 = 8;
