//! The entities of a client's world as both ends know them, and the recent surprises of each.

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

use super::{EntityKey, FieldState, Relations, Rows, field::PERIOD_BITS};

/// The shared model without its probabilities.
#[derive(Clone, Debug)]
pub(crate) struct EntityStates {
    pub layout: Arc<Layout>,
    pub population: Population,
    /// Ids of active entities, ascending.
    pub active: Vec<u32>,
    /// Statistics of the fields of a class, from which a new entity starts.
    pub classes: Vec<ClassState>,
    /// Ticks of the last [`MAX_FOLDS`] folded packets, newest last.
    pub(super) folds: Vec<Tick>,
    pub fold_count: u32,
    pub(super) last_partial: u32,
    /// Ticks after which a row is no longer used.
    pub(super) history: u32,
    /// Entities whose precision changed, with the packet that changed it, while packets coded
    /// before that may still be folded.
    pub(super) releveled: Vec<(u32, Sequence)>,
    /// Rows of resting entities that have changed since in the archive of this end.
    pub rest_rows: BTreeMap<u32, KeptRow>,
}

/// The part of an active entity that does not depend on its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub class: u16,
    pub level: u8,
    pub expected_motion: ExpectedMotion,
    /// Bit `k` states whether the fold `covered_at - k` covered this entity; all later folds did.
    pub(super) covered: u64,
    pub(super) covered_at: u32,
    /// Bit `k` states whether the fold `surprised_at - k` contained a surprise; no later fold did.
    pub(super) surprised: u32,
    pub(super) surprised_at: u32,
    pub(super) moved_at: u32,
}

/// How the fields of an entity are predicted to change, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedMotion {
    /// The fields predicted by a line, short or wide, as bits.
    pub lines: u64,
    pub reach: Reach,
}

/// How far back the rows are from which an entity is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// All fields hold the newest row.
    Newest,
    /// The two newest rows.
    Line,
    /// The far end of the wide base.
    Wide,
    /// All rows, or a contract.
    All,
}

impl ExpectedMotion {
    pub(crate) const NONE: Self = Self {
        lines: 0,
        reach: Reach::Newest,
    };

    pub(super) fn new(has_contract: bool, fields: &[FieldState]) -> Self {
        let mut motion = Self::NONE;
        if has_contract {
            motion.reach = Reach::All;
        }
        for (at, field) in fields.iter().enumerate() {
            let reach = match field.best_predictor() {
                Predictor::Hold => continue,
                Predictor::Linear => Reach::Line,
                Predictor::Wide => Reach::Wide,
                _ => Reach::All,
            };
            motion.reach = motion.reach.max(reach);
            if reach < Reach::All && at < u64::BITS as usize {
                motion.lines |= 1 << at;
            }
        }
        motion
    }
}

impl Head {
    /// Records whether the newest fold covered this entity; all folds since the last record did.
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

/// Statistics of a field over all entities of a class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassField {
    pub costs: Costs,
    pub repeats: Repeats,
}

/// Statistics of a class.
#[derive(Clone, Debug)]
pub(crate) struct ClassState {
    pub fields: Box<[ClassField]>,
    pub ranking: Ranking,
    pub relations: Relations,
    /// The newest spawned row, from which the next spawn is predicted.
    pub reference: Option<Arc<KeptRow>>,
}

impl EntityStates {
    #[inline]
    pub(crate) fn phase(&self, id: u32) -> Phase {
        self.population.phase(id)
    }

    /// The precision of the rows of an entity that both ends have.
    pub(crate) fn level(&self, id: u32) -> u8 {
        let active = self.population.active(id).map(|entity| entity.head.level);
        active.unwrap_or_else(|| self.population.status(id).level)
    }

    /// The folds that covered an entity among the last 64, newest in bit 0.
    #[inline]
    pub(crate) fn folds_known(&self, head: &Head) -> u64 {
        let behind = self.fold_count - head.covered_at;
        if behind > 63 {
            return u64::MAX;
        }
        head.covered << behind | ((1 << behind) - 1)
    }

    /// The ticks from which an entity that these folds covered is predicted at `now`.
    pub(crate) fn samples(&self, known: u64, now: Tick) -> Samples {
        let mut ticks = [Tick(0); DEPTH];
        let mut count = 0;
        for (back, &tick) in self.folds.iter().rev().enumerate() {
            if now.shortly_since(tick) > self.history || count == DEPTH {
                break;
            }
            if known >> back.min(63) & 1 == 1 {
                ticks[count] = tick;
                count += 1;
            }
        }
        Samples::pick(now, &ticks[..count])
    }

    /// The folds that contained a surprise of an entity among the last 32, newest in bit 0.
    #[inline]
    pub(crate) fn surprise_history(&self, head: &Head) -> u32 {
        head.surprised
            .checked_shl(self.fold_count - head.surprised_at)
            .unwrap_or(0)
    }

    /// Folds since the last one that contained a surprise of an entity.
    #[inline]
    pub(crate) fn folds_since_surprise(&self, head: &Head) -> u32 {
        self.fold_count - head.surprised_at
    }

    /// The row of a resting entity.
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

    pub(crate) fn rest_row_bytes(&self) -> usize {
        self.rest_rows.values().map(KeptRow::bytes).sum()
    }

    /// Active entities, those first that were not covered for longest.
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

    /// Whether an active entity may be predicted to change.
    #[inline]
    pub(crate) fn expects_to_move(&self, head: &Head) -> bool {
        head.expected_motion != ExpectedMotion::NONE
            || !self.classes[usize::from(head.class)]
                .relations
                .adopted()
                .is_empty()
    }

    pub(super) fn expected_motion(&self, class: u16, fields: &[FieldState]) -> ExpectedMotion {
        let has_contract = self.layout.classes[usize::from(class)].has_contract;
        ExpectedMotion::new(has_contract, fields)
    }

    /// The number of newest folds that all covered an entity.
    pub(super) fn folds_covered(&self, head: &Head) -> u32 {
        let behind = self.fold_count - head.covered_at;
        behind + (!(head.covered)).trailing_zeros()
    }
}

/// Folds whose ticks are kept.
pub(super) const MAX_FOLDS: usize = 64;
