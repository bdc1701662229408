//! Expected visibility: view positions, teams, and the policy's answers.

use std::collections::BTreeMap;

use prescient_replication::{Candidate, Observer, PeerId, Position};

use super::super::policy::View;
use super::super::truth::{Key, NEIGHBOUR};
use super::super::verdict::Fault;
use super::{Game, ViewPosition};

impl Game {
    /// Gives the policy the server's references of all entities.
    pub(super) fn publish(&mut self) {
        let phase = self.tick.0 / 40;
        let mut notes = self.policy.notes();
        let told = self.truth.now.keys().filter_map(|key| {
            let entity = self.truth.entities.get(key)?;
            Some((entity.cell(), *key))
        });
        notes.directory = told.collect();
        if !self.frozen && notes.phase != phase {
            notes.phase = phase;
            self.host.server.reevaluate_relevance();
        }
    }

    /// Changes view positions and teams at random.
    pub(super) fn direct(&mut self) {
        let peers: Vec<PeerId> = self.clients.iter().map(|client| client.peer).collect();
        for peer in peers {
            let truth = &mut self.truth;
            let entity = truth.any(false);
            let dice = truth.dice();
            let leaps = dice.of_thousand(30);
            let at: [f64; 3] = std::array::from_fn(|_| dice.between(-200, 200) as f64);
            let by: [f64; 3] = std::array::from_fn(|_| dice.between(-3, 3) as f64);
            let sides = dice.of_thousand(15).then(|| dice.below(3) as u32);
            let follows = dice.of_thousand(400);
            if self.frozen {
                continue;
            }
            let view_position = self
                .view_positions
                .entry(peer)
                .or_insert(ViewPosition::Fixed(at));
            match (leaps, &mut *view_position, entity) {
                (true, _, Some(entity)) if follows => *view_position = ViewPosition::Follow(entity),
                (true, ..) => *view_position = ViewPosition::Fixed(at),
                (false, ViewPosition::Fixed(position), _) => {
                    position.iter_mut().zip(by).for_each(|(to, by)| *to += by);
                }
                (false, ViewPosition::Follow(_), _) => {}
            }
            // The neighbour's team must not affect other peers.
            if let Some(side) = sides.filter(|_| peer != NEIGHBOUR) {
                self.teams.insert(peer, side);
                self.apply_team(peer);
            }
            self.apply_view_position(peer);
        }
    }

    pub(super) fn apply_team(&mut self, peer: PeerId) {
        if self.host.visit_of(peer).is_some() {
            let team = self.teams.get(&peer).copied().unwrap_or(0);
            let set = self.host.server.set_team(peer, team);
            set.expect("the peer is connected");
        }
    }

    pub(super) fn apply_view_position(&mut self, peer: PeerId) {
        if self.host.visit_of(peer).is_none() {
            return;
        }
        let server = &mut self.host.server;
        let applied = match self.view_positions.get(&peer) {
            Some(ViewPosition::Fixed(position)) => {
                server.set_view_position(peer, Position(*position))
            }
            Some(ViewPosition::Follow(key)) => match self.truth.entities.get(key) {
                Some(&entity) => server.follow(peer, entity),
                None => Ok(()),
            },
            None => Ok(()),
        };
        applied.expect("the peer is connected");
    }

    /// The entities that a peer must see now. The server's visible set must match the policy's last
    /// answers, and these must be current if the policy does not depend on positions or nothing moves.
    pub(super) fn views(&mut self, peer: PeerId) -> BTreeMap<Key, View> {
        let world = self.host.server.world();
        let team_of = |peer: PeerId| {
            let here = self.host.visit_of(peer).and(self.teams.get(&peer));
            here.copied().unwrap_or(0)
        };
        let observer = Observer {
            peer,
            team: team_of(peer),
            view_position: self.view_positions.get(&peer).and_then(|view_position| {
                match view_position {
                    ViewPosition::Fixed(position) => Some(Position(*position)),
                    ViewPosition::Follow(key) => world.position(*self.truth.entities.get(key)?),
                }
            }),
            class: match self.view_positions.get(&peer) {
                Some(ViewPosition::Follow(key)) => {
                    let followed = self.truth.entities.get(key);
                    followed.and_then(|&entity| world.class(entity))
                }
                Some(ViewPosition::Fixed(_)) | None => None,
            },
            link: None,
        };
        // A peer that was throttled until a moment ago is evaluated less often.
        let interval = (self.config.relevance_interval()).max(self.config.probe_every());
        let is_due = self.policy.is_settled() || self.still > interval;
        let mut views = BTreeMap::new();
        for (&key, state) in &self.truth.now {
            let Some(&entity) = self.truth.entities.get(&key) else {
                continue;
            };
            let answer = self.policy.notes().answers.get(&(peer, key)).copied();
            let sees = self.host.server.sees(peer, entity);
            let class = world
                .class(entity)
                .expect("the truth is what the world has");
            let candidate = Candidate {
                entity,
                class,
                priority: world.schema().classes[usize::from(class)].priority,
                owner: state.owner,
                team: state.owner.map_or(0, team_of),
                position: world.position(entity),
            };
            let due = self.policy.ask(&observer, &candidate, key, sees);
            if sees != answer.is_some() || is_due && due != answer {
                let tick = self.tick;
                self.verdict.note(Fault::Failure, || {
                    let shown = format!("entity {key} is visible: {sees}, as {answer:?}");
                    format!("{peer:?}, {tick:?}: {shown}, expected {due:?}")
                });
            }
            if let Some(view) = answer.filter(|_| sees) {
                views.insert(key, view);
            }
        }
        views
    }
}
