//! Relevance policies: which peer sees which entity, and how precisely.

use prescient_codec::Weight;
use prescient_schema::{EntityRef, Level, Priority};
use thiserror::Error;

use crate::grid::Position;
use crate::server::PeerId;

/// The tables of an entity that a peer sees: always its first table, and those of its optional
/// tables that are not left out ([`without_table`](Self::without_table)).
///
/// ```
/// use prescient_replication::{Candidate, Link, Observer, Priority, Visibility, Weight};
/// use prescient_schema::Level;
///
/// /// Owners see everything, team mates a little less, others little and coarsely.
/// fn policy(
///     observer: &Observer,
///     candidate: &Candidate,
///     _so_far: Option<Visibility>,
/// ) -> Option<Visibility> {
///     let (first, coarse) = (Weight::new(200)?, Level::new(3)?);
///     let slow = |link: Link| link.bytes_per_second < 20_000;
///     let seen = match () {
///         () if observer.owns(candidate) => Visibility::FULL.weighing(first),
///         () if observer.shares_team(candidate) => Visibility::PUBLIC.and_table(1),
///         () if observer.link.is_some_and(slow) => {
///             let last = Priority::new(3).expect("there are four");
///             Visibility::PUBLIC.with_priority(last).at(coarse)
///         }
///         () => Visibility::default_for(observer, candidate).without_table(2),
///     };
///     Some(seen)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visibility {
    /// Bit `k` is set if table `k` is visible.
    tables: u64,
    /// Bit `k` is set if table `k` is not visible although it is optional.
    hidden: u64,
    /// The precision; has no effect on types whose fields have no coarser levels.
    pub level: Level,
    /// Its priority: how much its waiting time counts if packets are too small for all entities.
    pub weight: Weight,
    /// How it is degraded by the peer's [`Quality`](crate::Quality): 0 never. `None` for the priority
    /// that its type declares (`#[state(priority = 1)]`), which is 0 if it declares none.
    pub priority: Option<Priority>,
}

impl Visibility {
    /// The first table and the optional ones, at full precision.
    pub const PUBLIC: Self = Self {
        tables: 1,
        hidden: 0,
        level: Level::EXACT,
        weight: DEFAULT_WEIGHT,
        priority: None,
    };

    /// Every table at full precision.
    pub const FULL: Self = Self {
        tables: u64::MAX,
        hidden: 0,
        level: Level::EXACT,
        weight: DEFAULT_WEIGHT,
        priority: None,
    };

    /// All tables for the owner, the first and the optional ones for other peers.
    pub fn default_for(observer: &Observer, candidate: &Candidate) -> Self {
        match observer.owns(candidate) {
            true => Self::FULL,
            false => Self::PUBLIC,
        }
    }

    /// Adds a table.
    pub fn and_table(self, table: usize) -> Self {
        let bit = bit(table);
        Self {
            tables: self.tables | bit,
            hidden: self.hidden & !bit,
            ..self
        }
    }

    /// Leaves out a table. The first is always visible.
    pub fn without_table(self, table: usize) -> Self {
        let bit = bit(table) & !1;
        Self {
            tables: self.tables & !bit,
            hidden: self.hidden | bit,
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

    /// Sets the priority.
    pub fn with_priority(self, priority: Priority) -> Self {
        Self {
            priority: Some(priority),
            ..self
        }
    }

    pub(crate) fn shows(self, table: usize, optional: bool) -> bool {
        let bit = bit(table);
        self.tables & bit != 0 || optional && self.hidden & bit == 0
    }
}

/// The bit of a table; 0 beyond the maximum number of tables.
fn bit(table: usize) -> u64 {
    let table = u32::try_from(table).unwrap_or(u32::MAX);
    1u64.checked_shl(table).unwrap_or(0)
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
    /// Its connection, if that is known ([`Server::set_link`](crate::Server::set_link)). A change of
    /// it is no reason to query the policy again.
    pub link: Option<Link>,
}

impl Observer {
    /// Whether the policy has to be queried again because another observer was evaluated last.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let without_link = |observer: &Self| Self {
            link: None,
            ..*observer
        };
        without_link(self) == without_link(other)
    }
}

/// The connection of a peer, as its carrier measures it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The smoothed round trip time in microseconds; `None` before the first measurement.
    pub round_trip_micros: Option<u64>,
    /// The share of packets to the peer that are lost, in parts per million.
    pub loss: u32,
    /// Bytes per second that congestion control allows at the moment.
    pub bytes_per_second: u64,
}

impl Observer {
    /// Whether the peer owns the candidate.
    pub fn owns(&self, candidate: &Candidate) -> bool {
        candidate.owner == Some(self.peer)
    }

    /// Whether the peer has a team, and the candidate's owner is in it.
    pub fn shares_team(&self, candidate: &Candidate) -> bool {
        self.team != 0 && self.team == candidate.team
    }
}

/// The entity whose visibility is decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The entity.
    pub entity: EntityRef,
    /// Its class (of its first table, if it has several): an index into the classes of
    /// [`World::schema`](crate::World::schema).
    pub class: u16,
    /// The priority that its class declares.
    pub priority: Priority,
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
/// observer's team changes; that has an effect in the same tick. If it has a
/// [`reach`](Self::reach), it is also queried when the observer or the entity moved, every 4 ticks
/// by default
/// ([`with_relevance_interval`](crate::ServerConfig::with_relevance_interval)): what comes near and
/// what goes away is shown and hidden after the same delay, of less than that many ticks. A policy
/// that looks at positions and has no reach is never queried because of movement. If it depends on
/// anything else that changes, call
/// [`Server::reevaluate_relevance`](crate::Server::reevaluate_relevance) after the change.
pub trait Relevance: Send + Sync {
    /// The candidate's visibility to the observer from now on; `seen` is that until now.
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
        let own = candidate.owner.is_none() || observer.owns(candidate);
        (own || observer.shares_team(candidate))
            .then(|| Visibility::default_for(observer, candidate))
    }
}

/// A peer sees entities that are near, that it owns, or that have no position; with
/// [`and_team`](Self::and_team), also those of its team, which is the usual fog of war.
///
/// An entity becomes visible nearer than `enter` and stays visible until it is farther than
/// `leave`, so that entities that move along the edge do not flicker. Near and own entities have a
/// higher weight if packets are too small for all.
#[derive(Clone, Copy, Debug)]
pub struct Distance {
    enter: f64,
    leave: f64,
    shows_team: bool,
}

impl Distance {
    /// Refuses distances below 0 or without order, and a `leave` below `enter`, with which entities
    /// between the two would flicker.
    ///
    /// ```
    /// use prescient_replication::{Distance, DistanceError};
    ///
    /// let near = Distance::new(40.0, 45.0)?;
    /// let refused = Distance::new(45.0, 40.0).unwrap_err();
    /// assert_eq!(refused, DistanceError::LeavesBeforeEntering { enter: 45.0, leave: 40.0 });
    /// # Ok::<(), DistanceError>(())
    /// ```
    pub fn new(enter: f64, leave: f64) -> Result<Self, DistanceError> {
        if enter.is_nan() || enter < 0.0 {
            return Err(DistanceError::Negative(enter));
        }
        if leave.is_nan() || leave < enter {
            return Err(DistanceError::LeavesBeforeEntering { enter, leave });
        }
        Ok(Self {
            enter,
            leave,
            shows_team: false,
        })
    }

    /// A peer also sees the entities that members of its [team](Observer::team) own, at any
    /// distance.
    #[must_use]
    pub fn and_team(mut self) -> Self {
        self.shows_team = true;
        self
    }
}

/// Why two distances cannot be a [`Distance`] policy.
#[derive(Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum DistanceError {
    /// The distance at which entities become visible is below 0, or no number.
    #[error("entities cannot become visible at a distance of {0}; it must be at least 0")]
    Negative(f64),
    /// Entities would disappear nearer than they appear.
    #[error(
        "entities that appear at a distance of {enter} must disappear there or farther, not at {leave}"
    )]
    LeavesBeforeEntering {
        /// The distance at which they appear.
        enter: f64,
        /// The distance at which they disappear.
        leave: f64,
    },
}

prescient_schema::debug_as_display!(DistanceError);

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
        let own = observer.owns(candidate);
        let weight = match distance / self.enter {
            _ if own => WEIGHTS[0],
            near if near <= 0.125 => WEIGHTS[0],
            near if near <= 0.25 => WEIGHTS[1],
            near if near <= 0.5 => WEIGHTS[2],
            _ => WEIGHTS[3],
        };
        let of_team = self.shows_team && observer.shares_team(candidate);
        (own || of_team || distance <= limit)
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
