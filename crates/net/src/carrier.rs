//! Secure UDP connections as carriers of the facade.

use std::error::Error;
use std::time::Duration;

use prescient_channels::{
    BlobError, BlobId, Capacity, Carrier, CarrierEvent, ChannelId, ClientId, CloseReason,
    ConnectError, ConnectionId, Input, InputError, InputTick, PacketBuffer, RequestId, SendError,
    Statistics, Time, Traffic,
};
use prescient_transport::{ClientEvent, ServerEvent};

use crate::blocking::{BlockingClient, BlockingServer};
use crate::statistics::SocketStatistics;

impl Carrier for BlockingServer {
    fn now(&self) -> Time {
        self.now()
    }

    fn poll(&mut self) -> Option<CarrierEvent> {
        // Events of the lobby are skipped.
        std::iter::from_fn(|| self.poll()).find_map(of_server)
    }

    fn wait_until(&mut self, deadline: Time) -> Option<CarrierEvent> {
        std::iter::from_fn(|| self.wait_until(deadline)).find_map(of_server)
    }

    fn send(
        &mut self,
        connection: ConnectionId,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError> {
        self.with(|server, now| server.send(connection, channel, message, now))
    }

    fn send_buffer(
        &mut self,
        connection: ConnectionId,
        channel: ChannelId,
        message: PacketBuffer,
    ) -> Result<(), SendError> {
        self.with(|server, now| server.send_buffer(connection, channel, message, now))
    }

    fn push_input(&mut self, _: InputTick, _: Input) -> Result<(), InputError> {
        Err(InputError::NotConnected)
    }

    fn flush(&mut self) {
        self.flush();
    }

    fn close(&mut self, connection: ConnectionId, reason: CloseReason) {
        self.with(|server, now| server.close(connection, reason, now));
    }

    fn shut_down(&mut self, reason: CloseReason) {
        self.with(|server, now| server.close_all(reason, now));
        self.finish();
    }

    fn capacity(&mut self, connection: ConnectionId) -> Capacity {
        self.with(|server, now| server.capacity(connection, now))
    }

    fn pause(&mut self, connection: ConnectionId, is_paused: bool) {
        self.with(|server, _| server.pause(connection, is_paused));
    }

    fn offer_blob(
        &mut self,
        connection: ConnectionId,
        label: &[u8],
        bytes: Vec<u8>,
    ) -> Result<BlobId, BlobError> {
        self.with(|server, now| server.offer_blob(connection, label, bytes, now))
    }

    fn accept_blob(&mut self, connection: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        self.with(|server, now| server.accept_blob(connection, blob, now))
    }

    fn cancel_blob(&mut self, connection: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        self.with(|server, now| server.cancel_blob(connection, blob, now))
    }

    fn request(
        &mut self,
        connection: ConnectionId,
        message: &[u8],
        timeout: Duration,
    ) -> Result<RequestId, SendError> {
        self.with(|server, now| server.request(connection, message, timeout, now))
    }

    fn respond(
        &mut self,
        connection: ConnectionId,
        request: RequestId,
        message: &[u8],
    ) -> Result<(), SendError> {
        self.with(|server, now| server.respond(connection, request, message, now))
    }

    fn set_banned(&mut self, client: ClientId, is_banned: bool) {
        self.with(|server, now| match is_banned {
            // With as many bans as it can hold, the layer above has to close the client.
            true => drop(server.ban(client, now)),
            false => drop(server.unban(client)),
        });
    }

    fn statistics(&self, connection: ConnectionId) -> Option<Statistics> {
        self.machine().statistics(connection)
    }

    fn traffic(&self) -> Traffic {
        self.statistics().traffic()
    }

    #[cfg(unix)]
    fn socket(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        Some(std::os::fd::AsFd::as_fd(self))
    }
}

impl Carrier for BlockingClient {
    fn now(&self) -> Time {
        self.now()
    }

    fn poll(&mut self) -> Option<CarrierEvent> {
        std::iter::from_fn(|| self.poll()).find_map(of_client)
    }

    fn wait_until(&mut self, deadline: Time) -> Option<CarrierEvent> {
        std::iter::from_fn(|| self.wait_until(deadline)).find_map(of_client)
    }

    fn send(
        &mut self,
        _: ConnectionId,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError> {
        self.with(|client, now| client.send(channel, message, now))
    }

    fn push_input(&mut self, tick: InputTick, input: Input) -> Result<(), InputError> {
        self.with(|client, now| client.push_input(tick, input, now))
    }

    fn flush(&mut self) {
        self.flush();
    }

    fn close(&mut self, _: ConnectionId, reason: CloseReason) {
        self.with(|client, now| client.close(reason, now));
    }

    fn shut_down(&mut self, reason: CloseReason) {
        self.with(|client, now| client.close(reason, now));
        self.finish();
    }

    fn offer_blob(
        &mut self,
        _: ConnectionId,
        label: &[u8],
        bytes: Vec<u8>,
    ) -> Result<BlobId, BlobError> {
        self.with(|client, now| client.offer_blob(label, bytes, now))
    }

    fn accept_blob(&mut self, _: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        self.with(|client, now| client.accept_blob(blob, now))
    }

    fn cancel_blob(&mut self, _: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        self.with(|client, now| client.cancel_blob(blob, now))
    }

    fn request(
        &mut self,
        _: ConnectionId,
        message: &[u8],
        timeout: Duration,
    ) -> Result<RequestId, SendError> {
        self.with(|client, now| client.request(message, timeout, now))
    }

    fn respond(
        &mut self,
        _: ConnectionId,
        request: RequestId,
        message: &[u8],
    ) -> Result<(), SendError> {
        self.with(|client, now| client.respond(request, message, now))
    }

    fn statistics(&self, _: ConnectionId) -> Option<Statistics> {
        self.machine().statistics()
    }

    fn remote_time(&mut self, _: ConnectionId) -> Option<Time> {
        self.with(|client, now| client.server_time(now))
    }

    fn traffic(&self) -> Traffic {
        self.statistics().traffic()
    }

    fn explain(&self, error: ConnectError) -> Box<dyn Error + Send + Sync> {
        Box::new(self.explain(error))
    }

    #[cfg(unix)]
    fn socket(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        Some(std::os::fd::AsFd::as_fd(self))
    }
}

impl SocketStatistics {
    fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        traffic.packets_sent = self.datagrams_sent;
        traffic.bytes_sent = self.bytes_sent;
        traffic.packets_received = self.datagrams_received;
        traffic.bytes_received = self.bytes_received;
        traffic
    }
}

/// `None` for events of the lobby and of migration.
fn of_server(event: ServerEvent) -> Option<CarrierEvent> {
    Some(match event {
        ServerEvent::Connected {
            connection,
            client,
            data,
            ..
        } => CarrierEvent::Connected {
            connection,
            client,
            data,
        },
        ServerEvent::Received {
            connection,
            received,
        } => CarrierEvent::Received {
            connection,
            received,
        },
        ServerEvent::Silent { connection } => CarrierEvent::Silent(connection),
        ServerEvent::Resumed { connection } => CarrierEvent::Resumed(connection),
        ServerEvent::Closed { connection, reason } => CarrierEvent::Closed { connection, reason },
        _ => return None,
    })
}

/// `None` for events of the lobby.
fn of_client(event: ClientEvent) -> Option<CarrierEvent> {
    let connection = ConnectionId::SERVER;
    Some(match event {
        ClientEvent::Connected { .. } => CarrierEvent::Connected {
            connection,
            // The sealed part of the token has it, which a client cannot read.
            client: ClientId(0),
            data: Vec::new(),
        },
        ClientEvent::Failed(error) => CarrierEvent::Failed(error),
        ClientEvent::Received(received) => CarrierEvent::Received {
            connection,
            received,
        },
        ClientEvent::Silent => CarrierEvent::Silent(connection),
        ClientEvent::Resumed => CarrierEvent::Resumed(connection),
        ClientEvent::Closed(reason) => CarrierEvent::Closed { connection, reason },
        _ => return None,
    })
}
