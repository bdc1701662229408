//! Spectators by named data: what a [`Publisher`](crate::Publisher) publishes, under names that forwarders aggregate
//! and cache. The server sends every packet once, however many spectators there are.

use std::collections::VecDeque;

use prescient_named::{
    Answer, ConsumerConfig, DecodeError, NameError, NameRef, ProducerConfig, Time, Update,
    read_events, write_events,
};
use prescient_replication::{
    ClientConfig, PublishedPacket, SubscribeError, Subscriber, Tick, WorldError,
};
use prescient_schema::Schema;
use thiserror::Error;

use crate::topic::{Publication, Replica, TopicConsumer, TopicProducer};

/// The most packets that are kept: spectators that are further behind begin with a snapshot.
const KEPT_PACKETS: usize = 128;

/// Publishes the packets of a [`Publisher`](crate::Publisher) as versions of a topic.
///
/// Every tick: publish the world, pass the packet to [`publish`](TopicProducer::publish), and send what
/// [`poll_transmit`](TopicProducer::poll_transmit) returns. A spectator gets all packets since the last one that it has,
/// so none may be left out; with [`with_base_interval(1)`](crate::PublisherConfig::with_base_interval) they are
/// smallest.
pub type SpectatorProducer = TopicProducer<PublishedPackets>;

/// Shows what a [`SpectatorProducer`] publishes.
pub type SpectatorConsumer = TopicConsumer<Spectator>;

/// Recent packets of a publisher, with their versions.
#[derive(Default)]
pub struct PublishedPackets(VecDeque<(u64, PublishedPacket)>);

impl Publication for PublishedPackets {
    fn answer(&self, base: Option<u64>) -> Option<Answer> {
        let snapshot = self.0.iter().rev().find(|(_, it)| it.is_snapshot);
        let snapshot = snapshot.map(|(version, _)| *version)?;
        let next = base.map(|base| base + 1);
        // A consumer that holds the snapshot or a later packet holds all packets in between.
        let is_delta = next.is_some_and(|next| next >= snapshot);
        let start = next.filter(|_| is_delta).unwrap_or(snapshot);
        let packets = self.0.iter().filter(|(version, _)| *version >= start);
        let mut content = Vec::new();
        write_events(packets.map(|(_, it)| &it.bytes[..]), &mut content);
        Some(Answer { content, is_delta })
    }
}

impl TopicProducer<PublishedPackets> {
    /// A producer of `/<topic>/sync`; see [`Producer::new`](prescient_named::Producer::new).
    pub fn new(topic: NameRef<'_>, config: ProducerConfig, first: u64) -> Result<Self, NameError> {
        Self::with_publication(topic, config, first, PublishedPackets::default())
    }

    /// Adds the packet of the newest tick.
    pub fn publish(&mut self, packet: PublishedPacket) {
        self.publish_with(|PublishedPackets(packets), version| {
            if packets.len() == KEPT_PACKETS {
                packets.pop_front();
            }
            packets.push_back((version, packet));
        });
    }
}

/// Why packets were not applied. The spectator starts again with a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpectatorError {
    /// The content is not a list of packets.
    #[error(transparent)]
    Content(#[from] DecodeError),
    /// A packet could not be applied.
    #[error(transparent)]
    Packet(#[from] SubscribeError),
}

/// The replica of a server's public view.
pub struct Spectator(Subscriber);

impl Replica for Spectator {
    /// The tick that is shown now, if it changed.
    type Applied = Option<Tick>;
    type Error = SpectatorError;

    fn apply(&mut self, update: Update) -> Result<Option<Tick>, SpectatorError> {
        let mut newest = None;
        for packet in read_events(&update.content)? {
            match self.0.handle(packet) {
                Ok(tick) => newest = Some(tick),
                Err(SubscribeError::Late) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(newest)
    }
}

impl TopicConsumer<Spectator> {
    /// A spectator of `/<topic>/sync`; see [`Consumer::new`](prescient_named::Consumer::new) and [`Subscriber::new`].
    pub fn new(
        now: Time,
        topic: NameRef<'_>,
        config: ConsumerConfig,
        first: u64,
        schema: Schema,
        key: [u8; 16],
    ) -> Result<Self, SpectatorSetupError> {
        let spectator = Spectator(Subscriber::new(schema, ClientConfig::default())?);
        Ok(Self::with_replica(
            now, topic, config, first, spectator, key,
        )?)
    }

    /// The subscriber, which holds the entities.
    pub fn subscriber(&mut self) -> &mut Subscriber {
        &mut self.replica.0
    }
}

/// Why a spectator cannot be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SpectatorSetupError {
    /// The topic's name is too long.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The schema cannot be shown.
    #[error(transparent)]
    World(#[from] WorldError),
}
