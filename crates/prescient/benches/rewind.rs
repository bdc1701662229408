//! What rewinding and showing through the facade cost: `cargo bench -p prescient --bench rewind`.

use std::hint::black_box;

use divan::Bencher;
use prescient::playout::SeenTick;
use prescient::{Client, Everything, PeerId, Ref, Schema, Server, ServerEvent, State};

fn main() {
    divan::main();
}

#[derive(State, Clone, Copy)]
struct Walker {
    #[state(step = 0.01, position)]
    position: [f32; 3],
    #[state(step = 0.01)]
    facing: f32,
    health: u8,
}

/// A world in which everything moves, after twenty ticks.
fn world(entities: u64) -> (Server, Client, Vec<Ref<Walker>>, PeerId) {
    let schema = Schema::of::<Walker>().expect("sound");
    let mut server = Server::offline(schema, Everything).expect("sound");
    let mut client = server.local_client();
    let peer = std::iter::from_fn(|| server.poll()).find_map(|event| match event {
        ServerEvent::Joined { peer, .. } => Some(peer),
        _ => None,
    });
    let at = |entity: u64, tick: u64| Walker {
        position: [
            entity as f32,
            tick as f32 * 0.1,
            (entity * tick % 97) as f32,
        ],
        facing: tick as f32,
        health: 100,
    };
    let mut step = server.step().expect("in order");
    let spawned = (0..entities).map(|entity| step.spawn(&at(entity, 0)).expect("sound"));
    let spawned: Vec<Ref<Walker>> = spawned.collect();
    step.finish();
    for tick in 1..20 {
        let mut step = server.step().expect("in order");
        for (entity, walker) in spawned.iter().enumerate() {
            let set = step.set(*walker, &at(entity as u64, tick));
            set.expect("it is there");
        }
        step.finish();
        server.send();
        while client.poll().is_some() {}
        while server.poll().is_some() {}
    }
    (server, client, spawned, peer.expect("it joined"))
}

/// The positions of 1,000 entities as a client saw them, between two ticks.
#[divan::bench]
fn rewind_1000_entities(bencher: Bencher) {
    let (server, _client, entities, peer) = world(1000);
    let seen = SeenTick::new(12.4);
    bencher.bench_local(|| {
        let rewind = server.rewind(peer).seen(seen).expect("a number");
        for entity in &entities {
            black_box(rewind.position(entity.entity_ref()));
        }
    });
}

/// The same as whole values.
#[divan::bench]
fn rewind_1000_values(bencher: Bencher) {
    let (server, _client, entities, peer) = world(1000);
    let seen = SeenTick::new(12.4);
    bencher.bench_local(|| {
        let rewind = server.rewind(peer).seen(seen).expect("a number");
        for entity in &entities {
            black_box(rewind.get(*entity));
        }
    });
}

/// A frame of 10,000 entities through the facade, which looks each up.
#[divan::bench]
fn show_10000_through_the_facade(bencher: Bencher) {
    let (_server, mut client, ..) = world(10_000);
    let entities: Vec<_> = client.entities().collect();
    bencher.bench_local(|| {
        client.begin_frame();
        for entity in &entities {
            black_box(client.shown::<Walker>(*entity));
        }
    });
}
