//! All carriers of a server, and which of them carries which peer.

use std::collections::BTreeMap;

use prescient_channels::{
    Capacity, Carrier, CarrierEvent, ChannelId, ClientId, CloseReason, ConnectionId, PacketBuffer,
    SendError, Statistics, Time, Traffic,
};
use prescient_replication::PeerId;

use crate::local::{LocalClient, LocalServer};

pub(crate) struct Carriers {
    local: LocalServer,
    others: Vec<Box<dyn Carrier>>,
    connections: BTreeMap<PeerId, CarrierConnection>,
    peers: BTreeMap<CarrierConnection, PeerId>,
    /// How many peers there ever were; the source of their ids.
    added: u64,
}

/// Where a peer is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CarrierConnection {
    carrier: CarrierIndex,
    connection: ConnectionId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CarrierIndex {
    Local,
    Other(usize),
}

impl Carriers {
    pub(crate) fn new(max_message: usize) -> Self {
        Self {
            local: LocalServer::new(max_message),
            others: Vec::new(),
            connections: BTreeMap::new(),
            peers: BTreeMap::new(),
            added: 0,
        }
    }

    pub(crate) fn add(&mut self, carrier: Box<dyn Carrier>) {
        self.others.push(carrier);
    }

    /// Adds a local client, which is connected at once.
    pub(crate) fn add_local_client(&mut self) -> (PeerId, LocalClient) {
        let (connection, client) = self.local.add_client();
        let carrier = CarrierIndex::Local;
        let peer = self.add_peer(CarrierConnection {
            carrier,
            connection,
        });
        (peer, client)
    }

    /// Whether a peer is a client in this process.
    pub(crate) fn is_local(&self, peer: PeerId) -> bool {
        let at = self.connections.get(&peer);
        at.is_some_and(|at| at.carrier == CarrierIndex::Local)
    }

    /// The next event, if any.
    pub(crate) fn poll(&mut self) -> Option<(PeerId, CarrierEvent)> {
        // Local clients first: reading a socket takes a system call.
        while let Some(event) = self.local.poll() {
            if let Some(event) = self.assign(CarrierIndex::Local, event) {
                return Some(event);
            }
        }
        for index in 0..self.others.len() {
            while let Some(event) = self.others[index].poll() {
                if let Some(event) = self.assign(CarrierIndex::Other(index), event) {
                    return Some(event);
                }
            }
        }
        None
    }

    /// Like [`poll`](Self::poll), but sleeps until a socket has an event or the deadline passes.
    /// Messages of local clients wait to be polled.
    pub(crate) fn wait_until(&mut self, deadline: Time) -> Option<(PeerId, CarrierEvent)> {
        if self.others.is_empty() {
            sleep(deadline.since(self.now()));
            return None;
        }
        loop {
            let is_only = self.others.len() == 1;
            for index in 0..self.others.len() {
                let left = deadline.since(self.local.now());
                // Several sockets take turns.
                let turn = if is_only { left } else { left.min(TURN) };
                let carrier = &mut self.others[index];
                let event = carrier.wait_until(carrier.now().after(turn));
                let event = event.and_then(|it| self.assign(CarrierIndex::Other(index), it));
                if event.is_some() {
                    return event;
                }
            }
            if self.now() >= deadline {
                return None;
            }
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.local.now()
    }

    /// A time of [`now`](Self::now) on the clock of the carrier of a peer.
    pub(crate) fn on_carriers_clock(&self, peer: PeerId, time: Time) -> Option<Time> {
        let (carrier, _) = self.look_up(peer)?;
        let (here, there) = (self.now().as_micros(), carrier.now().as_micros());
        let ahead = i128::from(time.as_micros()) - i128::from(here);
        let micros = (i128::from(there) + ahead).max(0);
        Some(Time::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
    }

    /// Sends at the next [`flush`](Self::flush) at the latest.
    pub(crate) fn send(
        &mut self,
        peer: PeerId,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let (carrier, connection) = self.of(peer).ok_or(SendError::NotConnected)?;
        carrier.send(connection, channel, message)
    }

    /// Like [`send`](Self::send), without copying the message if the carrier supports that.
    pub(crate) fn send_buffer(
        &mut self,
        peer: PeerId,
        channel: ChannelId,
        message: PacketBuffer,
    ) -> Result<(), SendError> {
        let (carrier, connection) = self.of(peer).ok_or(SendError::NotConnected)?;
        carrier.send_buffer(connection, channel, message)
    }

    /// How much a peer can be sent now.
    pub(crate) fn capacity(&mut self, peer: PeerId) -> Capacity {
        let at = self.of(peer);
        at.map_or(Capacity::NONE, |(carrier, connection)| {
            carrier.capacity(connection)
        })
    }

    /// Stops or resumes receiving messages and inputs of a peer.
    pub(crate) fn pause(&mut self, peer: PeerId, is_paused: bool) {
        if let Some((carrier, connection)) = self.of(peer) {
            carrier.pause(connection, is_paused);
        }
    }

    pub(crate) fn flush(&mut self) {
        for carrier in &mut self.others {
            carrier.flush();
        }
    }

    /// Bans a client from all carriers, or lifts its ban.
    pub(crate) fn set_banned(&mut self, client: ClientId, is_banned: bool) {
        for carrier in &mut self.others {
            carrier.set_banned(client, is_banned);
        }
    }

    /// Closes a connection; the event of its end is still to be polled.
    pub(crate) fn close(&mut self, peer: PeerId, reason: CloseReason) {
        if let Some((carrier, connection)) = self.of(peer) {
            carrier.close(connection, reason);
        }
    }

    /// Closes all connections, and returns when the peers were notified.
    pub(crate) fn shut_down(mut self) {
        for carrier in &mut self.others {
            carrier.shut_down(CloseReason::ShuttingDown);
        }
    }

    /// Traffic of all sockets together.
    pub(crate) fn traffic(&self) -> Traffic {
        let all = self.others.iter().map(|carrier| carrier.traffic());
        all.fold(Traffic::default(), |sum, one| sum + one)
    }

    pub(crate) fn statistics(&self, peer: PeerId) -> Option<Statistics> {
        let (carrier, connection) = self.look_up(peer)?;
        carrier.statistics(connection)
    }

    /// An event with the peer that it is about; `None` if the connection is unknown.
    fn assign(
        &mut self,
        carrier: CarrierIndex,
        event: CarrierEvent,
    ) -> Option<(PeerId, CarrierEvent)> {
        let connection = match &event {
            CarrierEvent::Connected { connection, .. }
            | CarrierEvent::Received { connection, .. }
            | CarrierEvent::Closed { connection, .. }
            | CarrierEvent::Silent(connection)
            | CarrierEvent::Resumed(connection) => *connection,
            _ => return None,
        };
        let at = CarrierConnection {
            carrier,
            connection,
        };
        let peer = match &event {
            CarrierEvent::Connected { .. } => self.add_peer(at),
            CarrierEvent::Closed { .. } => {
                let peer = self.peers.remove(&at)?;
                self.connections.remove(&peer);
                peer
            }
            _ => *self.peers.get(&at)?,
        };
        Some((peer, event))
    }

    fn add_peer(&mut self, at: CarrierConnection) -> PeerId {
        self.added += 1;
        let peer = PeerId(self.added);
        self.connections.insert(peer, at);
        self.peers.insert(at, peer);
        peer
    }

    pub(crate) fn of(&mut self, peer: PeerId) -> Option<(&mut dyn Carrier, ConnectionId)> {
        let at = self.connections.get(&peer)?;
        let carrier: &mut dyn Carrier = match at.carrier {
            CarrierIndex::Local => &mut self.local,
            CarrierIndex::Other(index) => &mut **self.others.get_mut(index)?,
        };
        Some((carrier, at.connection))
    }

    fn look_up(&self, peer: PeerId) -> Option<(&dyn Carrier, ConnectionId)> {
        let at = self.connections.get(&peer)?;
        let carrier: &dyn Carrier = match at.carrier {
            CarrierIndex::Local => &self.local,
            CarrierIndex::Other(index) => &**self.others.get(index)?,
        };
        Some((carrier, at.connection))
    }
}

#[cfg(not(target_family = "wasm"))]
#[expect(
    clippy::disallowed_methods,
    reason = "without a socket there is no source of events to wait for"
)]
fn sleep(span: std::time::Duration) {
    std::thread::sleep(span);
}

/// A browser must not be blocked; its event loop calls again.
#[cfg(target_family = "wasm")]
fn sleep(_: std::time::Duration) {}

/// How long to wait in one of several sockets before the next one is polled.
const TURN: std::time::Duration = std::time::Duration::from_millis(1);
