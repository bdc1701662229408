//! Publishes one view of a world to any number of readers: spectators, recordings, caches.
//!
//! A peer's packets are predicted from what that peer acknowledged. Readers acknowledge nothing and
//! may begin at any time, so published packets depend on nothing but earlier published packets,
//! which they name:
//!
//! - A *snapshot* depends on none. Any reader can begin with it.
//! - A *delta* depends on its *base*: the last snapshot, or a later delta that was made a base
//!   ([`PublisherConfig::with_base_interval`]) and depends on the base before. A reader that lacks a
//!   base waits for the next snapshot.
//!
//! Every packet states the whole tick, so deltas that are not bases may be lost without harm. Few
//! bases mean that little depends on any one packet, many that values are predicted from recent
//! ones, so that packets are smaller.

use std::sync::Arc;

use prescient_codec::{Config, EncodeError, HISTORY, Layout, Packet, Policy, Tick};
use prescient_schema::Fingerprint;
use thiserror::Error;

use crate::config::ServerConfig;
use crate::grid::Position;
use crate::peer::Peer;
use crate::publication::Publication;
use crate::relevance::{Observer, Relevance};
use crate::server::PeerId;
use crate::world::{Touched, World};

/// The settings of a [`Publisher`].
#[derive(Clone, Debug)]
pub struct PublisherConfig {
    codec: Config,
    snapshot_interval: u32,
    base_interval: u32,
    observer: PeerId,
    view_position: Option<Position>,
}

impl Default for PublisherConfig {
    fn default() -> Self {
        Self {
            codec: Config::default().with_policy(Policy::Stateless),
            snapshot_interval: 30,
            base_interval: 30,
            observer: PeerId(u64::MAX),
            view_position: None,
        }
    }
}

impl PublisherConfig {
    /// Sets how values are coded, by default like [`Config::default`]; the [policy](Config::policy) is always [`Policy::Stateless`].
    /// Readers learn these settings from snapshots.
    pub fn with_codec(mut self, codec: Config) -> Self {
        self.codec = codec.with_policy(Policy::Stateless);
        self
    }

    /// Sets the ticks between two snapshots, from 1 to [`MAX_SNAPSHOT_INTERVAL`]; 30 by default. A
    /// reader that begins, or that lost a base, waits this long at most.
    pub fn with_snapshot_interval(mut self, ticks: u32) -> Self {
        self.snapshot_interval = ticks;
        self
    }

    /// Sets the ticks between two bases, at least 1; 30 by default. With the snapshot interval or
    /// more, only snapshots are bases. With 1, every packet depends on the one before: smallest, for
    /// recordings and for carriers that lose nothing.
    pub fn with_base_interval(mut self, ticks: u32) -> Self {
        self.base_interval = ticks;
        self
    }

    /// Sets as which peer the relevance policy sees the publisher; `u64::MAX` by default. No client
    /// may have this id.
    pub fn with_observer(mut self, observer: PeerId) -> Self {
        self.observer = observer;
        self
    }

    /// Sets the view position that the relevance policy gets; without one by default.
    pub fn with_view_position(mut self, position: Position) -> Self {
        self.view_position = Some(position);
        self
    }

    /// Checks the values.
    pub fn check(&self) -> Result<(), PublisherConfigError> {
        if !(1..=MAX_SNAPSHOT_INTERVAL).contains(&self.snapshot_interval) {
            return Err(PublisherConfigError::SnapshotInterval(
                self.snapshot_interval,
            ));
        }
        if self.base_interval == 0 {
            return Err(PublisherConfigError::BaseInterval);
        }
        Ok(())
    }
}

/// The longest interval between two snapshots, in ticks: values are predicted from bases, which must
/// not be older than the history of both ends.
pub const MAX_SNAPSHOT_INTERVAL: u32 = HISTORY - 8;

/// Why a configuration of a publisher is refused.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PublisherConfigError {
    /// The snapshot interval is 0 or more than [`MAX_SNAPSHOT_INTERVAL`].
    #[error("{0} ticks between two snapshots; from 1 to {MAX_SNAPSHOT_INTERVAL} are possible")]
    SnapshotInterval(u32),
    /// The base interval is 0.
    #[error("0 ticks between two bases; at least 1 is possible")]
    BaseInterval,
}

prescient_schema::debug_as_display!(PublisherConfigError);

/// Why nothing was published.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The newest tick was published already, or there is none yet. Publish after the next step.
    #[error("the world has no tick that was not published yet")]
    NothingNew,
    /// The publisher was made for another world.
    #[error("the publisher was made for another world")]
    OtherWorld,
}

prescient_schema::debug_as_display!(PublishError);

/// A packet for any number of readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedPacket {
    /// The tick that it describes.
    pub tick: Tick,
    /// Its number; packets are numbered from 1.
    pub sequence: u64,
    /// Whether a reader can begin with it.
    pub is_snapshot: bool,
    /// The packet that a reader must have applied before; `None` for a snapshot.
    pub base: Option<u64>,
    /// The bytes for [`Subscriber::handle`](crate::Subscriber::handle). They are as long as the tick
    /// needs: a carrier has to split them into packets of its own.
    pub bytes: Vec<u8>,
}

/// Publishes what a relevance policy shows of a world. A *snapshot* depends on no other packet, so
/// any reader can begin with it; a *delta* depends on its *base*: the last snapshot, or a later
/// delta that was [made a base](PublisherConfig::with_base_interval).
///
/// Every tick, or as often as readers are to be updated: change the world, then
/// [`publish`](Self::publish). The cost does not depend on the number of readers.
///
/// ```
/// use prescient_replication::*;
/// use prescient_schema::{Ref, SchemaBuilder, State};
///
/// #[derive(State, Debug, PartialEq)]
/// struct Crate {
///     #[state(step = 0.01, position)]
///     position: [f32; 2],
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = SchemaBuilder::new().state::<Crate>().build()?;
/// let mut server = Server::new(schema.clone(), ServerConfig::default(), Everything)?;
/// let mut publisher = Publisher::new(server.world(), PublisherConfig::default(), Everything)?;
/// server.step(Tick(1))?.spawn(&Crate { position: [1.0, 2.5] })?;
/// let packet = publisher.publish(server.world())?;
/// assert!(packet.is_snapshot);
///
/// // The same bytes serve every reader.
/// for _ in 0..3 {
///     let mut reader = Subscriber::new(schema.clone(), ClientConfig::default())?;
///     reader.handle(&packet.bytes)?;
///     let entity = reader.entities().next().expect("shown");
///     assert_eq!(reader.get(entity), Some(Crate { position: [1.0, 2.5] }));
/// }
/// # Ok(())
/// # }
/// ```
pub struct Publisher {
    config: PublisherConfig,
    relevance: Box<dyn Relevance>,
    layout: Arc<Layout>,
    fingerprint: Fingerprint,
    /// The readers as one peer that acknowledges nothing.
    peer: Peer,
    /// [`World::touched_count`] when the visible set was last updated.
    touched: u64,
    published: Option<Tick>,
    sequence: u64,
    /// The newest snapshot and the newest base, with their ticks.
    snapshot: (u64, Tick),
    base: (u64, Tick),
    ids_since: u64,
    is_snapshot_requested: bool,
}

impl Publisher {
    /// A publisher of a world.
    pub fn new(
        world: &World,
        config: PublisherConfig,
        relevance: impl Relevance + 'static,
    ) -> Result<Self, PublisherConfigError> {
        config.check()?;
        let layout = world.plain_layout().clone();
        Ok(Self {
            peer: new_peer(&layout, &config),
            config,
            relevance: Box::new(relevance),
            layout,
            fingerprint: world.schema().fingerprint(),
            touched: 0,
            published: None,
            sequence: 0,
            snapshot: (0, Tick(0)),
            base: (0, Tick(0)),
            ids_since: 0,
            is_snapshot_requested: true,
        })
    }

    /// Publishes the newest tick of the world. Ticks may be skipped.
    ///
    /// The visible set is updated first. The policy is queried as it is for peers, except that
    /// neither the publisher nor any candidate has a team.
    pub fn publish(&mut self, world: &World) -> Result<PublishedPacket, PublishError> {
        if !Arc::ptr_eq(world.plain_layout(), &self.layout) {
            return Err(PublishError::OtherWorld);
        }
        let tick = world.tick().ok_or(PublishError::NothingNew)?;
        let published = self.published.replace(tick);
        if published.is_some_and(|published| published >= tick) {
            return Err(PublishError::NothingNew);
        }
        // Beyond that the encoder would miss which entities were despawned.
        if published.is_some_and(|published| tick.since(published) > MAX_SNAPSHOT_INTERVAL.into()) {
            self.renumber();
        }
        let sequence = self.sequence + 1;
        self.update_visibility(world);
        let due = self.is_snapshot_requested
            || tick.since(self.snapshot.1) >= self.config.snapshot_interval.into();
        let (packet, is_snapshot) = match self.peer.publish(world.archive(), due) {
            Ok((packet, is_snapshot)) if packet.full => (packet, is_snapshot),
            // Ids are too sparse for a whole packet, or sequence numbers are used up.
            Ok(_) | Err(EncodeError::Exhausted) => {
                self.renumber();
                self.update_visibility(world);
                let first = self.peer.publish(world.archive(), true);
                first.map_err(|_| PublishError::NothingNew)?
            }
            Err(EncodeError::WrongSchema) => return Err(PublishError::OtherWorld),
            Err(_) => return Err(PublishError::NothingNew),
        };
        self.sequence = sequence;
        Ok(self.wrap(packet, is_snapshot, tick, world))
    }

    /// Makes the next packet a snapshot.
    pub fn request_snapshot(&mut self) {
        self.is_snapshot_requested = true;
    }

    /// Queries the relevance policy again about every entity at the next
    /// [`publish`](Self::publish), because something that it depends on has changed.
    pub fn reevaluate_relevance(&mut self) {
        self.peer.needs_evaluation = true;
    }

    fn wrap(
        &mut self,
        packet: Packet,
        is_snapshot: bool,
        tick: Tick,
        world: &World,
    ) -> PublishedPacket {
        let sequence = self.sequence;
        let base = (!is_snapshot).then_some(self.base.0);
        let publication = match base {
            None => Publication::Snapshot {
                sequence,
                ids_since: self.ids_since,
                fingerprint: self.fingerprint,
                config: self.config.codec,
                packet: &packet.bytes,
            },
            Some(base) => Publication::Delta {
                sequence,
                snapshot: self.snapshot.0,
                base,
                packet: &packet.bytes,
            },
        };
        let bytes = publication.to_bytes();
        if is_snapshot {
            self.is_snapshot_requested = false;
            self.snapshot = (sequence, tick);
        }
        if is_snapshot || tick.since(self.base.1) >= self.config.base_interval.into() {
            self.base = (sequence, tick);
            self.peer.make_base(world.archive());
        }
        PublishedPacket {
            tick,
            sequence,
            is_snapshot,
            base,
            bytes,
        }
    }

    /// Updates the visible set, for all entities at once.
    fn update_visibility(&mut self, world: &World) {
        let mut touched = world.touched_after(self.touched).unwrap_or_else(|| {
            self.peer.needs_evaluation = true;
            Vec::new()
        });
        if self.peer.needs_evaluation {
            // Despawned entities are not among those that are evaluated.
            touched.retain(|touched| matches!(touched, Touched::Gone(_)));
        }
        self.touched = world.touched_count();
        let observer = Observer {
            peer: self.config.observer,
            team: 0,
            view_position: self.config.view_position,
            class: None,
            link: None,
        };
        let (policy, no_team) = (&*self.relevance, |_| 0);
        let (mut touched, mut now) = (&touched[..], true);
        loop {
            self.peer.update_visibility(
                &observer,
                world,
                policy,
                touched,
                now,
                usize::MAX,
                &no_team,
            );
            if !self.peer.has_pending_visible() {
                break;
            }
            (touched, now) = (&[], false);
        }
        if self.peer.take_reused_ids() {
            // The base contains the removal of what had these ids before.
            self.ids_since = self.ids_since.max(self.base.0);
        }
    }

    /// Starts again with new ids: no reader may keep its entities.
    fn renumber(&mut self) {
        self.peer = new_peer(&self.layout, &self.config);
        self.ids_since = self.sequence + 1;
        self.is_snapshot_requested = true;
    }
}

fn new_peer(layout: &Arc<Layout>, config: &PublisherConfig) -> Peer {
    let config = ServerConfig::default().with_codec(config.codec);
    Peer::new(layout.clone(), &config)
}
