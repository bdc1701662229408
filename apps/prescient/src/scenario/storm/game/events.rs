//! Events in both directions, and their verification.

use prescient_replication::{About, PeerId};

use super::super::client::ReceivedEvent;
use super::super::host::Happened;
use super::super::promise::{Promise, Wrong};
use super::super::truth::{Key, NEIGHBOUR, Truth, is_hidden};
use super::super::verdict::{Fault, Verdict};
use super::super::verify::key_in;
use super::Game;

impl Game {
    /// Sends random events about entities, and to peers.
    pub(super) fn announce(&mut self) {
        for _ in 0..2 {
            let what = self.truth.dice().below(6);
            let peer = self.truth.dice().below(self.clients.len());
            let peer = self.clients[peer].peer;
            let target = self.truth.any(what == 3);
            self.events += 1;
            let number = self.events;
            match (what, target) {
                (0, _) => {
                    let payload = payload(number, 0);
                    if let Some(visit) = self.host.visit_of(peer) {
                        let told = self.host.server.send_event(peer, &payload);
                        told.expect("the peer is connected");
                        self.promise(peer, visit).events.insert(number, 0);
                    }
                }
                (1..4, Some(key)) if self.truth.is_told(key) => {
                    let entity = self.truth.entities[&key];
                    let payload = payload(number, key);
                    let to = (what == 2).then_some(peer);
                    let server = &mut self.host.server;
                    let announced = match to {
                        Some(peer) => server.send_entity_event_to(peer, entity, &payload),
                        None => server.send_entity_event(entity, &payload),
                    };
                    announced.expect("the entity exists");
                    self.announced.push((number, key, to));
                }
                _ => {}
            }
        }
    }

    pub(super) fn note(&mut self, happened: Happened) {
        match happened {
            Happened::Joined(peer, visit) => {
                // After a new connection the server asks the policy again.
                self.policy
                    .notes()
                    .answers
                    .retain(|(who, _), _| *who != peer);
                self.promises.insert((peer, visit), Promise::default());
                self.apply_team(peer);
                self.apply_view_position(peer);
            }
            Happened::Left(peer) => {
                self.policy
                    .notes()
                    .answers
                    .retain(|(who, _), _| *who != peer);
            }
            Happened::Event(peer, visit, about, payload) => {
                let (number, key) = read(&payload);
                let received = self.received.entry((peer, visit)).or_default();
                *received += 1;
                let expected = *received;
                if number != expected {
                    let fault = match number < expected {
                        true => Fault::EventDoubled,
                        false => Fault::EventLost,
                    };
                    self.verdict.note(fault, || {
                        format!(
                            "{peer:?}: the server received event {number} instead of {expected}"
                        )
                    });
                }
                let directory = &self.policy.notes().directory;
                let of = |entity: prescient::schema::EntityRef| directory.get(&entity.cell());
                let is_right = match about {
                    About::Nothing => key == 0,
                    About::Entity(entity) => of(entity) == Some(&key),
                    About::Gone => key != 0,
                };
                if !is_right {
                    let tick = self.tick;
                    self.verdict.note(Fault::Divergence, || {
                        format!(
                            "{peer:?}, {tick:?}: an event about {key} arrived as about {about:?}"
                        )
                    });
                }
            }
        }
    }
}

/// Compares a received event with those that the peer must receive.
pub(super) fn receive(
    received: ReceivedEvent,
    view: &prescient_replication::Client,
    truth: &Truth,
    promise: &mut Promise,
    peer: PeerId,
    verdict: &mut Verdict,
) {
    let ReceivedEvent {
        tick,
        about,
        entity,
        payload,
    } = received;
    let (number, key) = read(&payload);
    let story = || format!("{peer:?}, {tick:?}: event {number} about entity {key}");
    match promise.receive(number) {
        Ok(_) => {}
        Err(Wrong::NotMeant) => verdict.note(Fault::Leak, || story() + " was not for this peer"),
        Err(Wrong::Again) => verdict.note(Fault::EventDoubled, story),
        Err(Wrong::OutOfOrder) => verdict.note(Fault::Failure, || story() + " is out of order"),
    }
    let since = promise.since.get(&key);
    let is_right = match about {
        About::Nothing => key == 0,
        About::Entity(_) => {
            entity.is_some_and(|(name, row)| key_in(truth, &name, &row) == Some(key))
        }
        // Wrong if the client has had the entity since before the event.
        About::Gone => key != 0 && since.is_none_or(|since| *since > tick),
    };
    if !is_right {
        verdict.note(Fault::Divergence, || {
            story() + &format!(" arrived as about {about:?}")
        });
    }
    if view.tick() < Some(tick) || is_hidden(key) && peer != NEIGHBOUR {
        verdict.note(Fault::Failure, || {
            story() + " was delivered before its entity was visible, or for another entity"
        });
    }
}

pub(super) fn payload(number: u32, key: Key) -> Vec<u8> {
    [number.to_le_bytes(), key.to_le_bytes()].concat()
}

pub(super) fn read(payload: &[u8]) -> (u32, Key) {
    let number = |at: usize| {
        let bytes = payload
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(u32::MAX, u32::from_le_bytes)
    };
    (number(0), number(4))
}
