//! Queueing messages, requests and blobs for sending.

use std::time::Duration;

use crate::blob::{BlobError, BlobId};
use crate::channel::{BLOBS, Channel, ChannelId, LOBBY, REQUESTS};
use crate::error::SendError;
use crate::exchange::Exchange;
use crate::input::{Input, InputError, InputTick};
use crate::packet_buffer::PacketBuffer;
use crate::request::{self, RequestId};
use crate::time::Time;

impl Exchange {
    /// Queues a message.
    pub fn send(&mut self, channel: ChannelId, message: &[u8]) -> Result<(), SendError> {
        let known = self.config.channels.delivery(channel);
        known.ok_or(SendError::NoSuchChannel(channel))?;
        self.push(channel.0, message.len(), || message.to_vec().into())
    }

    /// Like [`send`](Self::send), without copying the message: an unreliable one that has
    /// [`HEADROOM`](PacketBuffer::HEADROOM) becomes the end of its packet, in the same buffer.
    pub fn send_buffer(
        &mut self,
        channel: ChannelId,
        message: PacketBuffer,
    ) -> Result<(), SendError> {
        let known = self.config.channels.delivery(channel);
        known.ok_or(SendError::NoSuchChannel(channel))?;
        self.push(channel.0, message.len(), || message)
    }

    /// Queues a request; an [`Answer`](crate::Received::Answer) follows within `timeout`.
    pub fn request(
        &mut self,
        message: &[u8],
        timeout: Duration,
        now: Time,
    ) -> Result<RequestId, SendError> {
        if self.requests.is_full() {
            return Err(SendError::Backlogged);
        }
        let number = self.requests.open(now.after(timeout));
        let pushed = self.push(REQUESTS, message.len(), || {
            request::write(number, false, message).into()
        });
        if let Err(error) = pushed {
            self.requests.close(number);
            return Err(error);
        }
        Ok(RequestId { number, ours: true })
    }

    /// Answers a request of the other end.
    pub fn respond(&mut self, request: RequestId, message: &[u8]) -> Result<(), SendError> {
        if request.ours {
            return Err(SendError::NotAsked);
        }
        self.push(REQUESTS, message.len(), || {
            request::write(request.number, true, message).into()
        })
    }

    /// Offers large data; it is sent when the other end accepts.
    pub fn offer_blob(&mut self, label: &[u8], bytes: Vec<u8>) -> Result<BlobId, BlobError> {
        let channel = self.channels.iter_mut().find(|channel| channel.id == BLOBS);
        let channel = channel.ok_or(BlobError::NotConnected)?;
        if channel.waiting() > self.config.backlog {
            return Err(BlobError::Backlogged);
        }
        let (blob, blob_message) = self.blobs.offer(label, bytes)?;
        channel.push(blob_message.into());
        Ok(blob)
    }

    /// Accepts an offer of the other end.
    pub fn accept_blob(&mut self, blob: BlobId) -> Result<(), BlobError> {
        let memory = self.config.blob_memory;
        let blob_message = self.blobs.accept(blob, memory, &mut self.events)?;
        let channel = self.channel(BLOBS).ok_or(BlobError::NotConnected)?;
        channel.push(blob_message.into());
        Ok(())
    }

    /// Withdraws, refuses or stops a blob.
    pub fn cancel_blob(&mut self, blob: BlobId) -> Result<(), BlobError> {
        let blob_message = self.blobs.cancel(blob)?;
        let channel = self.channel(BLOBS).ok_or(BlobError::NotConnected)?;
        channel.push(blob_message.into());
        Ok(())
    }

    /// Queues an input of the player; `tick` must be later than all before.
    pub fn push_input(&mut self, tick: InputTick, input: Input) -> Result<(), InputError> {
        self.inputs.push(tick, input)
    }

    /// Sends a lobby message; `false` if too many wait because the other end acknowledges nothing.
    pub fn send_lobby(&mut self, message: Vec<u8>) -> bool {
        let backlog = self.config.backlog.max(MIN_BACKLOG);
        let channel = self.channel(LOBBY);
        match channel.filter(|channel| channel.waiting() <= backlog) {
            Some(channel) => channel.push(message.into()),
            None => return false,
        }
        true
    }

    /// Adds a message to a channel's queue, if neither exceeds its limit.
    fn push(
        &mut self,
        id: u8,
        length: usize,
        message: impl FnOnce() -> PacketBuffer,
    ) -> Result<(), SendError> {
        let (limit, backlog) = (self.config.max_message, self.config.backlog);
        let waiting: usize = self.channels.iter().map(Channel::waiting).sum();
        let channel = self.channel(id).ok_or(SendError::NotConnected)?;
        let limit = limit.min(channel.max_message());
        if length > limit {
            return Err(SendError::TooLong { length, limit });
        }
        if waiting + length > backlog {
            return Err(SendError::Backlogged);
        }
        channel.push(message());
        Ok(())
    }
}

/// A new client must be sent the whole roster, however small the configured backlog is.
const MIN_BACKLOG: usize = 1 << 20;
