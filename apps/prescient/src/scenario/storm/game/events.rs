//! Events both ways, and whether they are what they should be.

use prescient_replication::{About, PeerId};

use super::super::client::ReceivedEvent;
use super::super::host::Happened;
use super::super::promise::{Promise, Wrong};
use super::super::truth::{Key, NEIGHBOUR, Truth, is_hidden};
use super::super::verdict::{Fault, Verdict};
use super::super::verify::Witness;
use super::Game;

impl Game {
    /// Lets things happen to entities, and to peers.
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
                        told.expect("it is here");
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
                    announced.expect("it is there");
                    self.announced.push((number, key, to));
                }
                _ => {}
            }
        }
    }

    pub(super) fn note(&mut self, happened: Happened) {
        match happened {
            Happened::Joined(peer, visit) => {
                // Whoever starts anew is to see what the policy says anew.
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
                let heard = self.heard.entry((peer, visit)).or_default();
                *heard += 1;
                let expected = *heard;
                if number != expected {
                    let fault = match number < expected {
                        true => Fault::EventDoubled,
                        false => Fault::EventLost,
                    };
                    self.verdict.note(fault, || {
                        format!("{peer:?} said {number}, which was heard in place of {expected}")
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
                            "{peer:?}, {tick:?}: said something about {key}, heard of {about:?}"
                        )
                    });
                }
            }
        }
    }
}

/// Holds an event against what was promised.
pub(super) fn receive(
    heard: ReceivedEvent,
    view: &prescient_replication::Client,
    truth: &Truth,
    promise: &mut Promise,
    peer: PeerId,
    verdict: &mut Verdict,
) {
    let ReceivedEvent {
        tick,
        about,
        payload,
    } = heard;
    let (number, key) = read(&payload);
    let story = || format!("{peer:?}, {tick:?}: event {number} about entity {key}");
    match promise.receive(number) {
        Ok(_) => {}
        Err(Wrong::NotMeant) => verdict.note(Fault::Leak, || story() + " was not meant for it"),
        Err(Wrong::Again) => verdict.note(Fault::EventDoubled, story),
        Err(Wrong::OutOfOrder) => verdict.note(Fault::Failure, || story() + " came too late"),
    }
    let since = promise.since.get(&key);
    let is_right = match about {
        About::Nothing => key == 0,
        About::Entity(entity) => {
            let witness = Witness {
                truth,
                promise,
                peer,
                settled: false,
            };
            witness.key_of(view, entity) == Some(key)
        }
        // It was there all the time.
        About::Gone => key != 0 && since.is_none_or(|since| *since > tick),
    };
    if !is_right {
        verdict.note(Fault::Divergence, || {
            story() + &format!(" is said to be about {about:?}")
        });
    }
    if view.tick() < Some(tick) || is_hidden(key) && peer != NEIGHBOUR {
        verdict.note(Fault::Failure, || {
            story() + " was handed out too early, or to the wrong one"
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
