//! Further packets of a tick that one packet cannot hold.
//!
//! Each can be decoded without the others: all are coded with the model of the first, so the order
//! in which they arrive does not matter, and each is folded or lost by itself.

use alloc::vec::Vec;

use crate::{
    body::{Contents, Partial},
    budget::PacketCosts,
    history::Archive,
    log::Log,
    units::{Sequence, Tick},
};

use super::{EncodeError, Encoder, Packet, WINDOW};

/// What the packets of a tick have not covered yet.
#[derive(Clone, Debug)]
pub(super) struct Remainder {
    /// The tick's first packet, and the model with which it was coded.
    pub(super) first: Sequence,
    pub(super) epoch: u8,
    pub(super) cursor: Sequence,
    pub(super) contents: Contents,
    /// The cost of each entity in a packet that holds everything.
    pub(super) packet_costs: PacketCosts,
}

impl Remainder {
    fn is_empty(&self) -> bool {
        self.contents.despawns.is_empty() && self.packet_costs.len() == 0
    }

    /// Removes what a packet covers.
    fn remove(&mut self, log: &Log) {
        let is_left = |id: u32| log.covered.binary_search(&id).is_err();
        self.contents
            .despawns
            .retain(|id| log.despawns.binary_search(id).is_err());
        let PacketCosts {
            wakes,
            active,
            as_predicted,
            spawns,
            ..
        } = &mut self.packet_costs;
        for list in [wakes, active, spawns] {
            list.retain(|&(id, _)| is_left(id));
        }
        as_predicted.retain(|&id| is_left(id));
        self.packet_costs.despawns = 0;
        self.contents.wakes.retain(|&id| is_left(id));
        self.contents.spawns.retain(|spawn| is_left(spawn.id));
    }
}

impl Encoder {
    /// Another packet of the tick that was encoded last, with at most `budget` bytes, for entities
    /// that its packets have not covered; `None` if they cover everything, or if there are 256 of
    /// them. It can be decoded without the others. All packets of a tick must be encoded before the
    /// next acknowledgement is taken; after that there are none.
    pub fn encode_more(
        &mut self,
        archive: &Archive,
        budget: usize,
    ) -> Result<Option<Packet>, EncodeError> {
        let Some(mut remainder) = self.remainder.take() else {
            return Ok(None);
        };
        let model = (remainder.epoch, remainder.cursor);
        let now = archive.newest().filter(|now| self.encoded == Some(*now));
        let Some(now) = now.filter(|_| model == (self.epoch, self.anchor.sequence)) else {
            return Ok(None);
        };
        if self.newest.0 == u32::MAX {
            return Err(EncodeError::Exhausted);
        }
        if self.newest.0 - remainder.first.0 >= WINDOW - 1 {
            // A decoder takes no more packets of one tick.
            return Ok(None);
        }
        let fits = (budget as u64) << 19;
        if remainder.contents.is_draft && remainder.packet_costs.total() < fits {
            self.refill(archive, &mut remainder, now, budget);
        }
        // What is in flight need not be sent twice.
        let (known_entities, cursor) = (&self.known_entities, self.anchor.sequence);
        let is_in_flight = |id: u32| known_entities.sent[id as usize] > cursor;
        remainder
            .packet_costs
            .spawns
            .retain(|&(id, _)| !is_in_flight(id));
        if remainder.is_empty() {
            return Ok(None);
        }
        self.counting = true;
        let packet = self.write_remainder(archive, &mut remainder, now, budget);
        if packet.is_none() {
            // A row that the model refers to is gone; the next tick starts a new epoch.
            return Ok(None);
        }
        let packet = self.finish(packet, Some(budget), archive)?;
        self.remainder = Some(remainder);
        Ok(Some(packet))
    }

    /// Writes the part of the remainder that comes first, and removes it from the remainder.
    pub(super) fn write_remainder(
        &mut self,
        archive: &Archive,
        remainder: &mut Remainder,
        now: Tick,
        limit: usize,
    ) -> Option<(Vec<u8>, Log)> {
        let mut contents = remainder.contents.clone();
        contents.despawns.truncate(limit / 4);
        let packet_costs = &remainder.packet_costs;
        let packet = self.write_partial(archive, &contents, packet_costs, now, limit)?;
        remainder.remove(&packet.1);
        Some(packet)
    }

    /// Selects again what may come next, if there was too much to consider at once.
    fn refill(&mut self, archive: &Archive, remainder: &mut Remainder, now: Tick, budget: usize) {
        let mut contents = self.due_contents(archive, Some(budget));
        let known_entities = &self.known_entities;
        let is_left = |id: u32| known_entities.sent[id as usize] < remainder.first;
        contents.wakes.retain(|&id| is_left(id));
        contents.spawns.retain(|spawn| is_left(spawn.id));
        remainder.contents = Contents {
            despawns: core::mem::take(&mut remainder.contents.despawns),
            ..contents
        };
        let measured = Contents {
            despawns: Vec::new(),
            partial: Some(Partial {
                active: Vec::new(),
                limit: usize::MAX,
            }),
            ..remainder.contents.clone()
        };
        self.counting = true;
        if let Some((_, log)) = self.write(archive, &measured, now) {
            self.recycle(log);
        }
        let PacketCosts { wakes, spawns, .. } = &mut self.packet_costs;
        remainder.packet_costs.wakes = core::mem::take(wakes);
        remainder.packet_costs.spawns = core::mem::take(spawns);
    }
}
