//! Objects that are parts of others come and go with them.

mod common;

use common::{Theatre, Unit, good};
use prescient_replication::{Distance, Owned, PeerId, Place, Tick};

/// Fails if policies are asked about parts, or if `Cast::part` leaves parts with a whole that is gone.
#[test]
fn a_turret_is_seen_with_its_tank() {
    let policy = Distance::new(10.0, 12.0);
    let mut theatre = Theatre::new(1, 1, good(), policy);
    let at = |x: f32| Unit {
        place: [x, 0.0],
        ..Unit::default()
    };
    let eye = theatre.server.look_from(PeerId(1), Place([0.0; 3]));
    eye.expect("it is here");
    let (mut tank, mut turret, mut gunner) = (None, None, None);
    let mut seen = Vec::new();
    for tick in 1..80 {
        theatre.tick = tick;
        let mut step = theatre.server.step(Tick(tick)).expect("ascending");
        match tick {
            1 => {
                let parts = [5.0, 50.0, 60.0].map(|x| step.spawn(&at(x)).expect("sound"));
                (tank, turret, gunner) = (Some(parts[0]), Some(parts[1]), Some(parts[2]));
            }
            10 => {
                let whole = tank.map(|tank| tank.entity());
                let part = turret.expect("there").entity();
                step.attach(part, whole).expect("both are there");
                step.attach(gunner.expect("there").entity(), Some(part))
                    .expect("there");
                let circle = step.attach(whole.expect("there"), Some(part));
                assert!(circle.is_err(), "a tank cannot be part of its turret");
            }
            20 => step.set(tank.expect("there"), &at(40.0)).expect("sound"),
            30 => step.set(tank.expect("there"), &at(3.0)).expect("sound"),
            40 => step
                .attach(turret.expect("there").entity(), None)
                .expect("there"),
            50 => {
                let whole = tank.map(|tank| tank.entity());
                step.attach(turret.expect("there").entity(), whole)
                    .expect("there");
            }
            60 => step.despawn(tank.expect("there").entity()).expect("there"),
            _ => {}
        }
        step.finish();
        theatre.exchange();
        if tick % 10 == 9 {
            seen.push(theatre.seats[0].client.objects().count());
        }
    }
    assert_eq!(seen, [1, 3, 0, 3, 1, 3, 0, 0]);
}

/// Fails if `attach` or `look` forgets to ask about the whole of what was attached.
#[test]
fn what_is_attached_is_seen_at_once() {
    let mut theatre = Theatre::new(1, 2, good(), Owned);
    let (mut horse, mut rider) = (None, None);
    let mut seen = Vec::new();
    for tick in 1..40 {
        theatre.tick = tick;
        let mut step = theatre.server.step(Tick(tick)).expect("ascending");
        if tick == 1 {
            let spawned = step.spawn_for(PeerId(1), &Unit::default());
            horse = Some(spawned.expect("sound").entity());
            let spawned = step.spawn_for(PeerId(2), &Unit::default());
            rider = Some(spawned.expect("sound").entity());
        }
        let part = rider.expect("spawned");
        match tick {
            10 => step.attach(part, horse).expect("there"),
            20 => step.attach(part, None).expect("there"),
            _ => {}
        }
        step.finish();
        theatre.exchange();
        if tick % 10 == 9 {
            let shown = |seat: &common::Seat| seat.client.objects().count();
            seen.push([shown(&theatre.seats[0]), shown(&theatre.seats[1])]);
        }
    }
    assert_eq!(seen, [[1, 1], [2, 0], [1, 1], [1, 1]]);
}
