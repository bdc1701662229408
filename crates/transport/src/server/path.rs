//! Path validation of clients that change their address.

use std::net::SocketAddr;

use prescient_channels::{CloseReason, ConnectionId, Time};

use super::{Server, ServerEvent};
use crate::entropy::{Entropy, random};
use crate::limits::Origin;
use crate::packet::PacketKind;

/// An unvalidated address of a client, and the challenge sent there.
pub(super) struct Path {
    address: SocketAddr,
    challenge: [u8; CHALLENGE_LEN],
}

impl Server {
    /// Sends a path challenge to a new address, for every packet from there, because each challenge
    /// or its response may be lost. A challenge is not longer than the packet that caused it.
    /// Packets that are not the newest are ignored: they are late, or an attacker's copies.
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
        if length
            < client_connection
                .connection
                .overhead(PacketKind::PathChallenge)
                + CHALLENGE_LEN
        {
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

    /// Moves the connection if the response is right and came from the challenged address.
    pub(super) fn handle_path_response(
        &mut self,
        id: ConnectionId,
        from: SocketAddr,
        answer: &[u8],
    ) {
        let Some(client_connection) = self.connections.get(&id) else {
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
        if !proven || (old != new && !self.has_room(from, client_connection.client)) {
            return;
        }
        let Some(client_connection) = self.connections.get_mut(&id) else {
            return;
        };
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

/// Not longer than a connection id, so a packet of a client with as many bytes of its number is not
/// shorter than the challenge that answers it.
const CHALLENGE_LEN: usize = 8;
