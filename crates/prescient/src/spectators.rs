//! Spectators by named data: what a [`Publisher`](crate::Publisher) publishes, under names that forwarders aggregate
//! and cache. The server sends every packet once, however many spectators there are.

use std::collections::VecDeque;

use prescient_named::{
    Consumer, ConsumerConfig, ConsumerStatistics, Data, DecodeError, Interest, NameError, NameRef,
    Producer, ProducerConfig, ProducerStatistics, Time, UpdateError, read_events, write_events,
};
use prescient_replication::{
    ClientConfig, PublishedPacket, SubscribeError, Subscriber, Tick, WorldError,
};
use prescient_schema::Schema;
use thiserror::Error;

/// The most packets that are kept: spectators that are further behind begin with a snapshot.
const KEPT_PACKETS: usize = 128;

/// Publishes the packets of a [`Publisher`](crate::Publisher) as versions of a topic, without sockets and clocks.
///
/// Every tick: publish the world, pass the packet to [`publish`](Self::publish), and send what
/// [`poll_transmit`](Self::poll_transmit) returns. A spectator gets all packets since the last one that it has, so none
/// may be left out; with [`with_base_interval(1)`](crate::PublisherConfig::with_base_interval) they are smallest.
pub struct SpectatorProducer {
    producer: Producer,
    packets: VecDeque<(u64, PublishedPacket)>,
}

impl SpectatorProducer {
    /// A producer of `/<topic>/sync`; see [`Producer::new`].
    pub fn new(topic: NameRef<'_>, config: ProducerConfig, first: u64) -> Result<Self, NameError> {
        Ok(Self {
            producer: Producer::new(topic, config, first)?,
            packets: VecDeque::new(),
        })
    }

    /// `/<topic>/sync`, the prefix to register.
    pub fn prefix(&self) -> NameRef<'_> {
        self.producer.prefix()
    }

    /// Counts since the start.
    pub fn statistics(&self) -> ProducerStatistics {
        self.producer.statistics()
    }

    /// Handles an Interest; see [`Producer::handle_interest`].
    pub fn handle_interest(&mut self, now: Time, interest: &Interest<'_>) -> Option<&[u8]> {
        self.producer.handle_interest(now, interest)
    }

    /// Adds the packet of the newest tick.
    pub fn publish(&mut self, packet: PublishedPacket) {
        if self.packets.len() == KEPT_PACKETS {
            self.packets.pop_front();
        }
        let version = self.producer.publish();
        self.packets.push_back((version, packet));
    }

    /// Replaces the content of `bytes` by the next answer to send. False if there is none.
    pub fn poll_transmit(&mut self, now: Time, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        let snapshot = self.packets.iter().rev().find(|(_, it)| it.is_snapshot);
        let Some(snapshot) = snapshot.map(|(version, _)| *version) else {
            return false;
        };
        while let Some(request) = self.producer.poll_request(now) {
            let next = request.base.map(|base| base + 1);
            // Whoever holds the snapshot or a later packet holds all in between.
            let is_delta = next.is_some_and(|next| next >= snapshot);
            let start = next.filter(|_| is_delta).unwrap_or(snapshot);
            let packets = self.packets.iter();
            let packets = packets.filter(|(version, _)| *version >= start);
            let mut content = Vec::new();
            write_events(packets.map(|(_, it)| &it.bytes[..]), &mut content);
            let answered = self
                .producer
                .answer(now, request, is_delta, &content, bytes);
            if answered.is_ok() {
                return true;
            }
            bytes.clear();
        }
        false
    }
}

/// Why Data was not applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpectatorError {
    /// It is not an answer to the present Interest, or not authentic.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// Its content is not a list of packets. The spectator starts again with a snapshot.
    #[error(transparent)]
    Content(#[from] DecodeError),
    /// A packet could not be applied. The spectator starts again with a snapshot.
    #[error(transparent)]
    Packet(#[from] SubscribeError),
}

/// Shows what a [`SpectatorProducer`] publishes, without sockets and clocks; the order of calls is that of
/// [`Consumer`].
pub struct SpectatorConsumer {
    consumer: Consumer,
    subscriber: Subscriber,
}

impl SpectatorConsumer {
    /// A spectator of `/<topic>/sync`; see [`Consumer::new`] and [`Subscriber::new`].
    pub fn new(
        now: Time,
        topic: NameRef<'_>,
        config: ConsumerConfig,
        first: u64,
        schema: Schema,
        key: [u8; 16],
    ) -> Result<Self, SpectatorSetupError> {
        Ok(Self {
            consumer: Consumer::new(now, topic, config, first, key)?,
            subscriber: Subscriber::new(schema, ClientConfig::default())?,
        })
    }

    /// What is shown.
    pub fn subscriber(&mut self) -> &mut Subscriber {
        &mut self.subscriber
    }

    /// Counts since the start.
    pub fn statistics(&self) -> ConsumerStatistics {
        self.consumer.statistics()
    }

    /// When to call [`poll_transmit`](Self::poll_transmit).
    pub fn next_timeout(&self) -> Time {
        self.consumer.next_timeout()
    }

    /// Replaces the content of `bytes` by the next Interest to send. False if there is none at this time.
    pub fn poll_transmit(&mut self, now: Time, bytes: &mut Vec<u8>) -> bool {
        self.consumer.poll_transmit(now, bytes)
    }

    /// Handles a Nack; see [`Consumer::handle_nack`].
    pub fn handle_nack(&mut self, now: Time, interest: &Interest<'_>) {
        self.consumer.handle_nack(now, interest);
    }

    /// Handles Data. Returns the tick that is shown now, if it changed.
    pub fn handle_data(
        &mut self,
        now: Time,
        data: &Data<'_>,
    ) -> Result<Option<Tick>, SpectatorError> {
        let Some(update) = self.consumer.handle_data(now, data)? else {
            return Ok(None);
        };
        let applied = self.apply(&update.content);
        if applied.is_err() {
            self.consumer.restart(now);
        }
        applied
    }

    fn apply(&mut self, content: &[u8]) -> Result<Option<Tick>, SpectatorError> {
        let mut newest = None;
        for packet in read_events(content)? {
            match self.subscriber.handle(packet) {
                Ok(tick) => newest = Some(tick),
                Err(SubscribeError::Late) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(newest)
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
