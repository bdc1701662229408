//! Who is there for a client, and what each was last seen to do.

use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};

use crate::{
    kept::KeptRow,
    layout::Layout,
    model::repeats::Repeats,
    population::{Phase, Population},
    predict::{ALL, Costs, DEPTH, Predictor, Samples},
    ranking::Ranking,
    units::{Sequence, Tick},
};

use super::{EntityKey, FieldState, HISTORY, Rows, field::PERIOD_BITS};

/// Everything about a model but its probabilities.
#[derive(Clone, Debug)]
pub(crate) struct EntityStates {
    pub layout: Arc<Layout>,
    pub population: Population,
    /// Ids of active entities, ascending.
    pub active: Vec<u32>,
    /// What is known about the fields of a class before an entity has a record of its own.
    pub classes: Vec<ClassState>,
    /// Ticks of the newest folded packets, newest last.
    pub(super) folds: Vec<Tick>,
    pub fold_count: u32,
    pub(super) last_partial: u32,
    /// Entities whose precision changed, and by which packet, while older ones may follow.
    pub(super) releveled: Vec<(u32, Sequence)>,
    /// Rows of resting entities that one end has meanwhile seen change.
    pub rest_rows: BTreeMap<u32, KeptRow>,
}

/// The fixed part of an [`Entity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub class: u16,
    pub level: u8,
    /// Whether anything but holding still is expected of it.
    pub expects_motion: bool,
    /// Bit `k` says whether the fold `covered_at - k` covered this entity; later folds did.
    pub(super) covered: u64,
    pub(super) covered_at: u32,
    /// Bit `k` says whether the fold `surprised_at - k` held a surprise; later ones did not.
    pub(super) surprised: u32,
    pub(super) surprised_at: u32,
    pub(super) moved_at: u32,
}

impl Head {
    /// Notes whether the newest fold covered this entity; folds since the last note did.
    pub(super) fn cover(&mut self, fold: u32, covered: bool) {
        let behind = fold - self.covered_at;
        let filled = if behind > 64 {
            u64::MAX
        } else {
            self.covered.checked_shl(behind).unwrap_or(0)
                | u64::MAX.checked_shr(64 - behind).unwrap_or(0)
        };
        self.covered = filled & !1 | u64::from(covered);
        self.covered_at = fold;
    }
}

/// What is known about a field of all entities of a class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassField {
    pub costs: Costs,
    pub repeats: Repeats,
}

/// What is known about a class.
#[derive(Clone, Debug)]
pub(crate) struct ClassState {
    pub fields: Box<[ClassField]>,
    pub ranking: Ranking,
    /// The newest entity that appeared: the best guess for the next one.
    pub reference: Option<Arc<KeptRow>>,
}

impl EntityStates {
    #[inline]
    pub(crate) fn phase(&self, id: u32) -> Phase {
        self.population.phase(id)
    }

    /// The precision at which both ends know an entity.
    pub(crate) fn level(&self, id: u32) -> u8 {
        let active = self.population.active(id).map(|entity| entity.head.level);
        active.unwrap_or_else(|| self.population.status(id).level)
    }

    /// Which of the last 64 folds covered an entity, newest in bit 0.
    #[inline]
    pub(crate) fn folds_known(&self, head: &Head) -> u64 {
        let behind = self.fold_count - head.covered_at;
        if behind > 63 {
            return u64::MAX;
        }
        head.covered << behind | ((1 << behind) - 1)
    }

    /// Ticks from which an entity that these folds covered can be predicted at `now`.
    pub(crate) fn samples(&self, known: u64, now: Tick) -> Samples {
        let mut ticks = [Tick(0); DEPTH];
        let mut count = 0;
        for (back, &tick) in self.folds.iter().rev().enumerate() {
            if now.since(tick) > HISTORY || count == DEPTH {
                break;
            }
            if known >> back.min(63) & 1 == 1 {
                ticks[count] = tick;
                count += 1;
            }
        }
        Samples::pick(now, &ticks[..count])
    }

    /// Which of the last 32 folds held a surprise of this entity, newest in bit 0.
    #[inline]
    pub(crate) fn surprise_history(&self, head: &Head) -> u32 {
        head.surprised
            .checked_shl(self.fold_count - head.surprised_at)
            .unwrap_or(0)
    }

    /// How many folds held no surprise of this entity since one did.
    #[inline]
    pub(crate) fn folds_since_surprise(&self, head: &Head) -> u32 {
        self.fold_count - head.surprised_at
    }

    /// The row at which an entity rests.
    pub(crate) fn rest_row<'a>(
        &'a self,
        id: u32,
        rows: &'a dyn Rows,
        buffer: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]> {
        let status = self.population.status(id);
        let class = status.class;
        match self.rest_rows.get(&id) {
            Some(row) => row.of(&self.layout.classes[usize::from(class)]),
            None => rows.latest(EntityKey { id, class }, status.level, buffer),
        }
    }

    /// Bytes that rows of resting entities hold.
    pub(crate) fn rest_row_bytes(&self) -> usize {
        self.rest_rows.values().map(KeptRow::bytes).sum()
    }

    /// Active entities, those that were not covered for longest first.
    pub(crate) fn stalest_first(&self) -> Vec<u32> {
        let staleness = |id: u32| {
            let active = self.population.active(id).map(|entity| &entity.head);
            let noted = active.filter(|head| head.covered_at == self.fold_count);
            noted.map_or(0, |head| head.covered.trailing_zeros())
        };
        let mut order = self.active.clone();
        order.sort_by_key(|&id| core::cmp::Reverse(staleness(id)));
        order
    }

    pub(super) fn fresh_fields(&self, class: u16) -> Box<[FieldState]> {
        let state = &self.classes[usize::from(class)];
        state
            .fields
            .iter()
            .map(|field| FieldState {
                costs: field.costs,
                period_and_predictor: (field.costs.best(ALL) as u8) << PERIOD_BITS,
                ..FieldState::NEW
            })
            .collect()
    }

    pub(super) fn expects_motion(&self, class: u16, fields: &[FieldState]) -> bool {
        self.layout.classes[usize::from(class)].has_contract
            || fields
                .iter()
                .any(|field| field.best_predictor() != Predictor::Hold)
    }

    /// How many of the newest folds all covered this entity.
    pub(super) fn folds_covered(&self, head: &Head) -> u32 {
        let behind = self.fold_count - head.covered_at;
        behind + (!(head.covered)).trailing_zeros()
    }
}

/// Folds whose ticks are remembered.
pub(super) const MAX_FOLDS: usize = 64;
