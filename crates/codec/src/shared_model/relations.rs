//! Searches for relations between the fields of a class, and drops those that stop paying off.
//!
//! One field at a time is in *focus*. Surprises of it that its own predictors missed by a few bits
//! are compared with what every relation to a field near it would have predicted. The best one is
//! adopted if it saves enough. From then on it predicts that field of all entities of the class, and
//! surprises of the class tell whether it still saves anything.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    layout::ClassLayout,
    log::{Log, RelationSample},
    predict::{
        bit_length,
        relation::{Fit, Kind, Pair, Relation},
    },
    ranking::Ranking,
    units::Sequence,
};

use super::{SharedModel, Undo, journal::Journal};

/// The relations of a class, and the search for more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relations {
    /// For each field; empty without any relation.
    adopted: Box<[Option<Relation>]>,
    /// The fields that have one, as bits, as far as they fit.
    related: u64,
    search: Search,
    candidates: Vec<Candidate>,
    /// The last packet whose fold changed the search.
    changed_by: Sequence,
}

/// The state of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Search {
    /// The field in focus, as a position among the class's numbers, if `active`.
    focus: u16,
    active: bool,
    samples: u8,
    /// Whether sources behind the field in focus are considered, too.
    wide: bool,
    /// Whether something was adopted or dropped since the first field was in focus.
    changed: bool,
    /// Searches in a row that found nothing.
    fruitless: u8,
    /// Relations that were dropped.
    dropped: u8,
    /// The fold in which it goes on with the next field.
    until: u32,
}

/// A relation on trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidate {
    fit: Fit,
    /// Bits that it would have saved so far.
    saved: i16,
}

impl Candidate {
    /// Compares it with a residual of `own` bits, then learns the coefficient.
    fn examine(&mut self, kind: Kind, source: Pair, target: Pair, ahead: u32, own: u8) {
        let input = kind.input(source, ahead);
        if input == 0 && self.fit.is_empty() {
            return;
        }
        let output = kind.output(target, ahead);
        if self.fit.is_empty() {
            self.fit = Fit::of(input, output);
            return;
        }
        let guess = kind.guess(&self.fit, source, target.old, target.width, ahead);
        let left = bit_length(target.width.difference(target.now, guess));
        let gain = cost(own) - cost(left);
        self.saved += gain.clamp(-MAX_LOSS, MAX_GAIN);
        if is_lesson(own, left) {
            self.fit.learn(input, output);
        } else if self.saved < 0 && input != 0 {
            *self = Self {
                fit: Fit::of(input, output),
                saved: 0,
            };
        }
    }
}

impl Relations {
    /// The relation that each field has; empty if none has one.
    #[inline]
    pub(crate) fn adopted(&self) -> &[Option<Relation>] {
        &self.adopted
    }

    /// The fields that have a relation, as bits; those behind the 64th are missing.
    #[inline]
    pub(crate) fn related(&self) -> u64 {
        self.related
    }

    /// Whether anything can be learned from an entity of the class.
    #[inline]
    pub(crate) fn wants_samples(&self) -> bool {
        self.search.active || !self.adopted.is_empty()
    }

    /// The field in focus, and its position among the class's numbers.
    pub(crate) fn focus(&self, class: &ClassLayout) -> Option<(u16, u16)> {
        let focus = self.search.focus;
        let field = class.numbers.get(usize::from(focus)).copied()?;
        self.search.active.then_some((focus, field))
    }

    fn is_in_focus(&self, class: &ClassLayout, field: u16) -> bool {
        self.focus(class).is_some_and(|(_, focus)| focus == field)
    }

    /// For digests.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let relations = self.adopted.iter().flatten();
        let relations = relations.flat_map(|relation| {
            let small = u64::from(relation.source) << 32
                | u64::from(relation.gain as u16) << 8
                | relation.kind as u64;
            let [outputs, inputs] = relation.fit.words();
            [small, outputs, inputs]
        });
        let Search {
            focus,
            active,
            samples,
            wide,
            changed,
            fruitless,
            dropped,
            until,
        } = self.search;
        let search = [
            u64::from(focus) << 32 | u64::from(until),
            u64::from(samples) << 32
                | u64::from(fruitless) << 16
                | u64::from(dropped) << 8
                | u64::from(wide) << 2
                | u64::from(active) << 1
                | u64::from(changed),
        ];
        let candidates = self.candidates.iter().flat_map(|candidate| {
            let [outputs, inputs] = candidate.fit.words();
            [outputs, inputs, candidate.saved as u64]
        });
        relations.chain(search).chain(candidates)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.adopted[..]) + self.candidates.capacity() * size_of::<Candidate>()
    }

    /// Whether a field follows, through any number of relations, from another.
    fn follows(&self, field: u16, from: u16) -> bool {
        let source = |&field: &u16| Some(self.adopted.get(usize::from(field))?.as_ref()?.source);
        core::iter::successors(Some(field), source).any(|field| field == from)
    }

    /// Goes on with the search after the field in focus.
    fn advance(&mut self, class: &ClassLayout, ranking: &Ranking, fold: u32) {
        let search = &mut self.search;
        self.candidates.clear();
        search.samples = 0;
        let next = if search.active { search.focus + 1 } else { 0 };
        let is_due = |at: &u16| {
            let field = class.numbers[usize::from(*at)];
            let related = self.adopted.get(usize::from(field));
            ranking.is_frequent(field) && related.is_none_or(Option::is_none)
        };
        let found = (next..class.numbers.len() as u16).find(is_due);
        search.active = found.is_some();
        search.focus = found.unwrap_or(0);
        if found.is_some() {
            search.until = fold.saturating_add(PATIENCE);
            return;
        }
        // First each field is searched for in those before it: of two fields that follow from each
        // other, the later one does.
        search.wide = !search.wide;
        if search.wide {
            search.until = fold;
            return;
        }
        search.fruitless = match search.changed {
            true => 0,
            false => (search.fruitless + 1).min(MAX_FRUITLESS),
        };
        search.changed = false;
        search.until = fold.saturating_add(PAUSE << search.fruitless);
    }

    fn set(&mut self, class: &ClassLayout, field: u16, relation: Option<Relation>) {
        if self.adopted.is_empty() {
            self.adopted = alloc::vec![None; class.shapes.len()].into();
        }
        self.adopted[usize::from(field)] = relation;
        let related = (0..).zip(self.adopted.iter().take(u64::BITS as usize));
        self.related = related.fold(0, |bits, (at, relation)| {
            bits | u64::from(relation.is_some()) << at
        });
        if self.adopted.iter().all(Option::is_none) {
            self.adopted = Box::default();
        }
    }

    /// Examines the candidates for the field in focus. Returns the relation to adopt.
    fn examine(
        &mut self,
        class: &ClassLayout,
        sample: &RelationSample,
        values: &[i64],
    ) -> Option<Relation> {
        let sources = sources(class, self.search.focus);
        if values.len() != 2 * (sources.len() + 1) {
            return None;
        }
        if self.candidates.is_empty() {
            let count = sources.len() * Kind::ALL.len();
            self.candidates.resize(count, Candidate::default());
        }
        let pair = |at: usize, field: u16| Pair {
            old: values[2 * at],
            now: values[2 * at + 1],
            width: class.widths[usize::from(field)],
        };
        let target = pair(0, sample.field);
        let candidates = self.candidates.chunks_mut(Kind::ALL.len());
        for ((at, &source), candidates) in sources.iter().enumerate().zip(candidates) {
            let values = pair(at + 1, source);
            for (candidate, kind) in candidates.iter_mut().zip(Kind::ALL) {
                candidate.examine(kind, values, target, sample.ahead, sample.own);
            }
        }
        self.search.samples += 1;
        let enough = match self.search.samples {
            0..MIN_SAMPLES => return None,
            MIN_SAMPLES..MOST_SAMPLES => CLEAR,
            samples => i16::from(samples) * NEEDED,
        };
        let needed = enough + SHYNESS * i16::from(self.search.dropped.min(MAX_SHY));
        let source = |at: usize| sources[at / Kind::ALL.len()];
        let best = (0..self.candidates.len())
            .filter(|&at| self.search.wide || source(at) < sample.field)
            .filter(|&at| !self.follows(source(at), sample.field))
            .max_by_key(|&at| (self.candidates[at].saved, core::cmp::Reverse(at)))?;
        let Candidate { fit, saved } = self.candidates[best];
        (saved >= needed).then(|| Relation {
            source: source(best),
            kind: Kind::ALL[best % Kind::ALL.len()],
            fit,
            gain: FIRST_GAIN,
        })
    }

    /// Saves the search before the first change by a packet.
    fn save(&mut self, journal: &mut Journal, class: u16, packet: Sequence) {
        if core::mem::replace(&mut self.changed_by, packet) != packet && journal.enabled {
            journal.candidates.extend_from_slice(&self.candidates);
            let (old, len) = (self.search, self.candidates.len());
            journal.record(|| Undo::Search { class, old, len });
        }
    }

    fn of(&self, field: u16) -> Option<Relation> {
        self.adopted.get(usize::from(field)).copied().flatten()
    }
}

/// The fields from which a number may follow: those near it.
pub(crate) fn sources(class: &ClassLayout, focus: u16) -> Sources<'_> {
    let focus = usize::from(focus).min(class.numbers.len().saturating_sub(1));
    let from = focus.saturating_sub(REACH);
    let to = (focus + REACH + 1).min(class.numbers.len());
    Sources {
        numbers: class.numbers.get(from..to).unwrap_or_default(),
        focus: focus - from,
    }
}

/// A run of numbers without one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'a> {
    numbers: &'a [u16],
    focus: usize,
}

impl Sources<'_> {
    pub(crate) fn len(&self) -> usize {
        self.numbers.len().saturating_sub(1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &u16> {
        let others = self.numbers.iter().enumerate();
        others.filter_map(|(at, field)| (at != self.focus).then_some(field))
    }
}

impl core::ops::Index<usize> for Sources<'_> {
    type Output = u16;

    fn index(&self, at: usize) -> &u16 {
        &self.numbers[at + usize::from(at >= self.focus)]
    }
}

impl SharedModel {
    /// Learns relations from the samples of a packet.
    pub(super) fn note_relations(&mut self, log: &Log) {
        let mut rest = &log.relations.values[..];
        for sample in &log.relations.samples {
            let Some((values, tail)) = rest.split_at_checked(sample.len) else {
                return;
            };
            rest = tail;
            self.note_relation(log.sequence, sample, values);
        }
    }

    fn note_relation(&mut self, packet: Sequence, sample: &RelationSample, values: &[i64]) {
        let fold = self.entity_states.fold_count;
        let class = &self.entity_states.layout.classes[usize::from(sample.class)];
        let state = &mut self.entity_states.classes[usize::from(sample.class)];
        let relations = &mut state.relations;
        let place = (sample.class, sample.field);
        let known = relations.of(sample.field);
        match (sample.source, known) {
            (Some(source), Some(old)) if old.source == source => {
                let next = follow(&old, class, sample, values);
                self.journal.record(|| Undo::Relation {
                    place,
                    old: Some(old),
                });
                relations.set(class, sample.field, next);
                if next.is_none() {
                    relations.save(&mut self.journal, sample.class, packet);
                    relations.search.dropped = relations.search.dropped.saturating_add(1);
                    relations.search.changed = true;
                    state.ranking.arrange(class, &relations.adopted);
                }
            }
            (None, None) if relations.is_in_focus(class, sample.field) => {
                relations.save(&mut self.journal, sample.class, packet);
                let found = relations.examine(class, sample, values);
                if let Some(relation) = found {
                    self.journal.record(|| Undo::Relation { place, old: None });
                    relations.search.changed = true;
                    relations.set(class, sample.field, Some(relation));
                    state.ranking.arrange(class, &relations.adopted);
                }
                if found.is_some() || relations.search.samples >= MAX_SAMPLES {
                    relations.advance(class, &state.ranking, fold);
                }
            }
            _ => {}
        }
    }

    /// Moves the search of a class on, if it is due.
    pub(super) fn advance_search(&mut self, class: u16, packet: Sequence) {
        let fold = self.entity_states.fold_count;
        let layout = &self.entity_states.layout.classes[usize::from(class)];
        let state = &mut self.entity_states.classes[usize::from(class)];
        let relations = &mut state.relations;
        let is_due = fold >= relations.search.until && layout.numbers.len() > 1;
        if is_due && state.ranking.is_experienced() {
            relations.save(&mut self.journal, class, packet);
            relations.advance(layout, &state.ranking, fold);
        }
    }

    pub(super) fn undo_relation(&mut self, (class, field): (u16, u16), old: Option<Relation>) {
        let layout = &self.entity_states.layout.classes[usize::from(class)];
        let state = &mut self.entity_states.classes[usize::from(class)];
        state.relations.set(layout, field, old);
        state.ranking.arrange(layout, &state.relations.adopted);
    }

    pub(super) fn undo_search(&mut self, class: u16, old: Search, len: usize) {
        let relations = &mut self.entity_states.classes[usize::from(class)].relations;
        let start = self.journal.candidates.len().saturating_sub(len);
        relations.candidates.clear();
        let saved = self.journal.candidates.drain(start..);
        relations.candidates.extend(saved);
        relations.search = old;
        relations.changed_by = Sequence(0);
    }
}

/// What a residual of so many bits costs, in bits: that there is one costs some, too.
fn cost(bits: u8) -> i16 {
    i16::from(bits) + if bits > 0 { 2 } else { 0 }
}

/// Whether a sample is near enough to a relation to teach its coefficient: what jumps is not.
fn is_lesson(own: u8, left: u8) -> bool {
    left <= 2 || left + 2 <= own
}

/// The relation after one more sample; `None` if it no longer pays off.
fn follow(
    relation: &Relation,
    class: &ClassLayout,
    sample: &RelationSample,
    values: &[i64],
) -> Option<Relation> {
    let &[old, now, source_old, source_now] = values else {
        return Some(*relation);
    };
    let target = Pair {
        old,
        now,
        width: class.widths[usize::from(sample.field)],
    };
    let source = Pair {
        old: source_old,
        now: source_now,
        width: class.widths[usize::from(relation.source)],
    };
    let Relation { kind, fit, .. } = relation;
    let guess = kind.guess(fit, source, old, target.width, sample.ahead);
    let left = bit_length(target.width.difference(now, guess));
    let gain = 8 * (cost(sample.own) - cost(left));
    let mut next = *relation;
    next.gain += (gain.clamp(-64, 64) - relation.gain + 8) >> 4;
    if is_lesson(sample.own, left) {
        next.fit.learn(
            kind.input(source, sample.ahead),
            kind.output(target, sample.ahead),
        );
    }
    (next.gain >= MIN_GAIN).then_some(next)
}

/// Fields before and after one, among the numbers of its class, from which it may follow.
const REACH: usize = 12;
/// Samples after which a clear relation may be adopted, those after which any may, and those after
/// which the search goes on with another field.
const MIN_SAMPLES: u8 = 8;
const MOST_SAMPLES: u8 = 16;
const MAX_SAMPLES: u8 = 24;
/// Bits that a clear relation saves in all, those that any saves per sample, and how many more it
/// must have saved for each that was dropped.
const CLEAR: i16 = 32;
const NEEDED: i16 = 1;
const SHYNESS: i16 = 2;
const MAX_SHY: u8 = 16;
/// What one sample can count at most, in bits.
const MAX_GAIN: i16 = 6;
const MAX_LOSS: i16 = 4;
/// Average gain of a relation when it is adopted, and that below which it is dropped, in eighths of
/// a bit.
const FIRST_GAIN: i16 = 16;
const MIN_GAIN: i16 = 0;
/// Folds for which a field stays in focus without enough samples.
const PATIENCE: u32 = 64;
/// Folds between searches; doubled after each that found nothing.
const PAUSE: u32 = 256;
const MAX_FRUITLESS: u8 = 6;
