//! Who sees what, by every policy there is and by some of our own, with a record of every answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prescient::schema::Level;
use prescient_replication::{
    Distance, Everything, Owned, PeerId, Relevance, Sight, Subject, Viewer, Weight,
};

use super::dice::{Dice, mix};
use super::truth::{Directory, Key, NEIGHBOUR, is_hidden};

/// What a peer is to see of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Bit `k` says whether table `k` is shown.
    pub tables: u32,
    pub level: Level,
}

/// A policy, and what it answered last.
#[derive(Clone)]
pub struct Policy {
    rule: Rule,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Everything,
    Owned,
    Near(Distance),
    /// Anything, by who looks at what and how the two are related.
    Whim {
        salt: u64,
    },
    /// The same, and by where and when.
    Mood {
        salt: u64,
        reach: f64,
    },
}

/// What is known of the world, and what was answered.
#[derive(Default)]
pub struct Notes {
    /// What the server calls which object.
    pub directory: Directory,
    pub answers: BTreeMap<(PeerId, Key), View>,
    /// Moods change with this.
    pub phase: u64,
}

impl Policy {
    /// Any of them.
    pub fn random(dice: &mut Dice) -> Self {
        let salt = dice.bits();
        let enter = dice.between(20, 300) as f64;
        let rule = match dice.below(7) {
            0 => Rule::Everything,
            1 => Rule::Owned,
            2 | 3 => Rule::Near(Distance::new(enter, enter + dice.between(0, 40) as f64)),
            4 | 5 => Rule::Whim { salt },
            _ => Rule::Mood { salt, reach: enter },
        };
        Self {
            rule,
            notes: Arc::default(),
        }
    }

    /// The notes.
    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        // Nobody panics while holding it.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is asked only when something happens to the object or the viewer.
    pub fn is_settled(&self) -> bool {
        matches!(
            self.rule,
            Rule::Everything | Rule::Owned | Rule::Whim { .. }
        )
    }

    /// What it would answer now, to somebody who sees the object or not.
    pub fn ask(&self, viewer: &Viewer, subject: &Subject, key: Key, sees: bool) -> Option<View> {
        let answer = self.decide(viewer, subject, key, sees.then_some(Sight::PUBLIC));
        answer.map(|(view, _)| view)
    }

    fn decide(&self, viewer: &Viewer, subject: &Subject, key: Key, seen: Option<Sight>) -> Answer {
        if is_hidden(key) && viewer.peer != NEIGHBOUR {
            return None;
        }
        let own = subject.owner == Some(viewer.peer);
        let usual = View {
            tables: if own { u32::MAX } else { 1 },
            level: Level::EXACT,
        };
        match &self.rule {
            Rule::Everything => Some((usual, Everything.sight(viewer, subject, seen)?)),
            Rule::Owned => Some((usual, Owned.sight(viewer, subject, seen)?)),
            Rule::Near(distance) => Some((usual, distance.sight(viewer, subject, seen)?)),
            Rule::Whim { salt } => {
                let team = viewer.team != 0 && viewer.team == subject.team;
                let relation = u64::from(own) << 1 | u64::from(team);
                whim(mix(*salt, relation), viewer.peer, key)
            }
            Rule::Mood { salt, reach } => {
                let near = match (viewer.eye, subject.place) {
                    (Some(eye), Some(place)) => eye.distance(place) <= *reach,
                    _ => false,
                };
                let phase = self.notes().phase;
                whim(mix(*salt, phase), viewer.peer, key).filter(|_| near)
            }
        }
    }
}

type Answer = Option<(View, Sight)>;

fn whim(salt: u64, peer: PeerId, key: Key) -> Answer {
    let mut dice = Dice::of(mix(salt, peer.0), u64::from(key));
    if dice.of_thousand(250) {
        return None;
    }
    let level = Level::new(dice.below(4) as u8).unwrap_or_default();
    let weight = Weight::new(1 + dice.below(255) as u8)?;
    let tables = 1 | dice.bits() as u32 & 0b110;
    let mut sight = Sight::PUBLIC.at(level).weighing(weight);
    for table in (1..3).filter(|table| tables >> table & 1 == 1) {
        sight = sight.and_table(table);
    }
    Some((View { tables, level }, sight))
}

impl Relevance for Policy {
    fn sight(&self, viewer: &Viewer, subject: &Subject, seen: Option<Sight>) -> Option<Sight> {
        let key = self.notes().directory.get(&subject.object.cell()).copied();
        // Nobody shall see what the storm does not know.
        let key = key?;
        let answer = self.decide(viewer, subject, key, seen);
        let at = (viewer.peer, key);
        match answer {
            Some((view, _)) => self.notes().answers.insert(at, view),
            None => self.notes().answers.remove(&at),
        };
        answer.map(|(_, sight)| sight)
    }

    fn reach(&self, viewer: &Viewer) -> Option<f64> {
        match &self.rule {
            Rule::Near(distance) => distance.reach(viewer),
            Rule::Mood { reach, .. } => Some(*reach),
            Rule::Everything | Rule::Owned | Rule::Whim { .. } => None,
        }
    }
}
