//! What a client is sent does not depend on anything that it cannot see.

use crate::common;

use crate::common::{TestWorld, Unit, encode, good};
use prescient_replication::{Candidate, Observer, PeerId, Room, Tick, Visibility};
use prescient_schema::Ref;
use prescient_tests::seeds::over_seeds;

/// The same game with and without hidden units of another player, which spawn, despawn and refer to
/// visible ones; all bytes for the first client are compared. Fails if `World` is walked by slot
/// (`Serial` made from the slot), because the slots of hidden units then influence the order.
#[test]
fn packets_are_the_same_with_and_without_a_hidden_neighbour() {
    over_seeds(20, |seed| {
        let with = bytes_of_the_first(seed, true);
        let without = bytes_of_the_first(seed, false);
        assert_eq!(with.len(), without.len());
        for (tick, (with, without)) in with.iter().zip(&without).enumerate() {
            assert_eq!(with, without, "tick {tick}");
        }
    });
}

fn bytes_of_the_first(seed: u64, neighbour: bool) -> Vec<Vec<u8>> {
    let own = |observer: &Observer, candidate: &Candidate, _: Option<Visibility>| {
        (candidate.owner == Some(observer.peer))
            .then(|| Visibility::default_for(observer, candidate))
    };
    let mut test_world = TestWorld::new(seed, 2, good(), own);
    // The neighbour has its own random numbers, so that they do not change the others'.
    let mut others = common::Dice::new(!seed);
    let mut mine: Vec<(Ref<Unit>, Unit)> = Vec::new();
    let mut theirs: Vec<Ref<Unit>> = Vec::new();
    let mut all = Vec::new();
    for tick in 1..250 {
        let dice = &mut test_world.dice;
        let mut step = test_world.server.step(Tick(tick)).expect("in order");
        for _ in 0..others.below(3) {
            if neighbour {
                let target = mine.first().map_or(Ref::NONE, |(unit, _)| *unit);
                let unit = Unit {
                    target,
                    ..Unit::default()
                };
                theirs.push(step.spawn_for(PeerId(2), &unit).expect("sound"));
            }
        }
        while theirs.len() > 8 {
            let at = others.below(theirs.len() as u64) as usize;
            let gone = theirs.swap_remove(at);
            step.despawn(gone.entity_ref()).expect("it was there");
        }
        for _ in 0..dice.below(3) {
            let unit = Unit {
                health: dice.below(256) as u8,
                ..Unit::default()
            };
            let spawned = step.spawn_for(PeerId(1), &unit).expect("sound");
            mine.push((spawned, unit));
        }
        while mine.len() > 12 {
            let at = dice.below(mine.len() as u64) as usize;
            let (gone, _) = mine.swap_remove(at);
            step.despawn(gone.entity_ref()).expect("it was there");
        }
        for (entity, unit) in &mut mine {
            unit.position[0] += dice.below(3) as f32;
            step.set(*entity, unit).expect("sound");
        }
        step.finish();
        if tick == 200 {
            // A client that joins late is shown everything at once.
            test_world.server.connect(PeerId(1));
            test_world.clients[0] = common::TestClient::new(PeerId(1), seed, &good());
            test_world.listen();
        }
        for (peer, message) in encode(&mut test_world.server, &|_| Room::UNLIMITED) {
            let test_client = &mut test_world.clients[peer.0 as usize - 1];
            test_client.client.handle(&message).expect("in order");
            if let Some(ack) = test_client.client.acknowledgement() {
                test_world.server.handle(peer, &ack).expect("honest");
            }
            if peer == PeerId(1) {
                all.push(message);
            }
        }
    }
    all
}
