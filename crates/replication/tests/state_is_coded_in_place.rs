//! From the coder to the carrier a message of state stays in one buffer; `prescient-transport` has
//! the same test from there to the datagram (`state_is_sent_in_place`). A single test, because
//! memory is counted for the whole process.

mod common;

use std::alloc::System;

use common::{Dice, greet};
use prescient_replication::{
    Client, ClientConfig, Delivery, Everything, PeerId, Room, Server, ServerConfig, Tick,
};
use prescient_schema::{SchemaBuilder, State};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Leaf {
    at: [i16; 3],
}

/// Fails if the message is copied after it was coded: to put its head before it
/// (`[&head[..], &bytes].concat()` in `Peer::encode`) or when it is polled (`buffer.clone()`).
#[test]
fn a_message_is_coded_into_the_buffer_that_is_sent() {
    let schema = SchemaBuilder::new().state::<Leaf>().build();
    let schema = schema.expect("a sound schema");
    let config = ServerConfig::default();
    let mut server = Server::new(schema.clone(), config, Everything).expect("sound");
    let mut client = Client::new(schema, ClientConfig::default()).expect("sound");
    let peer = PeerId(1);
    server.connect(peer);
    greet(&mut server, peer, &mut client);
    let mut dice = Dice::new(1);
    let mut leaf = || Leaf {
        at: [0; 3].map(|_: u8| dice.below(1 << 16) as i16),
    };
    let mut step = server.step(Tick(1)).expect("the first");
    let leaves: Vec<_> = (0..300)
        .map(|_| step.spawn(&leaf()).expect("sound"))
        .collect();
    step.finish();
    let room = Room {
        headroom: 48,
        ..Room::UNLIMITED
    };
    for tick in 2..450 {
        let mut step = server.step(Tick(tick)).expect("in order");
        for &it in &leaves {
            step.set(it, &leaf()).expect("it is there");
        }
        step.finish();
        let region = Region::new(MEMORY);
        server.encode(&|_| room);
        let transmit = server.poll_transmit(peer).expect("a new tick");
        let change = region.change();
        assert_eq!(transmit.delivery, Delivery::Unreliable);
        assert!(transmit.headroom >= 40, "{} free", transmit.headroom);
        let length = transmit.message().len();
        client.handle(transmit.message()).expect("in order");
        while client.poll_change().is_some() {}
        let ack = client.acknowledgement().expect("it was applied");
        server.handle(peer, &ack).expect("honest");
        // The model grows last after tick 300, and learns inside packets for a while then.
        if tick > 350 {
            let allocated = change.bytes_allocated;
            assert!(length > 1500, "{length} bytes");
            assert!(
                allocated < length + length / 2,
                "{allocated} bytes were allocated for a message of {length}"
            );
        }
    }
}
