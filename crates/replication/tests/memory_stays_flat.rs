//! A client that does not respond costs a server a bounded amount of memory. A single test, because
//! memory is counted for the whole process.

mod common;

use std::alloc::System;

use common::{TestWorld, good};
use common::{battle::Battle, encode, poll};
use prescient_replication::{
    Client, Delivery, Everything, PeerId, Room, Server, ServerConfig, Tick,
};
use prescient_tests::seeds::over_seeds;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn held() -> usize {
    let stats = MEMORY.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Cases 11 and 30. The first fails if `Decoder::commit` keeps logs after the cursor's (checks the
/// front alone), the second if `Outbox::make_room` always returns `true`.
#[test]
fn silent_and_slow_clients_cost_no_more_memory() {
    over_seeds(20, silent);
    over_seeds(20, slow);
}

/// Acknowledgements are lost for ten seconds at 30 Hz.
fn silent(seed: u64) {
    let mut battle = Battle::new();
    let mut test_world = TestWorld::new(seed, 3, good(), Everything);
    let mut step = |test_world: &mut TestWorld, silent: bool| {
        battle.step(test_world);
        // The past is only needed for comparing, which other tests do.
        battle.past.clear();
        if silent {
            // Otherwise packets would become rare; other tests cover that.
            for peer in (1..=3).map(PeerId) {
                test_world.server.resume(peer).expect("connected");
            }
        }
        for (peer, message) in encode(&mut test_world.server, &|_| Room::UNLIMITED) {
            let test_client = &mut test_world.clients[peer.0 as usize - 1];
            test_client.client.handle(&message).expect("in order");
            let ack = test_client
                .client
                .acknowledgement()
                .expect("something arrived");
            if !silent {
                test_world.server.handle(peer, &ack).expect("honest");
            }
            while test_client.client.poll_change().is_some() {}
        }
    };
    // Until clients keep as many removed entities as they ever do.
    (0..480).for_each(|_| step(&mut test_world, false));
    // As many packets as an acknowledgement can name wait for it, with all entities spawned since.
    (0..300).for_each(|_| step(&mut test_world, true));
    let before = held();
    (0..300).for_each(|_| step(&mut test_world, true));
    let after = held();
    assert!(after < before + before / 8, "{after}, {before} before");
}

/// The messages of one of three clients are never polled, and one never gets to know the entity of
/// its events. The server reports both as overrun, and holds nothing more for them.
fn slow(seed: u64) {
    let config = ServerConfig::default().with_max_event_bytes(50_000);
    let mut server = Server::new(common::schema(), config, Everything).expect("sound");
    for peer in (1..=3).map(PeerId) {
        let client = Client::new(common::schema(), Default::default());
        server.connect(peer);
        common::greet(&mut server, peer, &mut client.expect("sound"));
    }
    let mut step = server.step(Tick(1)).expect("in order");
    let unit = step.spawn(&common::Unit::default()).expect("sound");
    step.finish();
    let mut dice = common::Dice::new(seed);
    let before = held();
    let mut polled = 0;
    for tick in 2..400 {
        server.step(Tick(tick)).expect("in order").finish();
        let payload = vec![0; dice.below(4000) as usize];
        server.send_event(PeerId(1), &payload).expect("connected");
        server.send_event(PeerId(3), &payload).expect("connected");
        let about = server.send_entity_event_to(PeerId(2), unit.entity_ref(), &payload);
        about.expect("it is there");
        // No client acknowledges, so the unit is never known.
        server.encode(&|_| Room::UNLIMITED);
        while let Some(transmit) = server.poll_transmit(PeerId(3)) {
            polled += u32::from(transmit.delivery == Delivery::Reliable);
        }
        assert!(held() < before + 400_000, "{} bytes", held() - before);
    }
    assert_eq!(polled, 398, "a client that polls gets every event");
    let overrun: Vec<PeerId> = server.overrun().collect();
    assert_eq!(overrun, [PeerId(1), PeerId(2)]);
    let slow = server.statistics(PeerId(1)).expect("connected");
    assert_eq!((slow.overrun, slow.event_bytes), (true, 0));
    assert_eq!(poll(&mut server, PeerId(1)), None);
    // Registering again resets a peer.
    server.connect(PeerId(1));
    server.send_event(PeerId(1), b"welcome").expect("connected");
    assert!(poll(&mut server, PeerId(1)).is_some());
    assert_eq!(server.overrun().count(), 1);
}
