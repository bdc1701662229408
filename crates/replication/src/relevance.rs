//! Who gets to see what, and how well.

use prescient_codec::Weight;
use prescient_schema::{EntityRef, Level};

use crate::grid::Position;
use crate::server::PeerId;

/// What a viewer sees of an object: always its first table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visibility {
    /// Bit `k` says whether table `k` is shown.
    tables: u32,
    /// How precisely; without effect on types whose fields know no coarser levels.
    pub level: Level,
    /// How much it counts that it waits, where packets are too short for all.
    pub weight: Weight,
}

impl Visibility {
    /// What everybody may see: the first table at full precision.
    pub const PUBLIC: Self = Self {
        tables: 1,
        level: Level::EXACT,
        weight: DEFAULT_WEIGHT,
    };

    /// Every table at full precision.
    pub const FULL: Self = Self {
        tables: u32::MAX,
        level: Level::EXACT,
        weight: DEFAULT_WEIGHT,
    };

    /// All tables to the owner, the first to everybody else.
    pub fn default_for(observer: &Observer, candidate: &Candidate) -> Self {
        match candidate.owner {
            Some(owner) if owner == observer.peer => Self::FULL,
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
pub struct Observer {
    /// The peer.
    pub peer: PeerId,
    /// Its team; 0 without one.
    pub team: u32,
    /// From where, if it has a place.
    pub view_position: Option<Position>,
    /// The class of the entity that it [follows](crate::Server::follow), if it follows one; numbered
    /// as in [`Candidate::class`].
    pub class: Option<u16>,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The entity.
    pub entity: EntityRef,
    /// Its class (of its first table, if it has several): an index into the classes of
    /// [`World::schema`](crate::World::schema).
    pub class: u16,
    /// Whose it is.
    pub owner: Option<PeerId>,
    /// The team of its owner; 0 without one.
    pub team: u32,
    /// Where it is, if its type has a position.
    pub position: Option<Position>,
}

/// A policy of who sees what. A closure over the same arguments as [`visibility`](Self::visibility) is one.
///
/// It is asked about an entity when the entity appears or changes hands and when the viewer's team
/// changes, and, if it has a [`reach`](Self::reach), when the viewer or the entity has moved. If it
/// goes by anything else that changes, say so with
/// [`Server::reevaluate_relevance`](crate::Server::reevaluate_relevance).
pub trait Relevance: Send + Sync {
    /// What a viewer sees of a subject from now on; `seen` is what it saw until now.
    fn visibility(
        &self,
        observer: &Observer,
        candidate: &Candidate,
        seen: Option<Visibility>,
    ) -> Option<Visibility>;

    /// How far a viewer may see at most. `None` if places do not matter.
    fn reach(&self, observer: &Observer) -> Option<f64> {
        let _ = observer;
        None
    }
}

impl<F> Relevance for F
where
    F: Fn(&Observer, &Candidate, Option<Visibility>) -> Option<Visibility> + Send + Sync,
{
    fn visibility(
        &self,
        observer: &Observer,
        candidate: &Candidate,
        seen: Option<Visibility>,
    ) -> Option<Visibility> {
        self(observer, candidate, seen)
    }
}

/// Everybody sees everything; private tables are for owners.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

impl Relevance for Everything {
    fn visibility(
        &self,
        observer: &Observer,
        candidate: &Candidate,
        _: Option<Visibility>,
    ) -> Option<Visibility> {
        Some(Visibility::default_for(observer, candidate))
    }
}

/// Everybody sees what is theirs, what is nobody's, and what is their team's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Owned;

impl Relevance for Owned {
    fn visibility(
        &self,
        observer: &Observer,
        candidate: &Candidate,
        _: Option<Visibility>,
    ) -> Option<Visibility> {
        let own = candidate.owner.is_none_or(|owner| owner == observer.peer);
        let team = observer.team != 0 && observer.team == candidate.team;
        (own || team).then(|| Visibility::default_for(observer, candidate))
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
    fn visibility(
        &self,
        observer: &Observer,
        candidate: &Candidate,
        seen: Option<Visibility>,
    ) -> Option<Visibility> {
        let limit = if seen.is_some() {
            self.leave
        } else {
            self.enter
        };
        let distance = match (observer.view_position, candidate.position) {
            (_, None) => 0.0,
            (None, Some(_)) => f64::INFINITY,
            (Some(view_position), Some(position)) => view_position.distance(position),
        };
        let own = candidate.owner == Some(observer.peer);
        let weight = match distance / self.enter {
            _ if own => WEIGHTS[0],
            near if near <= 0.125 => WEIGHTS[0],
            near if near <= 0.25 => WEIGHTS[1],
            near if near <= 0.5 => WEIGHTS[2],
            _ => WEIGHTS[3],
        };
        (own || distance <= limit)
            .then(|| Visibility::default_for(observer, candidate).weighing(weight))
    }

    fn reach(&self, _: &Observer) -> Option<f64> {
        Some(self.enter)
    }
}

const fn weight(number: u8) -> Weight {
    match Weight::new(number) {
        Some(weight) => weight,
        None => panic!("a weight is not 0"),
    }
}

const DEFAULT_WEIGHT: Weight = weight(4);
/// From near to far.
const WEIGHTS: [Weight; 4] = [weight(16), weight(8), weight(4), weight(2)];
