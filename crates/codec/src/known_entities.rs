//! The entities of one receiver at the sender: their ids, which of them still have to be sent, and
//! their rows as the receiver gets them.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    vec::Vec,
};
use core::num::NonZeroU32;

use prescient_schema::{Content, Field, Level};

use crate::{
    body::SenderRows,
    history::{Archive, Window, line::Line},
    layout::Layout,
    log::Log,
    predict::{ROWS, Samples},
    quality::{Grade, Quality},
    queue::Queue,
    shared_model::{EntityKey, Rows, Views},
    slot_map::SlotMap,
    units::{Sequence, Slot, Tick, Weight},
    visibility_history::VisibilityHistory,
};

/// The entities of one receiver and what still has to be sent of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownEntities {
    /// For each visible entity, one more than its id.
    ids: SlotMap<NonZeroU32>,
    /// For each id, its entity, or [`NO_SLOT`].
    slots: Vec<Slot>,
    /// For each id, the level that its visibility says; see [`level`](Self::level).
    pub levels: Vec<u8>,
    pub grades: Vec<Grade>,
    pub quality: Quality,
    /// The number of ticks for which entities were made due, and the last of them.
    pub round: (u32, Option<Tick>),
    pub weights: Vec<Weight>,
    /// Ids whose level may differ from the one in the shared model.
    pub releveled: BTreeSet<u32>,
    /// For each id, the last packet that covered it.
    pub sent: Vec<Sequence>,
    /// For each id, the tick of that packet.
    pub sent_ticks: Vec<Tick>,
    /// Visible, and not confirmed to have reached the receiver.
    pub waiting: Queue,
    /// Sent, and no longer visible. Every packet contains the despawn, and the id is not reused,
    /// until such a packet is known to be applied and the model has removed the entity.
    pub tombstones: BTreeMap<u32, Tombstone>,
    /// Ids of removed entities that references in packets up to this one may still name.
    pub retired_ids: BTreeMap<u32, Sequence>,
    pub free: BTreeSet<u32>,
    /// At rest in the shared model although their values changed; with the last packet that covered
    /// them.
    pub dirty: BTreeMap<u32, Sequence>,
    /// What references mean to the receiver; empty if the schema has none.
    pub visibility_history: VisibilityHistory,
    /// For each id (if the schema has references) the newest packet known to be applied that
    /// covered it, and the newest full packet known to be applied.
    pub confirmed: Vec<Sequence>,
    pub last_full: Sequence,
}

/// An entity that is no longer visible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tombstone {
    /// The last packet before it became invisible.
    pub since: Sequence,
    /// Whether a later packet, which contains the despawn, is known to be applied.
    pub sent: bool,
}

impl KnownEntities {
    /// The id of a visible entity.
    #[inline]
    pub(crate) fn id(&self, slot: Slot) -> Option<u32> {
        self.ids.get(slot).map(|next| next.get() - 1)
    }

    /// The visible entity with an id.
    #[inline]
    pub(crate) fn slot(&self, id: u32) -> Option<Slot> {
        let slot = self.slots.get(id as usize).copied();
        slot.filter(|slot| *slot != NO_SLOT)
    }

    /// The level at which an entity is to be sent.
    #[inline]
    pub(crate) fn level(&self, id: u32) -> u8 {
        let at = id as usize;
        let own = self.levels.get(at).copied().unwrap_or(0);
        let grade = self.grades.get(at).copied().unwrap_or_default();
        grade.level(own, &self.quality)
    }

    /// Ids of visible entities whose level is another one with another quality.
    pub(crate) fn releveled_by(&self, quality: &Quality) -> Vec<u32> {
        let entities = (0..).zip(self.levels.iter().zip(&self.grades));
        let differs = |(id, (&own, grade)): (u32, (&u8, &Grade))| {
            let differs = grade.level(own, quality) != grade.level(own, &self.quality);
            (differs && self.slot(id).is_some()).then_some(id)
        };
        entities.filter_map(differs).collect()
    }

    /// Removes an entity that is no longer visible and returns its id.
    pub(crate) fn remove(&mut self, slot: Slot) -> Option<u32> {
        let id = self.ids.remove(slot)?.get() - 1;
        self.slots[id as usize] = NO_SLOT;
        Some(id)
    }

    pub(crate) fn add(&mut self, slot: Slot, since: Tick, has_references: bool) -> u32 {
        if let Some(id) = self.id(slot) {
            return id;
        }
        let id = self.free.pop_first().unwrap_or(self.slots.len() as u32);
        if self.slots.len() <= id as usize {
            self.slots.resize(id as usize + 1, NO_SLOT);
            self.levels.resize(id as usize + 1, 0);
            self.grades.resize(id as usize + 1, Grade::default());
            self.weights.resize(id as usize + 1, Weight::default());
            self.sent.resize(id as usize + 1, Sequence(0));
            self.sent_ticks.resize(id as usize + 1, Tick(0));
        }
        if has_references {
            let len = self.slots.len();
            self.confirmed.resize(len, Sequence(0));
            self.confirmed[id as usize] = Sequence(0);
        }
        self.ids.insert(slot, NonZeroU32::MIN.saturating_add(id));
        self.slots[id as usize] = slot;
        self.levels[id as usize] = 0;
        self.grades[id as usize] = Grade::default();
        self.weights[id as usize] = Weight::default();
        self.sent[id as usize] = Sequence(0);
        self.waiting.push(id, since, Weight::default());
        id
    }

    pub(crate) fn set_weight(&mut self, id: u32, weight: Weight) {
        let before = core::mem::replace(&mut self.weights[id as usize], weight);
        self.waiting.reweigh(id, before, weight);
    }

    /// Records a packet as sent.
    pub(crate) fn note_sent(&mut self, log: &Log) {
        for &id in &log.covered {
            self.sent[id as usize] = log.sequence;
            self.sent_ticks[id as usize] = log.tick;
            self.grades[id as usize].set_due(false);
            if let Some(last_sent) = self.dirty.get_mut(&id) {
                *last_sent = log.sequence;
            }
        }
        for &(id, _) in &log.spawns {
            self.waiting.note_sent(id, self.weights[id as usize]);
        }
    }

    /// Queues the spawns of a packet that will not be folded, unless a later packet has them.
    pub(crate) fn requeue_spawns(&mut self, log: &Log) {
        for &(id, _) in &log.spawns {
            if self.sent[id as usize] == log.sequence {
                self.waiting.note_lost(id, self.weights[id as usize]);
            }
        }
    }

    /// Records a packet as applied.
    pub(crate) fn note_applied(&mut self, log: &Log) {
        if log.full {
            self.last_full = self.last_full.max(log.sequence);
        }
        for &id in &log.covered {
            if let Some(confirmed) = self.confirmed.get_mut(id as usize) {
                *confirmed = log.sequence.max(*confirmed);
            }
        }
    }

    /// Frees retired ids that no row at the receiver can name any more.
    pub(crate) fn release(&mut self, has_references: bool, active: &[u32]) {
        if self.retired_ids.is_empty() {
            return;
        }
        let oldest = match has_references {
            true => self.oldest_shown(active),
            false => Sequence(u32::MAX),
        };
        self.retired_ids.retain(|&id, &mut since| {
            let named = since >= oldest;
            if !named {
                self.sent[id as usize] = Sequence(0);
                self.free.insert(id);
            }
            named
        });
    }

    /// The oldest packet from which the receiver may still show a row.
    fn oldest_shown(&self, active: &[u32]) -> Sequence {
        let unconfirmed_despawns = self
            .tombstones
            .iter()
            .filter(|(_, tombstone)| !tombstone.sent);
        let shown = active.iter().chain(self.dirty.keys());
        let shown = shown.chain(unconfirmed_despawns.map(|(id, _)| id)).copied();
        let shown = shown.chain(self.waiting.ids());
        let sent = shown.filter(|&id| self.sent[id as usize] > Sequence(0));
        let oldest = sent.map(|id| self.confirmed[id as usize]).min();
        oldest.map_or(Sequence(u32::MAX), |oldest| oldest.max(self.last_full))
    }

    /// Queues all visible entities for a new epoch.
    pub(crate) fn restart(&mut self, now: Tick) {
        self.dirty.clear();
        for (id, slot) in self.slots.iter().enumerate() {
            if *slot != NO_SLOT {
                self.waiting.push(id as u32, now, self.weights[id]);
                if self.level(id as u32) != 0 {
                    self.releveled.insert(id as u32);
                }
            }
        }
    }
}

/// The rows of the archive as one receiver gets them.
pub(crate) struct ReceiverView<'a> {
    pub archive: &'a Archive,
    pub known_entities: &'a KnownEntities,
    pub layout: &'a Layout,
}

impl ReceiverView<'_> {
    #[inline]
    pub(crate) fn slot(&self, id: u32) -> Option<Slot> {
        self.known_entities.slot(id)
    }

    fn has_references(&self, class: u16) -> bool {
        let class = usize::from(class);
        self.layout.has_references && !self.layout.classes[class].references.is_empty()
    }

    /// A row as it was sent at a tick: at the given precision, and with the receiver's ids of the
    /// entities that were visible then.
    #[inline]
    pub(crate) fn as_sent<'a>(
        &self,
        class: u16,
        row: &'a [i64],
        level: u8,
        tick: Tick,
        buffer: &'a mut Vec<i64>,
    ) -> &'a [i64] {
        if level == 0 && !self.layout.has_references {
            return row;
        }
        let class = usize::from(class);
        let references = &self.layout.classes[class].references;
        if level == 0 && references.is_empty() {
            return row;
        }
        buffer.clear();
        buffer.extend_from_slice(row);
        quantise(buffer, &self.layout.schema.classes[class].fields, level);
        for &field in references {
            let cell = &mut buffer[usize::from(field)];
            *cell = self
                .known_entities
                .visibility_history
                .translate(*cell, tick);
        }
        buffer
    }
}

impl Rows for ReceiverView<'_> {
    #[inline]
    fn row<'a>(
        &'a self,
        EntityKey { id, class }: EntityKey,
        tick: Tick,
        level: u8,
        buffer: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]> {
        let row = self.archive.row_of(self.slot(id)?, class, tick)?;
        Some(self.as_sent(class, row, level, tick, buffer))
    }

    #[inline]
    fn rows<'a, 's: 'a>(
        &'s self,
        EntityKey { id, class }: EntityKey,
        samples: &Samples,
        level: u8,
        buffers: &'a mut [Vec<i64>; ROWS],
        window: &mut Window<'s>,
    ) -> Option<Views<'a>> {
        let slot = self.slot(id)?;
        let mut views: Views<'a> = self.archive.rows((slot, class), samples, window)?;
        if level != 0 || self.has_references(class) {
            let rows = views.rows.iter_mut().zip(&samples.ticks);
            for ((row, &tick), buffer) in rows.zip(buffers) {
                *row = self.as_sent(class, row, level, tick, buffer);
            }
            views.present = None;
        }
        Some(views)
    }

    fn frame(&self, tick: Tick) -> u32 {
        self.archive.frame_number(tick)
    }

    #[inline]
    fn latest<'a>(
        &'a self,
        EntityKey { id, class }: EntityKey,
        level: u8,
        buffer: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]> {
        let row = self.archive.latest_of(self.slot(id)?, class)?;
        let now = self.archive.newest()?;
        Some(self.as_sent(class, row, level, now, buffer))
    }

    fn changed_after(&self, id: u32, tick: Tick) -> bool {
        self.slot(id)
            .and_then(|slot| self.archive.last_changed(slot))
            .is_some_and(|changed| changed > tick)
            || self
                .known_entities
                .visibility_history
                .references_changed_after(id, tick)
    }

    fn content(&self, cell: i64) -> Option<&Arc<Content>> {
        self.archive.shared_content(cell)
    }
}

impl SenderRows for ReceiverView<'_> {
    #[inline]
    fn level(&self, id: u32) -> u8 {
        self.known_entities.level(id)
    }

    #[inline]
    fn recent_rows<'s>(
        &'s self,
        EntityKey { id, class }: EntityKey,
        samples: &Samples,
        window: &mut Window<'s>,
    ) -> Option<[&'s [i64]; 3]> {
        if self.has_references(class) {
            return None;
        }
        let slot = self.slot(id)?;
        let at = self.archive.window_range((slot, class), samples, window)?;
        window.newest(at)
    }

    #[inline]
    fn line(&self, EntityKey { id, class }: EntityKey) -> Option<Line> {
        // What a reference is to the receiver changes with what it sees.
        if self.has_references(class) {
            return None;
        }
        self.archive.line(self.slot(id)?, class)
    }
}

pub(crate) fn quantise(row: &mut [i64], fields: &[Field], level: u8) {
    let Some(level) = Level::new(level).filter(|level| *level != Level::EXACT) else {
        return;
    };
    for (value, field) in row.iter_mut().zip(fields) {
        *value = field.at_level(level, *value);
    }
}

/// Stands for no entity; archives never have this many slots.
const NO_SLOT: Slot = Slot(u32::MAX);
