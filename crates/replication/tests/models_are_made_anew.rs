//! Two ends that no longer agree find out and start anew, and nobody can make a server do that all
//! the time.

mod common;

use std::collections::BTreeMap;

use common::{Dice, Unit, schema};
use prescient_replication::{
    Client, ClientError, Everything, PeerId, Server, ServerConfig, Tick, WorldError,
};
use prescient_schema::Ref;
use prescient_tests::seeds::over_seeds;

/// A server with three clients, to whom everything arrives at once.
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

    /// Whether a client shows the newest tick, all of it and as it is.
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

/// Makes a client ask for everything anew: it cannot follow, as far as it knows.
fn confuse(client: &mut Client) {
    for _ in 0..3 {
        let refused = client.handle(&[0]);
        assert!(matches!(refused, Err(ClientError::State(_))));
    }
}

/// Case 18: one of three clients asks for everything anew with every answer, for ten seconds at 30
/// Hz. It is served once a second, packets keep to their limit, and the others notice nothing. Fails
/// if `Peer::acknowledge` does not look at `resync_every`.
#[test]
fn those_who_always_start_anew_are_rationed() {
    over_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let mut hall = Hall::new(ServerConfig::default());
        for tick in 1..=300 {
            hall.step(Tick(tick), &mut dice).expect("in order");
            for (peer, message) in hall.server.encode(&|_| Some(300)) {
                assert!(message.len() <= 300, "{} bytes", message.len());
                let client = &mut hall.clients[peer.0 as usize - 1];
                // It shows nothing wrong, and whatever it can still use.
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

/// Case 14, epochs: they are counted in a byte, and start over. Fails if a new epoch is one that is
/// larger (in `Decoder::decode_with`, `header.epoch > self.epoch`).
#[test]
fn epochs_may_start_over() {
    over_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let config = ServerConfig {
            resync_every: 0,
            ..ServerConfig::default()
        };
        let mut hall = Hall::new(config);
        for tick in 1..=600 {
            hall.step(Tick(tick), &mut dice).expect("in order");
            for (peer, message) in hall.server.encode(&|_| None) {
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

/// Cases 13 and 14, ticks: they may leap, as after ten minutes of suspension, and they end, which is
/// said. Fails if `Archive::begin` takes a tick that is not after the newest.
#[test]
fn ticks_may_leap_and_end() {
    over_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let mut hall = Hall::new(ServerConfig::default());
        let mut tick = 0u32;
        for turn in 0..120 {
            let leap = match dice.below(12) {
                0 => 18_000,
                1 => u32::MAX / 80,
                2 => 70,
                _ => 1,
            };
            // The last there is comes last.
            tick = match turn {
                119 => u32::MAX,
                _ => tick.saturating_add(leap).min(u32::MAX - 200 + turn),
            };
            hall.step(Tick(tick), &mut dice).expect("ticks grow");
            for (peer, message) in hall.server.encode(&|_| None) {
                let client = &mut hall.clients[peer.0 as usize - 1];
                client.handle(&message).expect("in order");
                let ack = client.acknowledgement().expect("something arrived");
                hall.server.handle(peer, &ack).expect("honest");
            }
            assert!((0..3).all(|client| hall.agrees(client)), "{tick}");
        }
        for after in [0, 1, u32::MAX] {
            let refused = hall.step(Tick(after), &mut dice);
            assert!(matches!(refused, Err(WorldError::Capture(_))), "{after}");
        }
    });
}

/// Case 15: a client is made to learn something that its server did not send, as a flipped bit of
/// its model would. It refuses what it cannot understand any more, asks for everything anew, and
/// agrees within a second at 30 Hz. Fails if acknowledgements never ask for a new epoch (in
/// `Decoder::acknowledgement`, `resync: false`).
#[test]
fn ends_that_disagree_start_anew() {
    over_seeds(20, |seed| {
        let mut halls = [0, 1].map(|_| Hall::new(ServerConfig::default()));
        let mut dice = [0, 1].map(|_| Dice::new(seed));
        let mut refused = 0;
        for tick in 1..=90 {
            for (hall, dice) in halls.iter_mut().zip(&mut dice) {
                hall.step(Tick(tick), dice).expect("in order");
            }
            if tick == 40 {
                // The second server is the same in everything but this.
                dice[1].below(2);
            }
            let [honest, other] = &mut halls;
            let messages = honest.server.encode(&|_| None);
            let others = other.server.encode(&|_| None);
            // The second sends less once nobody answers it.
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
        assert!(refused >= 9, "nobody noticed: {refused}");
    });
}
