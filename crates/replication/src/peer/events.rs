//! Sends a client events and notices about entities, immediately or once it knows the entity.

use prescient_codec::{NetEntityId, Policy, Slot, Tick};

use super::Peer;
use crate::message::WorldMessage;
use crate::outbox::Notice;
use crate::server::{EntityEvent, PeerId};
use crate::world::Serial;

impl Peer {
    /// Sends deferred notices about entities that the client knows by now.
    pub(super) fn send_known(&mut self) {
        let known = |serial: Serial| {
            let slot = self.sees(serial).then_some(serial.first)?;
            Some((serial, self.known(slot)?))
        };
        for (serial, id) in self.outbox.deferred().filter_map(known).collect::<Vec<_>>() {
            for (tick, notice) in self.outbox.take(serial) {
                self.push(tick, id, notice);
            }
        }
        self.send_typed();
    }

    /// Queues the events about entities that are visible and still `there`, except those in `told`
    /// (ascending), which were queued before; returns the indices of the queued ones.
    pub(crate) fn queue_events(
        &mut self,
        own: PeerId,
        entity_events: &[EntityEvent],
        told: &[usize],
        there: impl Fn(Serial) -> bool,
    ) -> Vec<usize> {
        let mut queued = Vec::new();
        for (number, event) in entity_events.iter().enumerate() {
            let EntityEvent {
                tick,
                about,
                to,
                ref payload,
            } = *event;
            let is_meant =
                to.is_none_or(|peer| peer == own) && told.binary_search(&number).is_err();
            if is_meant && there(about) && self.sees(about) {
                queued.push(number);
                self.notify(about, tick, Notice::Event(payload.clone()));
            }
        }
        queued
    }

    /// Queues an event that is about no entity.
    pub(crate) fn queue_event(&mut self, tick: Tick, payload: &[u8]) {
        let about = None;
        self.send_event(WorldMessage::Event {
            tick,
            about,
            payload,
        });
    }

    /// Sends a notice about a visible entity, or defers it until the client knows the entity.
    pub(super) fn notify(&mut self, about: Serial, tick: Tick, notice: Notice) {
        if !self.sees(about) {
            return;
        }
        match self.known(about.first) {
            Some(id) => self.push(tick, id, notice),
            None => self.outbox.defer(about, tick, notice),
        }
    }

    /// The client's id of an entity, if the client is known to have it. Without acknowledgements
    /// that is never known, but then every packet carries everything.
    pub(super) fn known(&self, slot: Slot) -> Option<NetEntityId> {
        let id = self.encoder.net_entity_id(slot)?;
        let is_known = self.policy == Policy::Stateless || self.encoder.is_confirmed(slot);
        is_known.then_some(id)
    }

    fn push(&mut self, tick: Tick, about: NetEntityId, notice: Notice) {
        match notice {
            Notice::Event(payload) => self.send_event(WorldMessage::Event {
                tick,
                about: Some(about),
                payload: &payload,
            }),
            Notice::Authority(granted) => {
                let message = self.world_message(WorldMessage::Authority {
                    tick,
                    about,
                    granted,
                });
                self.outbox.push(message);
            }
        }
    }

    fn send_event(&mut self, event: WorldMessage<'_>) {
        let message = self.world_message(event);
        self.events += u64::from(self.outbox.push(message));
    }

    /// Sends the events deferred for an entity that the client will not get to know.
    pub(super) fn give_up(&mut self, serial: Serial) {
        self.typed.hide(serial);
        for (tick, notice) in self.outbox.take(serial) {
            if let Notice::Event(_) = notice {
                self.push(tick, NO_ENTITY, notice);
            }
        }
    }
}

/// An id that no client has: ids are assigned densely from 0.
const NO_ENTITY: NetEntityId = NetEntityId(u32::MAX - 1);
