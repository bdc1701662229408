//! A client's seat, from its first packet to its end.

use std::net::SocketAddr;
use std::time::Duration;

use super::door::Arriving;
use super::path::Path;
use super::{ConnectionId, Server, ServerEvent};
use crate::connection::{Connection, Fate, close_reason};
use crate::entropy::Entropy;
use crate::error::CloseReason;
use crate::exchange::Exchange;
use crate::limits::Origin;
use crate::lobby::Guest;
use crate::packet::{self, Header, Kind};
use crate::session::{Opened, TAG_LEN};
use crate::time::{Now, Time};
use crate::token::ClientId;

/// What a server has of a client.
pub(super) struct Seat {
    pub(super) connection: Connection,
    pub(super) client: ClientId,
    pub(super) timer: Time,
    /// Whether it stands among the talkers.
    pub(super) talks: bool,
    /// Until the client is heard of: what to repeat to it, and what to announce then.
    pub(super) arriving: Option<Box<Arriving>>,
    /// An address that the client may have moved to.
    pub(super) path: Option<Path>,
    pub(super) guest: Guest,
}

impl Server {
    pub(super) fn handle_sealed(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        at: Now,
        entropy: &mut dyn Entropy,
    ) {
        let now = at.now;
        let Some(name) = bytes.get(1..).and_then(|rest| rest.first_chunk()) else {
            return;
        };
        let id = ConnectionId(u64::from_le_bytes(*name));
        let Some(seat) = self.seats.get_mut(&id) else {
            return self.answer_unknown(id, from, bytes, now);
        };
        let was_silent = seat.connection.is_silent();
        let Ok(opened) = seat.connection.open(bytes, now) else {
            if seat.connection.is_worn_out() {
                self.leave(id, CloseReason::Exhausted, now);
            }
            return;
        };
        if let Some(arriving) = seat.arriving.take() {
            self.events.push(ServerEvent::Connected {
                connection: id,
                client: seat.client,
                address: seat.connection.peer,
                data: arriving.data,
            });
            // The client repeats itself until it hears of us.
            let to = seat.connection.peer;
            let greeted = seat
                .connection
                .send(Kind::KeepAlive, &[], to, now, &mut self.outbox);
            debug_assert!(greeted.is_ok(), "a fresh session has numbers left");
        }
        if was_silent {
            self.resume(id, now);
        }
        self.handle_opened(id, from, opened, bytes.len(), at, entropy);
        self.hurry(id, now);
    }

    /// Tells a client that its connection is none of ours, with less than it sent: its address is
    /// not proven. One that says goodbye knows already.
    fn answer_unknown(&mut self, id: ConnectionId, from: SocketAddr, bytes: &[u8], now: Time) {
        let Ok((header, sealed)) = Header::read(bytes, true) else {
            return;
        };
        if header.kind != Kind::Close
            && sealed.len() >= TAG_LEN
            && let Some(token) = self.resets.give_away(id.0, now)
        {
            self.outbox.offer(from, packet::write_reset(token));
        }
    }

    /// Tells the game, and the client, which may still believe that we are gone.
    fn resume(&mut self, id: ConnectionId, now: Time) {
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        let connection = id;
        self.events.push(ServerEvent::Resumed { connection });
        let to = seat.connection.peer;
        let sent = seat
            .connection
            .send(Kind::KeepAlive, &[], to, now, &mut self.outbox);
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
        at: Now,
        entropy: &mut dyn Entropy,
    ) {
        let now = at.now;
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        let leaving = seat.connection.is_leaving();
        match opened.kind {
            Kind::Frames if !leaving => {
                let handled = seat.connection.handle_frames(&opened, at);
                self.collect(id);
                if let Err(fault) = handled {
                    return self.leave(id, fault.into(), now);
                }
                self.hear_around(id, now);
                self.let_talk(id);
            }
            Kind::Close => {
                if let Some(reason) = close_reason(&opened.payload) {
                    return self.end(id, reason);
                }
            }
            Kind::PathResponse if !leaving => self.handle_path_response(id, from, &opened.payload),
            Kind::Frames | Kind::KeepAlive | Kind::PathChallenge | Kind::PathResponse => {}
        }
        if opened.newest && !leaving {
            self.look_at_path(id, from, length, now, entropy);
        }
    }

    /// Says goodbye, and to the game at once that it is over.
    pub(super) fn leave(&mut self, id: ConnectionId, reason: CloseReason, now: Time) {
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        if seat.connection.is_leaving() {
            return;
        }
        let known = seat.arriving.take().is_none();
        seat.connection.leave(reason, now);
        self.host.leave(&mut seat.guest);
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
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        let fate = seat
            .connection
            .wake(&self.config.link, now, &mut self.outbox);
        self.collect(id);
        match fate {
            Fate::Lives | Fate::Silent => {
                if fate == Fate::Silent {
                    self.events.push(ServerEvent::Silent { connection: id });
                }
                self.let_talk(id);
                // What is due and waits to be polled shall not be waited for here.
                self.set_timer(id, now.after(Duration::from_micros(1)));
            }
            Fate::Dead => self.end(id, CloseReason::TimedOut),
            Fate::Exhausted => self.end(id, CloseReason::Exhausted),
            Fate::Broken(reason) => self.leave(id, reason, now),
            Fate::Left => self.end(id, CloseReason::Finished),
        }
    }

    /// Where messages to a client go in, which then may have something to say.
    pub(super) fn exchange(&mut self, id: ConnectionId) -> Option<&mut Exchange> {
        self.let_talk(id);
        self.seats.get_mut(&id)?.connection.exchange()
    }

    pub(super) fn let_talk(&mut self, id: ConnectionId) {
        if let Some(seat) = self.seats.get_mut(&id)
            && !seat.talks
        {
            seat.talks = true;
            self.talkers.push_back(id);
        }
    }

    /// Hands on what a connection has to tell.
    pub(super) fn collect(&mut self, id: ConnectionId) {
        if let Some(seat) = self.seats.get_mut(&id) {
            while let Some(received) = seat.connection.poll_event() {
                let event = |received| ServerEvent::Received {
                    connection: id,
                    received,
                };
                self.events.push_received(received, event);
            }
        }
    }

    /// Sets the timer of a connection if it wants to be woken earlier than was planned. One that
    /// goes off too early does no harm.
    pub(super) fn hurry(&mut self, id: ConnectionId, now: Time) {
        let seat = self.seats.get(&id);
        if seat.is_some_and(|seat| seat.connection.deadline(&self.config.link) < seat.timer) {
            self.set_timer(id, now);
        }
    }

    fn set_timer(&mut self, id: ConnectionId, earliest: Time) {
        if let Some(seat) = self.seats.get_mut(&id) {
            self.timers.remove(&(seat.timer, id));
            seat.timer = seat.connection.deadline(&self.config.link).max(earliest);
            self.timers.insert((seat.timer, id));
        }
    }

    /// Frees everything that a connection holds, without a further word to its client.
    pub(super) fn end(&mut self, id: ConnectionId, reason: CloseReason) {
        if let Some(seat) = self.seats.get_mut(&id)
            && seat.arriving.is_none()
            && !seat.connection.is_leaving()
        {
            seat.connection.leave(reason, self.clock.now());
            self.collect(id);
            self.events.push(ServerEvent::Closed {
                connection: id,
                reason,
            });
        }
        if let Some(mut seat) = self.seats.remove(&id) {
            self.host.leave(&mut seat.guest);
            self.timers.remove(&(seat.timer, id));
            let origin = Origin::of(seat.connection.peer);
            self.origins.leave(origin, self.clock.now());
        }
    }
}
