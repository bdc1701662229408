//! Which number a receiver knew an entity by, and when.
//!
//! A reference names a slot of the archive; a receiver is told its own number of the entity, or
//! nothing if it does not see it. A row that both ends predict from must say the same in a minute
//! as it said when it was sent, so what was visible at past ticks is remembered as long as rows of
//! these ticks may be asked for.

use alloc::vec::Vec;

use prescient_schema::EntityRef;

use crate::{
    twin::HISTORY,
    units::{Slot, Tick},
};

/// What one receiver sees and saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sightings {
    slots: Vec<Vec<Sighting>>,
    /// Slots that came into sight or left it since the last packet.
    turned: Vec<Slot>,
    /// For each of the receiver's numbers, the tick since which its references are other ones
    /// although its row is not.
    stirred: Vec<Tick>,
}

/// One time of being visible.
#[derive(Clone, Copy, Debug)]
struct Sighting {
    id: u32,
    generation: u32,
    from: Tick,
    /// The first tick at which it no longer was.
    to: Option<Tick>,
}

impl Sightings {
    /// An entity is visible from tick `from` on.
    pub fn begin(&mut self, entity: EntityRef, id: u32, from: Tick) {
        let Some(at) = entity.index() else { return };
        if self.slots.len() <= at as usize {
            self.slots.resize_with(at as usize + 1, Vec::new);
        }
        let past = &mut self.slots[at as usize];
        past.retain(|old| old.to.is_none_or(|to| from.since(to) <= HISTORY));
        past.push(Sighting {
            id,
            generation: entity.generation(),
            from,
            to: None,
        });
        self.turned.push(Slot(at));
        if let Some(stirred) = self.stirred.get_mut(id as usize) {
            *stirred = Tick(0);
        }
    }

    /// What is in a slot is no longer visible from tick `to` on.
    pub fn end(&mut self, slot: Slot, to: Tick) {
        let Some(past) = self.slots.get_mut(slot.0 as usize) else {
            return;
        };
        if let Some(last) = past.last_mut()
            && last.to.is_none()
        {
            last.to = Some(to);
            self.turned.push(slot);
            past.retain(|old| old.to != Some(old.from));
        }
    }

    /// The cell that the receiver was told at a tick for one of the archive.
    pub fn translate(&self, cell: i64, tick: Tick) -> i64 {
        let seen = || {
            let entity = EntityRef::from_cell(cell)?;
            let past = self.slots.get(entity.index()? as usize)?;
            let seen = past.iter().rev().find(|seen| {
                seen.generation == entity.generation()
                    && seen.from <= tick
                    && seen.to.is_none_or(|to| tick < to)
            });
            Some(EntityRef::new(seen?.id, 0))
        };
        seen().unwrap_or(EntityRef::NONE).cell()
    }

    /// Slots that came into sight or left it since this was last asked.
    pub fn take_turned(&mut self) -> Vec<Slot> {
        core::mem::take(&mut self.turned)
    }

    /// An entity refers to something that turned.
    pub fn stir(&mut self, id: u32, since: Tick) {
        if self.stirred.len() <= id as usize {
            self.stirred.resize(id as usize + 1, Tick(0));
        }
        self.stirred[id as usize] = since;
    }

    /// Whether references of an entity became other ones after a tick.
    pub fn stirred_after(&self, id: u32, tick: Tick) -> bool {
        self.stirred
            .get(id as usize)
            .is_some_and(|&stirred| stirred > tick)
    }
}
