//! Relevance policies: which peer sees which entity, and how precisely.

use prescient_codec::Weight;
use prescient_schema::{EntityRef, Level};

use crate::grid::Position;
use crate::server::PeerId;

/// What a peer sees of an entity: always its first table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visibility {
    /// Bit `k` is set if table `k` is visible.
    tables: u32,
    /// The precision; has no effect on types whose fields have no coarser levels.
    pub level: Level,
    /// Its priority: how much its waiting time counts if packets are too small for all entities.
    pub weight: Weight,
}

impl Visibility {
    /// The first table at full precision.
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

    /// All tables for the owner, the first for other peers.
    pub fn default_for(observer: &Observer, candidate: &Candidate) -> Self {
        match candidate.owner {
            Some(owner) if owner == observer.peer => Self::FULL,
            _ => Self::PUBLIC,
        }
    }

    /// Adds a table.
    pub fn and_table(self, table: usize) -> Self {
        let bit = 1u32.checked_shl(table as u32).unwrap_or(0);
        Self {
            tables: self.tables | bit,
            ..self
        }
    }

    /// Sets the precision.
    pub fn at(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Sets the weight.
    pub fn weighing(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }

    pub(crate) fn shows(self, table: usize) -> bool {
        table == 0 || self.tables.checked_shr(table as u32).unwrap_or(0) & 1 == 1
    }
}

/// The peer whose visible set is decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observer {
    /// The peer.
    pub peer: PeerId,
    /// Its team; 0 without one.
    pub team: u32,
    /// Its view position, if it has one.
    pub view_position: Option<Position>,
    /// The class of the entity that it [follows](crate::Server::follow), if any; an index like
    /// [`Candidate::class`].
    pub class: Option<u16>,
}

/// The entity whose visibility is decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The entity.
    pub entity: EntityRef,
    /// Its class (of its first table, if it has several): an index into the classes of
    /// [`World::schema`](crate::World::schema).
    pub class: u16,
    /// The peer that owns it.
    pub owner: Option<PeerId>,
    /// The team of its owner; 0 without one.
    pub team: u32,
    /// Its position, if its type has one.
    pub position: Option<Position>,
}

/// A relevance policy. A closure with the arguments of [`visibility`](Self::visibility) is one.
///
/// It is queried about an entity when the entity appears or changes its owner and when the
/// observer's team changes, and, if it has a [`reach`](Self::reach), when the observer or the
/// entity moved. If it depends on anything else that changes, call
/// [`Server::reevaluate_relevance`](crate::Server::reevaluate_relevance) after the change.
pub trait Relevance: Send + Sync {
    /// What the observer sees of the candidate from now on; `seen` is what it saw until now.
    fn visibility(
        &self,
        observer: &Observer,
        candidate: &Candidate,
        seen: Option<Visibility>,
    ) -> Option<Visibility>;

    /// The maximum distance at which the observer sees anything; `None` if positions do not matter.
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

/// All peers see all entities; private tables are for owners.
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

/// A peer sees the entities that it owns, that have no owner, or that its team owns.
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

/// A peer sees entities that are near, that it owns, or that have no position.
///
/// An entity becomes visible nearer than `enter` and stays visible until it is farther than
/// `leave`, so that entities that move along the edge do not flicker. Near and own entities have a
/// higher weight if packets are too small for all.
#[derive(Clone, Copy, Debug)]
pub struct Distance {
    enter: f64,
    leave: f64,
}

impl Distance {
    /// Clamps the distances: none is negative, and `leave` is at least `enter`.
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
