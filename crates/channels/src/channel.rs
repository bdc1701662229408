//! Channels and their delivery guarantees.

use crate::exchange::Fault;
use crate::frame::{Body, MessageFrame};
use crate::in_flight::ReliableContent;
use crate::packet_buffer::PacketBuffer;
use crate::reassembly::{MAX_UNRELIABLE, Position, Reassembly};
use crate::receive_activity::ReceiveActivity;
use crate::receiver::ReliableReceiver;
use crate::sender::{ReliableSender, UnreliableSender, WriteOutcome};
use crate::time::Time;

/// A channel of a connection, the same for both ends and both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u8);

impl ChannelId {
    /// Reliable and ordered in the default [`Channels`].
    pub const ORDERED: Self = Self(0);
    /// Reliable and unordered in the default [`Channels`].
    pub const UNORDERED: Self = Self(1);
    /// Unreliable in the default [`Channels`].
    pub const UNRELIABLE: Self = Self(2);
    /// Sequenced in the default [`Channels`].
    pub const SEQUENCED: Self = Self(3);
}

/// The guarantee of a channel. With each of them, no message arrives twice or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Every message arrives, in the order of sending. A late message delays those after it.
    Ordered,
    /// Every message arrives, as soon as possible.
    Unordered,
    /// Messages may be lost or reordered.
    Unreliable,
    /// Messages may be lost, and none arrives after one that was sent later.
    Sequenced,
}

impl Delivery {
    /// Whether every message arrives.
    pub fn is_reliable(self) -> bool {
        matches!(self, Self::Ordered | Self::Unordered)
    }
}

/// The channels of a connection. Both ends must have the same: make them part of the
/// protocol id. A message on a channel that the receiver does not have, or
/// has with another delivery, closes the connection with
/// [`Violation`](crate::CloseReason::Violation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels([Option<Delivery>; CHANNELS]);

impl Channels {
    /// No channels.
    pub const fn none() -> Self {
        Self([None; CHANNELS])
    }

    /// Adds a channel, or changes its delivery. Ids above 12 are reserved; nothing changes then.
    pub fn with(mut self, channel: ChannelId, delivery: Delivery) -> Self {
        if let Some(place) = self.0.get_mut(usize::from(channel.0)) {
            *place = Some(delivery);
        }
        self
    }

    /// A channel's delivery; `None` if there is no such channel.
    pub fn delivery(&self, channel: ChannelId) -> Option<Delivery> {
        self.0.get(usize::from(channel.0)).copied().flatten()
    }
}

impl Default for Channels {
    /// One channel of each delivery.
    fn default() -> Self {
        Self::none()
            .with(ChannelId::ORDERED, Delivery::Ordered)
            .with(ChannelId::UNORDERED, Delivery::Unordered)
            .with(ChannelId::UNRELIABLE, Delivery::Unreliable)
            .with(ChannelId::SEQUENCED, Delivery::Sequenced)
    }
}

/// One channel of a connection, with both directions.
pub(crate) struct Channel {
    pub(crate) id: u8,
    out: SendHalf,
    into: ReceiveHalf,
}

enum SendHalf {
    Reliable(ReliableSender),
    Unreliable(UnreliableSender),
}

enum ReceiveHalf {
    Reliable(ReliableReceiver),
    Unreliable,
    Sequenced { newest: Option<Position> },
}

impl Channel {
    pub(crate) fn new(id: u8, delivery: Delivery) -> Self {
        let out = match delivery.is_reliable() {
            true => SendHalf::Reliable(ReliableSender::new(id)),
            false => SendHalf::Unreliable(UnreliableSender::new(id)),
        };
        let into = match delivery {
            Delivery::Ordered => ReceiveHalf::Reliable(ReliableReceiver::new(true)),
            Delivery::Unordered => ReceiveHalf::Reliable(ReliableReceiver::new(false)),
            Delivery::Unreliable => ReceiveHalf::Unreliable,
            Delivery::Sequenced => ReceiveHalf::Sequenced { newest: None },
        };
        Self { id, out, into }
    }

    pub(crate) fn push(&mut self, message: PacketBuffer) {
        match &mut self.out {
            SendHalf::Reliable(sender) => sender.push(message.into_vec()),
            SendHalf::Unreliable(burst) => burst.push(message),
        }
    }

    /// The longest message that the channel supports, whatever the configuration is.
    pub(crate) fn max_message(&self) -> usize {
        match &self.out {
            SendHalf::Reliable(_) => usize::MAX,
            SendHalf::Unreliable(_) => MAX_UNRELIABLE,
        }
    }

    /// Adds something to a packet. `room` is how much more the other end can buffer; `may_cut` is
    /// true if no other channel is fragmenting an unreliable message.
    pub(crate) fn write(
        &mut self,
        body: &mut Body,
        room: usize,
        may_cut: bool,
        reliable: &mut Vec<ReliableContent>,
    ) -> WriteOutcome {
        match &mut self.out {
            SendHalf::Reliable(sender) => sender.write(body, room, reliable),
            SendHalf::Unreliable(burst) => burst.write(body, may_cut),
        }
    }

    pub(crate) fn is_reliable(&self) -> bool {
        matches!(self.out, SendHalf::Reliable(_))
    }

    /// Whether there is nothing to write, however much room there is.
    pub(crate) fn is_idle(&self) -> bool {
        match &self.out {
            SendHalf::Reliable(sender) => sender.is_idle(),
            SendHalf::Unreliable(burst) => burst.waiting() == 0,
        }
    }

    /// Whether it is sending an unreliable message in fragments.
    pub(crate) fn is_cutting(&self) -> bool {
        matches!(&self.out, SendHalf::Unreliable(burst) if burst.is_cutting())
    }

    pub(crate) fn sender(&mut self) -> Option<&mut ReliableSender> {
        match &mut self.out {
            SendHalf::Reliable(sender) => Some(sender),
            SendHalf::Unreliable(_) => None,
        }
    }

    /// Bytes that wait to be sent or acknowledged.
    pub(crate) fn waiting(&self) -> usize {
        match &self.out {
            SendHalf::Reliable(sender) => sender.waiting(),
            SendHalf::Unreliable(burst) => burst.waiting(),
        }
    }

    /// What the other end may have to buffer.
    pub(crate) fn exposed(&self) -> usize {
        match &self.out {
            SendHalf::Reliable(sender) => sender.exposed(),
            SendHalf::Unreliable(_) => 0,
        }
    }

    /// Bytes that are buffered here.
    pub(crate) fn buffered(&self) -> usize {
        match &self.into {
            ReceiveHalf::Reliable(receiver) => receiver.buffered(),
            ReceiveHalf::Unreliable | ReceiveHalf::Sequenced { .. } => 0,
        }
    }

    /// Gaps in what was received.
    pub(crate) fn gaps(&self) -> usize {
        match &self.into {
            ReceiveHalf::Reliable(receiver) => receiver.gaps(),
            ReceiveHalf::Unreliable | ReceiveHalf::Sequenced { .. } => 0,
        }
    }

    pub(crate) fn is_neglected(&self, activity: &ReceiveActivity, now: Time) -> bool {
        matches!(&self.into, ReceiveHalf::Reliable(receiver) if receiver.is_neglected(activity, now))
    }

    /// Handles a reliable message or fragment.
    pub(crate) fn handle_reliable(
        &mut self,
        piece: &MessageFrame<'_>,
        room: usize,
        activity: &ReceiveActivity,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), Fault> {
        match &mut self.into {
            ReceiveHalf::Reliable(receiver) => receiver.handle(piece, room, activity, out),
            ReceiveHalf::Unreliable | ReceiveHalf::Sequenced { .. } => Err(Fault::Violation),
        }
    }

    /// Handles an unreliable message or fragment; returns the message if it is complete and not too
    /// late.
    pub(crate) fn handle_unreliable(
        &mut self,
        piece: &MessageFrame<'_>,
        position: Position,
        reassembly: &mut Reassembly,
        now: Time,
    ) -> Result<Option<Vec<u8>>, Fault> {
        if matches!(self.into, ReceiveHalf::Reliable(_)) {
            return Err(Fault::Violation);
        }
        let (position, message) = match piece.fragment {
            None => (position, piece.bytes.to_vec()),
            Some(fragment) => match reassembly.add(piece, fragment, position, now)? {
                Some(complete) => complete,
                None => return Ok(None),
            },
        };
        if let ReceiveHalf::Sequenced { newest } = &mut self.into {
            if newest.is_some_and(|newest| newest >= position) {
                return Ok(None);
            }
            *newest = Some(position);
        }
        Ok(Some(message))
    }
}

/// Channels available to the game.
const CHANNELS: usize = LOBBY as usize;
/// Carries lobby messages.
pub(crate) const LOBBY: u8 = 13;
/// Carries requests and answers.
pub(crate) const REQUESTS: u8 = 14;
/// Carries messages about blobs.
pub(crate) const BLOBS: u8 = 15;
