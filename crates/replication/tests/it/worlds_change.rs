//! Clients move from one world to another: nothing of the old one is left or arrives late.

use crate::common;

use crate::common::{TestClient, TestWorld, Unit, bad, encode};
use prescient_replication::{About, Change, Everything, PeerId, Room, Server, ServerConfig, Tick};
use prescient_schema::Ref;
use prescient_tests::seeds::over_seeds;

/// Fails if messages of the last world are taken for ones of the current (`WorldGeneration::near`
/// returns `self`), if `ShownWorld::restart` keeps shown entities, or if `transfer_out` drops
/// waiting messages.
#[test]
fn a_client_is_in_one_world_at_a_time() {
    over_seeds(20, |seed| {
        let mut test_world = TestWorld::new(seed, 3, bad(), Everything);
        let other = Server::new(common::schema(), ServerConfig::default(), Everything);
        let mut other = other.expect("a sound schema");
        let mut told = [0; 3];
        // The entities left behind in each of the two worlds.
        let mut left: [Vec<Ref<Unit>>; 2] = Default::default();
        for round in 0..6 {
            let health = round as u8 + 1;
            let mut units = Vec::new();
            for _ in 0..40 {
                test_world.tick += 1;
                let mut step = test_world
                    .server
                    .step(Tick(test_world.tick.into()))
                    .expect("ascending");
                if units.is_empty() {
                    for old in left[round % 2].drain(..) {
                        step.despawn(old.entity_ref()).expect("there");
                    }
                    for _ in 0..10 {
                        let position = [test_world.dice.below(100) as f32, 0.0];
                        let unit = Unit {
                            position,
                            health,
                            ..Unit::default()
                        };
                        units.push(step.spawn(&unit).expect("sound"));
                    }
                }
                step.finish();
                let entity = units[test_world.dice.below(10) as usize];
                let announced = test_world
                    .server
                    .send_entity_event(entity.entity_ref(), &[health]);
                announced.expect("it is there");
                for (told, test_client) in told.iter_mut().zip(&test_world.clients) {
                    test_world
                        .server
                        .send_event(test_client.peer, &[health])
                        .expect("here");
                    *told += 1;
                }
                test_world.exchange();
                for test_client in &test_world.clients {
                    // A client shows an empty world, or the complete one of this round or an
                    // earlier one.
                    let healths: Vec<u8> = test_client
                        .entities
                        .values()
                        .map(|unit| unit.health)
                        .collect();
                    assert!(healths.iter().all(|&of| of == healths[0]), "two at once");
                }
            }
            left[round % 2] = units;
            // All clients move to the other world.
            for (told, test_client) in told.iter_mut().zip(&test_world.clients) {
                test_world
                    .server
                    .send_event(test_client.peer, b"goodbye")
                    .expect("here");
                *told += 1;
                let transfer = test_world
                    .server
                    .transfer_out(test_client.peer)
                    .expect("it was here");
                other.transfer_in(test_client.peer, transfer);
                assert!(test_world.server.transfer_out(test_client.peer).is_none());
            }
            std::mem::swap(&mut test_world.server, &mut other);
        }
        test_world.heal();
        for _ in 0..60 {
            test_world.tick += 1;
            test_world
                .server
                .step(Tick(test_world.tick.into()))
                .expect("ascending")
                .finish();
            test_world.exchange();
        }
        for (test_client, told) in test_world.clients.iter().zip(told) {
            let received = |test_client: &TestClient| {
                let plain = test_client
                    .events
                    .iter()
                    .filter(|received| received.about == About::Nothing);
                plain.count()
            };
            assert_eq!(received(test_client), told, "each arrives once");
            assert_eq!(test_client.client.entities().count(), 10);
            let strays = test_client.events.iter().filter_map(|received| {
                let unit = received.unit.as_ref()?;
                (unit.health != received.payload[0]).then_some(received)
            });
            assert_eq!(strays.count(), 0, "about what is in another world");
        }
    });
}

/// Fails if `Client::enter` does not report it.
#[test]
fn a_client_reports_that_it_entered_another_world() {
    let mut test_world = TestWorld::new(1, 1, common::good(), Everything);
    let other = Server::new(common::schema(), ServerConfig::default(), Everything);
    let mut other = other.expect("a sound schema");
    for server in [&mut test_world.server, &mut other] {
        let mut step = server.step(Tick(1)).expect("the first");
        step.spawn(&Unit::default()).expect("sound");
        step.finish();
    }
    let client = &mut test_world.clients[0].client;
    let see = |server: &mut Server, client: &mut prescient_replication::Client| {
        common::greet(server, PeerId(1), client);
        for (_, message) in encode(server, &|_| Room::UNLIMITED) {
            client.handle(&message).expect("honest");
        }
        std::iter::from_fn(|| client.poll_change()).collect::<Vec<_>>()
    };
    let first = see(&mut test_world.server, client);
    let &[Change::Created(old)] = &first[..] else {
        panic!("{first:?}");
    };
    let transfer = test_world
        .server
        .transfer_out(PeerId(1))
        .expect("it was here");
    other.transfer_in(PeerId(1), transfer);
    let second = see(&mut other, client);
    let &[Change::Entered, Change::Removed(gone), Change::Created(new)] = &second[..] else {
        panic!("{second:?}");
    };
    assert!(gone == old && new != old);
}
