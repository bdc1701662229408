//! The memory that a server holds for a client that sees many entities at rest. A single test,
//! because memory is counted for the whole process.

mod common;

use std::alloc::System;

use prescient_replication::{Client, Everything, PeerId, Room, Server, ServerConfig, Tick};
use prescient_schema::{Schema, State};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(State, Clone, Debug)]
#[state(rename = "stone")]
struct Stone {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    kind: u8,
}

/// Fails if a peer keeps the capacity of its queue of entities (`pending_visible.shrink_to` left
/// out), if the codec keeps the capacity that its longest packet needed (`buffer::ease` does
/// nothing), or if an id takes ten bytes more.
#[test]
fn an_entity_at_rest_takes_forty_bytes() {
    // Threads are started once.
    held(1);
    let bytes = (held(3000) - held(1000)) / 2000;
    assert!(bytes <= 40, "{bytes} bytes for an entity");
}

/// Bytes that a server holds for a client that sees this many entities.
fn held(stones: u32) -> i64 {
    let schema = || Schema::of::<Stone>().expect("a sound schema");
    let mut server = Server::new(schema(), ServerConfig::default(), Everything).expect("sound");
    let mut client = Client::new(schema(), Default::default()).expect("sound");
    let mut step = server.step(Tick(1)).expect("in order");
    for number in 0..stones {
        let position = [number as f32 * 1.25, (number % 71) as f32];
        let kind = (number % 3) as u8;
        step.spawn(&Stone { position, kind }).expect("sound");
    }
    step.finish();
    let peer = PeerId(1);
    let mut held = 0;
    let hello = client.poll_message().expect("it greets first");
    let welcome = count(&mut held, || {
        server.connect(peer);
        server.handle(peer, &hello).expect("the same schema");
        common::poll(&mut server, peer).expect("an answer")
    });
    client.handle(&welcome).expect("the same schema");
    count(&mut held, || drop(welcome));
    for tick in 2..300 {
        server.step(Tick(tick)).expect("in order").finish();
        let messages = count(&mut held, || {
            common::encode(&mut server, &|_| Room::one(1100))
        });
        for (_, message) in &messages {
            client.handle(message).expect("an honest message");
            while client.poll_change().is_some() {}
        }
        count(&mut held, || drop(messages));
        if let Some(answer) = client.acknowledgement() {
            count(&mut held, || server.handle(peer, &answer)).expect("an honest answer");
        }
    }
    assert_eq!(client.entities().count(), stones as usize);
    held
}

/// Adds the bytes that `act` allocates and does not free.
fn count<R>(held: &mut i64, act: impl FnOnce() -> R) -> R {
    let now = || {
        let stats = MEMORY.stats();
        stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
    };
    let before = now();
    let done = act();
    *held += now() - before;
    done
}
