//! Clients that go from one world to another: nothing of the old one is left or comes late.

mod common;

use common::{Seat, Theatre, Unit, bad};
use prescient_replication::{About, Change, Everything, PeerId, Server, ServerConfig, Tick};
use prescient_schema::Ref;
use prescient_tests::seeds::over_seeds;

/// Fails if messages of the last world are taken for ones of the present (`Stay::near` returns
/// `self`), if `Scene::restart` keeps what was shown, or if `depart` drops what was still to be said.
#[test]
fn a_client_is_in_one_world_at_a_time() {
    over_seeds(20, |seed| {
        let mut theatre = Theatre::new(seed, 3, bad(), Everything);
        let other = Server::new(common::schema(), ServerConfig::default(), Everything);
        let mut other = other.expect("a sound schema");
        let mut told = [0; 3];
        // What was left behind in each of the two.
        let mut left: [Vec<Ref<Unit>>; 2] = Default::default();
        for round in 0..6 {
            let health = round as u8 + 1;
            let mut units = Vec::new();
            for _ in 0..40 {
                theatre.tick += 1;
                let mut step = theatre.server.step(Tick(theatre.tick)).expect("ascending");
                if units.is_empty() {
                    for old in left[round % 2].drain(..) {
                        step.despawn(old.entity()).expect("there");
                    }
                    for _ in 0..10 {
                        let place = [theatre.dice.below(100) as f32, 0.0];
                        let unit = Unit {
                            place,
                            health,
                            ..Unit::default()
                        };
                        units.push(step.spawn(&unit).expect("sound"));
                    }
                }
                step.finish();
                let object = units[theatre.dice.below(10) as usize];
                let announced = theatre.server.announce(object.entity(), &[health]);
                announced.expect("it is there");
                for (told, seat) in told.iter_mut().zip(&theatre.seats) {
                    theatre.server.tell(seat.peer, &[health]).expect("here");
                    *told += 1;
                }
                theatre.exchange();
                for seat in &theatre.seats {
                    // An empty world is shown, or one of this round or of an earlier one, whole.
                    let healths: Vec<u8> = seat.objects.values().map(|unit| unit.health).collect();
                    assert!(healths.iter().all(|&of| of == healths[0]), "two at once");
                }
            }
            left[round % 2] = units;
            // Everybody leaves for the other world.
            for (told, seat) in told.iter_mut().zip(&theatre.seats) {
                theatre.server.tell(seat.peer, b"goodbye").expect("here");
                *told += 1;
                let traveller = theatre.server.depart(seat.peer).expect("it was here");
                other.welcome(seat.peer, traveller);
                assert!(theatre.server.depart(seat.peer).is_none());
            }
            std::mem::swap(&mut theatre.server, &mut other);
        }
        theatre.heal();
        for _ in 0..60 {
            theatre.tick += 1;
            theatre
                .server
                .step(Tick(theatre.tick))
                .expect("ascending")
                .finish();
            theatre.exchange();
        }
        for (seat, told) in theatre.seats.iter().zip(told) {
            let heard = |seat: &Seat| {
                let plain = seat
                    .events
                    .iter()
                    .filter(|heard| heard.about == About::Nothing);
                plain.count()
            };
            assert_eq!(heard(seat), told, "each is heard once");
            assert_eq!(seat.client.objects().count(), 10);
            let strays = seat.events.iter().filter_map(|heard| {
                let unit = heard.unit.as_ref()?;
                (unit.health != heard.payload[0]).then_some(heard)
            });
            assert_eq!(strays.count(), 0, "about what is in another world");
        }
    });
}

/// Fails if `Client::enter` does not say so.
#[test]
fn a_client_hears_that_it_is_elsewhere() {
    let mut theatre = Theatre::new(1, 1, common::good(), Everything);
    let other = Server::new(common::schema(), ServerConfig::default(), Everything);
    let mut other = other.expect("a sound schema");
    for server in [&mut theatre.server, &mut other] {
        let mut step = server.step(Tick(1)).expect("the first");
        step.spawn(&Unit::default()).expect("sound");
        step.finish();
    }
    let client = &mut theatre.seats[0].client;
    let see = |server: &mut Server, client: &mut prescient_replication::Client| {
        common::greet(server, PeerId(1), client);
        for (_, message) in server.encode(&|_| None) {
            client.handle(&message).expect("honest");
        }
        std::iter::from_fn(|| client.poll_change()).collect::<Vec<_>>()
    };
    let first = see(&mut theatre.server, client);
    let &[Change::Created(old)] = &first[..] else {
        panic!("{first:?}");
    };
    let traveller = theatre.server.depart(PeerId(1)).expect("it was here");
    other.welcome(PeerId(1), traveller);
    let second = see(&mut other, client);
    let &[Change::Entered, Change::Removed(gone), Change::Created(new)] = &second[..] else {
        panic!("{second:?}");
    };
    assert!(gone == old && new != old);
}
