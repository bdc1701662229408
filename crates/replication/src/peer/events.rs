//! What a client is told of entities, now or once it knows them.

use prescient_codec::{NetEntityId, Policy, Slot, Tick};

use super::Peer;
use crate::message::WorldMessage;
use crate::outbox::Notice;
use crate::server::{EntityEvent, PeerId};
use crate::world::Serial;

impl Peer {
    /// Tells of what was held for entities that the client knows by now.
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
    }

    /// Tells of what is about entities that are shown and still `there`, but for what it was `told`
    /// already (ascending), and says what that was.
    pub fn queue_events(
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

    /// Tells of something that is about no entity.
    pub fn queue_event(&mut self, tick: Tick, payload: &[u8]) {
        let about = None;
        self.send_event(WorldMessage::Event {
            tick,
            about,
            payload,
        });
    }

    /// Tells of something about an entity that is shown, now or once the client knows it.
    pub(super) fn notify(&mut self, about: Serial, tick: Tick, notice: Notice) {
        if !self.sees(about) {
            return;
        }
        match self.known(about.first) {
            Some(id) => self.push(tick, id, notice),
            None => self.outbox.defer(about, tick, notice),
        }
    }

    /// What the client calls an entity, if it is known to have been told of it; without any memory of
    /// what was applied that never comes, and every packet tells of everything.
    fn known(&self, slot: Slot) -> Option<NetEntityId> {
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

    /// The client will not get to know an entity.
    pub(super) fn give_up(&mut self, serial: Serial) {
        for (tick, notice) in self.outbox.take(serial) {
            if let Notice::Event(_) = notice {
                self.push(tick, NO_ENTITY, notice);
            }
        }
    }
}

/// A number that no client ever has: ids stay near each other.
const NO_ENTITY: NetEntityId = NetEntityId(u32::MAX - 1);
