//! A reader of what a [`Publisher`](crate::Publisher) publishes.

use prescient_codec::{Config, DecodeError, Policy, Tick};
use prescient_schema::{EntityRef, Schema, State};
use thiserror::Error;

use super::{Change, Client, EntityHandle};
use crate::config::ClientConfig;
use crate::publication::Publication;
use crate::settings::{self, Settings, SettingsMismatch};
use crate::world::WorldError;

/// Why a published packet was not applied. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// This packet or a newer one was applied already. This is no fault.
    #[error("a newer packet was applied already")]
    Late,
    /// The packet depends on one that this reader has not applied. Handle that one first, or wait
    /// for the next snapshot.
    #[error("the packet depends on packet {base}, which this reader has not applied")]
    MissingBase {
        /// [`PublishedPacket::sequence`](crate::PublishedPacket::sequence) of the missing packet.
        base: u64,
    },
    /// The publisher has another schema.
    #[error("the publisher has another schema")]
    Schema,
    /// The publisher has settings that this reader cannot adopt.
    #[error(transparent)]
    Settings(#[from] SettingsMismatch),
    /// It is no published packet, or was damaged.
    #[error("not a published packet, or a damaged one")]
    Malformed,
    /// The state in the packet cannot be decoded.
    #[error(transparent)]
    State(DecodeError),
}

prescient_schema::debug_as_display!(SubscribeError);

/// Shows what a [`Publisher`](crate::Publisher) publishes.
///
/// [`handle`](Self::handle) packets in ascending order, as far as they arrive. It shows one tick at
/// a time: that of the newest packet applied, complete. Nobody has to know that it reads.
pub struct Subscriber {
    client: Client,
    /// The newest applied packet, and the snapshot that it depends on; 0 before the first.
    newest: u64,
    snapshot: u64,
}

impl Subscriber {
    /// A reader without any state. Of the configuration,
    /// [`max_entities`](ClientConfig::with_max_entities) applies; schemas must be equal.
    pub fn new(schema: Schema, config: ClientConfig) -> Result<Self, WorldError> {
        Ok(Self {
            client: Client::new(schema, config)?,
            newest: 0,
            snapshot: 0,
        })
    }

    /// Applies a published packet and returns its tick.
    ///
    /// A reader that begins, or that has missed so much that entity ids may name other entities,
    /// gets new handles for all entities; their predecessors are [removed](Change::Removed).
    pub fn handle(&mut self, packet: &[u8]) -> Result<Tick, SubscribeError> {
        match Publication::read(packet).ok_or(SubscribeError::Malformed)? {
            Publication::Snapshot { sequence, .. } | Publication::Delta { sequence, .. }
                if sequence <= self.newest =>
            {
                Err(SubscribeError::Late)
            }
            Publication::Snapshot {
                sequence,
                ids_since,
                fingerprint,
                config,
                packet,
            } => {
                if fingerprint != self.client.fingerprint {
                    return Err(SubscribeError::Schema);
                }
                if config.policy() != Policy::Stateless {
                    return Err(SubscribeError::Malformed);
                }
                let settings = Settings {
                    config,
                    prior: None,
                };
                let (config, _) = settings::adopt(settings, self.client.max_entities, None)?;
                let known = self.newest >= ids_since
                    && sequence - self.newest < MAX_GAP
                    && config == self.client.config;
                let tick = self.begin(packet, config, known)?;
                (self.newest, self.snapshot) = (sequence, sequence);
                Ok(tick)
            }
            Publication::Delta { snapshot, .. } if snapshot < self.snapshot => {
                Err(SubscribeError::Late)
            }
            Publication::Delta { snapshot, base, .. }
                if snapshot > self.snapshot || base > self.newest =>
            {
                Err(SubscribeError::MissingBase { base })
            }
            Publication::Delta {
                sequence,
                base,
                packet,
                ..
            } => {
                let applied = self.client.shown_world.apply(packet);
                let tick = applied.map_err(|error| match error {
                    DecodeError::UnknownModel => SubscribeError::MissingBase { base },
                    error => SubscribeError::State(error),
                })?;
                self.newest = sequence;
                Ok(tick)
            }
        }
    }

    /// The tick that is shown.
    pub fn tick(&self) -> Option<Tick> {
        self.client.tick()
    }

    /// The number of the newest applied packet.
    pub fn sequence(&self) -> Option<u64> {
        (self.newest > 0).then_some(self.newest)
    }

    /// All shown entities.
    pub fn entities(&self) -> impl Iterator<Item = EntityHandle> {
        self.client.entities()
    }

    /// An entity's value in its first table; `None` if it has another type or is gone.
    pub fn get<T: State>(&self, entity: EntityHandle) -> Option<T> {
        self.client.get(entity)
    }

    /// The entity that a reference in a value refers to; `None` if it is not published, or the
    /// reference is empty.
    pub fn resolve(&self, reference: EntityRef) -> Option<EntityHandle> {
        self.client.resolve(reference)
    }

    /// The next change, if any.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.client.poll_change()
    }

    /// What is shown as a client, for [`Views`](crate::Views) and all of a client's queries.
    pub fn view(&self) -> &Client {
        &self.client
    }

    /// Applies the packet of a snapshot. Entities stay the same only if they are `known`.
    fn begin(
        &mut self,
        packet: &[u8],
        config: Config,
        known: bool,
    ) -> Result<Tick, SubscribeError> {
        let shown_world = &mut self.client.shown_world;
        if known {
            return shown_world.apply(packet).map_err(SubscribeError::State);
        }
        let can_begin = shown_world.can_begin_with(packet, config);
        can_begin.map_err(SubscribeError::State)?;
        self.client.config = config;
        self.client.welcome = true;
        self.client.restart();
        let applied = self.client.shown_world.apply(packet);
        applied.map_err(SubscribeError::State)
    }
}

/// Packets that a reader may miss and still keep its entities. Every snapshot starts a new epoch of
/// the codec, whose numbers have eight bits, so the next snapshot must be less than 256 after the
/// last.
const MAX_GAP: u64 = 256;
