//! Clients that move to another address.

use std::net::SocketAddr;

use super::{ConnectionId, Server, ServerEvent};
use crate::entropy::{Entropy, random};
use crate::error::CloseReason;
use crate::limits::Origin;
use crate::packet::PacketKind;
use crate::time::Time;

/// An address at which a client may be, and what it is asked there.
pub(super) struct Path {
    address: SocketAddr,
    challenge: [u8; 8],
}

impl Server {
    /// Asks whoever is at a new address to prove it, with no more bytes than came from there, and
    /// for every packet, because each of them or its answer may be lost. An older packet that
    /// comes from elsewhere was late, or is somebody's copy.
    pub(super) fn challenge_path(
        &mut self,
        id: ConnectionId,
        from: SocketAddr,
        length: usize,
        now: Time,
        entropy: &mut dyn Entropy,
    ) {
        let Some(client_connection) = self.connections.get_mut(&id) else {
            return;
        };
        if from == client_connection.connection.peer {
            client_connection.path = None;
            return;
        }
        if length < PATH_CHALLENGE_LEN {
            return;
        }
        let known = client_connection
            .path
            .take()
            .filter(|path| path.address == from);
        let path = known.unwrap_or_else(|| Path {
            address: from,
            challenge: random(entropy),
        });
        let sent = client_connection.connection.send(
            PacketKind::PathChallenge,
            &path.challenge,
            from,
            now,
            &mut self.outbox,
        );
        client_connection.path = Some(path);
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
        let Some(client_connection) = self.connections.get_mut(&id) else {
            return;
        };
        let proven = client_connection
            .path
            .as_ref()
            .is_some_and(|path| path.address == from && path.challenge == answer);
        let (old, new) = (
            Origin::of(client_connection.connection.peer),
            Origin::of(from),
        );
        if !proven || (old != new && !self.origins.has_room(new)) {
            return;
        }
        client_connection.path = None;
        let now = self.clock.now();
        client_connection.connection.move_to(from, now);
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
