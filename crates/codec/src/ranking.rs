//! Orders the fields of a class by how often they surprise.
//!
//! Most fields of a large class hardly ever change. A single flag states whether any of these does,
//! so an update costs what changes often and not the number of fields.

use alloc::{boxed::Box, vec::Vec};

use crate::{layout::ClassLayout, predict::relation::Relation, units::Sequence};

/// The fields of a class, rare ones last.
#[derive(Clone, Debug)]
pub(crate) struct Ranking {
    /// Surprises of entities of the class.
    total: u32,
    /// For each field, the surprises in which it had a part.
    hits: Box<[u32]>,
    /// The fields of an update, rare ones last.
    order: Box<[u16]>,
    /// The number of fields in `order` that are not rare.
    common: usize,
    /// The last packet whose fold changed it.
    changed_by: Sequence,
}

impl Ranking {
    pub(crate) fn new(class: &ClassLayout) -> Self {
        Self {
            total: 0,
            hits: alloc::vec![0; class.shapes.len()].into(),
            order: class.updates.clone().into(),
            common: class.updates.len(),
            changed_by: Sequence(0),
        }
    }

    /// A ranking from earlier counts: the surprises of the class, and for each field those in which
    /// it had a part. A field without a count is not rare.
    pub(crate) fn with(class: &ClassLayout, total: u32, parts: &[Option<u32>]) -> Self {
        let mut ranking = Self::new(class);
        ranking.total = total.min(PRIOR_SURPRISES);
        let scale = |part: u32| {
            let share = u64::from(part.min(total)) * u64::from(ranking.total);
            (share / u64::from(total.max(1))) as u32
        };
        let hits = parts.iter().map(|part| part.map_or(ranking.total, scale));
        ranking.hits = hits.collect();
        ranking.arrange(class, &[]);
        ranking
    }

    /// The arguments for [`with`](Self::with).
    pub(crate) fn counts(&self) -> (u32, &[u32]) {
        (self.total, &self.hits)
    }

    /// The common fields, and the rare ones behind a flag.
    #[inline]
    pub(crate) fn split(&self) -> (&[u16], &[u16]) {
        self.order.split_at(self.common)
    }

    /// Marks it as changed by the fold of a packet. Returns whether this is the packet's first
    /// change, before which it has to be saved.
    #[inline]
    pub(crate) fn mark_changed(&mut self, packet: Sequence) -> bool {
        core::mem::replace(&mut self.changed_by, packet) != packet
    }

    pub(crate) fn is_changed_by(&self, packet: Sequence) -> bool {
        self.changed_by == packet
    }

    /// Counts a surprise in which these fields had a part.
    #[inline]
    pub(crate) fn note(&mut self, fields: impl Iterator<Item = u16>) {
        self.total += 1;
        for field in fields {
            if let Some(hits) = self.hits.get_mut(usize::from(field)) {
                *hits += 1;
            }
        }
    }

    /// Whether the class had enough surprises to tell which fields are frequent.
    pub(crate) fn is_experienced(&self) -> bool {
        self.total >= EXPERIENCED
    }

    /// Whether a field had a part in many of the surprises.
    pub(crate) fn is_frequent(&self, field: u16) -> bool {
        let hits = self.hits.get(usize::from(field)).copied().unwrap_or(0);
        hits * FREQUENT >= self.total
    }

    /// Updates the order after a fold, and halves the counts when they are high.
    pub(crate) fn sort(&mut self, class: &ClassLayout, relations: &[Option<Relation>]) {
        if self.total >= HALVED_AT {
            self.total /= 2;
            for hits in &mut self.hits {
                *hits /= 2;
            }
        }
        self.arrange(class, relations);
    }

    /// Derives the order from the counts. A field from which others follow comes before them.
    pub(crate) fn arrange(&mut self, class: &ClassLayout, relations: &[Option<Relation>]) {
        let (total, hits) = (self.total, &self.hits);
        let is_rare = |&field: &u16| {
            // A rate of change is coded before the field that it changes.
            let at = usize::from(field);
            let is_source = || relations.iter().flatten().any(|r| r.source == field);
            !class.is_rate[at]
                && total >= MIN_SURPRISES
                && hits[at] * RARITY < total
                && !is_source()
        };
        let mut common = 0;
        let mut rare = class.updates.iter().filter(|f| is_rare(f)).count();
        if rare < MIN_RARE_FIELDS {
            rare = 0;
        }
        self.common = self.order.len() - rare;
        let mut late = self.common;
        for &field in &class.updates {
            if rare > 0 && is_rare(&field) {
                self.order[late] = field;
                late += 1;
                continue;
            }
            if relations.is_empty() {
                self.order[common] = field;
                common += 1;
                continue;
            }
            while !self.order[..common].contains(&field) {
                // The first field of its chain of sources that has no place yet.
                let mut next = field;
                while let Some(Some(relation)) = relations.get(usize::from(next))
                    && !self.order[..common].contains(&relation.source)
                {
                    next = relation.source;
                }
                self.order[common] = next;
                common += 1;
            }
        }
    }

    /// Appends the counts to `out`.
    pub(crate) fn save(&self, out: &mut Vec<u32>) {
        out.extend_from_slice(&self.hits);
        out.push(self.total);
    }

    /// Restores the counts that were saved last.
    pub(crate) fn restore(
        &mut self,
        class: &ClassLayout,
        relations: &[Option<Relation>],
        saved: &mut Vec<u32>,
    ) {
        let start = saved.len().saturating_sub(self.hits.len() + 1);
        if let Some((&total, hits)) = saved[start..].split_last()
            && hits.len() == self.hits.len()
        {
            self.total = total;
            self.hits.copy_from_slice(hits);
        }
        saved.truncate(start);
        self.changed_by = Sequence(0);
        self.arrange(class, relations);
    }

    /// All counts, for digests.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let hits = self.hits.iter().map(|&hits| u64::from(hits));
        hits.chain([u64::from(self.total)])
    }
}

/// A field is rare if it has a part in less than one of this many surprises.
const RARITY: u32 = 32;
/// A field is frequent if it has a part in at least one of this many surprises.
const FREQUENT: u32 = 16;
/// Surprises of the class before any field is frequent.
const EXPERIENCED: u32 = 8;
/// Surprises of the class before any field is rare.
const MIN_SURPRISES: u32 = 64;
/// Surprises at which the counts are halved.
const HALVED_AT: u32 = 1 << 13;
/// Weight of the counts of a prior, in surprises.
const PRIOR_SURPRISES: u32 = 256;
/// Fewest rare fields for which the flag pays off.
const MIN_RARE_FIELDS: usize = 3;
