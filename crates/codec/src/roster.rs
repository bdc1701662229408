//! Who the receiver knows by which number, what is still to be told, and what the sender sees.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use prescient_schema::{Field, Level, Schema};

use crate::{
    body::Truth,
    history::Archive,
    predict::ROWS,
    twin::Rows,
    units::{Sequence, Slot, Tick},
};

/// Who the receiver knows by which number, and what is still to be told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roster {
    pub ids: Vec<Option<u32>>,
    pub slots: Vec<Option<Slot>>,
    pub levels: Vec<u8>,
    /// The last packet that covered each id.
    pub sent: Vec<Sequence>,
    /// Visible but not yet confirmed, with the tick since when.
    pub waiting: BTreeMap<u32, Tick>,
    /// Sent but no longer visible. Every packet says so, and the number is not used again, until
    /// one that said so is known to be applied and the model has forgotten it.
    pub doomed: BTreeMap<u32, Doom>,
    pub free: BTreeSet<u32>,
    /// At rest for the receiver, but not in truth; with the last packet that said so.
    pub dirty: BTreeMap<u32, Sequence>,
}

/// An entity that is no longer visible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doom {
    /// The last packet that did not say so.
    pub since: Sequence,
    /// A later one is known to be applied.
    pub told: bool,
}

impl Roster {
    pub fn admit(&mut self, slot: Slot, since: Tick) -> u32 {
        let at = slot.0 as usize;
        if self.ids.len() <= at {
            self.ids.resize(at + 1, None);
        }
        if let Some(id) = self.ids[at] {
            return id;
        }
        let id = self.free.pop_first().unwrap_or(self.slots.len() as u32);
        if self.slots.len() <= id as usize {
            self.slots.resize(id as usize + 1, None);
            self.levels.resize(id as usize + 1, 0);
            self.sent.resize(id as usize + 1, Sequence(0));
        }
        self.ids[at] = Some(id);
        self.slots[id as usize] = Some(slot);
        self.levels[id as usize] = 0;
        self.sent[id as usize] = Sequence(0);
        self.waiting.insert(id, since);
        id
    }

    /// Nothing is confirmed any more.
    pub fn restart(&mut self, now: Tick) {
        self.dirty.clear();
        for (id, slot) in self.slots.iter().enumerate() {
            if slot.is_some() {
                self.waiting.entry(id as u32).or_insert(now);
            }
        }
    }
}

/// What the encoder sees of the world: its receiver's numbers over the shared archive.
pub(crate) struct Sight<'a> {
    pub archive: &'a Archive,
    pub roster: &'a Roster,
    pub schema: &'a Schema,
}

impl Sight<'_> {
    pub fn slot(&self, id: u32) -> Option<Slot> {
        self.roster.slots.get(id as usize).copied().flatten()
    }

    /// A row at the precision its receiver holds it.
    #[inline]
    fn at_level<'a>(
        &self,
        slot: Slot,
        row: &'a [i64],
        level: u8,
        buffer: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]> {
        if level == 0 {
            return Some(row);
        }
        let class = self.archive.class(slot)?;
        buffer.clear();
        buffer.extend_from_slice(row);
        quantise(
            buffer,
            &self.schema.classes[usize::from(class)].fields,
            level,
        );
        Some(buffer)
    }
}

impl Rows for Sight<'_> {
    #[inline]
    fn row<'a>(
        &'a self,
        id: u32,
        tick: Tick,
        level: u8,
        buffer: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]> {
        let slot = self.slot(id)?;
        self.at_level(slot, self.archive.row(slot, tick)?, level, buffer)
    }

    #[inline]
    fn rows<'a>(
        &'a self,
        id: u32,
        ticks: &[Tick; ROWS],
        level: u8,
        buffers: &'a mut [Vec<i64>; ROWS],
    ) -> Option<[&'a [i64]; ROWS]> {
        let slot = self.slot(id)?;
        let mut rows = self.archive.rows(slot, ticks)?;
        if level != 0 {
            for (row, buffer) in rows.iter_mut().zip(buffers) {
                *row = self.at_level(slot, row, level, buffer)?;
            }
        }
        Some(rows)
    }

    #[inline]
    fn latest<'a>(&'a self, id: u32, level: u8, buffer: &'a mut Vec<i64>) -> Option<&'a [i64]> {
        let slot = self.slot(id)?;
        self.at_level(slot, self.archive.latest(slot)?, level, buffer)
    }

    fn changed_after(&self, id: u32, tick: Tick) -> bool {
        self.slot(id)
            .and_then(|slot| self.archive.last_changed(slot))
            .is_some_and(|changed| changed > tick)
    }
}

impl Truth for Sight<'_> {
    fn level(&self, id: u32) -> u8 {
        self.roster.levels.get(id as usize).copied().unwrap_or(0)
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
