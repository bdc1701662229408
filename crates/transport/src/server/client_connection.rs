//! A server's side of one client, from its first sealed packet to its end.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::{Arrival, ClientId, CloseReason, ConnectionId, Exchange, Time};

use super::handshake::Arriving;
use super::path::Path;
use super::{Server, ServerEvent};
use crate::connection::{Connection, TimerOutcome, close_reason};
use crate::entropy::Entropy;
use crate::limits::Origin;
use crate::packet::{self, Header, PacketKind};
use crate::packet_protection::{Opened, TAG_LEN};
use prescient_channels::lobby::LobbyPeer;

/// A client's connection and its state in server and lobby.
pub(super) struct ClientConnection {
    pub(super) connection: Connection,
    pub(super) client: ClientId,
    pub(super) timer: Time,
    /// Whether it is in the server's `send_queue`.
    pub(super) in_send_queue: bool,
    /// Until the client's first sealed packet: the accept packet to repeat, and what to report
    /// then.
    pub(super) arriving: Option<Box<Arriving>>,
    /// An unvalidated address that the client may have moved to.
    pub(super) path: Option<Path>,
    pub(super) lobby_peer: LobbyPeer,
}

impl Server {
    pub(super) fn handle_sealed(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        at: Arrival,
        entropy: &mut dyn Entropy,
    ) {
        let now = at.handled.now;
        let Some(name) = bytes.get(1..).and_then(|rest| rest.first_chunk()) else {
            return;
        };
        let id = ConnectionId(u64::from_le_bytes(*name));
        let Some(client_connection) = self.connections.get_mut(&id) else {
            return self.answer_unknown(id, from, bytes, now);
        };
        let was_silent = client_connection.connection.is_silent();
        let Ok(opened) = client_connection.connection.open(bytes, now) else {
            if client_connection.connection.is_worn_out() {
                self.leave(id, CloseReason::Exhausted, now);
            }
            return;
        };
        let arriving = client_connection.arriving.take();
        let is_new = arriving.is_some();
        if let Some(arriving) = arriving {
            self.events.push(ServerEvent::Connected {
                connection: id,
                client: client_connection.client,
                address: client_connection.connection.peer,
                data: arriving.data,
            });
            // The client repeats its first packet until it receives one of ours.
            let to = client_connection.connection.peer;
            let sent = client_connection.connection.send(
                PacketKind::KeepAlive,
                &[],
                to,
                now,
                &mut self.outbox,
            );
            debug_assert!(sent.is_ok(), "a fresh session has numbers left");
        }
        if is_new {
            self.replace_sessions(id, now);
        }
        if was_silent {
            self.resume(id, now);
        }
        self.handle_opened(id, from, opened, bytes.len(), at, entropy);
        self.hurry(id, now);
    }

    /// Closes the older connections of the client of a new one.
    fn replace_sessions(&mut self, new: ConnectionId, now: Time) {
        let Some(client) = self.connections.get(&new).map(|session| session.client) else {
            return;
        };
        let older = self.sessions_of(client).map(|(id, _)| id);
        let older: Vec<_> = older.filter(|&id| id != new).collect();
        for id in older {
            self.leave(id, CloseReason::Replaced, now);
        }
    }

    /// Answers a packet of an unknown connection with a stateless reset. It is shorter than the
    /// packet, because the address is not validated. Close packets are not answered: their client
    /// has ended already.
    fn answer_unknown(&mut self, id: ConnectionId, from: SocketAddr, bytes: &[u8], now: Time) {
        let Ok((header, sealed)) = Header::read(bytes, true) else {
            return;
        };
        if header.kind != PacketKind::Close
            && sealed.len() >= TAG_LEN
            && let Some(token) = self.resets.give_away(id.0, now)
        {
            self.outbox.offer(from, packet::write_reset(token));
        }
    }

    /// Reports the resumed client, and sends it a packet, since it may consider us silent, too.
    fn resume(&mut self, id: ConnectionId, now: Time) {
        let Some(client_connection) = self.connections.get_mut(&id) else {
            return;
        };
        let connection = id;
        self.events.push(ServerEvent::Resumed { connection });
        let to = client_connection.connection.peer;
        let sent = client_connection.connection.send(
            PacketKind::KeepAlive,
            &[],
            to,
            now,
            &mut self.outbox,
        );
        if sent.is_err() {
            self.end(id, CloseReason::Exhausted);
        }
    }

    fn handle_opened(
        &mut self,
        id: ConnectionId,
        from: SocketAddr,
        opened: Opened,
        length: usize,
        at: Arrival,
        entropy: &mut dyn Entropy,
    ) {
        let now = at.handled.now;
        let Some(client_connection) = self.connections.get_mut(&id) else {
            return;
        };
        let leaving = client_connection.connection.is_leaving();
        match opened.kind {
            PacketKind::Frames if !leaving => {
                let handled = client_connection.connection.handle_frames(&opened, at);
                self.collect(id);
                if let Err(fault) = handled {
                    return self.leave(id, fault.into(), now);
                }
                self.receive_lobby(id, now);
                self.queue_for_sending(id);
            }
            PacketKind::Close => {
                if let Some(reason) = close_reason(&opened.payload) {
                    return self.end(id, reason);
                }
            }
            PacketKind::PathResponse if !leaving => {
                self.handle_path_response(id, from, &opened.payload)
            }
            PacketKind::Frames
            | PacketKind::KeepAlive
            | PacketKind::PathChallenge
            | PacketKind::PathResponse => {}
        }
        if opened.newest && !leaving {
            self.challenge_path(id, from, length, now, entropy);
        }
    }

    /// Starts closing and reports the end to the game at once.
    pub(super) fn leave(&mut self, id: ConnectionId, reason: CloseReason, now: Time) {
        let Some(client_connection) = self.connections.get_mut(&id) else {
            return;
        };
        if client_connection.connection.is_leaving() {
            return;
        }
        let known = client_connection.arriving.take().is_none();
        client_connection.connection.leave(reason, now);
        self.lobby.leave(&mut client_connection.lobby_peer);
        self.collect(id);
        if known {
            self.events.push(ServerEvent::Closed {
                connection: id,
                reason,
            });
        }
        self.wake(id, now);
    }

    pub(super) fn wake(&mut self, id: ConnectionId, now: Time) {
        let Some(client_connection) = self.connections.get_mut(&id) else {
            return;
        };
        let outcome = client_connection
            .connection
            .wake(&self.config.link, now, &mut self.outbox);
        self.collect(id);
        match outcome {
            TimerOutcome::Alive | TimerOutcome::Silent => {
                if outcome == TimerOutcome::Silent {
                    self.events.push(ServerEvent::Silent { connection: id });
                }
                self.queue_for_sending(id);
                // A packet that is due now is sent when polled; a timer at `now` would fire again at once.
                self.set_timer(id, now.after(Duration::from_micros(1)));
            }
            TimerOutcome::TimedOut => self.end(id, CloseReason::TimedOut),
            TimerOutcome::Exhausted => self.end(id, CloseReason::Exhausted),
            TimerOutcome::Broken(reason) => self.leave(id, reason, now),
            TimerOutcome::Closed => self.end(id, CloseReason::Finished),
        }
    }

    /// A client's exchange; queues the client for sending, since the caller adds messages.
    pub(super) fn exchange(&mut self, id: ConnectionId) -> Option<&mut Exchange> {
        self.queue_for_sending(id);
        self.connections.get_mut(&id)?.connection.exchange()
    }

    pub(super) fn queue_for_sending(&mut self, id: ConnectionId) {
        if let Some(client_connection) = self.connections.get_mut(&id)
            && !client_connection.in_send_queue
        {
            client_connection.in_send_queue = true;
            self.send_queue.push_back(id);
        }
    }

    /// Forwards a connection's events.
    pub(super) fn collect(&mut self, id: ConnectionId) {
        if let Some(client_connection) = self.connections.get_mut(&id) {
            while let Some(received) = client_connection.connection.poll_event() {
                let event = |received| ServerEvent::Received {
                    connection: id,
                    received,
                };
                self.events.push_received(received, event);
            }
        }
    }

    /// Sets a connection's timer if its deadline is now earlier. A timer that fires early is
    /// harmless.
    pub(super) fn hurry(&mut self, id: ConnectionId, now: Time) {
        let client_connection = self.connections.get(&id);
        if client_connection.is_some_and(|client_connection| {
            client_connection.connection.deadline(&self.config.link) < client_connection.timer
        }) {
            self.set_timer(id, now);
        }
    }

    fn set_timer(&mut self, id: ConnectionId, earliest: Time) {
        if let Some(client_connection) = self.connections.get_mut(&id) {
            self.timers.remove(&(client_connection.timer, id));
            client_connection.timer = client_connection
                .connection
                .deadline(&self.config.link)
                .max(earliest);
            self.timers.insert((client_connection.timer, id));
        }
    }

    /// Removes a connection and all its state without sending a close packet.
    pub(super) fn end(&mut self, id: ConnectionId, reason: CloseReason) {
        if let Some(client_connection) = self.connections.get_mut(&id)
            && client_connection.arriving.is_none()
            && !client_connection.connection.is_leaving()
        {
            client_connection.connection.leave(reason, self.clock.now());
            self.collect(id);
            self.events.push(ServerEvent::Closed {
                connection: id,
                reason,
            });
        }
        if let Some(mut client_connection) = self.connections.remove(&id) {
            self.lobby.leave(&mut client_connection.lobby_peer);
            self.timers.remove(&(client_connection.timer, id));
            let origin = Origin::of(client_connection.connection.peer);
            self.origins.leave(origin, self.clock.now());
        }
    }
}
