//! The order of active entities in a full packet. Those that surprised lately have a flag each. Of
//! the others, which are most of a large world, a packet names the few that differ by their distances,
//! so that the rest costs no decision.

use alloc::vec::Vec;
use core::ops::Range;

use crate::{
    ledger::{Account, Cause},
    packet_coder::{Coder, NumberSite, PacketCoder, Topic},
    shared_model::EntityStates,
};

/// The active entities of a full packet.
#[derive(Clone, Debug, Default)]
pub(super) struct ActiveOrder {
    /// Those with a flag, ascending.
    pub(super) flagged: Vec<u32>,
    /// The others: class after class, ascending in each.
    pub(super) quiet: Vec<u32>,
    /// For each class with quiet entities, where they are.
    pub(super) classes: Vec<(u16, Range<usize>)>,
    /// For each class, the number of its quiet entities, and then where the next one goes.
    counts: Vec<usize>,
}

impl ActiveOrder {
    /// Orders all active entities but those in `despawns`, which ascend.
    pub(super) fn fill(&mut self, entity_states: &EntityStates, despawns: &[u32]) {
        let Self {
            flagged,
            quiet,
            classes,
            counts,
        } = self;
        flagged.clear();
        classes.clear();
        counts.clear();
        counts.resize(entity_states.classes.len(), 0);
        let active = || {
            let ids = entity_states.active.iter().copied();
            ids.filter(|id| despawns.is_empty() || despawns.binary_search(id).is_err())
        };
        let quiet_class = |id: u32| {
            let head = &entity_states.population.active(id)?.head;
            let is_quiet = entity_states.folds_since_surprise(head) >= QUIET_AFTER;
            is_quiet.then_some(usize::from(head.class))
        };
        for class in active().filter_map(quiet_class) {
            counts[class] += 1;
        }
        let mut len = 0;
        for (class, count) in (0..).zip(counts.iter_mut()) {
            let start = len;
            if *count >= MIN_QUIET {
                len += *count;
                classes.push((class, start..len));
                *count = start;
            } else {
                *count = usize::MAX;
            }
        }
        quiet.clear();
        if len == 0 {
            flagged.extend(active());
            return;
        }
        quiet.resize(len, 0);
        for id in active() {
            match quiet_class(id) {
                Some(class) if counts[class] != usize::MAX => {
                    quiet[counts[class]] = id;
                    counts[class] += 1;
                }
                _ => flagged.push(id),
            }
        }
    }
}

/// The state of naming the quiet entities of a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuietList {
    class: u16,
    /// Entities that were neither named nor passed over.
    left: usize,
    /// How many were named.
    named: usize,
}

impl QuietList {
    pub(super) fn new(class: u16, len: usize) -> Self {
        Self {
            class,
            left: len,
            named: 0,
        }
    }

    /// Counts one that was named, `distance` after the one before.
    pub(super) fn advance(&mut self, distance: u32) {
        self.left = self.left.saturating_sub(distance as usize);
        self.named += 1;
    }

    fn account(&self) -> Account {
        Account {
            class: Some(self.class),
            field: None,
            cause: Cause::Flag,
        }
    }

    /// Bit length of the number of entities that are left.
    fn size(&self) -> u32 {
        usize::BITS - self.left.leading_zeros()
    }
}

impl<C: Coder, const N: usize> PacketCoder<'_, C, N> {
    /// Codes whether another quiet entity differs. None does if none is left.
    pub(super) fn another_quiet(&mut self, list: &QuietList, another: bool) -> bool {
        if list.left == 0 {
            return false;
        }
        let (size, named) = (list.size() as usize, list.named.min(3));
        let both = size << 2 | named;
        let key = self.class_key(list.class);
        self.account = list.account();
        self.flag(Topic::Quiet, key, &[both, size, named, both, size], another)
    }

    /// Codes the distance, at least 1, to the next quiet entity that differs.
    pub(super) fn quiet_distance(&mut self, list: &QuietList, distance: u32) -> u32 {
        self.account = list.account();
        let size = list.size();
        let site = NumberSite {
            exponent: Topic::Quiet,
            sign: None,
            mantissa: Topic::QuietMantissa,
            field: self.class_key(list.class),
            pivot: size.saturating_sub(2),
            scale: [size + 1; N],
            signs: [0; N],
        };
        self.distance(&site, distance)
    }
}

/// Folds without a surprise after which an entity is quiet.
const QUIET_AFTER: u32 = 8;
/// A class with fewer quiet entities has a flag for each.
const MIN_QUIET: usize = 16;
