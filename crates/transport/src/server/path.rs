//! Clients that move to another address.

use std::net::SocketAddr;

use super::{ConnectionId, Server, ServerEvent};
use crate::entropy::{Entropy, random};
use crate::error::CloseReason;
use crate::limits::Origin;
use crate::packet::Kind;
use crate::time::Time;

/// An address at which a client may be, and what it is asked there.
pub(super) struct Path {
    address: SocketAddr,
    question: [u8; 8],
}

impl Server {
    /// Asks whoever is at a new address to prove it, with no more bytes than came from there, and
    /// for every packet, because each of them or its answer may be lost. An older packet that
    /// comes from elsewhere was late, or is somebody's copy.
    pub(super) fn look_at_path(
        &mut self,
        id: ConnectionId,
        from: SocketAddr,
        length: usize,
        now: Time,
        entropy: &mut dyn Entropy,
    ) {
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        if from == seat.connection.peer {
            seat.path = None;
            return;
        }
        if length < PATH_CHALLENGE_LEN {
            return;
        }
        let known = seat.path.take().filter(|path| path.address == from);
        let path = known.unwrap_or_else(|| Path {
            address: from,
            question: random(entropy),
        });
        let sent = seat.connection.send(
            Kind::PathChallenge,
            &path.question,
            from,
            now,
            &mut self.outbox,
        );
        seat.path = Some(path);
        if sent.is_err() {
            self.end(id, CloseReason::Exhausted);
        }
    }

    /// Moves to a new address if the answer is right and came from there.
    pub(super) fn handle_path_response(
        &mut self,
        id: ConnectionId,
        from: SocketAddr,
        answer: &[u8],
    ) {
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        let proven = seat
            .path
            .as_ref()
            .is_some_and(|path| path.address == from && path.question == answer);
        let (old, new) = (Origin::of(seat.connection.peer), Origin::of(from));
        if !proven || (old != new && !self.origins.has_room(new)) {
            return;
        }
        seat.path = None;
        let now = self.clock.now();
        seat.connection.move_to(from, now);
        self.origins.leave(old, now);
        self.origins.enter(new, now);
        self.events.push(ServerEvent::Moved {
            connection: id,
            address: from,
        });
    }
}

/// No longer than the shortest packet of a client, whose header has a name in it.
const PATH_CHALLENGE_LEN: usize = 1 + 4 + 8 + 16;
