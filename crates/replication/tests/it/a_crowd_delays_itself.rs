//! Many peers join in the same tick. Their first packets are the most expensive ones, so they take
//! turns, and a player who is already there is sent every tick.

use std::collections::BTreeMap;

use crate::common::{Dice, Unit, encode, greet, schema};
use prescient_replication::{
    Client, ClientConfig, Everything, PeerId, Room, Server, ServerConfig, Tick,
};
use prescient_tests::seeds::over_seeds;

const PLAYER: PeerId = PeerId(0);

/// Fails with more packets per tick if `Server::encode` ignores `delayed_newcomers`, and with peers that
/// are never sent anything if the turn does not move on (`last_newcomer` stays 0).
#[test]
fn newcomers_take_turns() {
    over_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        // All have had their turn before the first are sent probes, which are not limited.
        let (limit, crowd) = (2 + dice.below(5), 20 + dice.below(20));
        let config = ServerConfig::default().with_max_newcomers(limit as usize);
        let mut server = Server::new(schema(), config, Everything).expect("a sound schema");
        let mut player = join(&mut server, PLAYER);
        let mut newcomers = BTreeMap::new();
        let mut sent = BTreeMap::new();
        let mut unit = None;
        for tick in 1..=(10 + crowd.div_ceil(limit) as u32) {
            let mut step = server.step(Tick(tick.into())).expect("in order");
            let now = Unit {
                health: tick as u8,
                ..Unit::default()
            };
            match unit {
                None => unit = Some(step.spawn(&now).expect("sound")),
                Some(unit) => step.set(unit, &now).expect("it is there"),
            }
            step.finish();
            if tick == 10 {
                for peer in (1..=crowd).map(PeerId) {
                    newcomers.insert(peer, join(&mut server, peer));
                }
            }
            let messages = encode(&mut server, &|_| Room::UNLIMITED);
            let first = messages.iter().filter(|(peer, _)| *peer != PLAYER);
            assert!(first.count() as u64 <= limit, "seed {seed}, tick {tick}");
            assert!(messages.iter().any(|(peer, _)| *peer == PLAYER));
            for (peer, message) in messages {
                if peer == PLAYER {
                    player.handle(&message).expect("in order");
                    let ack = player.acknowledgement().expect("a packet arrived");
                    server.handle(PLAYER, &ack).expect("honest");
                } else {
                    *sent.entry(peer).or_insert(0) += 1;
                }
            }
        }
        assert_eq!(sent.len() as u64, crowd, "seed {seed}: all had a turn");
    });
}

fn join(server: &mut Server, peer: PeerId) -> Client {
    server.connect(peer);
    let mut client = Client::new(schema(), ClientConfig::default()).expect("a sound schema");
    greet(server, peer, &mut client);
    client
}
