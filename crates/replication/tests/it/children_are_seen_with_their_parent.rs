//! Children appear and disappear with their parents.

use crate::common;

use crate::common::{TestWorld, Unit, good};
use prescient_replication::{Distance, Owned, PeerId, Position, Tick};

/// Fails if policies are queried about children, or if `EntityTable::detach` leaves children with a
/// despawned parent.
#[test]
fn a_turret_is_seen_with_its_tank() {
    let policy = Distance::new(10.0, 12.0).expect("sound");
    let mut test_world = TestWorld::new(1, 1, good(), policy);
    let at = |x: f32| Unit {
        position: [x, 0.0],
        ..Unit::default()
    };
    let view_position = test_world
        .server
        .set_view_position(PeerId(1), Position([0.0; 3]));
    view_position.expect("it is here");
    let (mut tank, mut turret, mut gunner) = (None, None, None);
    let mut seen = Vec::new();
    for tick in 1..80 {
        test_world.tick = tick;
        let mut step = test_world
            .server
            .step(Tick(tick.into()))
            .expect("ascending");
        match tick {
            1 => {
                let children = [5.0, 50.0, 60.0].map(|x| step.spawn(&at(x)).expect("sound"));
                (tank, turret, gunner) = (Some(children[0]), Some(children[1]), Some(children[2]));
            }
            10 => {
                let parent = tank.map(|tank| tank.entity_ref());
                let child = turret.expect("there").entity_ref();
                step.set_parent(child, parent).expect("both are there");
                step.set_parent(gunner.expect("there").entity_ref(), Some(child))
                    .expect("there");
                let circle = step.set_parent(parent.expect("there"), Some(child));
                assert!(circle.is_err(), "a tank cannot be part of its turret");
            }
            20 => step.set(tank.expect("there"), &at(40.0)).expect("sound"),
            30 => step.set(tank.expect("there"), &at(3.0)).expect("sound"),
            40 => step
                .set_parent(turret.expect("there").entity_ref(), None)
                .expect("there"),
            50 => {
                let parent = tank.map(|tank| tank.entity_ref());
                step.set_parent(turret.expect("there").entity_ref(), parent)
                    .expect("there");
            }
            60 => step
                .despawn(tank.expect("there").entity_ref())
                .expect("there"),
            _ => {}
        }
        step.finish();
        test_world.exchange();
        if tick % 10 == 9 {
            seen.push(test_world.clients[0].client.entities().count());
        }
    }
    assert_eq!(seen, [1, 3, 0, 3, 1, 3, 0, 0]);
}

/// Fails if `set_parent` or `update_visibility` does not evaluate the root of an attached entity.
#[test]
fn what_is_attached_is_seen_at_once() {
    let mut test_world = TestWorld::new(1, 2, good(), Owned);
    let (mut horse, mut rider) = (None, None);
    let mut seen = Vec::new();
    for tick in 1..40 {
        test_world.tick = tick;
        let mut step = test_world
            .server
            .step(Tick(tick.into()))
            .expect("ascending");
        if tick == 1 {
            let spawned = step.spawn_for(PeerId(1), &Unit::default());
            horse = Some(spawned.expect("sound").entity_ref());
            let spawned = step.spawn_for(PeerId(2), &Unit::default());
            rider = Some(spawned.expect("sound").entity_ref());
        }
        let child = rider.expect("spawned");
        match tick {
            10 => step.set_parent(child, horse).expect("there"),
            20 => step.set_parent(child, None).expect("there"),
            _ => {}
        }
        step.finish();
        test_world.exchange();
        if tick % 10 == 9 {
            let shown = |test_client: &common::TestClient| test_client.client.entities().count();
            seen.push([shown(&test_world.clients[0]), shown(&test_world.clients[1])]);
        }
    }
    assert_eq!(seen, [[1, 1], [2, 0], [1, 1], [1, 1]]);
}
