//! What goes first if a packet cannot hold everything: what helps most per bit.
//!
//! The help is the error that the receiver shows now, by how far the entity has moved since it was
//! last sent, times its weight; the cost is what the draft of the packet measured. Entities of
//! priority 0 go before all others, and an entity that was not sent for too long goes before those
//! that help more.

use prescient_schema::Priority;

use crate::history::Archive;
use crate::units::Tick;

use super::Encoder;

/// How entities are selected when packets cannot hold all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    max_staleness: [u32; 4],
}

impl Default for Selection {
    /// Entities are sent again within 8, 15 and 20 ticks, by priority; those of priority 0 with every
    /// packet.
    fn default() -> Self {
        Self {
            max_staleness: [1, 8, 15, 20],
        }
    }
}

impl Selection {
    /// After how many ticks an entity of a priority goes before those that help more; 8, 15 and 20 by
    /// default. All of them together may need more than there is; then those wait that are least overdue.
    pub fn with_max_staleness(mut self, priority: Priority, ticks: u32) -> Self {
        self.max_staleness[usize::from(priority.get())] = ticks.max(1);
        self
    }

    /// After how many ticks an entity of a priority goes first.
    pub fn max_staleness(&self, priority: Priority) -> u32 {
        self.max_staleness[usize::from(priority.get())]
    }
}

/// The errors that a receiver shows, by priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownErrors {
    /// Active entities.
    pub entities: [u32; 4],
    /// The sum of how far they moved since they were last sent, in steps of their positions.
    pub steps: [u64; 4],
    /// The most ticks since one was last sent.
    pub stalest: [u32; 4],
}

impl Encoder {
    /// Selects entities by benefit per bit when a packet cannot hold all; without, those that have
    /// waited longest go first.
    pub fn set_selection(&mut self, selection: Option<Selection>) {
        self.selection = selection;
    }

    /// What the last tick would have cost without a budget and without new entities, in bytes.
    pub fn demand(&self) -> usize {
        (self.demand >> 19) as usize
    }

    /// The errors that the receiver shows if it got every packet; visits all active entities.
    pub fn shown_errors(&self, archive: &Archive) -> ShownErrors {
        let mut errors = ShownErrors::default();
        let Some(now) = archive.newest() else {
            return errors;
        };
        for &id in &self.shared_model.entity_states.active {
            let at = self.known_entities.grades[id as usize].priority();
            let sent = self.known_entities.sent_ticks[id as usize];
            errors.entities[at] += 1;
            errors.steps[at] = errors.steps[at].saturating_add(self.error(id, archive));
            errors.stalest[at] = errors.stalest[at].max(now.shortly_since(sent));
        }
        errors
    }

    /// The order of an entity, the highest first. `cost` is in 1/65536 bit, `age` in packets.
    pub(super) fn due(&self, id: u32, cost: u64, age: u32, archive: &Archive) -> u64 {
        let weight = u64::from(self.known_entities.weights[id as usize].get());
        let Some(selection) = &self.selection else {
            return u64::from(age) * weight;
        };
        let priority = self.known_entities.grades[id as usize].priority();
        if priority == 0 {
            return FIRST + u64::from(age) * weight;
        }
        let now = archive.newest().unwrap_or_default();
        let stale = now.shortly_since(self.known_entities.sent_ticks[id as usize]);
        let bound = selection.max_staleness[priority];
        if stale >= bound {
            return OVERDUE + u64::from(stale) * 64 / u64::from(bound);
        }
        let error = self.error(id, archive).min(MAX_ERROR);
        let importance = [0, 16, 6, 3][priority] * weight;
        let bits = (cost >> 16).max(1);
        ((error + 1) * importance * 256 / bits).min(OVERDUE - 1)
    }

    /// How far an entity is from where it was when it was last sent, in steps; without a position,
    /// the number of fields that changed.
    fn error(&self, id: u32, archive: &Archive) -> u64 {
        let rows = || {
            let slot = self.known_entities.slot(id)?;
            let class = archive.class(slot)?;
            let sent: Tick = self.known_entities.sent_ticks[id as usize];
            let new = archive.latest_of(slot, class)?;
            Some((class, archive.row_of(slot, class, sent)?, new))
        };
        let Some((class, old, new)) = rows() else {
            return MAX_ERROR;
        };
        let position = &self.layout.schema.classes[usize::from(class)].position;
        if position.is_empty() {
            return old.iter().zip(new).filter(|(old, new)| old != new).count() as u64;
        }
        let apart = position.iter().filter_map(|&field| {
            let at = usize::from(field);
            Some(old.get(at)?.abs_diff(*new.get(at)?))
        });
        apart.fold(0, u64::saturating_add)
    }
}

/// Entities of priority 0.
const FIRST: u64 = 1 << 47;
/// Entities that were not sent for too long.
const OVERDUE: u64 = 1 << 46;
const MAX_ERROR: u64 = 1 << 20;
