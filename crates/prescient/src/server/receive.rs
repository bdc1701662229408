//! How a server handles what arrives.

use prescient_channels::lobby::LobbyFault;
use prescient_channels::{CarrierEvent, ClientId, CloseReason, Input, InputTick, Received};
use prescient_replication::{FromClient, PeerError, PeerId};

use crate::blobs::BlobEvent;
use crate::options::Applicant;
use crate::server::{Server, ServerEvent};
use crate::watch;
use crate::{lobby, requests};

impl Server {
    pub(super) fn handle(&mut self, peer: PeerId, event: CarrierEvent) {
        watch::span!("handle");
        match event {
            CarrierEvent::Connected { client, data, .. } => {
                let admitted = self.admit(client, &data);
                if admitted.is_ok() {
                    self.replace(client);
                }
                self.welcome(peer, client, data);
                if let Err(reason) = admitted {
                    self.refused.insert(peer);
                    self.close(peer, reason);
                }
            }
            CarrierEvent::Received {
                received: Received::Message { message, .. },
                ..
            } => self.handle_message(peer, &message),
            CarrierEvent::Received {
                received: Received::Input { tick, input },
                ..
            } => self.handle_input(peer, tick, input),
            CarrierEvent::Received { received, .. } => self.handle_other(peer, received),
            CarrierEvent::Silent(_) => {
                let now = self.carriers.now();
                self.apply_monitor.note_silent(peer, true, now);
                self.events.push(ServerEvent::Silent(peer));
            }
            CarrierEvent::Resumed(_) => {
                let now = self.carriers.now();
                self.apply_monitor.note_silent(peer, false, now);
                // A peer that is unknown here is about to be removed.
                let _ = self.worlds.world_of_mut(peer).resume(peer);
                self.events.push(ServerEvent::Resumed(peer));
            }
            CarrierEvent::Closed { reason, .. } => self.forget(peer, reason),
            _ => {}
        }
    }

    pub(super) fn handle_message(&mut self, peer: PeerId, message: &[u8]) {
        if self.refused.contains(&peer) {
            return;
        }
        if let Some(message) = lobby::message(message) {
            return self.handle_lobby(peer, message);
        }
        let handled = self.worlds.world_of_mut(peer).handle(peer, message);
        if self.arriving.contains_key(&peer) {
            // Reply to a joining client at once rather than at the next tick.
            self.transmit(peer);
        }
        match handled {
            Ok(FromClient::Event { about, payload }) => {
                let bytes = payload.len();
                let client_event = ServerEvent::Event {
                    peer,
                    about,
                    payload,
                };
                self.push_from_client(peer, bytes, client_event);
            }
            Ok(FromClient::Typed(event)) => {
                let bytes = event.bytes();
                self.push_from_client(peer, bytes, ServerEvent::Typed { peer, event });
            }
            Ok(FromClient::Question(question)) => {
                let bytes = question.event().bytes();
                self.push_from_client(peer, bytes, ServerEvent::Asked { peer, question });
            }
            Ok(FromClient::Reply(reply)) => {
                let bytes = reply.event().bytes();
                self.push_from_client(peer, bytes, ServerEvent::Replied { peer, reply });
            }
            Ok(FromClient::Greeted) => {
                if let Some((client, data)) = self.arriving.remove(&peer) {
                    watch::event!("joined", peer, client = client.0);
                    watch::count!("prescient_joined", 1);
                    self.without_clock.insert(peer);
                    let joined = ServerEvent::Joined { peer, client, data };
                    self.events.push(joined);
                }
            }
            Ok(FromClient::AuditReport { differences, last }) => {
                let name = |name: &String| name.len();
                let bytes = differences.iter().map(|wrong| {
                    let names = name(&wrong.class) + wrong.field.as_ref().map_or(0, name);
                    size_of_val(wrong) + names
                });
                let bytes = bytes.sum();
                let client_event = ServerEvent::AuditReport {
                    peer,
                    differences,
                    last,
                };
                self.push_from_client(peer, bytes, client_event);
            }
            Err(PeerError::Schema(differences)) => {
                if let Some(&(client, _)) = self.arriving.get(&peer) {
                    let event = ServerEvent::OtherSchema {
                        client,
                        differences,
                    };
                    self.events.push(event);
                }
                self.refused.insert(peer);
                self.close(peer, CloseReason::Violation);
            }
            Ok(_) | Err(PeerError::NoSuchPeer(_)) => {}
            Err(error) => self.refuse(peer, &error),
        }
    }

    fn handle_input(&mut self, peer: PeerId, tick: InputTick, input: Input) {
        if self.refused.contains(&peer) {
            return;
        }
        // A client may send input only after the server's welcome.
        if self.arriving.contains_key(&peer) {
            return self.refuse(peer, &"an input before its hello");
        }
        match &self.options.input_buffer {
            Some(config) => self.input_buffers.push(config, peer, tick, input),
            None => self.give_input(peer, tick, input),
        }
    }

    /// Queues an input for the program.
    pub(super) fn give_input(&mut self, peer: PeerId, tick: InputTick, input: Input) {
        let world_server = self.worlds.world_of_mut(peer);
        if world_server.set_keys(peer, input.keys_down.bits()).is_ok() {
            let bytes = input.fields.len();
            let event = ServerEvent::Input { peer, tick, input };
            self.push_from_client(peer, bytes, event);
        }
    }

    /// Queues an event caused by a client, and pauses the client at its bound.
    fn push_from_client(&mut self, peer: PeerId, bytes: usize, event: ServerEvent) {
        if self.events.push_from_client(peer, bytes, event) {
            self.carriers.pause(peer, true);
        }
    }

    /// Closes the connection of a peer that violated the protocol.
    fn refuse(&mut self, peer: PeerId, error: &dyn std::fmt::Display) {
        watch::event!("refused", peer, error = error);
        watch::count!("prescient_refused", 1);
        self.refused.insert(peer);
        self.close(peer, CloseReason::Violation);
    }

    pub(super) fn close(&mut self, peer: PeerId, reason: CloseReason) {
        self.carriers.close(peer, reason);
    }

    /// Whether a client that has connected may join.
    fn admit(&self, client: ClientId, data: &[u8]) -> Result<(), CloseReason> {
        if self.banned.contains(&client) {
            return Err(CloseReason::Kicked);
        }
        let Some(approval) = &self.options.approval else {
            return Ok(());
        };
        approval.ask(&Applicant { client, data })
    }

    /// Closes the older connections of a client that has connected again, over whatever carrier.
    fn replace(&mut self, client: ClientId) {
        let theirs = self.clients.iter().filter(|&(_, &id)| id == client);
        let theirs = theirs.filter(|&(_, &id)| id != ClientId::ANONYMOUS);
        let theirs: Vec<PeerId> = theirs.map(|(&peer, _)| peer).collect();
        for peer in theirs {
            self.close(peer, CloseReason::Replaced);
        }
    }

    fn handle_lobby(&mut self, peer: PeerId, message: &[u8]) {
        if self.arriving.contains_key(&peer) {
            return self.refuse(peer, &"a message of the lobby before its hello");
        }
        match self.lobby.handle(peer, message) {
            Ok(handled) => {
                for reply in handled.replies {
                    self.send_message(peer, reply);
                }
                if let Some(lobby) = handled.event {
                    let event = ServerEvent::Lobby { peer, lobby };
                    self.push_from_client(peer, message.len(), event);
                }
            }
            Err(LobbyFault::Full) => self.close(peer, CloseReason::Kicked),
            Err(LobbyFault::Violation) => self.refuse(peer, &"a bad message of the lobby"),
        }
    }

    /// Handles requests, answers and blobs.
    fn handle_other(&mut self, peer: PeerId, received: Received) {
        if self.refused.contains(&peer) || self.arriving.contains_key(&peer) {
            return;
        }
        match requests::server_event(peer, received) {
            Ok((event, bytes)) => self.push_from_client(peer, bytes, event),
            Err(other) => {
                if let Some(blob) = BlobEvent::of(other) {
                    let bytes = blob.bytes();
                    self.push_from_client(peer, bytes, ServerEvent::Blob { peer, blob });
                }
            }
        }
    }

    pub(super) fn welcome(&mut self, peer: PeerId, client: ClientId, data: Vec<u8>) {
        self.worlds.arrive(peer);
        self.clients.insert(peer, client);
        self.arriving.insert(peer, (client, data));
    }

    fn forget(&mut self, peer: PeerId, reason: CloseReason) {
        self.meters.forget(self.worlds.world_of(peer), peer);
        self.worlds.leave(peer);
        self.refused.remove(&peer);
        self.clients.remove(&peer);
        self.without_clock.remove(&peer);
        self.backlogs.remove(&peer);
        self.lobby.leave(peer);
        self.apply_monitor.forget(peer);
        self.input_buffers.forget(peer);
        self.adaptations.forget(peer);
        // A peer that never joined does not leave.
        if self.arriving.remove(&peer).is_none() {
            watch::event!("left", peer, reason = reason);
            watch::count!("prescient_left", 1);
            self.leaving.insert(peer);
            self.events.push(ServerEvent::Left { peer, reason });
        }
    }
}
