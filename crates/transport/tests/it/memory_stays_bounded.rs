//! Peers that receive nothing: the sender buffers little, reports errors, and closes in time.

use crate::common;

use std::time::Duration;

use crate::common::{GOOD, SECOND, World, config, grant, over_seeds};
use prescient_channels::*;
use prescient_transport::*;

fn patient(backlog: usize) -> LinkConfig {
    LinkConfig::default()
        .with_timeout(40 * SECOND)
        .with_inbox(50)
        .with_exchange(ExchangeConfig::default().with_backlog(backlog))
}

fn three(seed: u64, backlog: usize) -> World {
    let config = config().with_link(patient(backlog).with_inbox(4096));
    let mut world = World::with(seed, GOOD, config);
    for number in 0..3 {
        let token = world.issue(&grant(number));
        world.join_with(token, patient(backlog), &format!("10.0.{number}.1:1"));
    }
    world.connect_all();
    world
}

/// Sends a message to all clients for a tick; returns for which of them that failed.
fn tick(world: &mut World, number: u32, backlog: usize) -> [bool; 3] {
    let mut refused = [false; 3];
    for (peer, refused) in refused.iter_mut().enumerate() {
        if let Some(connection) = world.connection_of(peer) {
            let message = [number.to_le_bytes(); 90].concat();
            for channel in [ChannelId::ORDERED, ChannelId::UNRELIABLE] {
                let queued = world.server_send_on(connection, channel, &message);
                *refused |= queued == Err(SendError::Backlogged);
                assert!(matches!(queued, Ok(()) | Err(SendError::Backlogged)));
            }
            let waiting = world.server_statistics(connection).waiting;
            assert!(waiting <= backlog + 400, "{waiting}");
        }
    }
    world.run_for(Duration::from_millis(16));
    refused
}

/// Case 11: packets of the clients are lost for ten seconds. Fails if congestion control is ignored
/// (`self.held_back = false` in `Exchange::may_send`).
#[test]
fn when_acknowledgements_are_lost_the_rate_falls_to_its_floor() {
    over_seeds(20, |seed| {
        let backlog = 1 << 20;
        let mut world = three(seed, backlog);
        for number in 0..60 {
            assert_eq!(tick(&mut world, number, backlog), [false; 3]);
        }
        world.silent_up = true;
        let (mut number, mut sent_bytes) = (60, Vec::new());
        let connection = world.connection_of(0).expect("connected");
        let (rate, floor) = (BytesPerSecond(4_000_000), BytesPerSecond(8_000));
        assert_eq!(world.server_statistics(connection).rate_allowed, rate);
        for second in 0..10 {
            let before = world.server_statistics(connection).bytes_sent;
            for _ in 0..62 {
                number += 1;
                tick(&mut world, number, backlog);
            }
            let allowed = world.server_statistics(connection).rate_allowed;
            assert_eq!(allowed, if second == 0 { rate } else { floor });
            sent_bytes.push(world.server_statistics(connection).bytes_sent - before);
        }
        // A full packet, and a probe, may fall into one second or the next.
        assert!(sent_bytes[0] >= 10_000, "{sent_bytes:?}");
        assert!(
            sent_bytes[2..]
                .iter()
                .all(|bytes| *bytes <= floor.0 + 2 * 1200),
            "{sent_bytes:?}"
        );
        let all: u64 = sent_bytes[2..].iter().sum();
        assert!(all <= 8 * floor.0 + 3 * 1200, "{sent_bytes:?}");
        world.silent_up = false;
        world.run_for(3 * SECOND);
        assert_eq!(tick(&mut world, u32::MAX, backlog), [false; 3]);
        world.run_for(SECOND);
        assert_eq!(world.closed(), []);
        for peer in 0..3 {
            let received = world.peers[peer].messages_on(ChannelId::ORDERED);
            assert!(received.is_sorted_by_key(|message| {
                u32::from_le_bytes(*message.first_chunk().expect("a number"))
            }));
            assert_eq!(received.last().map(|message| message[0]), Some(255));
            let connection = world.connection_of(peer).expect("connected");
            assert_eq!(world.server_statistics(connection).waiting, 0);
        }
    });
}

/// Case 30: a client whose game does not poll events any more, while its connection runs on. Fails
/// if a stall is not detected (`check_stall` returning `Ok`), or if `send` does not check the
/// backlog.
#[test]
fn a_reader_that_stalls_is_refused_and_then_closed() {
    over_seeds(20, |seed| {
        let backlog = 100_000;
        let mut world = three(seed, backlog);
        world.peers[0].unpolled = true;
        let (start, stalled) = (world.now, world.connection_of(0).expect("connected"));
        let (mut refused, mut number) = ([false; 3], 0);
        while world.closed().is_empty() {
            number += 1;
            let now = tick(&mut world, number, backlog);
            refused = [0, 1, 2].map(|peer| refused[peer] | now[peer]);
            assert!(world.now < start + 60_000_000, "it is never closed");
        }
        assert_eq!(refused, [true, false, false]);
        assert_eq!(world.closed(), [(stalled, CloseReason::Stalled)]);
        assert!(world.now >= start + 20_000_000);
        world.run_for(SECOND);
        for peer in 1..3 {
            let received = world.peers[peer].messages_on(ChannelId::ORDERED);
            assert_eq!(received.len(), number as usize);
        }
        // Once its game polls again, it gets the missed events and the close reason.
        world.peers[0].unpolled = false;
        world.run_for(SECOND);
        assert!(world.peers[0].messages().len() >= 50);
        assert!(world.peers[0].messages().len() < 200);
    });
}

/// Fails if events are counted but not their bytes (`limit_bytes` left out of `Inbox::is_full`).
#[test]
fn large_events_count_for_more() {
    let config = config().with_link(LinkConfig::default().with_inbox_bytes(200_000));
    let mut world = World::with(1, GOOD, config);
    world.join();
    world.connect_all();
    let (mut now, from) = (world.server_time(), world.peers[0].address);
    let mut random = world.random.clone();
    for _ in 0..10 {
        let sent = world.client_send_on(0, ChannelId::ORDERED, &[1; 60_000]);
        sent.expect("fits");
    }
    for _ in 0..100 {
        now = now.after(Duration::from_millis(25));
        world.server.handle_timeout(now);
        world.peers[0].client.handle_timeout(now);
        while let Some(sent) = world.peers[0].client.poll_transmit(now) {
            let server = &mut world.server;
            server.handle_datagram(from, &sent.bytes, now, common::UNIX, &mut random);
        }
        while let Some(sent) = world.server.poll_transmit(now) {
            let client = &mut world.peers[0].client;
            client.handle_datagram(world.server_address, &sent.bytes, now);
        }
    }
    assert!((3..=4).contains(&world.server.footprint().waiting));
    world.now = now.as_micros();
    world.run_for(5 * SECOND);
    assert_eq!(world.received().len(), 10, "nothing is lost");
}
