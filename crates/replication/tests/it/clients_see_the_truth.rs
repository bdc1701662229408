//! Whatever the links do, a client shows the true state of its tick and receives every event once.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{TICK, TestWorld, Unit, bad, good};
use crate::common::{battle::Battle, encode, poll};
use prescient_replication::{About, Distance, Everything, FromClient, Position, Room, Tick};
use prescient_schema::Ref;
use prescient_tests::seeds::over_seeds;

/// Cases 1 and 4 for state. Fails if a client applies late packets (in `Client::handle`, continue
/// after an error of the decoder), or if `ShownWorld::follow` ignores removed entities.
#[test]
fn every_shown_entity_is_as_it_was() {
    over_seeds(20, |seed| {
        let mut battle = Battle::new();
        let mut test_world = TestWorld::new(seed, 3, bad(), Everything);
        for _ in 0..300 {
            battle.step(&mut test_world);
            test_world.exchange();
            battle.check(&test_world);
        }
        // When the link heals, all clients see everything.
        test_world.heal();
        for _ in 0..8 {
            battle.step(&mut test_world);
            test_world.exchange();
        }
        for test_client in &test_world.clients {
            assert_eq!(
                test_client.client.tick(),
                Some(Tick((test_world.tick - 1).into()))
            );
            let before = &battle.past[&Tick((test_world.tick - 1).into())];
            assert_eq!(test_client.entities.len(), before.len());
        }
    });
}

/// Owners see the private table of their units, others do not. Fails if `Visibility::default_for`
/// shows all tables to every peer, or if `ShownWorld::link_table` does not attach a table.
#[test]
fn private_tables_are_for_owners() {
    over_seeds(20, |seed| {
        let mut battle = Battle::new();
        let mut test_world = TestWorld::new(seed, 3, bad(), Everything);
        for _ in 0..150 {
            battle.step(&mut test_world);
            test_world.exchange();
        }
        test_world.heal();
        for _ in 0..8 {
            battle.step(&mut test_world);
            test_world.exchange();
        }
        let truth = &battle.past[&Tick((test_world.tick - 1).into())];
        let mut owned = 0;
        for test_client in &test_world.clients {
            for entity in test_client.client.entities() {
                let public: Unit = test_client.client.get(entity).expect("shown");
                assert_eq!(public.gold, 0, "gold is no public matter");
                if let Some(private) = test_client.client.get_table::<Unit>(entity, "private") {
                    owned += 1;
                    assert!(truth.values().any(|was| was.gold == private.gold));
                }
            }
        }
        assert_eq!(owned, truth.len(), "each has one owner");
    });
}

/// If packets are too small for a whole entity, its tables may arrive in any order. Fails if
/// `ShownWorld::enter` does not attach tables that arrived before the entity.
#[test]
fn tables_may_come_before_their_entity() {
    over_seeds(20, |seed| {
        let mut test_world = TestWorld::new(seed, 1, bad(), Everything);
        test_world.budget = Some(16 + seed as usize);
        let owner = test_world.clients[0].peer;
        let mut golds = BTreeMap::new();
        for tick in 1..120u32 {
            test_world.tick = tick;
            let mut step = test_world.server.step(Tick(tick.into())).expect("in order");
            for _ in 0..if tick == 1 { 12 } else { 0 } {
                let unit = Unit {
                    health: golds.len() as u8,
                    gold: test_world.dice.below(60_000) as u16,
                    ..Unit::default()
                };
                step.spawn_for(owner, &unit).expect("sound values");
                golds.insert(unit.health, unit.gold);
            }
            step.finish();
            test_world.exchange();
        }
        let client = &test_world.clients[0].client;
        let seen = client.entities().filter_map(|entity| {
            let public: Unit = client.get(entity)?;
            let private: Unit = client.get_table(entity, "private")?;
            Some((public.health, private.gold))
        });
        assert_eq!(seen.collect::<BTreeMap<_, _>>(), golds);
    });
}

/// An id is reused, and an event about the first entity that had it is not taken to be about the
/// second. Fails if `Peer::slot` ignores the tick that was shown.
#[test]
fn events_about_removed_entities_are_about_no_other() {
    let mut test_world = TestWorld::new(0, 1, good(), Everything);
    let peer = test_world.clients[0].peer;
    let mut units: Vec<Ref<Unit>> = Vec::new();
    let mut messages = Vec::new();
    for tick in 1..30u32 {
        test_world.tick = tick;
        let mut step = test_world.server.step(Tick(tick.into())).expect("in order");
        match tick {
            1 | 20 => units.push(step.spawn(&Unit::default()).expect("sound")),
            10 => step.despawn(units[0].entity_ref()).expect("it was there"),
            _ => {}
        }
        step.finish();
        test_world.exchange();
        if tick == 9 || tick == 29 {
            let client = &test_world.clients[0].client;
            let entity = client.entities().next();
            assert!(entity.is_some());
            messages.extend(client.send_event(entity, b"hello"));
        }
    }
    let received = messages
        .iter()
        .map(|message| test_world.server.handle(peer, message));
    let about = received.map(|received| match received {
        Ok(FromClient::Event { about, .. }) => about,
        other => panic!("{other:?}"),
    });
    let second = About::Entity(units[1].entity_ref());
    assert_eq!(about.collect::<Vec<_>>(), [About::Gone, second]);
}

/// Events about entities and about nothing arrive exactly once; the entity is known if it is still
/// visible. Fails if `Peer::acknowledge` does not release deferred events, or `give_up` drops them.
#[test]
fn every_event_arrives_once() {
    over_seeds(20, |seed| {
        let mut battle = Battle::new();
        let mut test_world = TestWorld::new(seed, 3, bad(), Everything);
        test_world.budget = (seed % 2 == 1).then_some(48);
        let mut told = BTreeSet::new();
        let mut about = BTreeMap::new();
        for round in 0..250u32 {
            battle.step(&mut test_world);
            let payload = round.to_le_bytes();
            match test_world.dice.below(3) {
                0 => {
                    for test_client in &test_world.clients {
                        let told = test_world.server.send_event(test_client.peer, &payload);
                        told.expect("connected");
                    }
                    told.insert(payload.to_vec());
                }
                1 if !battle.units.is_empty() => {
                    let newest = battle.units[battle.units.len() - 1].0;
                    let announced = test_world
                        .server
                        .send_entity_event(newest.entity_ref(), &payload);
                    announced.expect("it is there");
                    let health = battle.units[battle.units.len() - 1].1.health;
                    about.insert(payload.to_vec(), (newest, health));
                    told.insert(payload.to_vec());
                }
                _ => {}
            }
            test_world.exchange();
        }
        test_world.heal();
        for _ in 0..40 {
            battle.step(&mut test_world);
            test_world.exchange();
        }
        for test_client in &test_world.clients {
            let received: Vec<_> = test_client
                .events
                .iter()
                .map(|received| &received.payload)
                .collect();
            let once: BTreeSet<_> = received.iter().map(|payload| payload.to_vec()).collect();
            assert_eq!(received.len(), once.len(), "it arrived twice");
            assert_eq!(once, told);
            for received in &test_client.events {
                let Some(&(entity, health)) = about.get(&received.payload) else {
                    assert_eq!(received.about, About::Nothing);
                    continue;
                };
                let lives = battle.units.iter().any(|(unit, _)| *unit == entity);
                let unit = received.unit.as_ref();
                assert!(unit.is_some() || !lives, "it never left, and is gone");
                assert!(unit.is_none_or(|unit| unit.health == health), "another");
            }
        }
    });
}

/// An event that overtakes the state of its tick waits for it. Fails if `Client::handle` releases
/// it at once (`release(tick)` when it arrives), or does not release it when the state arrives.
#[test]
fn an_event_waits_for_its_tick() {
    let mut test_world = TestWorld::new(0, 1, good(), Everything);
    let peer = test_world.clients[0].peer;
    for tick in 1..5 {
        test_world
            .server
            .step(Tick(tick))
            .expect("in order")
            .finish();
        let state = encode(&mut test_world.server, &|_| Room::UNLIMITED)
            .remove(0)
            .1;
        test_world
            .server
            .send_event(peer, &[tick as u8])
            .expect("connected");
        let event = poll(&mut test_world.server, peer).expect("it was sent");
        let test_client = &mut test_world.clients[0];
        test_client.client.handle(&event).expect("honest");
        test_client.poll();
        assert_eq!(test_client.events.len(), tick as usize - 1);
        test_client.client.handle(&state).expect("honest");
        test_client.poll();
        let received = test_client.events.last().expect("it was sent");
        assert_eq!(
            (received.tick, &received.payload[..]),
            (Tick(tick), &[tick as u8][..])
        );
    }
}

/// Near entities are visible, far ones are not, and none flickers at the edge. Fails if
/// `Distance::visibility` ignores `seen`, or `Peer::update_visibility` evaluates only touched
/// entities.
#[test]
fn what_is_near_is_shown() {
    over_seeds(20, |seed| {
        let mut test_world =
            TestWorld::new(seed, 1, bad(), Distance::new(50.0, 60.0).expect("sound"));
        let peer = test_world.clients[0].peer;
        let mut units = Vec::new();
        let (mut seen, mut turns) = (vec![false; 40], vec![0; 40]);
        for tick in 1..400u32 {
            test_world.tick = tick;
            let mut step = test_world.server.step(Tick(tick.into())).expect("in order");
            if tick == 1 {
                for x in 0..40 {
                    let position = [x as f32 * 10.0, 0.0];
                    let unit = Unit {
                        position,
                        ..Unit::default()
                    };
                    units.push((step.spawn(&unit).expect("sound"), position[0]));
                }
            }
            step.finish();
            let view_position = f64::from(tick) + f64::from(tick % 11) * 0.8 - 4.0;
            let position = prescient_replication::Position([view_position, 0.0, 0.0]);
            test_world
                .server
                .set_view_position(peer, position)
                .expect("connected");
            test_world.exchange();
            for (at, &(unit, x)) in units.iter().enumerate() {
                let distance = (f64::from(x) - view_position).abs();
                let sees = test_world.server.sees(peer, unit.entity_ref());
                turns[at] += u32::from(std::mem::replace(&mut seen[at], sees) != sees);
                // Distances are evaluated every fourth tick, and the view position moves by up to 7
                // per tick.
                assert!(!sees || distance <= 60.0 + 16.0, "far, and seen");
                assert!(
                    sees || distance >= 50.0 - 16.0 || tick < 4,
                    "near, and not seen"
                );
            }
        }
        assert!(test_world.clients[0].client.entities().count() <= 13);
        assert!(turns.iter().all(|&turns| turns <= 2), "it flickers");
    });
}

/// A client that joins a large world over a thin link sees near entities first, in packets that
/// keep to their limit, and everything in the end, while known entities keep moving. Fails if
/// `Peer::show` does not pass weights on.
#[test]
fn a_large_world_is_joined_from_near_to_far() {
    over_seeds(20, |seed| {
        let lossy = good().with_latency(2 * TICK).with_loss(200_000);
        let mut test_world = TestWorld::new(
            seed,
            1,
            lossy,
            Distance::new(1000.0, 1000.0).expect("sound"),
        );
        test_world.budget = Some(100);
        let (peer, origin) = (
            test_world.clients[0].peer,
            prescient_replication::Position([0.0; 3]),
        );
        test_world
            .server
            .set_view_position(peer, origin)
            .expect("connected");
        let mut units: Vec<(Ref<Unit>, Unit)> = Vec::new();
        let mut order = Vec::new();
        for tick in 1..600u32 {
            test_world.tick = tick;
            let mut step = test_world.server.step(Tick(tick.into())).expect("in order");
            if tick == 1 {
                for _ in 0..600 {
                    let position = [test_world.dice.below(900) as f32, 0.0];
                    let unit = Unit {
                        position,
                        ..Unit::default()
                    };
                    units.push((step.spawn(&unit).expect("sound"), unit));
                }
            }
            for (entity, unit) in units.iter_mut().take(60) {
                unit.health = unit.health.wrapping_add(test_world.dice.below(3) as u8);
                step.set(*entity, unit).expect("sound");
            }
            step.finish();
            let known: BTreeSet<_> = test_world.clients[0].entities.keys().copied().collect();
            test_world.exchange();
            let test_client = &test_world.clients[0];
            assert!(test_client.largest <= 100, "{} bytes", test_client.largest);
            let new = test_client
                .entities
                .iter()
                .filter(|(entity, _)| !known.contains(entity));
            order.extend(new.map(|(_, unit)| unit.position[0]));
        }
        assert_eq!(order.len(), units.len(), "not all of them arrived");
        let mean = |part: &[f32]| part.iter().sum::<f32>() / part.len() as f32;
        let (first, last) = (mean(&order[..60]), mean(&order[540..]));
        assert!(first < 200.0 && last > 550.0, "{first} first, {last} last");
    });
}

/// Case 3: bursts of loss, 2, 5 and 10 %. At 5 %, in 99 % of ticks a client shows a tick no older
/// than a round trip and three ticks. Fails if packets depend on ones that may be lost
/// (`Policy::Immediate` as the default of the codec's `Config`).
#[test]
fn bursts_of_loss_do_not_hold_up_the_world() {
    for (loss, limit, ticks) in [(2, 4 + 3, 60), (5, 4 + 3, 250), (10, 4 + 8, 60)] {
        let lags = std::cell::RefCell::new(Vec::new());
        over_seeds(20, |seed| {
            let bursts = good().with_latency(2 * TICK).with_bursts(loss * 10_000, 3);
            let mut battle = Battle::new();
            let mut test_world = TestWorld::new(seed, 3, bursts, Everything);
            for tick in 0..ticks {
                battle.step(&mut test_world);
                test_world.exchange();
                battle.check(&test_world);
                let shown = test_world
                    .clients
                    .iter()
                    .filter_map(|test_client| test_client.client.tick());
                let lag = shown.map(|shown| u64::from(test_world.tick) - shown.0);
                lags.borrow_mut().extend(lag.filter(|_| tick > 20));
            }
        });
        let mut lags = lags.into_inner();
        lags.sort_unstable();
        let (median, p99) = (lags[lags.len() / 2], lags[lags.len() * 99 / 100]);
        assert_eq!(median, 2, "one way");
        assert!(p99 <= limit, "{loss} %: {p99} ticks");
    }
}

/// Fails if coordinates are converted to floats before they are subtracted.
#[test]
fn offsets_are_exact_far_from_the_origin() {
    let mut test_world = TestWorld::new(1, 1, good(), Everything);
    let mut step = test_world.server.step(Tick(1)).expect("the first");
    for x in [33_333.33, 33_333.34] {
        let position = [x, -x];
        let unit = Unit {
            position,
            ..Unit::default()
        };
        step.spawn(&unit).expect("sound");
    }
    step.finish();
    for _ in 0..3 {
        test_world.tick += 1;
        test_world.exchange();
    }
    let client = &test_world.clients[0].client;
    let [a, b] = client.entities().collect::<Vec<_>>()[..] else {
        panic!("both are shown");
    };
    assert_eq!(client.offset(b, a), Some(Position([0.01, -0.01, 0.0])));
    assert_eq!(client.offset(a, a), Some(Position::default()));
}
