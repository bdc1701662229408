//! A client whose server was restarted greets the new one: what it showed stays until then.

mod common;

use common::{Seat, Theatre, Unit, bad, greet};
use prescient_replication::{About, ClientError, Everything, Tick};
use prescient_tests::seeds::over_seeds;

/// Fails if `begin` keeps what was shown, if `acknowledgement` speaks about packets of the old
/// server (then the new one refuses an honest answer), if ticks of the old world release events of
/// the new (`self.tick()` in `hear`), or if `cut_off` leaves notices to the new world's objects.
#[test]
fn nothing_of_the_old_world_is_taken_for_the_new() {
    over_seeds(20, |seed| {
        let mut old = Theatre::new(seed, 3, bad(), Everything);
        play(&mut old, 200, 1, 8);
        let mut new = Theatre::new(seed + 1, 3, bad(), Everything);
        for (seat, was) in new.seats.iter_mut().zip(old.seats) {
            let Seat {
                peer,
                client,
                objects,
                ..
            } = was;
            assert!(objects.values().all(|unit| unit.health == 1));
            let picture = objects.clone();
            (seat.client, seat.objects) = (client, objects);
            // An event that waits for its tick, about a number that will be somebody else's.
            let ahead = event(Tick(1_000_000), 0);
            seat.client.handle(&ahead).expect("a sound event");
            seat.client.reconnect();
            assert!(!seat.client.is_welcome());
            assert_eq!(seat.client.acknowledgement(), None);
            assert_eq!(seat.client.handle(&[0, 0]), Err(ClientError::Early));
            seat.poll();
            assert_eq!(seat.objects, picture, "it stays");
            assert_eq!(seat.client.objects().count(), picture.len());
            let heard = seat.events.pop().expect("handed out");
            assert_eq!((heard.about, heard.tick), (About::Gone, Tick(1_000_000)));
            // The server that the theatre was made with has seen a client in this place.
            new.server.disconnect(peer);
            new.server.connect(peer);
            greet(&mut new.server, peer, &mut seat.client);
            assert!(seat.client.is_welcome());
            // An event of the new world waits for a tick of the new world.
            seat.client.handle(&event(Tick(150), 0)).expect("sound");
            seat.poll();
            assert!(seat.events.is_empty());
            assert!(seat.objects.is_empty(), "it is gone");
        }
        play(&mut new, 300, 2, 5);
        for seat in &new.seats {
            let healths: Vec<_> = seat.objects.values().map(|unit| unit.health).collect();
            assert_eq!(healths, [2; 5]);
            let waited = seat.events.iter().find(|heard| heard.payload == b"!");
            assert!(waited.is_some_and(|heard| heard.unit.is_some()));
        }
    });
}

/// So many ticks with so many units, over bad links at first and then good ones.
fn play(theatre: &mut Theatre, ticks: u32, health: u8, units: usize) {
    for number in 0..ticks {
        if number == ticks / 2 {
            theatre.heal();
        }
        theatre.tick += 1;
        let mut step = theatre.server.step(Tick(theatre.tick)).expect("ascending");
        if number == 0 {
            for at in 0..units {
                let place = [at as f32, 0.0];
                let unit = Unit {
                    place,
                    health,
                    ..Unit::default()
                };
                step.spawn(&unit).expect("sound");
            }
        }
        step.finish();
        theatre.exchange();
    }
}

/// An event of the first world, as a server writes it.
fn event(tick: Tick, about: u32) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend_from_slice(&tick.0.to_le_bytes());
    bytes.extend_from_slice(&(about + 1).to_le_bytes());
    bytes.extend_from_slice(b"!");
    bytes
}
