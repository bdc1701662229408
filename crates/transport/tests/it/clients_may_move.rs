//! Clients change their address, and attackers pretend that they did.

use std::time::Duration;

use crate::common::{GOOD, Link, SECOND, World, address, config, over_seeds};
use prescient_channels::CloseReason;
use prescient_transport::{ClientEvent, Limits, ServerEvent};

/// The round trip time includes a delayed packet in each direction. 2 % of packets are lost; the
/// next packet that causes a path challenge follows 10 ms later. Fails if the server never
/// challenges a new address (`Server::challenge_path` returning at once), and if it does so for
/// every fifth packet only.
#[test]
fn every_five_seconds_another_address_and_never_a_disconnect() {
    over_seeds(20, |seed| {
        let link = Link {
            loss: 2,
            delayed: 20,
            delay: 10_000,
            ..GOOD
        };
        let mut world = World::new(seed, link);
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        let round_trip = Duration::from_millis(60);
        let mut gaps = Vec::new();
        for change in 0..12u16 {
            for peer in 0..3 {
                let place = format!("10.{}.{peer}.9:{}", change + 1, 6000 + change);
                world.peers[peer].address = address(&place);
            }
            let changed = world.now;
            let before: Vec<_> = world.peers.iter().map(|peer| peer.events.len()).collect();
            let mut gap = [None; 3];
            while world.now < changed + 5_000_000 {
                for peer in 0..3 {
                    world.client_send(peer, b"input").expect("connected");
                    let connection = world.connection_of(peer).expect("never disconnected");
                    world.server_send(connection, b"state").expect("connected");
                }
                world.run_for(Duration::from_millis(10));
                for peer in 0..3 {
                    if gap[peer].is_none() && world.peers[peer].events.len() > before[peer] {
                        gap[peer] = Some(Duration::from_micros(world.now - changed));
                    }
                }
            }
            gaps.extend(gap.map(|gap| gap.expect("something came down")));
        }
        assert!(world.closed().is_empty());
        assert!(world.peers.iter().all(|peer| peer.closed().is_none()));
        let longest = gaps.iter().max().expect("36 of them");
        assert!(*longest <= 2 * round_trip, "a gap of {longest:?}");
        let moves = |event: &&ServerEvent| matches!(event, ServerEvent::Moved { .. });
        assert_eq!(world.server_events.iter().filter(moves).count(), 36);
    });
}

/// On a link without loss, the gap is what path validation takes: a round trip and a half, and the
/// way down. Fails if the server waits for a second packet before it sends a challenge.
#[test]
fn without_loss_the_gap_is_two_round_trips_at_most() {
    let mut world = World::new(1, GOOD);
    let peer = world.join();
    world.connect_all();
    world.run_for(SECOND);
    world.peers[peer].address = address("172.16.0.1:7");
    let (start, before) = (world.now, world.peers[peer].events.len());
    let connection = world.connection_of(peer).expect("connected");
    while world.peers[peer].events.len() == before {
        world.client_send(peer, b"input").expect("connected");
        world.server_send(connection, b"state").expect("connected");
        world.run_for(Duration::from_millis(1));
    }
    let gap = world.now - start;
    assert!(gap <= 2 * 40_000 + 2_000, "{gap} µs");
}

/// An attacker on the path forwards packets from another source address, faster than the original.
/// Fails if `handle_opened` moves at once (`client_connection.connection.peer = from` on a newest
/// packet), or if a response from any address validates any path (`path.address == from` left out
/// of `handle_path_response`).
#[test]
fn a_spoofed_sender_moves_nothing() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, GOOD);
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        let victim = address("203.0.113.99:53");
        let (mut toward, mut from) = (0, 0);
        for _ in 0..300 {
            for peer in 0..3 {
                world.client_send(peer, b"input").expect("connected");
                let connection = world.connection_of(peer).expect("connected");
                world.server_send(connection, b"state").expect("connected");
            }
            let seen = world.sent.len();
            world.run_for(Duration::ZERO);
            let up: Vec<_> = world.sent[seen..]
                .iter()
                .filter(|datagram| datagram.to == world.server_address)
                .cloned()
                .collect();
            for datagram in up {
                from += datagram.bytes.len();
                world.inject(victim, datagram.to, datagram.bytes, 1);
            }
            let seen = world.sent.len();
            world.run_for(Duration::from_millis(20));
            // The challenges are forwarded to the clients, who respond from their own addresses.
            let challenges = world.sent[seen..].iter().filter(|sent| sent.to == victim);
            for challenge in challenges.cloned().collect::<Vec<_>>() {
                for peer in 0..3 {
                    let home = world.peers[peer].address;
                    world.inject(challenge.from, home, challenge.bytes.clone(), 1);
                }
            }
        }
        world.run_for(SECOND);
        let moved = |event: &ServerEvent| matches!(event, ServerEvent::Moved { .. });
        assert!(!world.server_events.iter().any(moved));
        for datagram in &world.sent {
            if datagram.to == victim {
                toward += datagram.bytes.len();
                assert!((26..=29).contains(&datagram.bytes.len()), "questions only");
            }
        }
        assert!(toward > 0 && toward <= from, "{toward} bytes for {from}");
        for peer in &world.peers {
            assert_eq!(peer.messages().len(), 300, "all went to the real address");
        }
    });
}

/// The limit of connections per address also applies to clients that move there. Fails if
/// `handle_path_response` does not check `has_room`.
#[test]
fn moving_does_not_get_around_the_limit_per_address() {
    let limits = Limits::default().with_connections_per_address(8);
    let mut world = World::with(3, GOOD, config().with_limits(limits));
    for _ in 0..9 {
        world.join();
    }
    world.connect_all();
    for peer in 0..9 {
        world.peers[peer].address = address(&format!("10.9.9.9:{}", 1000 + peer));
    }
    for _ in 0..100 {
        for peer in 0..9 {
            world.client_send(peer, b"input").expect("connected");
        }
        world.run_for(Duration::from_millis(20));
    }
    let moved = |event: &&ServerEvent| matches!(event, ServerEvent::Moved { .. });
    assert_eq!(world.server_events.iter().filter(moved).count(), 8);
}

/// Fails if only one close packet is sent (`CLOSE_PACKETS` = 1).
#[test]
fn a_goodbye_arrives_after_a_move_and_through_loss() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, GOOD);
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        world.peers[0].address = address("10.77.0.1:1");
        world.link.loss = 10;
        let now = world.client_time();
        world.peers[0].client.close(CloseReason::Other(5), now);
        world.run_for(2 * SECOND);
        assert!(world.closed().len() <= 1);
        let by_itself = |(_, reason): &(_, CloseReason)| *reason == CloseReason::Other(5);
        let received = world.closed().iter().any(by_itself);
        let last = world.peers[0].events.last();
        assert_eq!(last, Some(&ClientEvent::Closed(CloseReason::Other(5))));
        // RELIABILITY requires nothing of close packets, and they are not acknowledged: an end that
        // receives none of four times out. At 10 % loss that is one seed in 10,000.
        assert!(received, "the server did not receive it");
        assert_eq!(world.connections().len(), 2);
    });
}
