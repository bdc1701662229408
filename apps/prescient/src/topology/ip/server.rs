//! The server of the game, without sockets and clocks.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use prescient::Ref;
use prescient_channels::{ConnectionId, Received, Time};
use prescient_replication::{
    Delivery, Everything, FromClient, PeerId, Room, Server, ServerConfig, Tick,
};
use prescient_transport::{self as transport, Entropy, ServerEvent, UnixTime};

use super::messages::{
    Avatar, EVENTS, PROTOCOL, Placed, STATE, Vitals, Wish, read_wish, schema, token_key,
};
use crate::shooter::settings::Settings;
use crate::shooter::{Arena, FRAMES, FRAMES_PER_UPDATE, Player, Target};

pub(super) struct GameServer {
    server: Server,
    net: transport::Server,
    connections: BTreeMap<PeerId, ConnectionId>,
    start: Time,
    tick: u64,
    avatars: BTreeMap<u32, (Ref<Avatar>, Ref<Vitals>, u8)>,
    blocks: BTreeMap<(u32, u32), (Ref<Placed>, Placed)>,
    /// Requests of clients since the last tick.
    wishes: Vec<(u32, Wish)>,
    /// How often each player, or a block of it, was hit.
    pub(super) hits: BTreeMap<u32, u64>,
    arena: Arena,
    seed: u64,
}

impl GameServer {
    pub(super) fn new(
        settings: &Settings,
        address: SocketAddr,
        entropy: &mut dyn Entropy,
        now: Time,
    ) -> Self {
        let limits = transport::Limits::default().with_handshakes_per_address(1000);
        let config = transport::ServerConfig::new(token_key(), PROTOCOL, vec![address]);
        let net = transport::Server::new(config.with_limits(limits), entropy, now);
        Self {
            server: Server::new(schema(), ServerConfig::default(), Everything)
                .expect("sound types"),
            net: net.expect("sound settings"),
            connections: BTreeMap::new(),
            start: now,
            tick: 0,
            avatars: BTreeMap::new(),
            blocks: BTreeMap::new(),
            wishes: Vec::new(),
            hits: BTreeMap::new(),
            arena: Arena::for_players(settings.players),
            seed: settings.seed,
        }
    }

    pub(super) fn handle_datagram(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        now: Time,
        unix: UnixTime,
        entropy: &mut dyn Entropy,
    ) {
        self.net.handle_datagram(from, bytes, now, unix, entropy);
    }

    /// Handles what has arrived.
    pub(super) fn attend(&mut self, now: Time) {
        if self.net.next_timeout().is_some_and(|due| due <= now) {
            self.net.handle_timeout(now);
        }
        while let Some(event) = self.net.poll_event() {
            match event {
                ServerEvent::Connected {
                    connection, client, ..
                } => {
                    let peer = PeerId(client.0);
                    self.connections.insert(peer, connection);
                    self.server.connect(peer);
                }
                ServerEvent::Received {
                    connection,
                    received: Received::Message { message, .. },
                } => {
                    let mut peers = self.connections.iter();
                    let peer = peers.find(|(_, it)| **it == connection);
                    let Some((&peer, _)) = peer else { continue };
                    let number = peer.0 as u32 - 1;
                    match self.server.handle(peer, &message) {
                        Ok(FromClient::Greeted) => self.wishes.push((number, Wish::Join)),
                        Ok(FromClient::Event { payload, .. }) => {
                            let wish = read_wish(&payload);
                            self.wishes.extend(wish.map(|wish| (number, wish)));
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }

    /// Simulates the ticks that are due.
    pub(super) fn run_ticks(&mut self, now: Time) {
        let update = FRAMES_PER_UPDATE * 1_000_000 / u64::from(FRAMES);
        while now.since(self.start).as_micros() as u64 / update >= self.tick {
            self.step(now);
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<transport::Transmit> {
        self.net.poll_transmit(now)
    }

    /// Simulates a tick, and sends it.
    fn step(&mut self, now: Time) {
        self.tick += 1;
        let wishes = std::mem::take(&mut self.wishes);
        let mut shots = Vec::new();
        let mut step = self.server.step(Tick(self.tick)).expect("ticks ascend");
        for (number, wish) in wishes {
            match wish {
                Wish::Join => {
                    let status = Player::new(number, self.seed, &self.arena).status;
                    let avatar = step.spawn(&Avatar::of(&status, number)).expect("sound");
                    let health = status.health;
                    let vitals = step.spawn(&Vitals { health, number }).expect("sound");
                    let peer = PeerId(u64::from(number) + 1);
                    let granted = step.grant_authority(avatar.entity_ref(), peer);
                    granted.expect("it was just spawned");
                    self.avatars.insert(number, (avatar, vitals, health));
                }
                Wish::Shot(bytes) => shots.push((number, bytes)),
                Wish::Place(block, position) => {
                    let placed = Placed {
                        position,
                        health: 5,
                        owner: number,
                        number: block,
                    };
                    let entity = step.spawn(&placed).expect("sound");
                    self.blocks.insert((number, block), (entity, placed));
                    let own = self.blocks.range((number, 0)..(number + 1, 0));
                    if own.clone().count() > 8
                        && let Some((&oldest, _)) = own.into_iter().next()
                        && let Some((entity, _)) = self.blocks.remove(&oldest)
                    {
                        step.despawn(entity.entity_ref()).expect("it is there");
                    }
                }
                Wish::Hit(Target::Player(other)) => {
                    if let Some((_, vitals, health)) = self.avatars.get_mut(&other) {
                        *health = if *health > 1 { *health - 1 } else { 10 };
                        let value = Vitals {
                            health: *health,
                            number: other,
                        };
                        step.set(*vitals, &value).expect("it is there");
                        *self.hits.entry(other).or_default() += 1;
                    }
                }
                Wish::Hit(Target::Block(owner, block)) => {
                    let Some((entity, placed)) = self.blocks.get_mut(&(owner, block)) else {
                        continue;
                    };
                    *self.hits.entry(owner).or_default() += 1;
                    placed.health -= 1;
                    if placed.health > 0 {
                        step.set(*entity, placed).expect("it is there");
                    } else {
                        step.despawn(entity.entity_ref()).expect("it is there");
                        self.blocks.remove(&(owner, block));
                    }
                }
            }
        }
        step.finish();
        let peers: Vec<PeerId> = self.server.peers().collect();
        for (number, shot) in shots {
            for peer in peers.iter().filter(|peer| peer.0 as u32 != number + 1) {
                // A peer that has not joined yet is not told.
                let _ = self.server.send_event(*peer, &shot);
            }
        }
        self.send_state(now);
    }

    fn send_state(&mut self, now: Time) {
        let (net, connections) = (&mut self.net, &self.connections);
        let rooms: BTreeMap<PeerId, Room> = connections
            .iter()
            .map(|(peer, connection)| {
                let capacity = net.capacity(*connection, now);
                let room = Room {
                    message: capacity.message,
                    total: capacity.total,
                    headroom: 0,
                };
                (*peer, room)
            })
            .collect();
        let room = |peer| rooms.get(&peer).copied().unwrap_or(Room::NONE);
        self.server.encode(&room);
        for (peer, connection) in connections {
            while let Some(transmit) = self.server.poll_transmit(*peer) {
                let channel = match transmit.delivery {
                    Delivery::Reliable | Delivery::Unordered => EVENTS,
                    Delivery::Unreliable | Delivery::Sequenced => STATE,
                };
                // State that finds no room is made up for by later state.
                let _ = net.send(*connection, channel, transmit.message(), now);
            }
        }
    }
}
