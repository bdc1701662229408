//! What a client is told of objects, now or once it knows them.

use prescient_codec::{ClientId, Policy, Slot, Tick};

use super::Peer;
use crate::mail::Notice;
use crate::message::Said;
use crate::server::{Announcement, PeerId};
use crate::world::Serial;

impl Peer {
    /// Tells of what was held for objects that the client knows by now.
    pub(super) fn tell_of_known(&mut self) {
        let known = |serial: Serial| {
            let slot = self.sees(serial).then_some(serial.first)?;
            Some((serial, self.known(slot)?))
        };
        for (serial, id) in self.mail.held().filter_map(known).collect::<Vec<_>>() {
            for (tick, notice) in self.mail.take(serial) {
                self.push(tick, id, notice);
            }
        }
    }

    /// Tells of what is about objects that are shown and still `there`, but for what it was `told`
    /// already (ascending), and says what that was.
    pub fn hear(
        &mut self,
        own: PeerId,
        announced: &[Announcement],
        told: &[usize],
        there: impl Fn(Serial) -> bool,
    ) -> Vec<usize> {
        let mut heard = Vec::new();
        for (number, announcement) in announced.iter().enumerate() {
            let Announcement {
                tick,
                about,
                to,
                ref payload,
            } = *announcement;
            let is_meant =
                to.is_none_or(|peer| peer == own) && told.binary_search(&number).is_err();
            if is_meant && there(about) && self.sees(about) {
                heard.push(number);
                self.notify(about, tick, Notice::Event(payload.clone()));
            }
        }
        heard
    }

    /// Tells of something that is about no object.
    pub fn tell(&mut self, tick: Tick, payload: &[u8]) {
        let about = None;
        self.send_event(Said::Event {
            tick,
            about,
            payload,
        });
    }

    /// Tells of something about an object that is shown, now or once the client knows it.
    pub(super) fn notify(&mut self, about: Serial, tick: Tick, notice: Notice) {
        if !self.sees(about) {
            return;
        }
        match self.known(about.first) {
            Some(id) => self.push(tick, id, notice),
            None => self.mail.hold(about, tick, notice),
        }
    }

    /// What the client calls an entity, if it is known to have been told of it; without any memory of
    /// what was applied that never comes, and every packet tells of everything.
    fn known(&self, slot: Slot) -> Option<ClientId> {
        let id = self.encoder.client_id(slot)?;
        let is_known = self.policy == Policy::Stateless || self.encoder.is_confirmed(slot);
        is_known.then_some(id)
    }

    fn push(&mut self, tick: Tick, about: ClientId, notice: Notice) {
        match notice {
            Notice::Event(payload) => self.send_event(Said::Event {
                tick,
                about: Some(about),
                payload: &payload,
            }),
            Notice::Charge(yours) => {
                let message = self.here(Said::Charge { tick, about, yours });
                self.mail.push(message);
            }
        }
    }

    fn send_event(&mut self, event: Said<'_>) {
        let message = self.here(event);
        self.events += u64::from(self.mail.push(message));
    }

    /// The client will not get to know an object.
    pub(super) fn give_up(&mut self, serial: Serial) {
        for (tick, notice) in self.mail.take(serial) {
            if let Notice::Event(_) = notice {
                self.push(tick, NOBODY, notice);
            }
        }
    }
}

/// A number that no client ever has: ids stay near each other.
const NOBODY: ClientId = ClientId(u32::MAX - 1);
