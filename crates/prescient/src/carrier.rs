//! Carries messages over connections of a socket or over queues inside the process.
//!
//! Both report events with the types of the transport, so the layers above do not distinguish the
//! two.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;

use prescient_net::{BlockingClient, BlockingServer, Clock, SocketStatistics};
use prescient_replication::PeerId;
use prescient_transport::{
    ChannelId, ClientEvent, CloseReason, ConnectError, ConnectionId, Input, InputError, InputTick,
    LinkConfig, MAX_FIELDS, Received, SendError, ServerEvent, Statistics, Time,
};

use crate::error::JoinError;
use crate::local::{Arrival, LocalClient, LocalPeer, pair};

/// Carries a client's messages.
pub(crate) enum ClientCarrier {
    Socket(Box<BlockingClient>),
    Local(LocalCarrier),
}

/// The client's end inside the server's process.
pub(crate) struct LocalCarrier {
    line: LocalClient,
    clock: Clock,
    /// The server's limit for connections applies to local clients, too.
    max_message: usize,
    /// An input for which there was no room.
    unsent_input: Option<Input>,
}

impl ClientCarrier {
    /// The next event, if any.
    pub fn poll(&mut self) -> Option<ClientEvent> {
        match self {
            Self::Socket(net) => net.poll(),
            Self::Local(local_client) => local_client.poll(),
        }
    }

    /// Like [`poll`](Self::poll), but sleeps until there is an event or the deadline passes.
    pub fn wait_until(&mut self, deadline: Time) -> Option<ClientEvent> {
        match self {
            Self::Socket(net) => net.wait_until(deadline),
            Self::Local(local_client) => local_client.wait_until(deadline),
        }
    }

    pub fn now(&self) -> Time {
        match self {
            Self::Socket(net) => net.now(),
            Self::Local(local_client) => local_client.clock.now(),
        }
    }

    pub fn send(&mut self, channel: ChannelId, message: &[u8]) -> Result<(), SendError> {
        match self {
            Self::Socket(net) => {
                let sent = net.with(|client, now| client.send(channel, message, now));
                net.flush();
                sent
            }
            Self::Local(local_client) => {
                check_length(message, local_client.max_message)?;
                local_client.line.send(received_message(channel, message))
            }
        }
    }

    /// Sends the player's input; `tick` must be later than all before.
    pub fn push_input(&mut self, tick: InputTick, input: Input) -> Result<(), InputError> {
        match self {
            Self::Socket(net) => {
                net.with(|client, now| client.push_input(tick, input, now))?;
                net.flush();
                Ok(())
            }
            Self::Local(local_client) => local_client.push_input(tick, input),
        }
    }

    /// Closes the connection, and returns when the server was notified.
    pub fn close(&mut self, reason: CloseReason) {
        match self {
            Self::Socket(net) => {
                net.with(|client, now| client.close(reason, now));
                net.finish();
            }
            Self::Local(local_client) => local_client.line.close(reason),
        }
    }

    /// Explains why there is no connection, or why the server does not respond over it.
    pub fn why_not_joined(&self, error: ConnectError) -> JoinError {
        match self {
            Self::Socket(net) if net.machine().is_connected() => JoinError::NoAnswer,
            Self::Socket(net) => net.explain(error).into(),
            Self::Local(_) => JoinError::NoAnswer,
        }
    }

    /// The socket of the connection; a local client has none.
    #[cfg(unix)]
    pub fn socket(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        match self {
            Self::Socket(net) => Some(std::os::fd::AsFd::as_fd(&**net)),
            Self::Local(_) => None,
        }
    }

    /// Statistics of the connection; a local client has none.
    pub fn statistics(&self) -> Option<Statistics> {
        match self {
            Self::Socket(net) => net.machine().statistics(),
            Self::Local(_) => None,
        }
    }
}

impl LocalCarrier {
    fn poll(&self) -> Option<ClientEvent> {
        match self.line.poll()? {
            Arrival::Received(received) => Some(ClientEvent::Received(received)),
            Arrival::Closed(reason) => Some(ClientEvent::Closed(reason)),
        }
    }

    fn push_input(&mut self, tick: InputTick, mut input: Input) -> Result<(), InputError> {
        if input.fields.len() > MAX_FIELDS {
            return Err(InputError::Fields(input.fields.len()));
        }
        if let Some(unsent_input) = self.unsent_input.take() {
            input.pressed = input.pressed.or(unsent_input.pressed);
        }
        let sent = self.line.send(Received::Input {
            tick,
            input: input.clone(),
        });
        match sent {
            // Merge the presses into the next input.
            Err(SendError::Backlogged) => {
                self.unsent_input = Some(input);
                Ok(())
            }
            Err(_) => Err(InputError::NotConnected),
            Ok(()) => Ok(()),
        }
    }

    fn wait_until(&self, deadline: Time) -> Option<ClientEvent> {
        loop {
            let left = deadline.since(self.clock.now());
            match self.poll() {
                None if !left.is_zero() => self.line.sleep(left),
                event => return event,
            }
        }
    }
}

/// Carries a server's messages.
pub(crate) struct ServerCarrier {
    /// `None` for an offline server.
    net: Option<BlockingServer>,
    local_clients: BTreeMap<PeerId, LocalPeer>,
    /// How many local clients were ever added; the source of their ids.
    local_clients_added: u64,
    clock: Clock,
    max_message: usize,
}

impl ServerCarrier {
    pub fn new(net: Option<BlockingServer>, link: &LinkConfig) -> Self {
        Self {
            net,
            local_clients: BTreeMap::new(),
            local_clients_added: 0,
            clock: Clock::start(),
            max_message: link.max_message,
        }
    }

    /// Adds a local client. Connections have random 64-bit ids, so small ones are free for local
    /// clients.
    pub fn add_local_client(&mut self) -> (PeerId, ClientCarrier) {
        let (line, peer) = pair();
        self.local_clients_added += 1;
        let id = PeerId(self.local_clients_added);
        self.local_clients.insert(id, peer);
        let local_client = LocalCarrier {
            line,
            clock: Clock::start(),
            max_message: self.max_message,
            unsent_input: None,
        };
        (id, ClientCarrier::Local(local_client))
    }

    pub fn local_clients(&self) -> &BTreeMap<PeerId, LocalPeer> {
        &self.local_clients
    }

    /// The next event, if any.
    pub fn poll(&mut self) -> Option<ServerEvent> {
        // Local clients first: reading the socket takes a system call.
        let inside = self.poll_local_clients();
        inside.or_else(|| self.net.as_mut().and_then(BlockingServer::poll))
    }

    /// Like [`poll`](Self::poll), but sleeps until the socket has an event or the deadline passes.
    /// Messages of local clients wait to be polled.
    pub fn wait_until(&mut self, deadline: Time) -> Option<ServerEvent> {
        let left = deadline.since(self.clock.now());
        let Some(net) = &mut self.net else {
            #[expect(
                clippy::disallowed_methods,
                reason = "without a socket there is no source of events to wait for"
            )]
            thread::sleep(left);
            return None;
        };
        net.wait(left)
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Sends at the next [`flush`](Self::flush) at the latest.
    pub fn send(
        &mut self,
        peer: PeerId,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError> {
        match (self.local_clients.get(&peer), &mut self.net) {
            (Some(local_client), _) => {
                check_length(message, self.max_message)?;
                local_client.send(received_message(channel, message))
            }
            (None, Some(net)) => {
                net.with(|server, now| server.send(connection(peer), channel, message, now))
            }
            (None, None) => Err(SendError::NotConnected),
        }
    }

    /// Whether a message for a peer on this channel still waits to be sent.
    pub fn is_waiting(&self, peer: PeerId, channel: ChannelId) -> bool {
        let net = self.net.as_ref();
        net.is_some_and(|net| net.machine().is_waiting(connection(peer), channel))
    }

    /// Stops or resumes receiving messages and inputs of a connection. The queue of a local client
    /// is bounded without it.
    pub fn pause(&mut self, peer: PeerId, is_paused: bool) {
        if let Some(net) = &mut self.net {
            net.with(|server, _| server.pause(connection(peer), is_paused));
        }
    }

    pub fn flush(&mut self) {
        if let Some(net) = &mut self.net {
            net.flush();
        }
    }

    /// Closes a connection; the event of its end is still to be polled.
    pub fn close(&mut self, peer: PeerId, reason: CloseReason) {
        match (self.local_clients.get(&peer), &mut self.net) {
            (Some(local_client), _) => local_client.close(reason),
            (None, Some(net)) => {
                net.with(|server, now| server.close(connection(peer), reason, now));
            }
            (None, None) => {}
        }
    }

    /// Closes all connections, and returns when the peers were notified.
    pub fn shut_down(mut self) {
        if let Some(net) = &mut self.net {
            net.with(|server, now| server.close_all(CloseReason::ShuttingDown, now));
            net.finish();
        }
    }

    pub fn address(&self) -> Option<SocketAddr> {
        self.net.as_ref().map(BlockingServer::address)
    }

    pub fn socket_statistics(&self) -> SocketStatistics {
        let net = self.net.as_ref().map(BlockingServer::statistics);
        net.unwrap_or_default()
    }

    /// Statistics of a connection; a local client has none.
    pub fn statistics(&self, peer: PeerId) -> Option<Statistics> {
        self.net.as_ref()?.machine().statistics(connection(peer))
    }

    fn poll_local_clients(&mut self) -> Option<ServerEvent> {
        let mut arrivals = (self.local_clients.iter())
            .filter_map(|(id, local_client)| Some((*id, local_client.poll()?)));
        let (peer, arrival) = arrivals.next()?;
        let connection = connection(peer);
        match arrival {
            Arrival::Received(received) => Some(ServerEvent::Received {
                connection,
                received,
            }),
            Arrival::Closed(reason) => {
                self.local_clients.remove(&peer);
                Some(ServerEvent::Closed { connection, reason })
            }
        }
    }
}

fn connection(peer: PeerId) -> ConnectionId {
    ConnectionId(peer.0)
}

fn received_message(channel: ChannelId, message: &[u8]) -> Received {
    Received::Message {
        channel,
        message: message.to_vec(),
    }
}

/// Applies the limit of connections to local clients too, so that a game does not first fail when
/// played online.
fn check_length(message: &[u8], limit: usize) -> Result<(), SendError> {
    match message.len() {
        length if length > limit => Err(SendError::TooLong { length, limit }),
        _ => Ok(()),
    }
}
