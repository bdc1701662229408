//! What a client has of recent ticks is what the server's world was at these ticks.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::common::{TestWorld, Unit, bad, greet, schema};
use crate::common::{battle::Battle, encode};
use prescient_replication::{
    About, Client, ClientConfig, ClientError, Distance, EntityHandle, Everything, FromClient,
    HistoryDepth, PeerId, Position, Relevance, Room, Server, ServerConfig, Tick, Visibility,
};
use prescient_schema::EntityRef;
use prescient_tests::seeds::over_seeds;

/// A battle over bad links, with packets that are too small for it, seen by one client whole and by
/// others from a place: their entities come and go.
///
/// Fails if `ShownWorld::sample_rows` keeps the added column (nothing can be read then), if
/// `Client::table_samples` reads another table, if `Coverage::includes` is always true, or if
/// `Capture::spawn_at` does not set `born` and `hot_since`.
#[test]
fn every_sample_is_the_server_s_value_of_its_tick() {
    let counts = Cell::new([0; 3]);
    over_seeds(20, |seed| {
        let mut battle = Battle::new();
        let mut test_world = TestWorld::new(
            seed,
            3,
            bad(),
            NearOrAll(Distance::new(60.0, 70.0).expect("sound")),
        );
        test_world.budget = Some(48 + seed as usize);
        for peer in [2, 3] {
            let place = Position([60.0 * peer as f64, 100.0, 0.0]);
            let looked = test_world.server.set_view_position(PeerId(peer), place);
            looked.expect("it is connected");
        }
        let mut since: Vec<BTreeMap<EntityHandle, Tick>> = vec![BTreeMap::new(); 3];
        for round in 0..200 {
            battle.step(&mut test_world);
            let before = shown_ticks(&test_world);
            test_world.exchange();
            for ((test_client, since), before) in
                test_world.clients.iter().zip(&mut since).zip(before)
            {
                for &entity in test_client.entities.keys() {
                    since.entry(entity).or_insert(before);
                }
            }
            if round % 10 == 9 {
                let [samples, private, left_out] = check(&mut test_world, &battle, &since);
                let [all, all_private, all_left_out] = counts.get();
                counts.set([
                    all + samples,
                    all_private + private,
                    all_left_out + left_out,
                ]);
            }
        }
    });
    let [samples, private, left_out] = counts.get();
    println!("{samples} samples, {private} of private tables, {left_out} ticks left out");
    assert!(samples > 100_000, "{samples} samples");
    assert!(private > 10_000, "{private} of private tables");
    assert!(left_out > 10_000, "{left_out} ticks were left out");
}

/// Shows the first peer everything, and the others what is near.
struct NearOrAll(Distance);

impl Relevance for NearOrAll {
    fn visibility(
        &self,
        observer: &prescient_replication::Observer,
        candidate: &prescient_replication::Candidate,
        seen: Option<Visibility>,
    ) -> Option<Visibility> {
        match observer.peer {
            PeerId(1) => Everything.visibility(observer, candidate, seen),
            _ => self.0.visibility(observer, candidate, seen),
        }
    }

    fn reach(&self, observer: &prescient_replication::Observer) -> Option<f64> {
        match observer.peer {
            PeerId(1) => None,
            _ => self.0.reach(observer),
        }
    }
}

fn shown_ticks(test_world: &TestWorld) -> Vec<Tick> {
    let clients = test_world.clients.iter();
    let ticks = clients.map(|test_client| test_client.client.tick().unwrap_or_default());
    ticks.collect()
}

/// Compares all samples of all clients with the truth. Returns how many there are, how many of them
/// in private tables, and how many applied ticks were left out.
fn check(
    test_world: &mut TestWorld,
    battle: &Battle,
    since: &[BTreeMap<EntityHandle, Tick>],
) -> [usize; 3] {
    let mut counts = [0; 3];
    for (test_client, since) in test_world.clients.iter().zip(since) {
        let client = &test_client.client;
        for entity in client.entities() {
            let samples: Vec<(Tick, Unit)> = client.samples(entity).collect();
            let newest = samples.last().map(|(tick, _)| *tick);
            assert_eq!(newest, client.tick_of(entity, 0));
            assert!(samples.is_sorted_by(|(one, _), (next, _)| one < next));
            assert!(samples[0].0 > since[&entity], "older than the entity");
            let rows = client.sample_rows(entity, 0);
            assert!(
                rows.map(|(tick, _)| tick)
                    .eq(samples.iter().map(|(tick, _)| *tick))
            );
            let span = client.tick().unwrap_or_default().0 - samples[0].0.0 + 1;
            counts[0] += samples.len();
            counts[2] += span as usize - samples.len();
            let Some(whose) = whose(&mut test_world.server, test_client.peer, client, entity)
            else {
                continue;
            };
            let truth = |tick: &Tick| &battle.past[tick][&whose.cell()];
            for (tick, unit) in &samples {
                let was = truth(tick);
                assert_eq!((unit.position, unit.health), (was.position, was.health));
            }
            let private = client.table_samples::<Unit>(entity, "private");
            for (tick, unit) in private {
                assert_eq!(unit.gold, truth(&tick).gold);
                counts[1] += 1;
            }
        }
    }
    counts
}

/// The server's reference to an entity of a client, if it still lives.
fn whose(
    server: &mut Server,
    peer: PeerId,
    client: &Client,
    entity: EntityHandle,
) -> Option<EntityRef> {
    let message = client.send_event(Some(entity), b"")?;
    match server.handle(peer, &message) {
        Ok(FromClient::Event {
            about: About::Entity(entity),
            ..
        }) => Some(entity),
        _ => None,
    }
}

/// Both ends keep as many ticks as they were told. Fails if `World::new` or `ShownWorld::new`
/// ignores its depth, or if `ShownWorld::restart` forgets it: the welcome restarts.
#[test]
fn each_end_has_a_depth_of_its_own() {
    for (server_depth, client_depth) in [(128, 300), (300, 128), (200, 200)] {
        let config = ServerConfig::default()
            .with_history(HistoryDepth::new(server_depth).expect("long enough"));
        let mut server = Server::new(schema(), config, Everything).expect("a sound schema");
        let config = ClientConfig::default()
            .with_history(HistoryDepth::new(client_depth).expect("long enough"));
        let mut client = Client::new(schema(), config).expect("a sound schema");
        let peer = PeerId(1);
        server.connect(peer);
        greet(&mut server, peer, &mut client);
        let mut step = server.step(Tick(1)).expect("the first");
        let spawned = step.spawn_for(peer, &Unit::default()).expect("sound");
        step.finish();
        for tick in 2..=500 {
            let mut step = server.step(Tick(tick)).expect("in order");
            step.set(spawned, &at(tick)).expect("it is there");
            step.finish();
            for (_, message) in encode(&mut server, &|_| Room::UNLIMITED) {
                client.handle(&message).expect("an honest message");
            }
            let ack = client.acknowledgement().expect("state arrived");
            server.handle(peer, &ack).expect("an honest answer");
        }
        let shown = client.entities().next().expect("it is shown");
        let expected = |depth: u32| (500 - u64::from(depth)..=500).map(Tick);
        let is_it = |(tick, unit): (Tick, Unit)| {
            unit == Unit {
                gold: 0,
                ..at(tick.0)
            }
        };
        let is_private = |(tick, unit): (Tick, Unit)| unit.gold == at(tick.0).gold;
        let world = server.world();
        let ticks = world.samples(spawned).map(|(tick, _)| tick);
        assert!(ticks.eq(expected(server_depth)));
        assert!(world.samples(spawned).all(is_it));
        assert!(world.table_samples(spawned, "private").all(is_private));
        let rows = world.sample_rows(spawned.entity_ref(), 1);
        assert!(
            rows.eq(world
                .table_samples(spawned, "private")
                .map(|(tick, unit): (Tick, Unit)| (tick, vec![i64::from(unit.gold)]))
                .collect::<Vec<_>>()
                .iter()
                .map(|(tick, row)| (*tick, &row[..])))
        );
        let ticks = client.samples::<Unit>(shown).map(|(tick, _)| tick);
        assert!(ticks.eq(expected(client_depth)));
        assert!(client.samples(shown).all(is_it));
        assert!(client.table_samples(shown, "private").all(is_private));
        assert_eq!(client.sample_rows(shown, 2).count(), 0, "no such table");

        server
            .step(Tick(501))
            .expect("in order")
            .despawn(spawned.entity_ref())
            .expect("there");
        assert_eq!(server.world().samples(spawned).count(), 0);
    }
}

/// A unit whose values follow from the tick.
fn at(tick: u64) -> Unit {
    Unit {
        position: [tick as f32, 0.25],
        health: (tick / 7) as u8,
        gold: tick as u16 * 3,
        ..Unit::default()
    }
}

/// A limit in bytes holds for the history. Fails if `StateLimits::decoder` does not set it.
#[test]
fn a_history_has_a_limit_in_bytes() {
    let mut server = Server::new(schema(), ServerConfig::default(), Everything).expect("sound");
    let config = ClientConfig::default().with_max_state_bytes(40_000);
    let mut client = Client::new(schema(), config).expect("a sound schema");
    let peer = PeerId(1);
    server.connect(peer);
    greet(&mut server, peer, &mut client);
    let mut step = server.step(Tick(1)).expect("the first");
    let units: Vec<_> = (0..20)
        .map(|_| step.spawn(&Unit::default()).expect("sound"))
        .collect();
    step.finish();
    let (mut applied, mut refused) = (0, 0);
    for tick in 2..=120 {
        let mut step = server.step(Tick(tick)).expect("in order");
        for &unit in &units {
            step.set(unit, &at(tick)).expect("it is there");
        }
        step.finish();
        for (_, message) in encode(&mut server, &|_| Room::UNLIMITED) {
            match client.handle(&message) {
                Ok(()) => applied += 1,
                Err(ClientError::State(prescient_codec::DecodeError::Full)) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        if let Some(ack) = client.acknowledgement() {
            server.handle(peer, &ack).expect("an honest answer");
        }
    }
    assert!(applied > 10 && refused > 10, "{applied}, {refused}");
}
