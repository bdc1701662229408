//! Who gets to see what, and how well.

use prescient_codec::Weight;
use prescient_schema::{EntityRef, Level};

use crate::grid::Place;
use crate::server::PeerId;

/// What a viewer sees of an object: always its first table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Bit `k` says whether table `k` is shown.
    tables: u32,
    /// How precisely; without effect on types whose fields know no coarser levels.
    pub level: Level,
    /// How much it counts that it waits, where packets are too short for all.
    pub weight: Weight,
}

impl Sight {
    /// What everybody may see: the first table at full precision.
    pub const PUBLIC: Self = Self {
        tables: 1,
        level: Level::EXACT,
        weight: USUAL,
    };

    /// Every table at full precision.
    pub const WHOLE: Self = Self {
        tables: u32::MAX,
        level: Level::EXACT,
        weight: USUAL,
    };

    /// All tables to the owner, the first to everybody else.
    pub fn usual(viewer: &Viewer, subject: &Subject) -> Self {
        match subject.owner {
            Some(owner) if owner == viewer.peer => Self::WHOLE,
            _ => Self::PUBLIC,
        }
    }

    /// The same with another table.
    pub fn and_table(self, table: usize) -> Self {
        let bit = 1u32.checked_shl(table as u32).unwrap_or(0);
        Self {
            tables: self.tables | bit,
            ..self
        }
    }

    /// The same at another precision.
    pub fn at(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// The same with another weight.
    pub fn weighing(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }

    pub(crate) fn shows(self, table: usize) -> bool {
        table == 0 || self.tables.checked_shr(table as u32).unwrap_or(0) & 1 == 1
    }
}

/// Who looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Viewer {
    /// The peer.
    pub peer: PeerId,
    /// Its team; 0 without one.
    pub team: u32,
    /// From where, if it has a place.
    pub eye: Option<Place>,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subject {
    /// The object.
    pub object: EntityRef,
    /// Whose it is.
    pub owner: Option<PeerId>,
    /// The team of its owner; 0 without one.
    pub team: u32,
    /// Where it is, if its type has a position.
    pub place: Option<Place>,
}

/// A policy of who sees what. A closure over the same arguments as [`sight`](Self::sight) is one.
///
/// It is asked about an object when the object appears or changes hands and when the viewer's team
/// changes, and, if it has a [`reach`](Self::reach), when the viewer or the object has moved. If it
/// goes by anything else that changes, say so with
/// [`Server::look_again`](crate::Server::look_again).
pub trait Relevance: Send + Sync {
    /// What a viewer sees of a subject from now on; `seen` is what it saw until now.
    fn sight(&self, viewer: &Viewer, subject: &Subject, seen: Option<Sight>) -> Option<Sight>;

    /// How far a viewer may see at most. `None` if places do not matter.
    fn reach(&self, viewer: &Viewer) -> Option<f64> {
        let _ = viewer;
        None
    }
}

impl<F> Relevance for F
where
    F: Fn(&Viewer, &Subject, Option<Sight>) -> Option<Sight> + Send + Sync,
{
    fn sight(&self, viewer: &Viewer, subject: &Subject, seen: Option<Sight>) -> Option<Sight> {
        self(viewer, subject, seen)
    }
}

/// Everybody sees everything; private tables are for owners.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

impl Relevance for Everything {
    fn sight(&self, viewer: &Viewer, subject: &Subject, _: Option<Sight>) -> Option<Sight> {
        Some(Sight::usual(viewer, subject))
    }
}

/// Everybody sees what is theirs, what is nobody's, and what is their team's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Owned;

impl Relevance for Owned {
    fn sight(&self, viewer: &Viewer, subject: &Subject, _: Option<Sight>) -> Option<Sight> {
        let own = subject.owner.is_none_or(|owner| owner == viewer.peer);
        let team = viewer.team != 0 && viewer.team == subject.team;
        (own || team).then(|| Sight::usual(viewer, subject))
    }
}

/// Everybody sees what is near, what is theirs, and what has no place.
///
/// What comes nearer than `enter` is shown and stays so until it is farther than `leave`, so that
/// what moves along the rim does not come and go. What is near, or the viewer's own, has its turn
/// earlier than what is far, where packets are too short for all.
#[derive(Clone, Copy, Debug)]
pub struct Distance {
    enter: f64,
    leave: f64,
}

impl Distance {
    /// `leave` is at least `enter`, and neither is negative.
    pub fn new(enter: f64, leave: f64) -> Self {
        let enter = enter.max(0.0);
        Self {
            enter,
            leave: leave.max(enter),
        }
    }
}

impl Relevance for Distance {
    fn sight(&self, viewer: &Viewer, subject: &Subject, seen: Option<Sight>) -> Option<Sight> {
        let limit = if seen.is_some() {
            self.leave
        } else {
            self.enter
        };
        let distance = match (viewer.eye, subject.place) {
            (_, None) => 0.0,
            (None, Some(_)) => f64::INFINITY,
            (Some(eye), Some(place)) => eye.distance(place),
        };
        let own = subject.owner == Some(viewer.peer);
        let weight = match distance / self.enter {
            _ if own => WEIGHTS[0],
            near if near <= 0.125 => WEIGHTS[0],
            near if near <= 0.25 => WEIGHTS[1],
            near if near <= 0.5 => WEIGHTS[2],
            _ => WEIGHTS[3],
        };
        (own || distance <= limit).then(|| Sight::usual(viewer, subject).weighing(weight))
    }

    fn reach(&self, _: &Viewer) -> Option<f64> {
        Some(self.enter)
    }
}

const fn weight(number: u8) -> Weight {
    match Weight::new(number) {
        Some(weight) => weight,
        None => panic!("a weight is not 0"),
    }
}

const USUAL: Weight = weight(4);
/// From near to far.
const WEIGHTS: [Weight; 4] = [weight(16), weight(8), weight(4), weight(2)];
