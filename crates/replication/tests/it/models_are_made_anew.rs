//! Two ends whose models diverged notice and start a new epoch, and no client can force a server to
//! do that all the time.

use crate::common;

use std::collections::BTreeMap;

use crate::common::{Dice, Unit, encode, schema};
use prescient_replication::{
    Client, ClientError, Everything, PeerId, Room, Server, ServerConfig, Tick, WorldError,
};
use prescient_schema::Ref;
use prescient_tests::seeds::over_seeds;

/// A server with three clients, without latency or loss.
struct Hall {
    server: Server,
    clients: Vec<Client>,
    units: Vec<(Ref<Unit>, Unit)>,
    tick: Tick,
}

impl Hall {
    fn new(config: ServerConfig) -> Self {
        let mut server = Server::new(schema(), config, Everything).expect("sound");
        let clients = (1..=3).map(PeerId).map(|peer| {
            let mut client = Client::new(schema(), Default::default()).expect("sound");
            server.connect(peer);
            common::greet(&mut server, peer, &mut client);
            client
        });
        let clients = clients.collect();
        Self {
            server,
            clients,
            units: Vec::new(),
            tick: Tick(0),
        }
    }

    fn step(&mut self, to: Tick, dice: &mut Dice) -> Result<(), WorldError> {
        let mut step = self.server.step(to)?;
        if self.units.len() < 20 {
            let unit = Unit {
                health: self.units.len() as u8,
                ..Unit::default()
            };
            self.units.push((step.spawn(&unit)?, unit));
        }
        for (entity, unit) in &mut self.units {
            unit.position[0] += dice.below(3) as f32;
            unit.position[1] -= 0.25;
            step.set(*entity, unit)?;
        }
        step.finish();
        self.tick = to;
        Ok(())
    }

    /// Whether a client shows the complete true state of the newest tick.
    fn agrees(&self, client: usize) -> bool {
        let client = &self.clients[client];
        let mut shown: Vec<Unit> = (client.entities())
            .filter_map(|entity| client.get(entity))
            .collect();
        shown.sort_by_key(|unit| unit.health);
        let there = self.units.iter().map(|(_, unit)| unit);
        client.complete_tick() == Some(self.tick) && shown.iter().eq(there)
    }

    fn resyncs(&self, peer: u64) -> u64 {
        let peer = self.server.statistics(PeerId(peer));
        peer.expect("connected").codec.resyncs
    }
}

/// Makes a client request a resync, as if it could not decode packets.
fn confuse(client: &mut Client) {
    for _ in 0..3 {
        let refused = client.handle(&[0x40]);
        assert!(matches!(refused, Err(ClientError::State(_))));
    }
}

/// Case 18: one of three clients requests a resync with every acknowledgement, for ten seconds at
/// 30 Hz. It gets one per second, packets keep to their limit, and the other clients are not
/// affected. Fails if `Peer::acknowledge` ignores `resync_every`.
#[test]
fn requests_for_a_resync_are_rationed() {
    over_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let mut hall = Hall::new(ServerConfig::default());
        for tick in 1..=300 {
            hall.step(Tick(tick), &mut dice).expect("in order");
            for (peer, message) in encode(&mut hall.server, &|_| Room::one(300)) {
                assert!(message.len() <= 300, "{} bytes", message.len());
                let client = &mut hall.clients[peer.0 as usize - 1];
                // It shows nothing wrong, and applies what it still can.
                let _ = client.handle(&message);
                if peer == PeerId(1) {
                    confuse(client);
                }
                let ack = client.acknowledgement().expect("something arrived");
                hall.server.handle(peer, &ack).expect("honest");
            }
            assert!(tick < 30 || hall.agrees(1) && hall.agrees(2));
        }
        let served = hall.resyncs(1);
        assert!((9..=10).contains(&served), "{served} times");
        assert_eq!((hall.resyncs(2), hall.resyncs(3)), (0, 0));
    });
}

/// Case 14, epochs: they are counted in a byte and wrap around. Fails if an epoch counts as new
/// only if it is larger (in `Decoder::decode_with`, `header.epoch > self.epoch`).
#[test]
fn epochs_may_start_over() {
    over_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let config = ServerConfig::default().with_resync_every(0);
        let mut hall = Hall::new(config);
        for tick in 1..=600 {
            hall.step(Tick(tick), &mut dice).expect("in order");
            for (peer, message) in encode(&mut hall.server, &|_| Room::UNLIMITED) {
                let client = &mut hall.clients[peer.0 as usize - 1];
                client.handle(&message).expect("in order");
                if tick % 2 == 0 {
                    confuse(client);
                }
                let ack = client.acknowledgement().expect("something arrived");
                hall.server.handle(peer, &ack).expect("honest");
            }
            assert!((0..3).all(|client| hall.agrees(client)), "{tick}");
        }
        assert_eq!(hall.resyncs(1), 300);
    });
}

/// Cases 13 and 14, ticks: they may leap, as after ten minutes of suspension, and they end, which
/// is an error. Fails if `Archive::begin` accepts a tick that is not after the newest.
#[test]
fn ticks_may_leap_and_end() {
    over_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let mut hall = Hall::new(ServerConfig::default());
        let mut tick = 0u64;
        for turn in 0..120 {
            let leap = match dice.below(12) {
                0 => 18_000,
                1 => u64::MAX / 80,
                2 => 70,
                _ => 1,
            };
            // The largest tick is the last.
            tick = match turn {
                119 => u64::MAX,
                _ => tick.saturating_add(leap).min(u64::MAX - 200 + turn),
            };
            hall.step(Tick(tick), &mut dice).expect("ticks grow");
            for (peer, message) in encode(&mut hall.server, &|_| Room::UNLIMITED) {
                let client = &mut hall.clients[peer.0 as usize - 1];
                client.handle(&message).expect("in order");
                let ack = client.acknowledgement().expect("something arrived");
                hall.server.handle(peer, &ack).expect("honest");
            }
            assert!((0..3).all(|client| hall.agrees(client)), "{tick}");
        }
        for after in [0, 1, u64::MAX] {
            let refused = hall.step(Tick(after), &mut dice);
            assert!(matches!(refused, Err(WorldError::Capture(_))), "{after}");
        }
    });
}

/// Case 15: a client learns from a packet that its server did not send, as after a flipped bit in
/// its model. It refuses what it cannot decode any more, requests a resync, and agrees within a
/// second at 30 Hz. Fails if acknowledgements never request a new epoch (in
/// `Decoder::acknowledgement`, `resync: false`).
#[test]
fn diverged_ends_resync() {
    over_seeds(20, |seed| {
        let mut halls = [0, 1].map(|_| Hall::new(ServerConfig::default()));
        let mut dice = [0, 1].map(|_| Dice::new(seed));
        let mut refused = 0;
        for tick in 1..=90 {
            for (hall, dice) in halls.iter_mut().zip(&mut dice) {
                hall.step(Tick(tick), dice).expect("in order");
            }
            if tick == 40 {
                // The second server differs in nothing but this.
                dice[1].below(2);
            }
            let [honest, other] = &mut halls;
            let messages = encode(&mut honest.server, &|_| Room::UNLIMITED);
            let others = encode(&mut other.server, &|_| Room::UNLIMITED);
            // The second server sends less once it gets no acknowledgements.
            let mut others = others.into_iter().collect::<BTreeMap<_, _>>();
            for (peer, mut message) in messages {
                let client = &mut honest.clients[peer.0 as usize - 1];
                if tick == 41 {
                    message = others.remove(&peer).expect("it is answered up to now");
                }
                refused += u32::from(client.handle(&message).is_err());
                let ack = client.acknowledgement().expect("something arrived");
                honest.server.handle(peer, &ack).expect("honest");
                if tick <= 41 {
                    other.server.handle(peer, &ack).expect("honest");
                }
            }
            let agree = (0..3).all(|client| honest.agrees(client));
            assert!(agree || (41..=41 + 30).contains(&tick), "{tick}");
        }
        assert!(refused >= 9, "it was not noticed: {refused}");
    });
}
