//! A blackout: nothing arrives for a while, and then everything does again.

use crate::common;

use std::time::Duration;

use crate::common::{GOOD, Link, SECOND, World, over_seeds};
use prescient_channels::CloseReason;
use prescient_transport::{ClientEvent, ServerEvent};

fn world(seed: u64) -> World {
    let link = Link {
        latency: 10_000 + seed % 20 * 3_000,
        ..GOOD
    };
    let mut world = World::new(seed, link);
    for _ in 0..3 {
        world.join();
    }
    world.connect_all();
    world.run_for(3 * SECOND);
    world
}

fn client_events(world: &World, wanted: &ClientEvent) -> usize {
    let events = world.peers.iter().flat_map(|peer| &peer.events);
    events.filter(|event| *event == wanted).count()
}

fn resumptions(world: &World) -> usize {
    let resumed = |event: &&ServerEvent| matches!(event, ServerEvent::Resumed { .. });
    world.server_events.iter().filter(resumed).count()
}

/// Case 9: a blackout of thirty seconds; a round trip and a probe after it both ends have resumed.
/// Fails if clients probe no more often than they send keep-alives (`keep_alive_at` without
/// `PROBE_SPACING`), if the end that receives first sends nothing (the keep-alive left out of
/// `Server::resume`), or if a peer that is silent for ten seconds is closed (`timeout` in
/// `LinkConfig::default`).
#[test]
fn thirty_seconds_of_blackout_are_over_after_a_round_trip() {
    over_seeds(20, |seed| {
        let mut world = world(seed);
        let (good, before) = (world.link, world.sent.len());
        world.link.loss = 100;
        world.run_for(Duration::from_millis(1900));
        assert_eq!(world.silences(), 0, "too early");
        world.run_for(2 * SECOND);
        assert_eq!(world.silences(), 3);
        world.run_for(Duration::from_millis(26_100));
        assert_eq!(world.closed(), []);
        assert_eq!(resumptions(&world), 0);
        let datagrams = |down: bool| {
            let to_clients = world.sent[before..].iter();
            to_clients
                .filter(|sent| (sent.from == world.server_address) == down)
                .count()
        };
        assert!(datagrams(false) <= 3 * 300, "{} up", datagrams(false));
        assert!(datagrams(true) <= 3 * 31, "{} down", datagrams(true));

        world.link = good;
        let (start, round_trip) = (world.now, 2 * good.latency);
        let all = |world: &World| {
            resumptions(world) == 3 && client_events(world, &ClientEvent::Resumed) == 3
        };
        assert!(world.run_until(SECOND, all), "not resumed");
        let took = world.now - start;
        assert!(took <= round_trip + 100_000, "{took} µs");
        assert_eq!(world.silences(), 3);

        for peer in 0..3 {
            let connection = world.connection_of(peer).expect("the same as before");
            world.server_send(connection, b"state").expect("connected");
            world.client_send(peer, b"input").expect("connected");
        }
        world.run_for(SECOND);
        assert_eq!(world.received().len(), 3);
        assert!(world.peers.iter().all(|peer| peer.messages().len() == 1));
        assert_eq!(world.closed(), []);
    });
}

/// A NAT may forget a mapping during a blackout. Fails if a client that resumes from another
/// address gets no path challenge (`challenge_path` left out of `handle_opened`).
#[test]
fn who_comes_out_of_a_blackout_elsewhere_is_found_there() {
    over_seeds(20, |seed| {
        let mut world = world(seed);
        let good = world.link;
        world.link.loss = 100;
        world.run_for(30 * SECOND);
        for (number, peer) in world.peers.iter_mut().enumerate() {
            peer.address = common::address(&format!("10.50.{number}.1:{}", 7000 + number));
        }
        world.link = good;
        let start = world.now;
        let all = |world: &World| client_events(world, &ClientEvent::Resumed) == 3;
        assert!(world.run_until(SECOND, all), "not resumed");
        let took = world.now - start;
        assert!(took <= 2 * good.latency + 100_000, "{took} µs");
        world.run_for(SECOND);
        let moved = |event: &&ServerEvent| matches!(event, ServerEvent::Moved { .. });
        assert_eq!(world.server_events.iter().filter(moved).count(), 3);
        assert_eq!((resumptions(&world), world.closed().len()), (3, 0));
    });
}

/// Case 8: two seconds of link, five seconds of blackout, again and again. Fails if a silent peer
/// whose packets arrive again stays silent (`ConnectionState::Silent` left out of
/// `Connection::open`).
#[test]
fn two_seconds_in_seven_are_enough() {
    over_seeds(20, |seed| {
        let mut world = world(seed);
        let good = world.link;
        for round in 1..=10 {
            world.link.loss = 100;
            world.run_for(5 * SECOND);
            world.link = good;
            world.run_for(2 * SECOND);
            assert_eq!(world.silences(), 3 * round);
            assert_eq!(resumptions(&world), 3 * round);
        }
        assert_eq!(client_events(&world, &ClientEvent::Resumed), 30);
        assert_eq!(world.closed(), []);
    });
}

/// Both ends detect that the other is gone. Fails if a silent peer never times out (`dead` left out
/// of `deadline` for `Silent`).
#[test]
fn who_does_not_come_back_is_dead_after_a_minute() {
    over_seeds(20, |seed| {
        let mut world = world(seed);
        world.link.loss = 100;
        world.run_for(59 * SECOND);
        assert_eq!((world.closed().len(), world.silences()), (0, 3));
        world.run_for(2 * SECOND);
        let timed_out = |reason: CloseReason| reason == CloseReason::TimedOut;
        assert_eq!(world.closed().len(), 3);
        assert!(world.closed().iter().all(|(_, reason)| timed_out(*reason)));
        assert!(
            world
                .peers
                .iter()
                .all(|peer| peer.closed().is_some_and(timed_out))
        );
        assert_eq!(world.server.footprint().connections, 0);
        assert_eq!(resumptions(&world), 0);
    });
}
