//! Faults of clients and links: losses, address changes, stalls, disconnects.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::PacketBuffer;
use prescient_replication::Room;

use super::super::dice::Dice;
use super::super::links;
use super::super::promise::Promise;
use super::super::verify::Witness;
use super::Game;
use super::events::payload;

impl Game {
    /// Injects random faults.
    pub(super) fn blow(&mut self) {
        let (server, clock) = (self.server, self.clock);
        for client in &mut self.clients {
            let dice = &mut client.dice;
            let ways = [(client.endpoint, server), (server, client.endpoint)];
            for (from, to) in ways {
                let link = self
                    .network
                    .link_mut(from, to)
                    .expect("both endpoints are joined");
                if dice.of_thousand(30) {
                    link.change(clock.0, links::random(dice));
                }
                // One direction alone: packets arrive, but their acknowledgements are lost.
                if dice.of_thousand(15) {
                    let length = Duration::from_millis(100 + dice.below(900) as u64);
                    let dark = link.conditions().clone();
                    link.change(clock.0, dark.with_blackout(clock.0, length));
                }
            }
            if dice.of_thousand(10) {
                let address = ([10, dice.below(250) as u8, client.peer.0 as u8, 2], 5000);
                // Fails if the client has this address already.
                let _ = self
                    .network
                    .rebind(client.endpoint, SocketAddr::from(address));
            }
            if dice.of_thousand(15) {
                let length = Duration::from_millis(dice.below(900) as u64);
                client.stalled_until = clock.0 + length;
            }
            if dice.of_thousand(60) {
                client.room = room(dice);
            }
            let (speaks, picks) = (dice.of_thousand(300), dice.below(1 << 20));
            if let Some(visit) = &mut client.visit {
                if dice.of_thousand(15) {
                    visit.confuse();
                }
                if speaks && visit.connected {
                    let entities: Vec<_> = visit.view.entities().collect();
                    let about = entities.get(picks % (entities.len() + 1)).copied();
                    let witness = Witness {
                        truth: &self.truth,
                        promise: &Promise::default(),
                        peer: client.peer,
                        settled: false,
                    };
                    let key = about.and_then(|about| witness.key_of(&visit.view, about));
                    visit.send_event(
                        about,
                        &payload(visit.events_sent + 1, key.unwrap_or(0)),
                        clock,
                    );
                }
            }
            let leaves = client.dice.of_thousand(12);
            if leaves {
                let politely = client.dice.of_thousand(500);
                client.go(politely, &mut self.network, clock);
                let pause = Duration::from_millis(client.dice.below(700) as u64);
                client.away_until = clock.0 + pause;
            }
        }
    }

    pub(super) fn heal(&mut self) {
        for client in &mut self.clients {
            for (from, to) in [
                (client.endpoint, self.server),
                (self.server, client.endpoint),
            ] {
                let link = self
                    .network
                    .link_mut(from, to)
                    .expect("both endpoints are joined");
                link.change(self.clock.0, links::good());
            }
            client.room = Room::one(1100);
            client.stalled_until = self.clock.0;
            client.away_until = self.clock.0;
        }
    }
}

/// A random room for state, from unlimited to nothing.
pub(super) fn room(dice: &mut Dice) -> Room {
    let several = |message: usize, packets: usize| Room {
        message,
        total: message * packets,
        headroom: PacketBuffer::HEADROOM,
    };
    match dice.below(8) {
        0 | 1 => Room::UNLIMITED,
        2 | 3 => Room::one(1100),
        4 => Room::one(30 + dice.below(300)),
        5 => Room::one(dice.below(60)),
        6 => several(30 + dice.below(60), 2 + dice.below(20)),
        _ => several(100 + dice.below(1000), 2 + dice.below(8)),
    }
}
