//! Path MTU discovery through connections.

use crate::common;

use std::time::Duration;

use crate::common::{GOOD, Link, SECOND, World, over_seeds};
use prescient_channels::{BASE_DATAGRAM, ChannelId, MAX_DATAGRAM};

fn world(seed: u64, carries: usize, loss: u64) -> World {
    let link = Link {
        latency: 10_000 + seed % 20 * 3_000,
        carries,
        loss,
        ..GOOD
    };
    let mut world = World::new(seed, link);
    for _ in 0..3 {
        world.join();
    }
    world.connect_all();
    world
}

/// The datagram size of each end of each connection.
fn sizes(world: &World) -> Vec<usize> {
    let peers = 0..world.peers.len();
    let both = peers.flat_map(|peer| {
        let connection = world.connection_of(peer).expect("connected");
        let down = world.server_statistics(connection).datagram;
        [world.statistics(peer).datagram, down]
    });
    both.collect()
}

/// Sends a small and a large message, both ways.
fn tick(world: &mut World) {
    for peer in 0..world.peers.len() {
        let connection = world.connection_of(peer).expect("connected");
        for (channel, length) in [(ChannelId::UNRELIABLE, 200), (ChannelId::ORDERED, 3000)] {
            let message = vec![7; length];
            world.client_send_on(peer, channel, &message).expect("room");
            world
                .server_send_on(connection, channel, &message)
                .expect("room");
        }
    }
    world.run_for(Duration::from_millis(33));
}

/// Fails if the outcome of probes is not reported (`on_probe_acknowledged` left out of
/// `Exchange::settle`), or if lost probes count as losses (the first arm of `Exchange::settle` left
/// out).
#[test]
fn the_largest_size_is_found_without_a_word_being_lost() {
    over_seeds(20, |seed| {
        let carries = 1200 + seed as usize % 20 * 15;
        let mut world = world(seed, carries, 0);
        world.run_for(10 * SECOND);
        for size in sizes(&world) {
            let max = carries.min(MAX_DATAGRAM);
            assert!(size <= max && max - size <= 16, "{carries}: {size}");
        }
        for peer in 0..3 {
            assert_eq!(world.statistics(peer).lost, 0);
        }
    });
}

/// Case 12. The path shrinks to 1200 bytes of UDP payload. If it were IP packets that shrink to
/// 1200 bytes, no handshake would get through: 1200 is what every path has to carry.
///
/// Fails if losses of large packets are not reported (`mtu.on_packet_lost` left out of
/// `Exchange::settle`), or if a probe is as large as the lost packets (`BASE_DATAGRAM` in
/// `Exchange::poll_body`), where nothing small is sent.
#[test]
fn a_path_that_shrinks_heals_within_three_seconds() {
    over_seeds(20, |seed| {
        let mut world = world(seed, MAX_DATAGRAM, [0, 5][seed as usize % 2]);
        for _ in 0..60 {
            tick(&mut world);
        }
        assert_eq!(sizes(&world), [MAX_DATAGRAM; 6]);
        world.link.carries = BASE_DATAGRAM;
        for _ in 0..91 {
            tick(&mut world);
        }
        assert_eq!(sizes(&world), [BASE_DATAGRAM; 6]);
        world.link.loss = 0;
        world.run_for(SECOND);
        for peer in 0..3 {
            let connection = world.connection_of(peer).expect("connected");
            let up = world.received_on(connection, ChannelId::ORDERED).len();
            let down = world.peers[peer].messages_on(ChannelId::ORDERED).len();
            assert_eq!((up, down), (151, 151), "everything reliable");
        }
        assert_eq!(world.closed(), []);
    });
}

/// With large messages only, the black hole is detected, too. Fails for the second mutation of the
/// test above.
#[test]
fn without_anything_small_it_heals_as_well() {
    over_seeds(20, |seed| {
        let mut world = world(seed, MAX_DATAGRAM, 0);
        world.run_for(3 * SECOND);
        assert_eq!(sizes(&world), [MAX_DATAGRAM; 6]);
        world.link.carries = BASE_DATAGRAM;
        for peer in 0..3 {
            let sent = world.client_send_on(peer, ChannelId::ORDERED, &[1; 60_000]);
            sent.expect("room");
        }
        let all = |world: &World| world.received().len() == 3;
        assert!(world.run_until(3 * SECOND, all), "not healed");
    });
}

/// A new address is a new path. Fails if `move_to` does not report it (`path_changed` left out).
#[test]
fn another_path_is_tried_anew() {
    over_seeds(20, |seed| {
        let mut world = world(seed, MAX_DATAGRAM, 0);
        world.run_for(3 * SECOND);
        assert_eq!(sizes(&world), [MAX_DATAGRAM; 6]);
        world.link.carries = 1300;
        for (number, peer) in world.peers.iter_mut().enumerate() {
            peer.address = common::address(&format!("10.60.{number}.1:{}", 7000 + number));
        }
        for peer in 0..3 {
            world.client_send(peer, b"here").expect("connected");
        }
        world.run_for(5 * SECOND);
        assert!(
            sizes(&world)
                .iter()
                .all(|size| (1285..=1300).contains(size))
        );
    });
}
