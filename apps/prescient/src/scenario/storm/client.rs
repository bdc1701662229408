//! A client of a storm: transport and replication.

use std::collections::BTreeMap;

use prescient_channels::{ClientId, CloseReason, Received};
use prescient_codec::DecodeError;
use prescient_replication::{
    About, Change, Client, ClientConfig, ClientError, EntityHandle, PeerId, Room, Tick,
};
use prescient_sim::link::{EndpointId, Network, Time};
use prescient_transport::{self as transport, ClientEvent, Grant, UnixTime};

use prescient::schema::Schema;

use super::dice::Dice;
use super::game::{Clock, SERVER};
use super::host::{EVENTS, PROTOCOL, STATE, UNIX, link_config, token_key};
use super::verdict::{Fault, Verdict};

/// A client that joins, leaves and joins again.
pub(super) struct StormClient {
    pub peer: PeerId,
    pub endpoint: EndpointId,
    pub dice: Dice,
    /// How much state the server sends it in a tick.
    pub room: Room,
    /// It does not read its socket until then.
    pub stalled_until: Time,
    /// It joins again at this time.
    pub away_until: Time,
    /// Number of connections so far.
    pub visits: u32,
    pub visit: Option<Visit>,
}

/// One connection of a client.
pub(super) struct Visit {
    net: transport::Client,
    pub view: Client,
    pub connected: bool,
    /// State arrived that has not been acknowledged.
    unanswered: bool,
    /// The entities as a program knows them that uses only the stream of changes.
    picture: BTreeMap<EntityHandle, Vec<Option<Vec<i64>>>>,
    /// Number of events sent.
    pub events_sent: u32,
}

/// A received event.
pub(super) struct ReceivedEvent {
    pub tick: Tick,
    pub about: About<EntityHandle>,
    /// The type's name and the row of the entity when the event was polled: it may have been removed,
    /// and can be read until all changes are polled.
    pub entity: Option<(String, Vec<i64>)>,
    pub payload: Vec<u8>,
}

impl StormClient {
    /// Connects.
    pub(super) fn come(&mut self, schema: Schema, clock: Clock) {
        self.visits += 1;
        let grant = Grant {
            client: ClientId(self.peer.0),
            protocol: PROTOCOL,
            servers: vec![SERVER],
            expires: UnixTime(UNIX.0 + 30),
            data: self.visits.to_le_bytes().to_vec(),
        };
        let token = grant.issue(&token_key(), &mut self.dice);
        let token = token.expect("a sound grant");
        let now = clock.transport();
        let net = transport::Client::connect(token, PROTOCOL, link_config(), &mut self.dice, now);
        self.visit = Some(Visit {
            net: net.expect("the same protocol"),
            view: Client::new(schema, ClientConfig::default()).expect("a sound schema"),
            connected: false,
            unanswered: false,
            picture: BTreeMap::new(),
            events_sent: 0,
        });
    }

    /// Disconnects, with a close packet or without.
    pub(super) fn go(&mut self, politely: bool, network: &mut Network, clock: Clock) {
        if let Some(mut visit) = self.visit.take()
            && politely
        {
            visit.net.close(CloseReason::Finished, clock.transport());
            visit.transmit(network, self.endpoint, clock);
        }
    }

    /// Handles received packets and timers; `look` is called after every packet of state. Returns
    /// whether the connection ended.
    pub(super) fn attend(
        &mut self,
        network: &mut Network,
        clock: Clock,
        verdict: &mut Verdict,
        look: &mut dyn FnMut(&Visit, &mut Verdict),
    ) -> bool {
        let now = clock.transport();
        let Some(visit) = &mut self.visit else {
            while let Ok(Some(_)) = network.poll(clock.0, self.endpoint) {}
            return false;
        };
        while let Ok(Some(datagram)) = network.poll(clock.0, self.endpoint) {
            visit
                .net
                .handle_datagram(datagram.path.from, &datagram.bytes, now);
        }
        if visit.net.next_timeout().is_some_and(|due| due <= now) {
            visit.net.handle_timeout(now);
        }
        let mut over = false;
        while let Some(event) = visit.net.poll_event() {
            match event {
                ClientEvent::Connected { .. } => {
                    visit.connected = true;
                    while let Some(hello) = visit.view.poll_message() {
                        let sent = visit.net.send(EVENTS, &hello, now);
                        sent.expect("a new connection has room");
                    }
                }
                ClientEvent::Received(Received::Message { channel, message }) => {
                    visit.take(self.peer, &message, verdict);
                    if channel == STATE {
                        visit.unanswered = true;
                        look(visit, verdict);
                    }
                }
                ClientEvent::Closed(reason) => {
                    over = true;
                    // If the server timed out first, it resets the connection at the next packet.
                    if !matches!(reason, CloseReason::TimedOut | CloseReason::StatelessReset) {
                        let peer = self.peer;
                        verdict.note(Fault::Failure, || {
                            format!("{peer:?} lost its connection: {reason}")
                        });
                    }
                }
                ClientEvent::Failed(_) => over = true,
                _ => {}
            }
        }
        visit.answer(clock);
        over
    }
}

impl Visit {
    /// Sends all pending datagrams; returns their number.
    pub(super) fn transmit(
        &mut self,
        network: &mut Network,
        endpoint: EndpointId,
        clock: Clock,
    ) -> u64 {
        let mut count = 0;
        while let Some(datagram) = self.net.poll_transmit(clock.transport()) {
            let sent = network.send(clock.0, endpoint, datagram.to, &datagram.bytes);
            sent.expect("every client is part of the network");
            count += 1;
        }
        count
    }

    /// Makes the client request a resync, as a broken model would.
    pub(super) fn confuse(&mut self) {
        for _ in 0..20 {
            // State without a packet in it: refused whatever the model is.
            let refused = self.view.handle(&[STATE_MESSAGE]);
            debug_assert!(refused.is_err());
        }
        self.unanswered = true;
    }

    /// Sends an event about a visible entity, or about none.
    pub(super) fn send_event(&mut self, about: Option<EntityHandle>, payload: &[u8], clock: Clock) {
        if let Some(message) = self.view.send_event(about, payload)
            && self.net.send(EVENTS, &message, clock.transport()).is_ok()
        {
            self.events_sent += 1;
        }
    }

    /// Polls all changes, as a program would, and compares their result with the client's state.
    pub(super) fn poll(&mut self, peer: PeerId, verdict: &mut Verdict) -> Vec<ReceivedEvent> {
        let mut received = Vec::new();
        while let Some(change) = self.view.poll_change() {
            let (entity, is_right) = match change {
                Change::Created(entity) => {
                    let rows = self.rows(entity);
                    (entity, self.picture.insert(entity, rows).is_none())
                }
                Change::Updated(entity) => {
                    let rows = self.rows(entity);
                    (entity, self.picture.insert(entity, rows).is_some())
                }
                Change::Removed(entity) => (entity, self.picture.remove(&entity).is_some()),
                Change::Event {
                    tick,
                    about,
                    payload,
                } => {
                    let entity = match about {
                        About::Entity(entity) => (self.view.type_name(entity))
                            .zip(self.view.row(entity, 0))
                            .map(|(name, row)| (name.to_owned(), row.to_vec())),
                        About::Nothing | About::Gone => None,
                    };
                    received.push(ReceivedEvent {
                        tick,
                        about,
                        entity,
                        payload,
                    });
                    continue;
                }
                _ => continue,
            };
            if !is_right {
                verdict.note(Fault::Failure, || {
                    format!("{peer:?}: created twice, or changed without being created: {entity:?}")
                });
            }
        }
        let shown = self
            .view
            .entities()
            .map(|entity| (entity, self.rows(entity)));
        if !shown.eq(self
            .picture
            .iter()
            .map(|(&entity, rows)| (entity, rows.clone())))
        {
            let tick = self.view.tick();
            verdict.note(Fault::Failure, || {
                format!("{peer:?}, {tick:?}: the stream of changes is incomplete")
            });
        }
        received
    }

    /// The rows of all tables of an entity; no type has more than three.
    fn rows(&self, entity: EntityHandle) -> Vec<Option<Vec<i64>>> {
        let rows = (0..3).map(|table| self.view.row(entity, table).map(<[i64]>::to_vec));
        rows.collect()
    }

    fn take(&mut self, peer: PeerId, message: &[u8], verdict: &mut Verdict) {
        match self.view.handle(message) {
            Ok(()) | Err(ClientError::State(DecodeError::Late) | ClientError::Early) => {}
            Err(error) => {
                let tick = self.view.tick();
                verdict.note(Fault::Failure, || {
                    format!("{peer:?}, {tick:?}: an honest message was refused: {error}")
                });
            }
        }
    }

    /// Sends an acknowledgement of the applied state.
    fn answer(&mut self, clock: Clock) {
        if std::mem::take(&mut self.unanswered)
            && let Some(message) = self.view.acknowledgement()
        {
            // If it is lost, the next one includes it.
            let _ = self.net.send(STATE, &message, clock.transport());
        }
    }
}

/// The first byte of a message of state, in the first world.
const STATE_MESSAGE: u8 = 0x40;
