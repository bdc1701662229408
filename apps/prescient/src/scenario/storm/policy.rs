//! Relevance policies of a storm, built-in and random ones, with a record of every answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prescient::schema::Level;
use prescient_replication::{
    Candidate, Distance, Everything, Observer, Owned, PeerId, Relevance, Visibility, Weight,
};

use super::dice::{Dice, mix};
use super::truth::{Directory, Key, NEIGHBOUR, is_hidden};

/// The answer of a policy about a peer and an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// Bit `k` is set if table `k` is visible.
    pub tables: u32,
    pub level: Level,
}

/// A policy with a record of its latest answers.
#[derive(Clone)]
pub(super) struct Policy {
    rule: Rule,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Everything,
    Owned,
    Near(Distance),
    /// Random by peer, entity and their relation (owner, team).
    Whim {
        salt: u64,
    },
    /// Random by peer, entity and phase, within a distance.
    Mood {
        salt: u64,
        reach: f64,
    },
}

/// The policy's knowledge of the world, and its answers.
#[derive(Default)]
pub(super) struct Notes {
    /// Maps the server's entities to keys of the storm.
    pub directory: Directory,
    pub answers: BTreeMap<(PeerId, Key), View>,
    /// `Mood` policies change with this.
    pub phase: u64,
}

impl Policy {
    /// A random policy.
    pub(super) fn random(dice: &mut Dice) -> Self {
        let salt = dice.bits();
        let enter = dice.between(20, 300) as f64;
        let rule = match dice.below(7) {
            0 => Rule::Everything,
            1 => Rule::Owned,
            2 | 3 => {
                let leave = enter + dice.between(0, 40) as f64;
                Rule::Near(Distance::new(enter, leave).expect("not nearer"))
            }
            4 | 5 => Rule::Whim { salt },
            _ => Rule::Mood { salt, reach: enter },
        };
        Self {
            rule,
            notes: Arc::default(),
        }
    }

    pub(super) fn notes(&self) -> MutexGuard<'_, Notes> {
        // The lock is never held across a panic.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the policy's answers change only with the entity or the observer.
    pub(super) fn is_settled(&self) -> bool {
        matches!(
            self.rule,
            Rule::Everything | Rule::Owned | Rule::Whim { .. }
        )
    }

    /// What the policy would answer now, given whether the peer sees the entity.
    pub(super) fn ask(
        &self,
        observer: &Observer,
        candidate: &Candidate,
        key: Key,
        sees: bool,
    ) -> Option<View> {
        let answer = self.decide(observer, candidate, key, sees.then_some(Visibility::PUBLIC));
        answer.map(|(view, _)| view)
    }

    fn decide(
        &self,
        observer: &Observer,
        candidate: &Candidate,
        key: Key,
        seen: Option<Visibility>,
    ) -> Answer {
        if is_hidden(key) && observer.peer != NEIGHBOUR {
            return None;
        }
        let own = observer.owns(candidate);
        let usual = View {
            tables: if own { u32::MAX } else { 1 },
            level: Level::EXACT,
        };
        match &self.rule {
            Rule::Everything => Some((usual, Everything.visibility(observer, candidate, seen)?)),
            Rule::Owned => Some((usual, Owned.visibility(observer, candidate, seen)?)),
            Rule::Near(distance) => Some((usual, distance.visibility(observer, candidate, seen)?)),
            Rule::Whim { salt } => {
                let relation = u64::from(own) << 1 | u64::from(observer.shares_team(candidate));
                whim(mix(*salt, relation), observer.peer, key)
            }
            Rule::Mood { salt, reach } => {
                let near = match (observer.view_position, candidate.position) {
                    (Some(view_position), Some(position)) => {
                        view_position.distance(position) <= *reach
                    }
                    _ => false,
                };
                let phase = self.notes().phase;
                whim(mix(*salt, phase), observer.peer, key).filter(|_| near)
            }
        }
    }
}

type Answer = Option<(View, Visibility)>;

fn whim(salt: u64, peer: PeerId, key: Key) -> Answer {
    let mut dice = Dice::of(mix(salt, peer.0), u64::from(key));
    if dice.of_thousand(250) {
        return None;
    }
    let level = Level::new(dice.below(4) as u8).unwrap_or_default();
    let weight = Weight::new(1 + dice.below(255) as u8)?;
    let tables = 1 | dice.bits() as u32 & 0b110;
    let mut visibility = Visibility::PUBLIC.at(level).weighing(weight);
    for table in (1..3).filter(|table| tables >> table & 1 == 1) {
        visibility = visibility.and_table(table);
    }
    Some((View { tables, level }, visibility))
}

impl Relevance for Policy {
    fn visibility(
        &self,
        observer: &Observer,
        candidate: &Candidate,
        seen: Option<Visibility>,
    ) -> Option<Visibility> {
        let key = self
            .notes()
            .directory
            .get(&candidate.entity.cell())
            .copied();
        // Entities that are not in the directory are visible to no peer.
        let key = key?;
        let answer = self.decide(observer, candidate, key, seen);
        let at = (observer.peer, key);
        match answer {
            Some((view, _)) => self.notes().answers.insert(at, view),
            None => self.notes().answers.remove(&at),
        };
        answer.map(|(_, visibility)| visibility)
    }

    fn reach(&self, observer: &Observer) -> Option<f64> {
        match &self.rule {
            Rule::Near(distance) => distance.reach(observer),
            Rule::Mood { reach, .. } => Some(*reach),
            Rule::Everything | Rule::Owned | Rule::Whim { .. } => None,
        }
    }
}
