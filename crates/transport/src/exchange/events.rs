//! What an exchange tells the game.

use std::collections::VecDeque;

use super::blob::BlobId;
use super::channel::ChannelId;
use super::request::{RequestError, RequestId};
use crate::input::{Input, InputTick};

/// Something that came from the other end, or became of what went there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A message arrived.
    Message {
        /// On which channel.
        channel: ChannelId,
        /// What it says.
        message: Vec<u8>,
    },
    /// A player did something. Each input comes once, in the order of ticks; of those that were not
    /// heard of for long several may have become one.
    Input {
        /// When, in ticks of the client.
        tick: InputTick,
        /// What.
        input: Input,
    },
    /// The other end wants to know something: `respond`.
    Request {
        /// What to respond to.
        request: RequestId,
        /// What it wants to know.
        message: Vec<u8>,
    },
    /// A request of ours was answered, or will not be. Said once of each.
    Answer {
        /// Which.
        request: RequestId,
        /// The answer.
        answer: Result<Vec<u8>, RequestError>,
    },
    /// The other end has something large for us: `accept_blob` or `cancel_blob`.
    BlobOffered {
        /// What to call it.
        blob: BlobId,
        /// What it is, in the game's own words.
        label: Vec<u8>,
        /// How many bytes it has.
        size: u64,
    },
    /// A blob is under way, in either direction.
    BlobProgress {
        /// Which.
        blob: BlobId,
        /// Bytes that have arrived.
        done: u64,
        /// Of how many.
        size: u64,
    },
    /// A blob that we accepted is complete.
    BlobArrived {
        /// Which.
        blob: BlobId,
        /// All of it.
        bytes: Vec<u8>,
    },
    /// A blob of ours is complete at the other end.
    BlobDelivered {
        /// Which.
        blob: BlobId,
    },
    /// The other end withdrew, refused or stopped a blob.
    BlobCancelled {
        /// Which.
        blob: BlobId,
    },
}

impl Received {
    /// What it takes to keep it.
    pub(crate) fn cost(&self) -> usize {
        let bytes = match self {
            Self::Message { message, .. } | Self::Request { message, .. } => message.len(),
            Self::Answer { answer, .. } => answer.as_ref().map_or(0, Vec::len),
            Self::BlobOffered { label, .. } => label.len(),
            Self::Input { input, .. } => input.fields.len(),
            Self::BlobArrived { bytes, .. } => bytes.len(),
            Self::BlobProgress { .. } | Self::BlobDelivered { .. } | Self::BlobCancelled { .. } => {
                0
            }
        };
        bytes + size_of::<Self>()
    }
}

/// What happened since somebody looked.
#[derive(Default)]
pub(crate) struct Events(VecDeque<Received>);

impl Events {
    pub(crate) fn push(&mut self, event: Received) {
        self.0.push_back(event);
    }

    pub(crate) fn pop(&mut self) -> Option<Received> {
        self.0.pop_front()
    }
}
