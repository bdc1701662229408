//! Cases that every method must pass.

use std::sync::Arc;

use crate::worlds::{RandomWorld, Shape};
use prescient_sim::{
    baseline::{FURTHER_METHODS, METHODS, MethodOptions, UnknownMethod, build},
    harness::{Measurement, RunError, RunOptions, run},
    world::{Source, open},
};

fn all_methods() -> impl Iterator<Item = &'static &'static str> {
    METHODS.iter().chain(FURTHER_METHODS)
}

fn measure(
    source: &mut dyn Source,
    method: &str,
    options: &RunOptions,
) -> Result<Measurement, RunError> {
    let schema = source.schema()?;
    let (mut sender, mut receiver) =
        build(method, &MethodOptions::default(), schema).expect("a listed method");
    run(
        source,
        sender.as_mut(),
        receiver.as_mut(),
        options,
        &mut |_| {},
    )
}

#[test]
fn random_worlds_arrive_exactly_at_every_round_trip() {
    for method in all_methods() {
        for seed in 0..6 {
            for rtt_ticks in [1, 2, 5] {
                let mut world = RandomWorld::new(seed, Shape::Ordinary, 60);
                let options = RunOptions {
                    rtt_ticks,
                    seed,
                    ..RunOptions::default()
                };
                let measured = measure(&mut world, method, &options)
                    .unwrap_or_else(|error| panic!("{method}, seed {seed}: {error}"));
                assert_eq!(measured.applied, 60, "{method}");
            }
        }
    }
}

#[test]
fn extreme_values_arrive_exactly() {
    for method in all_methods() {
        for seed in 0..6 {
            let mut world = RandomWorld::new(seed, Shape::Extreme, 40);
            let measured = measure(&mut world, method, &RunOptions::default())
                .unwrap_or_else(|error| panic!("{method}, seed {seed}: {error}"));
            assert_eq!(measured.applied, 40, "{method}");
        }
    }
}

#[test]
fn methods_that_need_no_stream_survive_thirty_percent_loss() {
    'method: for method in all_methods() {
        for seed in 0..6 {
            for shape in [Shape::Ordinary, Shape::Extreme] {
                let mut world = RandomWorld::new(seed, shape, 150);
                let options = RunOptions {
                    rtt_ticks: 3,
                    loss: 300_000,
                    seed,
                    ..RunOptions::default()
                };
                let measured = measure(&mut world, method, &options)
                    .unwrap_or_else(|error| panic!("{method}, seed {seed}: {error}"));
                if measured.reliable_stream_assumed {
                    // Methods that need a stream are run without loss, so one run is enough.
                    assert_eq!((measured.lost, measured.applied), (0, 150), "{method}");
                    continue 'method;
                }
                assert!(measured.lost > 20, "{method}");
                assert_eq!(measured.lost + measured.applied + measured.unusable, 150);
                let blind = *method == "xor-z";
                assert!(
                    blind || measured.unusable == 0,
                    "{method}: {}",
                    measured.unusable
                );
            }
        }
    }
}

#[test]
fn a_viewer_sees_entities_come_and_go_with_their_owner() {
    for method in all_methods() {
        for viewer in 0..3 {
            let mut world = RandomWorld::new(7, Shape::Ordinary, 80);
            let options = RunOptions {
                viewer: Some(viewer),
                ..RunOptions::default()
            };
            measure(&mut world, method, &options)
                .unwrap_or_else(|error| panic!("{method}, viewer {viewer}: {error}"));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    for method in all_methods() {
        let run = || {
            let mut source = open("world:rts?seed=3&ticks=40&count=60").expect("a built-in world");
            let options = RunOptions {
                loss: 100_000,
                rtt_ticks: 2,
                ..RunOptions::default()
            };
            measure(source.as_mut(), method, &options)
                .expect("it verifies")
                .bytes
        };
        assert_eq!(run().values(), run().values(), "{method}");
    }
}

#[test]
fn bent_packets_are_refused_or_applied_but_never_panic() {
    for method in all_methods() {
        for seed in 0..40 {
            let mut random = prescient_sim::world::Random::new(seed);
            let mut source = RandomWorld::new(seed, Shape::Ordinary, 12);
            let schema = source.schema().expect("a valid header");
            let (mut sender, mut receiver) =
                build(method, &MethodOptions::default(), schema).expect("a listed method");
            let mut world = prescient_sim::world::World::default();
            while let Some(update) = source.next_tick().expect("a synthetic world") {
                let tick = update.tick;
                let changes = world.apply(update);
                let mut packet = sender.send(tick, &world, &changes, None);
                if tick > 4 && !packet.is_empty() {
                    let at = random.range(0, packet.len() as i64) as usize;
                    match random.range(0, 3) {
                        0 => packet.truncate(at),
                        1 => packet[at] ^= 1 << random.range(0, 8),
                        _ => packet.extend((0..at).map(|_| random.bits() as u8)),
                    }
                }
                let _ = receiver.receive(&packet);
                if let Some(acknowledgement) = receiver.acknowledgement() {
                    sender.acknowledge(&acknowledgement);
                }
            }
        }
    }
}

#[test]
fn bent_acknowledgements_never_panic() {
    for method in all_methods() {
        let mut source = RandomWorld::new(1, Shape::Ordinary, 30);
        let schema = source.schema().expect("a valid header");
        let (mut sender, _) =
            build(method, &MethodOptions::default(), schema).expect("a listed method");
        let mut world = prescient_sim::world::World::default();
        let mut random = prescient_sim::world::Random::new(5);
        while let Some(update) = source.next_tick().expect("a synthetic world") {
            let tick = update.tick;
            let changes = world.apply(update);
            sender.send(tick, &world, &changes, None);
            let length = random.range(0, 16);
            let noise: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
            sender.acknowledge(&noise);
        }
    }
}

#[test]
fn silence_from_the_receiver_longer_than_the_archive_is_survived() {
    for method in all_methods() {
        let mut source = open("world:rts?ticks=700&count=5").expect("a built-in world");
        let schema = source.schema().expect("a valid header");
        let (mut sender, mut receiver) =
            build(method, &MethodOptions::default(), schema).expect("a listed method");
        let mut world = prescient_sim::world::World::default();
        while let Some(update) = source.next_tick().expect("a synthetic world") {
            let tick = update.tick;
            let changes = world.apply(update);
            let packet = sender.send(tick, &world, &changes, None);
            let lost = (300..400).contains(&tick) && !sender.assumes_reliable_stream();
            if !lost {
                match receiver.receive(&packet) {
                    Ok(applied) => assert_eq!(applied.tick, tick, "{method}"),
                    Err(error) => assert!(*method == "xor-z", "{method}, tick {tick}: {error}"),
                }
            }
            let received = !(20..680).contains(&tick);
            if let Some(acknowledgement) = receiver.acknowledgement().filter(|_| received) {
                sender.acknowledge(&acknowledgement);
            }
        }
        let mut known = 0;
        receiver.visit_all(&mut |key, class, row| {
            let id = sender.truth_id(key).expect("a key that the sender gave");
            let truth = world.get(id).expect("no ghosts");
            assert_eq!((truth.class, &truth.row[..]), (class, row), "{method}");
            known += 1;
        });
        assert_eq!(known, world.len(), "{method}");
    }
}

#[test]
fn unknown_methods_are_named_in_the_error() {
    let schema = Arc::new(prescient_schema::Schema::default());
    let error = build("magic", &MethodOptions::default(), schema).err();
    assert_eq!(error, Some(UnknownMethod::Name("magic".into())));
}
