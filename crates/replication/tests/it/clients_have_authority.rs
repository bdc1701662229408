//! Client authority: the values that a client sets are the ones that all clients see.

use crate::common;

use std::collections::BTreeMap;

use crate::common::{TestWorld, Unit, bad, good, schema};
use prescient_replication::{
    Candidate, Change, Client, EntityHandle, Everything, Observer, PeerId, SetError, Tick,
};
use prescient_schema::Ref;
use prescient_tests::seeds::over_seeds;

/// A test world in which clients have authority over entities and report them every tick.
struct TestServer {
    test_world: TestWorld,
    /// The value that each client set last for an entity.
    set: BTreeMap<(PeerId, EntityHandle), Unit>,
    /// Bytes of the reports of the last tick.
    reported: Vec<usize>,
}

impl TestServer {
    fn new(seed: u64, link: prescient_sim::link::Conditions) -> Self {
        Self {
            test_world: TestWorld::new(seed, 3, link, Everything),
            set: BTreeMap::new(),
            reported: Vec::new(),
        }
    }

    /// Clients set all entities that they have authority over, unless they are `still`.
    fn tick(
        &mut self,
        still: bool,
        during: impl FnOnce(&mut prescient_replication::WorldStep<'_>),
    ) {
        let test_world = &mut self.test_world;
        test_world.tick += 1;
        let (tick, now) = (test_world.tick, test_world.now());
        self.reported.clear();
        for test_client in &mut test_world.clients {
            let granted: Vec<_> = test_client.client.entities().collect();
            for entity in granted {
                if !test_client.client.has_authority(entity) {
                    continue;
                }
                let mut unit: Unit = test_client.client.get(entity).expect("it is shown");
                if !still {
                    unit.position[0] += 0.25 * test_client.peer.0 as f32;
                    unit.gold = tick as u16;
                    unit.target = Ref::to(test_client.client.reference(entity).expect("shown"));
                    test_client.client.set(entity, &unit).expect("it is ours");
                    self.set.insert((test_client.peer, entity), unit);
                }
            }
            if let Some(report) = test_client.client.report(Some(500)) {
                self.reported.push(report.len());
                test_client.up.send(now, &report);
            }
        }
        let mut step = test_world
            .server
            .step(Tick(tick.into()))
            .expect("ticks ascend");
        during(&mut step);
        step.finish();
        test_world.exchange();
    }
}

/// Fails if `AuthorityReports::apply` leaves out the last table, if references are not translated
/// to the server's (`parcel` copies the cell), or if `AuthorityReporter::acknowledge` does nothing.
#[test]
fn what_a_client_sets_is_what_all_clients_see() {
    over_seeds(20, |seed| {
        let mut test_server = TestServer::new(seed, bad());
        let mut units: Vec<Ref<Unit>> = Vec::new();
        test_server.tick(true, |step| {
            for peer in 1..=3 {
                let unit = step
                    .spawn_for(PeerId(peer), &Unit::default())
                    .expect("sound");
                step.grant_authority(unit.entity_ref(), PeerId(peer))
                    .expect("there");
                units.push(unit);
            }
        });
        for _ in 0..200 {
            test_server.tick(false, |_| {});
        }
        test_server.test_world.heal();
        for _ in 0..60 {
            test_server.tick(true, |_| {});
        }
        assert_eq!(test_server.set.len(), 3, "each has authority over one");
        // Unchanged values cost next to nothing, once they are acknowledged.
        assert!(
            test_server.reported.iter().all(|&bytes| bytes < 10),
            "{:?}",
            test_server.reported
        );
        for ((author, entity), unit) in &test_server.set {
            let test_world = &test_server.test_world;
            let test_client = |peer: PeerId| &test_world.clients[peer.0 as usize - 1];
            let own: Unit = test_client(*author)
                .client
                .get(*entity)
                .expect("it is shown");
            assert_eq!(own.position, unit.position);
            let truth = units[author.0 as usize - 1];
            let other = test_client(PeerId(author.0 % 3 + 1));
            // Others have another id for it, and its target is its own entity.
            let shown = other.client.entities().find(|&entity| {
                let seen: Option<Unit> = other.client.get(entity);
                seen.is_some_and(|seen| seen.position == unit.position)
            });
            let shown = shown.expect("another client sees it");
            let seen: Unit = other.client.get(shown).expect("shown");
            assert_eq!(other.client.resolve(seen.target.entity_ref()), Some(shown));
            assert_eq!(seen.health, unit.health);
            let archive = test_world.server.world().archive();
            let rows = archive
                .living_slots()
                .filter_map(|slot| archive.latest(slot));
            let private = rows
                .filter(|row| matches!(row, [_, entity] if *entity == truth.entity_ref().cell()));
            let gold: Vec<i64> = private.map(|row| row[0]).collect();
            assert_eq!(
                gold,
                [i64::from(unit.gold)],
                "private tables are reported, too"
            );
        }
    });
}

/// Fails if `World::revoke_all` does nothing, or if clients are not told that their authority
/// ended.
#[test]
fn authority_changes_hands() {
    over_seeds(20, |seed| {
        let mut test_server = TestServer::new(seed, bad());
        let mut unit = None;
        test_server.tick(true, |step| {
            let new = step.spawn(&Unit::default()).expect("sound");
            step.grant_authority(new.entity_ref(), PeerId(1))
                .expect("there");
            unit = Some(new);
        });
        let unit = unit.expect("spawned");
        for _ in 0..60 {
            test_server.tick(false, |_| {});
        }
        test_server.tick(false, |step| {
            step.grant_authority(unit.entity_ref(), PeerId(2))
                .expect("there");
        });
        for _ in 0..120 {
            test_server.tick(false, |_| {});
        }
        let with_authority = |test_server: &TestServer, peer: usize| {
            let client = &test_server.test_world.clients[peer - 1].client;
            client.entities().any(|entity| client.has_authority(entity))
        };
        assert!(
            !with_authority(&test_server, 1)
                && with_authority(&test_server, 2)
                && !with_authority(&test_server, 3)
        );
        // A client that leaves loses its authority, and the last reported value stays.
        test_server.test_world.server.disconnect(PeerId(2));
        let position = |test_server: &TestServer| {
            test_server
                .test_world
                .server
                .world()
                .position(unit.entity_ref())
        };
        test_server.test_world.tick += 1;
        let tick = Tick(test_server.test_world.tick.into());
        test_server
            .test_world
            .server
            .step(tick)
            .expect("ticks ascend")
            .finish();
        let left_at = position(&test_server).expect("it has a position");
        assert!(left_at.0[0] > 0.0);
        let gone = test_server.test_world.clients.remove(1);
        let mut ghost = gone.client;
        let entity = ghost.entities().next().expect("one is shown");
        assert!(
            ghost.set(entity, &Unit::default()).is_ok(),
            "it does not know yet"
        );
        for _ in 0..5 {
            test_server.tick(true, |_| {});
        }
        assert_eq!(position(&test_server), Some(left_at));
        // Nor does it have authority when it joins again.
        test_server
            .test_world
            .clients
            .insert(1, common::TestClient::new(PeerId(2), seed, &good()));
        test_server.test_world.server.connect(PeerId(2));
        for _ in 0..40 {
            test_server.tick(true, |_| {});
        }
        assert_eq!(
            test_server.test_world.clients[1].client.entities().count(),
            1
        );
        assert!(!with_authority(&test_server, 2));
    });
}

/// Fails if `target` does not check who has authority.
#[test]
fn late_reports_change_nothing() {
    let mut test_server = TestServer::new(1, good());
    let mut unit = None;
    test_server.tick(true, |step| {
        let new = step.spawn(&Unit::default()).expect("sound");
        step.grant_authority(new.entity_ref(), PeerId(1))
            .expect("there");
        unit = Some(new.entity_ref());
    });
    let unit = unit.expect("spawned");
    for _ in 0..40 {
        test_server.tick(false, |_| {});
    }
    let position = |test_server: &TestServer| test_server.test_world.server.world().position(unit);
    let client = &mut test_server.test_world.clients[0].client;
    let entity = client.entities().next().expect("one is shown");
    let far = Unit {
        position: [900.0, 0.0],
        ..Unit::default()
    };
    client.set(entity, &far).expect("it is ours");
    let report = client.report(None).expect("something to say");
    test_server.tick(true, |step| step.revoke_authority(unit).expect("there"));
    let kept = position(&test_server);
    let taken = test_server.test_world.server.handle(PeerId(1), &report);
    taken.expect("an honest report");
    test_server.tick(true, |_| {});
    assert_eq!(position(&test_server), kept);
}

/// Fails if an entity is not visible to the client that has authority over it (`show_hierarchy`
/// without `.or`).
#[test]
fn an_entity_is_visible_to_its_authority() {
    let policy = |_: &Observer, _: &Candidate, _: Option<_>| None;
    let mut test_world = TestWorld::new(1, 2, good(), policy);
    for tick in 1..20 {
        test_world.tick = tick;
        let mut step = test_world
            .server
            .step(Tick(tick.into()))
            .expect("ticks ascend");
        if tick == 1 {
            let unit = step.spawn(&Unit::default()).expect("sound");
            step.grant_authority(unit.entity_ref(), PeerId(2))
                .expect("there");
        }
        step.finish();
        test_world.exchange();
    }
    assert_eq!(test_world.clients[0].client.entities().count(), 0);
    let client = &mut test_world.clients[1].client;
    let entity = client.entities().next().expect("it is shown");
    assert!(client.has_authority(entity));
}

/// Fails if a client can set an entity without authority over it, or with the wrong type.
#[test]
fn nonsense_is_refused() {
    let mut test_world = TestWorld::new(1, 1, good(), Everything);
    for tick in 1..10 {
        test_world.tick = tick;
        let mut step = test_world
            .server
            .step(Tick(tick.into()))
            .expect("ticks ascend");
        if tick == 1 {
            let unit = step.spawn(&Unit::default()).expect("sound");
            let other = prescient_schema::EntityRef::new(77, 0);
            assert!(step.grant_authority(other, PeerId(1)).is_err());
            assert!(step.set_parent(other, None).is_err());
            assert!(
                step.set_parent(unit.entity_ref(), Some(unit.entity_ref()))
                    .is_err()
            );
        }
        step.finish();
        test_world.exchange();
    }
    let client = &mut test_world.clients[0].client;
    let entity = client.entities().next().expect("it is shown");
    let refused = client.set(entity, &Unit::default());
    assert_eq!(refused, Err(SetError::NoAuthority));
    assert_eq!(client.report(None), None);
    let mut empty = Client::new(schema(), Default::default()).expect("sound");
    assert_eq!(
        empty.set(entity, &Unit::default()),
        Err(SetError::NoAuthority)
    );
    assert_eq!(empty.send_event(Some(entity), b"?"), None);
    let entered = std::iter::from_fn(|| empty.poll_change()).any(|c| c == Change::Entered);
    assert!(!entered);
}
