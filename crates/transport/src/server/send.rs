//! What the game says to its clients.

use std::time::Duration;

use super::{ConnectionId, Server};
use crate::error::SendError;
use crate::exchange::blob::{BlobError, BlobId};
use crate::exchange::channel::ChannelId;
use crate::exchange::request::RequestId;
use crate::time::Time;

impl Server {
    /// Says something to a client on a channel, which decides what becomes of it. It goes out with
    /// the next datagram to that client that is polled.
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

    /// Whether something that was said to a client on a channel still waits, because more goes there
    /// than may, or because it does not answer. Whoever says something anew in every tick saves
    /// itself the trouble as long as this is so.
    pub fn is_waiting(&self, connection: ConnectionId, channel: ChannelId) -> bool {
        let client_connection = self.connections.get(&connection);
        client_connection
            .is_some_and(|client_connection| client_connection.connection.is_waiting(channel))
    }

    /// Takes no more messages and inputs of a client, or takes them again; for games that have as many
    /// of one client as they can hold. Packets with messages count as lost on the way meanwhile,
    /// inputs are joined, and the connection lives on.
    pub fn pause(&mut self, connection: ConnectionId, is_paused: bool) {
        if let Some(exchange) = self.exchange(connection) {
            exchange.pause(is_paused);
        }
    }

    /// Asks a client something. Exactly one [`Received::Answer`](crate::Received::Answer) follows.
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

    /// Answers a [`Received::Request`](crate::Received::Request). Only the first answer counts, and
    /// none that comes too late.
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

    /// Offers a client something large, with a label of up to 64 bytes that tells it what.
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

    /// Accepts a [`Received::BlobOffered`](crate::Received::BlobOffered); from now on it takes memory.
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

    /// Refuses or stops a blob of a client, or withdraws one of ours. Nothing more is heard of it,
    /// except that a blob of ours may have been complete before the client knew.
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
