//! Events of an exchange.

use std::collections::VecDeque;

use crate::blob::BlobId;
use crate::channel::ChannelId;
use crate::input::{Input, InputTick};
use crate::request::{RequestError, RequestId};

/// A message of the other end, or the outcome of a request or blob.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Received {
    /// A message arrived.
    Message {
        /// The channel of the message.
        channel: ChannelId,
        /// Its bytes.
        message: Vec<u8>,
    },
    /// An input of a player. Each input is reported once, in the order of ticks; after a blackout,
    /// several may have been joined into one.
    Input {
        /// The client's tick.
        tick: InputTick,
        /// The player's input.
        input: Input,
    },
    /// A request of the other end; answer it with `respond`.
    Request {
        /// Identifies the request.
        request: RequestId,
        /// Its bytes.
        message: Vec<u8>,
    },
    /// A request of ours was answered, or failed. Reported exactly once.
    Answer {
        /// The request.
        request: RequestId,
        /// The answer's bytes.
        answer: Result<Vec<u8>, RequestError>,
    },
    /// The other end offers a blob: call `accept_blob` or `cancel_blob`.
    BlobOffered {
        /// Identifies the blob.
        blob: BlobId,
        /// The sender's description of it.
        label: Vec<u8>,
        /// Its size in bytes.
        size: u64,
    },
    /// Progress of a blob, in either direction.
    BlobProgress {
        /// The blob.
        blob: BlobId,
        /// Bytes that have arrived.
        done: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// A blob that we accepted is complete.
    BlobArrived {
        /// The blob.
        blob: BlobId,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A blob of ours is complete at the other end.
    BlobDelivered {
        /// The blob.
        blob: BlobId,
    },
    /// The other end withdrew, refused or stopped a blob.
    BlobCancelled {
        /// The blob.
        blob: BlobId,
    },
}

impl Received {
    /// The memory that it takes while it waits to be polled.
    pub fn cost(&self) -> usize {
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

/// Events that wait to be polled.
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
