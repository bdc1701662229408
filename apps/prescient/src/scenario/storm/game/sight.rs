//! Who is to see what: eyes, teams, and what the policy was asked.

use std::collections::BTreeMap;

use prescient_replication::{PeerId, Place, Subject, Viewer};

use super::super::policy::View;
use super::super::truth::{Key, NEIGHBOUR};
use super::super::verdict::Fault;
use super::{Eye, Game};

impl Game {
    /// Tells the policy what the server calls everybody.
    pub(super) fn publish(&mut self) {
        let phase = u64::from(self.tick.0 / 40);
        let mut notes = self.policy.notes();
        let told = self.truth.now.keys().filter_map(|key| {
            let entity = self.truth.entities.get(key)?;
            Some((entity.cell(), *key))
        });
        notes.directory = told.collect();
        if !self.frozen && notes.phase != phase {
            notes.phase = phase;
            self.host.stage.look_again();
        }
    }

    /// Moves eyes, and lets players change sides.
    pub(super) fn direct(&mut self) {
        let peers: Vec<PeerId> = self.seats.iter().map(|seat| seat.peer).collect();
        for peer in peers {
            let truth = &mut self.truth;
            let object = truth.any(false);
            let dice = truth.dice();
            let leaps = dice.of_thousand(30);
            let at: [f64; 3] = std::array::from_fn(|_| dice.between(-200, 200) as f64);
            let by: [f64; 3] = std::array::from_fn(|_| dice.between(-3, 3) as f64);
            let sides = dice.of_thousand(15).then(|| dice.below(3) as u32);
            let on_object = dice.of_thousand(400);
            if self.frozen {
                continue;
            }
            let eye = self.eyes.entry(peer).or_insert(Eye::At(at));
            match (leaps, &mut *eye, object) {
                (true, _, Some(object)) if on_object => *eye = Eye::Object(object),
                (true, ..) => *eye = Eye::At(at),
                (false, Eye::At(place), _) => {
                    place.iter_mut().zip(by).for_each(|(to, by)| *to += by);
                }
                (false, Eye::Object(_), _) => {}
            }
            // The neighbour's side is nobody else's business.
            if let Some(side) = sides.filter(|_| peer != NEIGHBOUR) {
                self.teams.insert(peer, side);
                self.place(peer);
            }
            self.look(peer);
        }
    }

    pub(super) fn place(&mut self, peer: PeerId) {
        if self.host.visit_of(peer).is_some() {
            let team = self.teams.get(&peer).copied().unwrap_or(0);
            let set = self.host.stage.set_team(peer, team);
            set.expect("it is here");
        }
    }

    pub(super) fn look(&mut self, peer: PeerId) {
        if self.host.visit_of(peer).is_none() {
            return;
        }
        let stage = &mut self.host.stage;
        let looked = match self.eyes.get(&peer) {
            Some(Eye::At(place)) => stage.look_from(peer, Place(*place)),
            Some(Eye::Object(key)) => match self.truth.entities.get(key) {
                Some(&entity) => stage.look_from_object(peer, entity),
                None => Ok(()),
            },
            None => Ok(()),
        };
        looked.expect("it is here");
    }

    /// What a peer is to see now. The server and the policy must be of one mind, and what the policy
    /// was asked last must still be so, if it does not matter where things are or nothing moves.
    pub(super) fn views(&mut self, peer: PeerId) -> BTreeMap<Key, View> {
        let world = self.host.stage.world();
        let team_of = |peer: PeerId| {
            let here = self.host.visit_of(peer).and(self.teams.get(&peer));
            here.copied().unwrap_or(0)
        };
        let viewer = Viewer {
            peer,
            team: team_of(peer),
            eye: self.eyes.get(&peer).and_then(|eye| match eye {
                Eye::At(place) => Some(Place(*place)),
                Eye::Object(key) => world.place(*self.truth.entities.get(key)?),
            }),
        };
        let is_due = self.policy.is_settled() || self.still > self.config.look_every;
        let mut views = BTreeMap::new();
        for (&key, state) in &self.truth.now {
            let Some(&object) = self.truth.entities.get(&key) else {
                continue;
            };
            let answer = self.policy.notes().answers.get(&(peer, key)).copied();
            let sees = self.host.stage.sees(peer, object);
            let subject = Subject {
                object,
                owner: state.owner,
                team: state.owner.map_or(0, team_of),
                place: world.place(object),
            };
            let due = self.policy.ask(&viewer, &subject, key, sees);
            if sees != answer.is_some() || is_due && due != answer {
                let tick = self.tick;
                self.verdict.note(Fault::Failure, || {
                    let shown = format!("object {key} is shown: {sees}, as {answer:?}");
                    format!("{peer:?}, {tick:?}: {shown}, and should be as {due:?}")
                });
            }
            if let Some(view) = answer.filter(|_| sees) {
                views.insert(key, view);
            }
        }
        views
    }
}
