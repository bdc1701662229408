//! A client whose server was restarted greets the new one; its shown entities stay until then.

use crate::common::{TestClient, TestWorld, Unit, bad, greet};
use prescient_codec::numbers;
use prescient_replication::{About, ClientError, Everything, Tick};
use prescient_tests::seeds::over_seeds;

/// Fails if `begin` keeps the shown entities, if `acknowledgement` acknowledges packets of the old
/// server (then the new one refuses an honest client), if ticks of the old world release events of
/// the new (`self.tick()` in `handle_world_message`), or if `cut_off` assigns notices to the new
/// world's entities.
#[test]
fn nothing_of_the_old_world_is_taken_for_the_new() {
    over_seeds(20, |seed| {
        let mut old = TestWorld::new(seed, 3, bad(), Everything);
        play(&mut old, 200, 1, 8);
        let mut new = TestWorld::new(seed + 1, 3, bad(), Everything);
        for (test_client, was) in new.clients.iter_mut().zip(old.clients) {
            let TestClient {
                peer,
                client,
                entities,
                ..
            } = was;
            assert!(entities.values().all(|unit| unit.health == 1));
            let picture = entities.clone();
            (test_client.client, test_client.entities) = (client, entities);
            // An event that waits for its tick, about an id that will be another entity's.
            let ahead = event(Tick(1_000_000), 0);
            test_client.client.handle(&ahead).expect("a sound event");
            test_client.client.reconnect();
            assert!(!test_client.client.is_welcome());
            assert_eq!(test_client.client.acknowledgement(), None);
            assert_eq!(
                test_client.client.handle(&[0x40, 0]),
                Err(ClientError::Early)
            );
            test_client.poll();
            assert_eq!(test_client.entities, picture, "it stays");
            assert_eq!(test_client.client.entities().count(), picture.len());
            let received = test_client.events.pop().expect("handed out");
            assert_eq!(
                (received.about, received.tick),
                (About::Gone, Tick(1_000_000))
            );
            // The new test world's server already knows a client with this id.
            new.server.disconnect(peer);
            new.server.connect(peer);
            greet(&mut new.server, peer, &mut test_client.client);
            assert!(test_client.client.is_welcome());
            // An event of the new world waits for a tick of the new world.
            test_client
                .client
                .handle(&event(Tick(150), 0))
                .expect("sound");
            test_client.poll();
            assert!(test_client.events.is_empty());
            assert!(test_client.entities.is_empty(), "it is gone");
        }
        play(&mut new, 300, 2, 5);
        for test_client in &new.clients {
            let healths: Vec<_> = test_client
                .entities
                .values()
                .map(|unit| unit.health)
                .collect();
            assert_eq!(healths, [2; 5]);
            let waited = test_client
                .events
                .iter()
                .find(|received| received.payload == b"!");
            assert!(waited.is_some_and(|received| received.unit.is_some()));
        }
    });
}

/// Runs this many ticks with this many units, first over bad links, then over good ones.
fn play(test_world: &mut TestWorld, ticks: u32, health: u8, units: usize) {
    for number in 0..ticks {
        if number == ticks / 2 {
            test_world.heal();
        }
        test_world.tick += 1;
        let mut step = test_world
            .server
            .step(Tick(test_world.tick.into()))
            .expect("ascending");
        if number == 0 {
            for at in 0..units {
                let position = [at as f32, 0.0];
                let unit = Unit {
                    position,
                    health,
                    ..Unit::default()
                };
                step.spawn(&unit).expect("sound");
            }
        }
        step.finish();
        test_world.exchange();
    }
}

/// An event of the first world, as a server writes it.
fn event(tick: Tick, about: u32) -> Vec<u8> {
    let mut bytes = vec![0];
    numbers::put(&mut bytes, tick.0);
    numbers::put(&mut bytes, u64::from(about) + 1);
    bytes.extend_from_slice(b"!");
    bytes
}
