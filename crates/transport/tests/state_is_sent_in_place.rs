//! From the buffer in which it was encoded to the socket, a message of state is encrypted in place and
//! not copied. A single test, because memory is counted for the whole process.

mod common;

use std::alloc::System;

use common::{GOOD, World, config};
use prescient_channels::{ChannelId, PacketBuffer, Received};
use prescient_transport::ClientEvent;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Fails if the message is copied when it is queued (`message.to_vec().into()` in
/// `Exchange::send_buffer`), when the body is built (`UnreliableSender::write` without `put_last`), or
/// when it is sealed (`payload.to_vec().into()` in `PacketProtection::seal`).
#[test]
fn a_message_becomes_its_datagram() {
    let mut world = World::with(1, GOOD, config());
    let peer = world.join();
    world.connect_all();
    let connection = world.connections()[0];
    let here = world.server_address;
    let now = world.server_time();
    for length in [1000, 900, 1000] {
        let mut buffer = Vec::with_capacity(PacketBuffer::HEADROOM + length + 16);
        buffer.resize(PacketBuffer::HEADROOM, 0);
        buffer.resize(PacketBuffer::HEADROOM + length, 7);
        let message = PacketBuffer::with_headroom(buffer, PacketBuffer::HEADROOM);
        let place = message.as_ptr();

        let region = Region::new(MEMORY);
        let server = &mut world.server;
        let sent = server.send_buffer(connection, ChannelId::UNRELIABLE, message, now);
        sent.expect("connected");
        let datagram = server.poll_transmit(now).expect("just sent").bytes;
        let allocated = region.change().bytes_allocated;

        // The tag is last, and the message before it.
        let at = datagram.len() - 16 - length;
        assert_eq!(datagram[at..].as_ptr(), place, "the message is elsewhere");
        assert!(allocated < length, "{allocated} bytes were allocated");
        let client = &mut world.peers[peer].client;
        client.handle_datagram(here, &datagram, now);
        let received = std::iter::from_fn(|| client.poll_event());
        let is_it = |event: &ClientEvent| {
            matches!(event, ClientEvent::Received(Received::Message { message, .. })
                if *message == vec![7; length])
        };
        assert_eq!(received.filter(is_it).count(), 1);
    }
}
