//! The handshake: from a request to a connection.

use std::net::SocketAddr;

use prescient_channels::{ClientId, CloseReason, ConnectionId, Denial, Time};

use super::{ClientConnection, Server};
use crate::client::REQUEST_KEY;
use crate::connection::Connection;
use crate::entropy::{Entropy, random};
use crate::key_schedule::{ConnectionKeys, Ephemeral, Secret, follow};
use crate::limits::Origin;
use crate::packet::{self, Accept, Asked, Request};
use crate::packet_protection::PacketProtection;
use crate::reset::SEALED_RESET_LEN;
use crate::token::Private;
use crate::token::UnixTime;
use prescient_channels::lobby::LobbyPeer;

/// A client with a valid token that asks to be admitted.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Applicant<'a> {
    /// The client's account id from the token.
    pub client: ClientId,
    /// The client's validated address.
    pub address: SocketAddr,
    /// The data that the backend put into the token.
    pub data: &'a [u8],
}

/// Lets the game decide about a client: `Err` denies it with a code of the game.
pub type Admission = Box<dyn FnMut(&Applicant<'_>) -> Result<(), u16> + Send>;

pub(super) struct Arriving {
    pub(super) ephemeral: [u8; 32],
    pub(super) accept: Vec<u8>,
    pub(super) data: Vec<u8>,
}

impl Server {
    pub(super) fn handle_request(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        now: Time,
        unix: UnixTime,
        entropy: &mut dyn Entropy,
    ) {
        let request = match packet::read_request(bytes) {
            Some(Asked::Ours(request)) => request,
            Some(Asked::Foreign(prefix)) => {
                let denial = Denial::Version {
                    server: packet::VERSION,
                };
                let denied = packet::write_denied(denial, &prefix, &NO_KEY);
                return self.outbox.offer(from, denied);
            }
            None => return,
        };
        if !self
            .cookie_key
            .made(&request.cookie, from, &request.opening, now)
        {
            let cookie = self.cookie_key.issue(from, &request.opening, now);
            let challenge = packet::write_challenge(request.echo, cookie);
            return self.outbox.offer(from, challenge);
        }

        // The cookie was valid, so the address is validated.
        if let Some(accept) = self.repeated(&request) {
            return self.outbox.offer(from, accept);
        }
        if !self.origins.try_handshake(Origin::of(from), now) {
            return;
        }
        self.used.sweep(unix);
        if let Err((denial, key)) = self.admit(from, &request, now, unix, entropy) {
            let denied = packet::write_denied(denial, &request.prefix(), &key);
            self.outbox.offer(from, denied);
        }
    }

    /// The accept packet that answered this request before, until the client's first sealed packet.
    fn repeated(&self, request: &Request) -> Option<Vec<u8>> {
        let id = ConnectionId(self.used.find(&request.front.nonce)?);
        let arriving = self.connections.get(&id)?.arriving.as_ref()?;
        (arriving.ephemeral == request.ephemeral).then(|| arriving.accept.clone())
    }

    /// Admits a client, or returns the denial and the key to authenticate it with.
    fn admit(
        &mut self,
        from: SocketAddr,
        request: &Request,
        now: Time,
        unix: UnixTime,
        entropy: &mut dyn Entropy,
    ) -> Result<(), (Denial, Secret)> {
        let front = &request.front;
        if front.protocol != self.config.protocol {
            return Err((Denial::Protocol, NO_KEY.into()));
        }
        let Some(private) = Private::open(&self.config.key, front, &request.sealed) else {
            return Err((Denial::Unreadable, NO_KEY.into()));
        };
        let key = follow(&private.secret, REQUEST_KEY);
        if !request.is_from_holder(&key) {
            return Ok(());
        }
        self.examine(from, request, &private, unix)
            .map_err(|denial| (denial, key))?;
        self.accept(from, request, private, now, entropy);
        Ok(())
    }

    fn examine(
        &mut self,
        from: SocketAddr,
        request: &Request,
        private: &Private,
        unix: UnixTime,
    ) -> Result<(), Denial> {
        if self.closing {
            return Err(Denial::Closing);
        }
        if self.used.find(&request.front.nonce).is_some() {
            return Err(Denial::Used);
        }
        if self.used.is_expired(request.front.expires, unix) {
            return Err(Denial::Expired);
        }
        // Anybody can make a token with the public key, so its addresses prove nothing, and a relay
        // on this host may be in front of the server.
        let any = self.config.key.is_public();
        let ours = |server: &SocketAddr| any || self.config.addresses.contains(server);
        if !private.servers.iter().any(ours) {
            return Err(Denial::WrongServer);
        }
        if self.banned.contains(&private.client) {
            return Err(Denial::Banned);
        }
        let limits = &self.config.limits;
        let others = self.connections.len() - self.sessions_of(private.client).count();
        if others >= limits.connections || self.used.len() >= limits.memory {
            return Err(Denial::Full);
        }
        if !self.has_room(from, private.client) {
            return Err(Denial::Crowded);
        }
        let applicant = Applicant {
            client: private.client,
            address: from,
            data: &private.data,
        };
        match &mut self.admission {
            Some(admission) => admission(&applicant).map_err(Denial::Refused),
            None => Ok(()),
        }
    }

    /// The connections of a client with an account.
    pub(super) fn sessions_of(
        &self,
        client: ClientId,
    ) -> impl Iterator<Item = (ConnectionId, &ClientConnection)> {
        let all = self.connections.iter().map(|(&id, session)| (id, session));
        all.filter(move |(_, session)| client != ClientId::ANONYMOUS && session.client == client)
    }

    /// Whether a client may connect from an address or move there. Only other clients from there
    /// that are alive count; loopback addresses are not limited, since all of them are this host.
    pub(super) fn has_room(&self, from: SocketAddr, client: ClientId) -> bool {
        let (origin, limit) = (Origin::of(from), self.config.limits.connections_per_address);
        if !self.origins.has_entry_for(origin) {
            return false;
        }
        if from.ip().to_canonical().is_loopback() || self.origins.connections(origin) < limit {
            return true;
        }
        let counts = |session: &&ClientConnection| {
            let is_same = client != ClientId::ANONYMOUS && session.client == client;
            let connection = &session.connection;
            let is_dead = connection.is_silent() || connection.is_leaving();
            Origin::of(connection.peer) == origin && !is_same && !is_dead
        };
        self.connections.values().filter(counts).count() < limit
    }

    fn accept(
        &mut self,
        from: SocketAddr,
        request: &Request,
        mut private: Private,
        now: Time,
        entropy: &mut dyn Entropy,
    ) {
        let id = ConnectionId(u64::from_le_bytes(random(entropy)));
        // A collision of random 64-bit ids means that the entropy is broken: refuse to go on.
        if self.connections.contains_key(&id) {
            return;
        }
        let ephemeral = Ephemeral::new(entropy);
        let mut accept = Accept {
            echo: request.echo,
            connection: id.0,
            ephemeral: ephemeral.public(),
            sealed_reset: [0; SEALED_RESET_LEN],
        };
        let answer = accept.answer();
        let keys = ConnectionKeys::derive(
            &private.secret,
            &ephemeral,
            &request.ephemeral,
            &request.opening,
            &answer,
        );
        // A client with an invalid public key gets no answer.
        let Some(keys) = keys else {
            return;
        };
        accept.sealed_reset = self.resets.token(id.0).seal(&keys.accept, &answer);
        let protection =
            PacketProtection::new(keys.down, keys.up, self.config.link.rekeying(), now);
        let connection = Connection::of_server(protection, from, &self.config.link, now);
        let timer = connection.deadline(&self.config.link);
        let client_connection = ClientConnection {
            connection,
            client: private.client,
            timer,
            in_send_queue: false,
            arriving: Some(Box::new(Arriving {
                ephemeral: request.ephemeral,
                accept: accept.to_bytes(),
                data: std::mem::take(&mut private.data),
            })),
            path: None,
            lobby_peer: LobbyPeer::default(),
        };
        // A client has at most one session and one that is to replace it.
        let unfinished = self.sessions_of(private.client);
        let unfinished: Vec<_> = unfinished
            .filter(|(_, session)| session.arriving.is_some())
            .map(|(id, _)| id)
            .collect();
        for session in unfinished {
            self.end(session, CloseReason::Replaced);
        }
        self.connections.insert(id, client_connection);
        self.timers.insert((timer, id));
        self.origins.enter(Origin::of(from), now);
        self.used
            .remember(request.front.nonce, request.front.expires, id.0);
        self.outbox.offer(from, accept.to_bytes());
    }
}

/// The key of a denial if the token cannot be opened.
const NO_KEY: [u8; 32] = [0; 32];
