//! What carries messages: connections over a socket, or queues inside the process.
//!
//! Both say what happens in the words of the transport, and nobody else has to know which it is.

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

/// What carries a client's messages.
pub(crate) enum ClientCarrier {
    Socket(Box<BlockingClient>),
    Local(LocalCarrier),
}

/// A client in the server's process.
pub(crate) struct LocalCarrier {
    line: LocalClient,
    clock: Clock,
    /// What the server takes from others, it takes from a local client.
    max_message: usize,
    /// An input for which there was no room.
    unsent_input: Option<Input>,
}

impl ClientCarrier {
    /// The next thing that happened.
    pub fn poll(&mut self) -> Option<ClientEvent> {
        match self {
            Self::Socket(net) => net.poll(),
            Self::Local(local_client) => local_client.poll(),
        }
    }

    /// The same, but sleeps until there is something, or until then.
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

    /// Tells the server what the player does, in a tick later than all before.
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

    /// Says goodbye, and returns when that is said.
    pub fn close(&mut self, reason: CloseReason) {
        match self {
            Self::Socket(net) => {
                net.with(|client, now| client.close(reason, now));
                net.finish();
            }
            Self::Local(local_client) => local_client.line.close(reason),
        }
    }

    /// Why there is no connection, or one over which the server does not answer.
    pub fn why_not_joined(&self, error: ConnectError) -> JoinError {
        match self {
            Self::Socket(net) if net.machine().is_connected() => JoinError::NoAnswer,
            Self::Socket(net) => net.explain(error).into(),
            Self::Local(_) => JoinError::NoAnswer,
        }
    }

    /// Where the connection's datagrams arrive; a local client has none.
    #[cfg(unix)]
    pub fn socket(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        match self {
            Self::Socket(net) => Some(std::os::fd::AsFd::as_fd(&**net)),
            Self::Local(_) => None,
        }
    }

    /// What the connection has seen; a local client has none.
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
            // What was pressed meanwhile is said with what comes next.
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

/// What carries a server's messages.
pub(crate) struct ServerCarrier {
    /// `None` for a server that nobody else can join.
    net: Option<BlockingServer>,
    local_clients: BTreeMap<PeerId, LocalPeer>,
    /// How many local clients there ever were.
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

    /// A new local client, and what to call who sits there. Connections have random numbers of 64 bits, so
    /// the small ones are free.
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

    /// The next thing that happened.
    pub fn poll(&mut self) -> Option<ServerEvent> {
        // Local clients first: every look into the socket may take some time.
        let inside = self.poll_local_clients();
        inside.or_else(|| self.net.as_mut().and_then(BlockingServer::poll))
    }

    /// The same, but sleeps until something came through the socket, or until then. What local clients say
    /// meanwhile waits to be polled.
    pub fn wait_until(&mut self, deadline: Time) -> Option<ServerEvent> {
        let left = deadline.since(self.clock.now());
        let Some(net) = &mut self.net else {
            #[expect(
                clippy::disallowed_methods,
                reason = "without a socket there is nothing to wait in, and nothing that would come"
            )]
            thread::sleep(left);
            return None;
        };
        net.wait(left)
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Sends, with the next [`flush`](Self::flush) at the latest.
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

    /// Whether something that was said to a peer still waits to be sent.
    pub fn is_waiting(&self, peer: PeerId, channel: ChannelId) -> bool {
        let net = self.net.as_ref();
        net.is_some_and(|net| net.machine().is_waiting(connection(peer), channel))
    }

    /// Takes no more messages and inputs of a connection, or takes them again. A local client waits by itself.
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

    /// Ends a connection; that it did is still to be polled.
    pub fn close(&mut self, peer: PeerId, reason: CloseReason) {
        match (self.local_clients.get(&peer), &mut self.net) {
            (Some(local_client), _) => local_client.close(reason),
            (None, Some(net)) => {
                net.with(|server, now| server.close(connection(peer), reason, now));
            }
            (None, None) => {}
        }
    }

    /// Says goodbye to everybody, and returns when that is said.
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

    /// What a connection has seen; a local client has none.
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

/// Games shall not learn when they go online that a message is too long.
fn check_length(message: &[u8], limit: usize) -> Result<(), SendError> {
    match message.len() {
        length if length > limit => Err(SendError::TooLong { length, limit }),
        _ => Ok(()),
    }
}
