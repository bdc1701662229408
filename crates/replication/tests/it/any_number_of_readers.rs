//! One publisher serves any number of readers, whenever they begin and whatever they miss.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Dice, TestWorld, Unit, good, schema};
use crate::common::{battle::Battle, encode};
use prescient_replication::{
    Candidate, Change, ClientConfig, EntityHandle, Everything, MAX_SNAPSHOT_INTERVAL, Observer,
    PublishError, PublishedPacket, Publisher, PublisherConfig, PublisherConfigError, Room, Server,
    ServerConfig, SubscribeError, Subscriber, Tick, Visibility,
};
use prescient_schema::{EntityRef, Ref};
use prescient_tests::seeds::over_seeds;

/// A reader behind a link that loses packets, and the program's own copy of what it shows.
struct Reader {
    subscriber: Subscriber,
    entities: BTreeMap<EntityHandle, Unit>,
    /// The health of an entity never changes, so it shows which one a handle names.
    healths: BTreeMap<EntityHandle, u8>,
    /// Packets that it has applied.
    held: BTreeSet<u64>,
    begins: u32,
    loss: u32,
    dice: Dice,
}

impl Reader {
    fn new(begins: u32, loss: u32, seed: u64) -> Self {
        Self {
            subscriber: Subscriber::new(schema(), ClientConfig::default()).expect("sound"),
            entities: BTreeMap::new(),
            healths: BTreeMap::new(),
            held: BTreeSet::new(),
            begins,
            loss,
            dice: Dice::new(seed),
        }
    }

    /// Whether the packet arrived.
    fn receive(&mut self, packet: &PublishedPacket, battle: &Battle) -> bool {
        if packet.tick < Tick(self.begins.into()) || self.dice.chance(self.loss) {
            return false;
        }
        let before = self.subscriber.sequence();
        let handled = self.subscriber.handle(&packet.bytes);
        match packet.base {
            Some(base) if !self.held.contains(&base) => {
                assert_eq!(handled, Err(SubscribeError::MissingBase { base }));
                assert_eq!(self.subscriber.sequence(), before);
            }
            _ => {
                assert_eq!(handled, Ok(packet.tick), "{:?} of {packet:?}", self.held);
                self.held.insert(packet.sequence);
                assert_eq!(self.subscriber.sequence(), Some(packet.sequence));
            }
        }
        self.poll();
        if let Some((shown, was)) = battle.compare_shown(self.subscriber.view(), &self.entities) {
            assert_eq!(shown, was, "at {:?}", self.subscriber.tick());
        }
        let again = self.subscriber.handle(&packet.bytes);
        if handled.is_ok() {
            assert_eq!(again, Err(SubscribeError::Late));
        }
        true
    }

    fn poll(&mut self) {
        while let Some(change) = self.subscriber.poll_change() {
            match change {
                Change::Created(entity) => {
                    let unit: Unit = self.subscriber.get(entity).expect("it was just created");
                    self.healths.insert(entity, unit.health);
                    assert_eq!(self.entities.insert(entity, unit), None, "created twice");
                }
                Change::Updated(entity) => {
                    let unit: Unit = self.subscriber.get(entity).expect("it was just updated");
                    assert_eq!(
                        self.healths[&entity], unit.health,
                        "it names another entity"
                    );
                    let known = self.entities.insert(entity, unit);
                    assert!(known.is_some(), "updated before it was created");
                }
                Change::Removed(entity) => {
                    assert!(self.entities.remove(&entity).is_some(), "not known");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

fn publisher(server: &Server, snapshots: u32, bases: u32) -> Publisher {
    let config = PublisherConfig::default()
        .with_snapshot_interval(snapshots)
        .with_base_interval(bases);
    Publisher::new(server.world(), config, Everything).expect("sound")
}

/// Readers begin at different ticks and lose from none to most of all packets. Each shows exactly
/// one tick, and decodes exactly those packets whose base it has.
///
/// Fails if `Subscriber::handle` takes every snapshot for one of entities that it knows (`known`
/// always true), or if `Publisher::update_visibility` does not raise `ids_since`.
#[test]
fn every_reader_shows_the_truth() {
    over_seeds(20, |seed| {
        let mut battle = Battle::new();
        let mut test_world = TestWorld::new(seed, 0, good(), Everything);
        let bases = [30, 7, 1, 3][seed as usize % 4];
        let snapshots = [20, 9, 64, 30][seed as usize / 4 % 4];
        let mut publisher = publisher(&test_world.server, snapshots, bases);
        let reader = |number: u32| {
            let loss = [0, 5, 20, 50, 80][number as usize % 5];
            Reader::new(number * 13, loss, seed * 100 + u64::from(number))
        };
        let mut readers: Vec<Reader> = (0..10).map(reader).collect();
        let mut newest = 0;
        for _ in 0..300 {
            battle.step(&mut test_world);
            // A server that serves peers, too, takes the changes of a world at other times.
            if test_world.dice.chance(70) {
                test_world.exchange();
            }
            if test_world.dice.chance(10) {
                continue;
            }
            let packet = publisher.publish(test_world.server.world()).expect("new");
            newest += 1;
            assert_eq!(packet.sequence, newest);
            assert_eq!(packet.is_snapshot, packet.base.is_none());
            for reader in &mut readers {
                let arrived = reader.receive(&packet, &battle);
                if arrived && packet.is_snapshot {
                    assert_eq!(reader.subscriber.tick(), Some(packet.tick));
                }
            }
        }
        for reader in readers.iter().filter(|reader| reader.loss <= 20) {
            assert!(!reader.held.is_empty(), "it never began");
        }
        // Without loss and from the start, every packet was applied.
        assert_eq!(readers[0].held.len() as u64, newest);
    });
}

/// What depends on more is smaller. Fails if `Publisher::wrap` makes no deltas bases.
#[test]
fn deltas_are_smaller_than_snapshots() {
    let total = |snapshots, bases| {
        let mut battle = Battle::new();
        let mut test_world = TestWorld::new(3, 0, good(), Everything);
        let mut publisher = publisher(&test_world.server, snapshots, bases);
        let mut bytes = 0;
        for _ in 0..400 {
            battle.step(&mut test_world);
            let packet = publisher.publish(test_world.server.world()).expect("new");
            bytes += packet.bytes.len();
        }
        bytes
    };
    let (whole, sparse, chained) = (total(1, 1), total(30, 30), total(30, 1));
    println!("{whole} bytes of snapshots, {sparse} from snapshots, {chained} from the last");
    assert!(sparse * 10 < whole * 8, "{sparse} of {whole}");
    assert!(chained * 10 < sparse * 9, "{chained} of {sparse}");
}

/// A reader that is away while ids are given to other entities of the same type gets new handles.
/// Fails if `Publisher::update_visibility` does not raise `ids_since` (the health of a handle
/// changes then).
#[test]
fn handles_never_name_another_entity() {
    let mut server = Server::new(schema(), ServerConfig::default(), Everything).expect("sound");
    let mut publisher = publisher(&server, 4, 4);
    let mut reader = Subscriber::new(schema(), ClientConfig::default()).expect("sound");
    let unit = |health| Unit {
        health,
        ..Unit::default()
    };
    let mut present: Option<Ref<Unit>> = None;
    let mut packets = Vec::new();
    for tick in 1..=12u32 {
        let mut step = server.step(Tick(tick.into())).expect("in order");
        match (tick, present) {
            (1, _) => present = Some(step.spawn(&unit(1)).expect("sound")),
            (3, Some(gone)) => step.despawn(gone.entity_ref()).expect("there"),
            (7, _) => present = Some(step.spawn(&unit(7)).expect("sound")),
            _ => {}
        }
        step.finish();
        packets.push(publisher.publish(server.world()).expect("new"));
    }
    let snapshots: Vec<_> = packets.iter().filter(|packet| packet.is_snapshot).collect();
    assert_eq!(snapshots.len(), 3);
    reader.handle(&snapshots[0].bytes).expect("whole");
    let first = reader.entities().next().expect("shown");
    while reader.poll_change().is_some() {}
    reader.handle(&snapshots[2].bytes).expect("whole");
    let second = reader.entities().next().expect("shown");
    assert_ne!(first, second);
    assert_eq!(reader.get::<Unit>(second), Some(unit(7)));
    assert_eq!(reader.poll_change(), Some(Change::Removed(first)));
    assert_eq!(reader.poll_change(), Some(Change::Created(second)));
    // A reader that was there in between keeps its handles.
    let mut attentive = Subscriber::new(schema(), ClientConfig::default()).expect("sound");
    attentive
        .handle(&packets[6].bytes)
        .expect_err("no snapshot");
    attentive.handle(&snapshots[1].bytes).expect("whole");
    attentive
        .handle(&packets[7].bytes)
        .expect("it has the base");
    let before: Vec<_> = attentive.entities().collect();
    attentive.handle(&snapshots[2].bytes).expect("whole");
    assert!(attentive.entities().eq(before));
}

/// Only the relevant is published, and changes of owners are noticed. Fails if
/// `World::touched_after` returns changes of the last tick only (`skip(known)`).
#[test]
fn the_policy_decides_what_is_public() {
    let policy = |_: &Observer, candidate: &Candidate, _: Option<Visibility>| {
        candidate.owner.is_none().then_some(Visibility::PUBLIC)
    };
    let mut server = Server::new(schema(), ServerConfig::default(), Everything).expect("sound");
    let config = PublisherConfig::default();
    let mut publisher = Publisher::new(server.world(), config, policy).expect("sound");
    let mut reader = Subscriber::new(schema(), ClientConfig::default()).expect("sound");
    let mut step = server.step(Tick(1)).expect("in order");
    let units: Vec<EntityRef> = (0..3)
        .map(|health| {
            let unit = Unit {
                health,
                gold: 500,
                ..Unit::default()
            };
            step.spawn(&unit).expect("sound").entity_ref()
        })
        .collect();
    step.finish();
    let mut shown = |server: &Server, publisher: &mut Publisher| {
        let packet = publisher.publish(server.world()).expect("new");
        reader.handle(&packet.bytes).expect("in order");
        let units = reader.entities().map(|entity| {
            let table = reader.view().get_table::<Unit>(entity, "private");
            assert_eq!(table, None, "private");
            reader.get::<Unit>(entity).expect("shown").health
        });
        units.collect::<Vec<u8>>()
    };
    assert_eq!(shown(&server, &mut publisher), [0, 1, 2]);
    let owner = Some(prescient_replication::PeerId(1));
    let mut step = server.step(Tick(2)).expect("in order");
    step.set_owner(units[1], owner).expect("there");
    step.finish();
    encode(&mut server, &|_| Room::UNLIMITED);
    server.step(Tick(3)).expect("in order").finish();
    assert_eq!(shown(&server, &mut publisher), [0, 2]);
    let mut step = server.step(Tick(4)).expect("in order");
    step.set_owner(units[1], None).expect("there");
    step.finish();
    let mut back = shown(&server, &mut publisher);
    back.sort_unstable();
    assert_eq!(back, [0, 1, 2]);
}

/// Ids far apart cannot be in one packet of a reader that begins, so they are assigned anew; the
/// same after a long pause. Fails if `Publisher::publish` accepts a packet that is not full, or if
/// `renumber` leaves `ids_since` as it was.
#[test]
fn sparse_ids_and_long_pauses_are_survived() {
    let mut server = Server::new(schema(), ServerConfig::default(), Everything).expect("sound");
    let mut publisher = publisher(&server, 2, 2);
    let mut reader = Subscriber::new(schema(), ClientConfig::default()).expect("sound");
    let count = 9000;
    let mut step = server.step(Tick(1)).expect("in order");
    let spawn = |number: u32| {
        let position = [number as f32, 0.0];
        let unit = Unit {
            position,
            ..Unit::default()
        };
        step.spawn(&unit).expect("sound")
    };
    let units: Vec<_> = (0..count).map(spawn).collect();
    step.finish();
    let mut tick = 1;
    for pause in [0, 1, 1, 1, 1, 1, 1, 200, 1, 1] {
        if pause > 0 {
            for _ in 0..pause {
                tick += 1;
                let mut step = server.step(Tick(tick)).expect("in order");
                if tick == 3 {
                    for unit in &units[..8990] {
                        step.despawn(unit.entity_ref()).expect("there");
                    }
                }
                if tick == 100 {
                    step.despawn(units[8990].entity_ref()).expect("there");
                    step.spawn(&Unit::default()).expect("sound");
                }
                step.finish();
                encode(&mut server, &|_| Room::UNLIMITED);
            }
        }
        let packet = publisher.publish(server.world()).expect("new");
        reader.handle(&packet.bytes).expect("in order");
        let mut fresh = Subscriber::new(schema(), ClientConfig::default()).expect("sound");
        for reader in [Some(&mut reader), packet.is_snapshot.then_some(&mut fresh)] {
            let Some(reader) = reader else { continue };
            let _ = reader.handle(&packet.bytes);
            let positions = reader.entities().map(|entity| {
                let unit: Unit = reader.get(entity).expect("shown");
                unit.position[0] as u32
            });
            let shown: BTreeSet<u32> = positions.collect();
            let there: BTreeSet<u32> = match tick {
                ..3 => (0..count).collect(),
                3..100 => (8990..count).collect(),
                _ => (8991..count).chain([0]).collect(),
            };
            assert_eq!(shown, there, "at {tick}");
        }
    }
}

/// Damaged and forged packets change nothing, or are applied as a whole, and never panic. Fails if
/// `Subscriber::begin` restarts before it knows that the packet can be applied.
#[test]
fn nonsense_is_refused() {
    over_seeds(20, |seed| {
        let mut battle = Battle::new();
        let mut test_world = TestWorld::new(seed, 0, good(), Everything);
        let mut publisher = publisher(&test_world.server, 8, 3);
        let mut reader = Reader::new(0, 0, seed);
        let mut dice = Dice::new(!seed);
        for _ in 0..60 {
            battle.step(&mut test_world);
            let packet = publisher.publish(test_world.server.world()).expect("new");
            for _ in 0..20 {
                let mut bytes = packet.bytes.clone();
                bytes.truncate(dice.below(2 * bytes.len() as u64 + 1) as usize);
                for _ in 0..dice.below(3) {
                    let at = dice.below(bytes.len().max(1) as u64) as usize;
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << dice.below(8);
                    }
                }
                // Only damage that no check of 16 bits could miss: the header's and the length's.
                let mut other = Subscriber::new(schema(), ClientConfig::default()).expect("sound");
                let _ = other.handle(&bytes);
                if bytes.len() < 8.min(packet.bytes.len()) {
                    let before = (reader.subscriber.tick(), reader.entities.clone());
                    assert!(reader.subscriber.handle(&bytes).is_err());
                    reader.poll();
                    assert_eq!((reader.subscriber.tick(), reader.entities.clone()), before);
                }
            }
            reader.receive(&packet, &battle);
        }
        assert_eq!(reader.held.len(), 60);
    });
}

/// A snapshot that would make the reader start again, with a body that cannot be read, leaves what
/// is shown. Fails if `Subscriber::begin` does not call `can_begin_with`.
#[test]
fn a_broken_snapshot_leaves_what_is_shown() {
    let mut server = Server::new(schema(), ServerConfig::default(), Everything).expect("sound");
    let mut first = publisher(&server, 4, 4);
    let mut reader = Subscriber::new(schema(), ClientConfig::default()).expect("sound");
    server
        .step(Tick(1))
        .expect("in order")
        .spawn(&Unit::default())
        .expect("sound");
    let packet = first.publish(server.world()).expect("new");
    reader.handle(&packet.bytes).expect("whole");
    let shown: Vec<_> = reader.entities().collect();
    server.step(Tick(2)).expect("in order").finish();
    first.request_snapshot();
    let mut packet = first.publish(server.world()).expect("new");
    assert!(packet.is_snapshot);
    // The newest packet that a reader may have missed is this one itself.
    assert_eq!(packet.bytes[1..3], [2, 2]);
    packet.bytes[2] = 0;
    let intact = packet.bytes.clone();
    packet.bytes.pop();
    assert!(reader.handle(&packet.bytes).is_err());
    assert!(reader.entities().eq(shown.iter().copied()));
    assert_eq!(reader.poll_change(), Some(Change::Created(shown[0])));
    reader.handle(&intact).expect("whole");
    assert!(!reader.entities().eq(shown));
}

/// Fails if a check in `PublisherConfig::check` or `Publisher::publish` is left out.
#[test]
fn misuse_is_an_error() {
    let mut server = Server::new(schema(), ServerConfig::default(), Everything).expect("sound");
    let new = |snapshots, bases| {
        let config = PublisherConfig::default()
            .with_snapshot_interval(snapshots)
            .with_base_interval(bases);
        Publisher::new(server.world(), config, Everything).map(|_| ())
    };
    assert_eq!(new(0, 1), Err(PublisherConfigError::SnapshotInterval(0)));
    let long = MAX_SNAPSHOT_INTERVAL + 1;
    assert_eq!(
        new(long, 1),
        Err(PublisherConfigError::SnapshotInterval(long))
    );
    assert_eq!(new(1, 0), Err(PublisherConfigError::BaseInterval));
    assert_eq!(new(MAX_SNAPSHOT_INTERVAL, u32::MAX), Ok(()));
    let mut publisher = publisher(&server, 4, 4);
    assert_eq!(
        publisher.publish(server.world()),
        Err(PublishError::NothingNew)
    );
    server.step(Tick(1)).expect("in order").finish();
    publisher.publish(server.world()).expect("new");
    assert_eq!(
        publisher.publish(server.world()),
        Err(PublishError::NothingNew)
    );
    let other = Server::new(schema(), ServerConfig::default(), Everything).expect("sound");
    assert_eq!(
        publisher.publish(other.world()),
        Err(PublishError::OtherWorld)
    );
    let few = ClientConfig::default().with_max_entities(10);
    server.step(Tick(2)).expect("in order").finish();
    publisher.request_snapshot();
    let packet = publisher.publish(server.world()).expect("new");
    let mut reader = Subscriber::new(schema(), few).expect("sound");
    let refused = reader.handle(&packet.bytes);
    assert!(matches!(refused, Err(SubscribeError::Settings(_))));
    let other = prescient_schema::Schema::of::<Other>().expect("sound");
    let mut reader = Subscriber::new(other, ClientConfig::default()).expect("sound");
    assert_eq!(reader.handle(&packet.bytes), Err(SubscribeError::Schema));
    assert_eq!(reader.handle(&[]), Err(SubscribeError::Malformed));
}

#[derive(prescient_schema::State)]
struct Other {
    number: u8,
}
