//! Sending to clients: messages, requests and blobs.

use std::time::Duration;

use prescient_channels::{
    BlobError, BlobId, Capacity, ChannelId, ConnectionId, PacketBuffer, RequestId, SendError, Time,
};

use super::Server;

impl Server {
    /// Queues a message for a client on a channel; the channel decides its delivery. It is sent
    /// with the next datagram to that client that is polled.
    pub fn send(
        &mut self,
        connection: ConnectionId,
        channel: ChannelId,
        message: &[u8],
        now: Time,
    ) -> Result<(), SendError> {
        self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(SendError::NotConnected)?;
        exchange.send(channel, message)
    }

    /// Like [`send`](Self::send), without copying the message: an unreliable one that has
    /// [`HEADROOM`](PacketBuffer::HEADROOM) becomes the end of its datagram, in the same buffer.
    pub fn send_buffer(
        &mut self,
        connection: ConnectionId,
        channel: ChannelId,
        message: PacketBuffer,
        now: Time,
    ) -> Result<(), SendError> {
        self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(SendError::NotConnected)?;
        exchange.send_buffer(channel, message)
    }

    /// How much a client can be sent now. It is nothing while unreliable messages wait, because of
    /// congestion or because the client is silent: a game that sends fresh state every tick can
    /// skip the tick then.
    pub fn capacity(&mut self, connection: ConnectionId, now: Time) -> Capacity {
        let now = self.clock.advance(now);
        let client_connection = self.connections.get_mut(&connection);
        client_connection.map_or(Capacity::NONE, |it| it.connection.capacity(now))
    }

    /// Stops or resumes accepting messages and inputs of a client, for games that have as many of
    /// one client as they can hold. While paused, packets with messages are treated as lost and
    /// inputs are joined; the connection stays open.
    pub fn pause(&mut self, connection: ConnectionId, is_paused: bool) {
        if let Some(exchange) = self.exchange(connection) {
            exchange.pause(is_paused);
        }
    }

    /// Sends a request to a client. Exactly one [`Received::Answer`](prescient_channels::Received::Answer)
    /// follows.
    pub fn request(
        &mut self,
        connection: ConnectionId,
        message: &[u8],
        timeout: Duration,
        now: Time,
    ) -> Result<RequestId, SendError> {
        let now = self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(SendError::NotConnected)?;
        exchange.request(message, timeout, now)
    }

    /// Answers a [`Received::Request`](prescient_channels::Received::Request). Only the first answer counts, and
    /// none after the request's timeout.
    pub fn respond(
        &mut self,
        connection: ConnectionId,
        request: RequestId,
        message: &[u8],
        now: Time,
    ) -> Result<(), SendError> {
        self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(SendError::NotConnected)?;
        exchange.respond(request, message)
    }

    /// Offers a blob to a client, with a label of up to 64 bytes that describes it.
    pub fn offer_blob(
        &mut self,
        connection: ConnectionId,
        label: &[u8],
        bytes: Vec<u8>,
        now: Time,
    ) -> Result<BlobId, BlobError> {
        self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(BlobError::NotConnected)?;
        exchange.offer_blob(label, bytes)
    }

    /// Accepts a [`Received::BlobOffered`](prescient_channels::Received::BlobOffered) and reserves its memory.
    pub fn accept_blob(
        &mut self,
        connection: ConnectionId,
        blob: BlobId,
        now: Time,
    ) -> Result<(), BlobError> {
        self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(BlobError::NotConnected)?;
        let accepted = exchange.accept_blob(blob);
        self.collect(connection);
        accepted
    }

    /// Refuses or stops an incoming blob, or withdraws an outgoing one. No event of it follows,
    /// except that an outgoing blob may have been completed before the client is told.
    pub fn cancel_blob(
        &mut self,
        connection: ConnectionId,
        blob: BlobId,
        now: Time,
    ) -> Result<(), BlobError> {
        self.clock.advance(now);
        let exchange = self.exchange(connection).ok_or(BlobError::NotConnected)?;
        exchange.cancel_blob(blob)
    }
}
