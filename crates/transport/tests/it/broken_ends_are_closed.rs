//! An end with valid keys violates the protocol. Its connection is closed with a reason, it costs
//! little, and other connections are not affected.

use std::time::Duration;

use crate::common::{GOOD, SECOND, World, over_seeds};
use prescient_channels::{ChannelId, CloseReason, ConnectionId, Time};

/// Three clients that have exchanged messages for a while; the first is the attacker.
fn connected(seed: u64) -> (World, ConnectionId) {
    let mut world = World::new(seed, GOOD);
    for _ in 0..3 {
        world.join();
    }
    world.connect_all();
    for _ in 0..20 {
        send_messages(&mut world, 3);
        world.run_for(Duration::from_millis(30));
    }
    let attacker = world.connection_of(0).expect("connected");
    (world, attacker)
}

fn send_messages(world: &mut World, peers: usize) {
    for peer in 3 - peers..3 {
        let connection = world.connection_of(peer).expect("connected");
        let up = world.client_send_on(peer, ChannelId::ORDERED, b"up");
        let down = world.server_send_on(connection, ChannelId::ORDERED, b"down");
        assert_eq!((up, down), (Ok(()), Ok(())));
    }
}

fn raw(world: &mut World, body: &[u8]) {
    let now = world.client_time();
    world.peers[0].client.send_raw(body, now);
    world.run_for(Duration::from_millis(25));
}

/// Both ends report the reason, and the other connections work on.
fn is_closed(world: &mut World, attacker: ConnectionId) {
    world.run_for(SECOND);
    assert_eq!(world.closed(), [(attacker, CloseReason::Violation)]);
    assert_eq!(world.peers[0].closed(), Some(CloseReason::Violation));
    let before = [1, 2].map(|peer| world.peers[peer].messages().len());
    send_messages(world, 2);
    world.run_for(SECOND);
    let after = [1, 2].map(|peer| world.peers[peer].messages().len());
    assert_eq!(after, before.map(|count| count + 1));
}

fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// A frame that acknowledges packets.
fn received(newest: u64, further: u64, gaps: &[(u64, u64)]) -> Vec<u8> {
    let mut body = vec![1 + u8::from(!gaps.is_empty())];
    number(&mut body, newest);
    number(&mut body, 0);
    // When it arrived.
    body.push(0);
    number(&mut body, further);
    if !gaps.is_empty() {
        number(&mut body, gaps.len() as u64);
    }
    for &(missing, received) in gaps {
        number(&mut body, missing);
        number(&mut body, received);
    }
    body
}

/// 100 bytes of a longer message, reliable or not.
fn part(channel: u8, reliable: bool, message: u64, offset: u64, total: u64) -> Vec<u8> {
    let mut body = vec![0xb0 | u8::from(reliable) << 6 | channel];
    number(&mut body, message);
    number(&mut body, offset);
    number(&mut body, total);
    body.extend_from_slice(&[7; 100]);
    body
}

/// Case 26. Fails if `InFlight::handle_report` does not check whether a packet was sent.
#[test]
fn acknowledging_what_was_never_sent() {
    over_seeds(20, |seed| {
        let (mut world, attacker) = connected(seed);
        let before = world.server_statistics(attacker);
        let ahead = world.random.below(1 << 40);
        raw(&mut world, &received(before.packets_sent + ahead, 0, &[]));
        let after = world.server_statistics(attacker);
        assert_eq!(after.acknowledged, before.acknowledged);
        is_closed(&mut world, attacker);
    });
}

/// Case 27; its cost is tested in `in_flight.rs`. Fails if `InFlight::handle_report` does not check
/// whether a packet was sent.
#[test]
fn acknowledging_everything_there_could_be() {
    for body in [
        received(u64::MAX, u64::MAX, &[]),
        received(u64::MAX - 1, 0, &[(1, u64::MAX - 5)]),
        received(u64::MAX, 0, &[(0, 0); 63]),
        received(5, 6, &[]),
        received(5, 0, &[(0, u64::MAX)]),
        received(5, 0, &[(u64::MAX, u64::MAX); 63]),
    ] {
        let (mut world, attacker) = connected(1);
        let before = world.server_statistics(attacker);
        raw(&mut world, &body);
        let after = world.server_statistics(attacker);
        assert_eq!(after.acknowledged, before.acknowledged);
        is_closed(&mut world, attacker);
    }
}

/// Fails if malformed frames are skipped.
#[test]
fn speaking_in_tongues() {
    let too_many = [3; 65];
    let sound_and_then_not = [3, 0];
    let bodies: [&[u8]; 9] = [
        &[],
        &[0],
        &[16, 1],
        &too_many,
        &sound_and_then_not,
        // Channels that do not exist; a reliable message on an unreliable channel and the reverse.
        &[0x90 | 9, 1],
        &[0xd0 | 2, 0, 1],
        &[0x90, 1],
        // A chunk of a blob that was never offered.
        &[4, 0, 0, 1, 1],
    ];
    for body in bodies {
        let (mut world, attacker) = connected(1);
        let before = world.received().len();
        raw(&mut world, body);
        assert_eq!(world.received().len(), before, "{body:?}");
        is_closed(&mut world, attacker);
    }
}

/// Case 28 for unreliable messages, where nothing has to be closed. Fails if partial messages are
/// not dropped in time, or not limited.
#[test]
fn parts_of_unreliable_messages_that_never_end() {
    over_seeds(20, |seed| {
        let (mut world, attacker) = connected(seed);
        for message in 0..500 {
            let total = 101 + world.random.below(32_000);
            let channel = 2 + (message % 2) as u8;
            raw(&mut world, &part(channel, false, message, 0, total));
            assert!(world.server_statistics(attacker).incomplete <= 256 << 10);
        }
        assert!(world.server_statistics(attacker).incomplete > 0);
        world.run_for(5 * SECOND);
        assert_eq!(world.server_statistics(attacker).incomplete, 0);
        assert_eq!(world.closed(), []);
    });
}

/// Case 28, with more messages begun than allowed. Fails if `ReliableReceiver::assemble` does not
/// check the room, or `finish` does not.
#[test]
fn parts_of_reliable_messages_that_are_too_many() {
    over_seeds(20, |seed| {
        for whole in [false, true] {
            let (mut world, attacker) = connected(seed);
            let mut max = 0;
            for message in 21..1000u64 {
                let mut body = part(0, true, message, 0, 2000);
                if whole {
                    // Complete, but the message before it is missing.
                    body = vec![0xd0];
                    number(&mut body, message);
                    body.extend_from_slice(&[7; 1000]);
                }
                if world.closed().is_empty() {
                    let held = world.server_statistics(attacker).incomplete;
                    max = held.max(max);
                    raw(&mut world, &body);
                }
            }
            assert!((190_000..=256 << 10).contains(&max), "{max}");
            is_closed(&mut world, attacker);
        }
    });
}

/// Case 28: a message is begun, followed only by other messages or by keep-alives. Fails if there
/// is no sweep (`is_neglected` left out of `Exchange::handle_timeout`), or if it always takes many
/// packets (`!is_lossy` left out of `ReceiveActivity::had_time_since`).
#[test]
fn a_reliable_message_that_is_left_unfinished() {
    over_seeds(20, |seed| {
        let (mut world, attacker) = connected(seed);
        raw(&mut world, &part(1, true, 0, 0, 100_000));
        let begun = world.now;
        // The message, and the cost of keeping track of it.
        assert_eq!(world.server_statistics(attacker).incomplete, 100_256);
        while world.closed().is_empty() {
            match seed % 2 {
                0 => raw(&mut world, &[3]),
                _ => world.run_for(Duration::from_millis(25)),
            }
            assert!(world.now <= begun + 5_000_000, "it goes on for ever");
        }
        assert!(world.now >= begun + 4_000_000);
        is_closed(&mut world, attacker);
    });
}

/// A server may violate the protocol, too. Fails if the client does not close.
#[test]
fn a_broken_server_is_left() {
    let (mut world, attacker) = connected(1);
    let now = Time::from_micros(world.now);
    world.server.send_raw(attacker, &[0], now);
    world.run_for(SECOND);
    assert_eq!(world.peers[0].closed(), Some(CloseReason::Violation));
    assert_eq!(world.closed(), [(attacker, CloseReason::Violation)]);
}
