//! A client of the game with its player, without sockets and clocks.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::{ClientId, Received, Time};
use prescient_replication::{Change, Client, ClientConfig, EntityHandle};
use prescient_transport::{self as transport, ClientEvent, Entropy, Grant, LinkConfig, UnixTime};

use super::messages::{
    Avatar, EVENTS, PROTOCOL, Placed, STATE, Vitals, Wish, schema, token_key, write_wish,
};
use crate::shooter::settings::Settings;
use crate::shooter::{Arena, Block, Deed, FRAMES, FRAMES_PER_UPDATE, Player, Seen, distance};
use crate::topology::measures::Histogram;

/// A client with its player.
pub(super) struct Guest {
    pub(super) player: Player,
    view: Client,
    net: transport::Client,
    arena: Arena,
    server: SocketAddr,
    own: Option<EntityHandle>,
    /// Other players: what was received, and when.
    pub(super) shown: BTreeMap<u32, (Avatar, Time)>,
    entities: BTreeMap<EntityHandle, u32>,
    blocks: BTreeMap<EntityHandle, Placed>,
    pub(super) frame_at: Time,
    pub(super) measures: Measures,
}

#[derive(Clone, Default)]
pub(super) struct Measures {
    pub(super) rtt: Histogram,
    pub(super) corrections: Histogram,
    pub(super) deltas: Histogram,
}

impl Guest {
    /// A player that connects now.
    pub(super) fn new(
        number: u32,
        settings: &Settings,
        server: SocketAddr,
        entropy: &mut dyn Entropy,
        now: Time,
        unix: UnixTime,
    ) -> Self {
        let grant = Grant {
            client: ClientId(u64::from(number) + 1),
            protocol: PROTOCOL,
            servers: vec![server],
            expires: UnixTime(unix.0 + 30),
            data: Vec::new(),
        };
        let token = grant.issue(&token_key(), entropy).expect("a sound grant");
        let link = LinkConfig::default();
        let net = transport::Client::connect(token, PROTOCOL, link, entropy, now);
        let arena = Arena::for_players(settings.players);
        Self {
            player: Player::new(number, settings.seed, &arena),
            view: Client::new(schema(), ClientConfig::default()).expect("sound types"),
            net: net.expect("the same protocol"),
            arena,
            server,
            own: None,
            shown: BTreeMap::new(),
            entities: BTreeMap::new(),
            blocks: BTreeMap::new(),
            frame_at: now,
            measures: Measures::default(),
        }
    }

    pub(super) fn handle_datagram(&mut self, bytes: &[u8], now: Time) {
        self.net.handle_datagram(self.server, bytes, now);
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<transport::Transmit> {
        self.net.poll_transmit(now)
    }

    /// Handles what has arrived, and simulates a frame if one is due: then it returns true.
    pub(super) fn attend(&mut self, now: Time) -> bool {
        if self.net.next_timeout().is_some_and(|due| due <= now) {
            self.net.handle_timeout(now);
        }
        let mut arrived = false;
        while let Some(event) = self.net.poll_event() {
            match event {
                ClientEvent::Connected { .. } => {
                    while let Some(hello) = self.view.poll_message() {
                        let _ = self.net.send(EVENTS, &hello, now);
                    }
                }
                ClientEvent::Received(Received::Message { channel, message }) => {
                    // A packet that is late is made up for by later ones.
                    let _ = self.view.handle(&message);
                    arrived |= channel == STATE;
                }
                _ => {}
            }
        }
        self.note_changes(now);
        if arrived && let Some(ack) = self.view.acknowledgement() {
            let _ = self.net.send(STATE, &ack, now);
        }
        let is_due = self.frame_at <= now;
        if is_due {
            self.frame_at = self.frame_at.after(Duration::from_secs(1) / FRAMES);
            self.frame(now);
        }
        is_due
    }

    /// Compares where another player is shown with where it is.
    pub(super) fn measure_delta(&mut self, other: u32, truth: [f32; 2], now: Time) {
        if let Some(shown) = self.shown_at(other, now) {
            self.measures.deltas.add(f64::from(distance(shown, truth)));
        }
    }

    pub(super) fn measure_rtt(&mut self) {
        let statistics = self.net.statistics();
        if let Some(round_trip) = statistics.and_then(|statistics| statistics.round_trip) {
            let latest = round_trip.latest.as_secs_f64();
            self.measures.rtt.add(latest * 1e3);
        }
    }

    fn shown_at(&self, number: u32, now: Time) -> Option<[f32; 2]> {
        let (avatar, since) = self.shown.get(&number)?;
        let seconds = now.since(*since).as_secs_f32();
        let [x, y] = avatar.position;
        Some([
            x + avatar.velocity[0] * seconds,
            y + avatar.velocity[1] * seconds,
        ])
    }

    fn note_changes(&mut self, now: Time) {
        while let Some(change) = self.view.poll_change() {
            match change {
                Change::AuthorityChanged { entity, granted } => {
                    self.own = granted.then_some(entity);
                    if let Some(number) = self.entities.get(&entity) {
                        self.shown.remove(number);
                    }
                }
                Change::Created(entity) | Change::Updated(entity) => {
                    if let Some(avatar) = self.view.get::<Avatar>(entity) {
                        let number = avatar.number;
                        self.entities.insert(entity, number);
                        if number == self.player.number {
                            continue;
                        }
                        if let Some(before) = self.shown_at(number, now) {
                            let correction = distance(before, avatar.position);
                            self.measures.corrections.add(f64::from(correction));
                        }
                        self.shown.insert(number, (avatar, now));
                    } else if let Some(block) = self.view.get::<Placed>(entity) {
                        self.blocks.insert(entity, block);
                    } else if let Some(vitals) = self.view.get::<Vitals>(entity)
                        && vitals.number == self.player.number
                    {
                        self.player.status.health = vitals.health;
                    }
                }
                Change::Removed(entity) => {
                    self.blocks.remove(&entity);
                    if let Some(number) = self.entities.remove(&entity) {
                        self.shown.remove(&number);
                    }
                }
                _ => {}
            }
        }
    }

    fn frame(&mut self, now: Time) {
        let players = self.shown.keys();
        let players = players.filter_map(|number| Some((*number, self.shown_at(*number, now)?)));
        let blocks = self.blocks.values();
        let blocks = blocks.filter(|block| block.owner != self.player.number);
        let seen = Seen {
            players: players.collect(),
            blocks: blocks
                .map(|block| (block.owner, block.number, block.position))
                .collect(),
        };
        for deed in self.player.step(&self.arena, &seen) {
            let wish = match deed {
                Deed::Shot(shot) => Some(Wish::Shot(shot.to_bytes().to_vec())),
                Deed::Blocks => {
                    let newest = self.player.blocks.last_key_value();
                    newest.map(|(number, Block { position, .. })| Wish::Place(*number, *position))
                }
                Deed::Hit(target) => Some(Wish::Hit(target)),
            };
            let bytes = wish.map(|wish| write_wish(&wish));
            let event = bytes.and_then(|bytes| self.view.send_event(None, &bytes));
            if let Some(event) = event {
                let _ = self.net.send(EVENTS, &event, now);
            }
        }
        if self.player.frame.is_multiple_of(FRAMES_PER_UPDATE)
            && let Some(own) = self.own
        {
            let avatar = Avatar::of(&self.player.status, self.player.number);
            let _ = self.view.set(own, &avatar);
            if let Some(report) = self.view.report(None) {
                let _ = self.net.send(STATE, &report, now);
            }
        }
    }
}
