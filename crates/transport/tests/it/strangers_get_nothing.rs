//! A server does next to nothing for addresses that are not validated.

use crate::common;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::common::{
    GOOD, PROTOCOL, Random, SECOND, UNIX, World, address, config, grant, over_seeds,
};
use prescient_channels::*;
use prescient_transport::*;

/// Genuine requests from spoofed addresses.
fn spoofed(random: &mut Random, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let key = TokenKey::new(common::KEY).expect("not the public one");
    let mut requests = Vec::new();
    for number in 0..count {
        let token = grant(number as u64).issue(&key, random).expect("sound");
        let now = Time::from_micros(0);
        let mut client = Client::connect(token, PROTOCOL, LinkConfig::default(), random, now)
            .expect("the same protocol");
        client.handle_timeout(now);
        let request = client
            .poll_transmit(now)
            .expect("it asks at once")
            .bytes
            .into_vec();
        let ip = Ipv4Addr::from_bits(random.next() as u32);
        requests.push((SocketAddr::new(ip.into(), 1 + number as u16), request));
    }
    requests
}

/// Fails if the server counts before the address is validated (`try_handshake` above
/// `cookie_key.made` in `handle_request`).
#[test]
fn spoofed_requests_leave_no_state() {
    over_seeds(20, |seed| {
        let mut random = Random(seed);
        let now = Time::from_micros(0);
        let mut server = Server::new(config(), &mut random, now).expect("it can work");
        for (from, request) in spoofed(&mut random, 500) {
            server.handle_datagram(from, &request, now, UNIX, &mut random);
            assert!(
                server
                    .poll_transmit(now)
                    .is_some_and(|answer| answer.to == from)
            );
        }
        assert_eq!(server.footprint(), Footprint::default());
        assert_eq!(server.next_timeout(), None);
        assert_eq!(server.poll_event(), None);
    });
}

/// A cookie that was issued to one address is invalid at another. Fails if the cookie does not
/// cover the address (`&[&time, opening]` in `CookieKey`).
#[test]
fn a_cookie_cannot_be_lent() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, GOOD);
        world.join();
        world.connect_all();
        let second = world
            .sent
            .iter()
            .filter(|datagram| datagram.bytes.len() == BASE_DATAGRAM)
            .nth(1)
            .expect("the request with a cookie")
            .clone();
        // Another server with the same cookie key, so that the token is not used there yet.
        let mut random = Random(seed);
        let start = Time::from_micros(common::START);
        let mut other_server = Server::new(config(), &mut random, start).expect("it can work");
        let then = Time::from_micros(common::START + 60_000);
        other_server.handle_datagram(
            address("10.0.0.2:9"),
            &second.bytes,
            then,
            UNIX,
            &mut random,
        );
        assert_eq!(other_server.footprint().connections, 0);
        other_server.handle_datagram(second.from, &second.bytes, then, UNIX, &mut random);
        assert_eq!(
            other_server.footprint().connections,
            1,
            "from its own address it is good"
        );
    });
}

/// No answer to an unvalidated address is longer than the datagram it answers, whatever that is:
/// every kind of packet, cut to every length, damaged, repeated. Fails if requests of any length
/// are answered (`bytes.len() < 10` instead of `!= BASE_DATAGRAM` in `read_request`), and if
/// `challenge_path` sends two challenges.
#[test]
fn nothing_is_amplified() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, GOOD);
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        for _ in 0..20 {
            for peer in 0..3 {
                world.client_send(peer, &[1; 30]).expect("connected");
                let connection = world.connection_of(peer).expect("connected");
                world.server_send(connection, &[2; 30]).expect("connected");
            }
            world.run_for(Duration::from_millis(30));
        }
        let mut random = world.random.clone();
        let now = world.server_time();
        world.server.handle_timeout(now);
        while world.server.poll_transmit(now).is_some() {}
        let seen = world.sent.clone();
        let mut unseen = Vec::new();
        for peer in 0..3 {
            // Authentic, new, and from another address: such a packet starts path validation.
            world.client_send(peer, b"").expect("connected");
            let client = &mut world.peers[peer].client;
            unseen.extend(
                std::iter::from_fn(|| client.poll_transmit(now)).map(|sent| sent.bytes.into_vec()),
            );
        }
        let seen = seen.into_iter().map(|datagram| datagram.bytes);
        for (number, bytes) in seen.chain(unseen).enumerate() {
            let from = SocketAddr::new(Ipv4Addr::from_bits(random.next() as u32).into(), 9);
            let mut tries = vec![bytes.clone()];
            for _ in 0..4 {
                let mut damaged = bytes.clone();
                common::damage(&mut damaged, &mut random);
                tries.push(damaged);
            }
            for first in 0..=255 {
                let mut other = bytes.clone();
                other[0] = first;
                tries.push(other);
            }
            for bytes in tries {
                let server = &mut world.server;
                server.handle_datagram(from, &bytes, now, UNIX, &mut random);
                let answers = std::iter::from_fn(|| server.poll_transmit(now));
                let out: usize = answers
                    .filter(|answer| answer.to == from)
                    .map(|answer| answer.bytes.len())
                    .sum();
                assert!(out <= bytes.len(), "{out} for {} ({number})", bytes.len());
            }
        }
    });
}

/// Fails if `Server::has_room` or the total is not checked.
#[test]
fn an_address_has_eight_places_and_the_server_so_many_in_all() {
    let limits = Limits::default()
        .with_connections(12)
        .with_connections_per_address(8);
    let mut world = World::with(1, GOOD, config().with_limits(limits));
    let join = |world: &mut World, from: &str| {
        let number = world.peers.len() as u64;
        let token = world.issue(&grant(number));
        world.join_with(token, LinkConfig::default(), from)
    };
    for port in 0..9 {
        join(&mut world, &format!("10.1.0.1:{}", 1000 + port));
    }
    world.run_for(3 * SECOND);
    assert_eq!(world.connections().len(), 8);
    let crowded = Some(ConnectError::Denied(Denial::Crowded));
    assert_eq!(
        world
            .peers
            .iter()
            .filter(|peer| peer.error() == crowded)
            .count(),
        1
    );
    for host in 0..5 {
        join(&mut world, &format!("10.2.0.{host}:1"));
    }
    world.run_for(3 * SECOND);
    assert_eq!(world.connections().len(), 12);
    assert_eq!(
        world.peers[13].error(),
        Some(ConnectError::Denied(Denial::Full))
    );
    // A client that leaves makes room.
    let now = world.client_time();
    world.peers[0].client.close(CloseReason::Finished, now);
    world.run_for(SECOND);
    let late = join(&mut world, "10.1.0.1:999");
    world.run_for(SECOND);
    assert!(world.peers[late].connected());
}

/// Fails if `try_handshake` is not called: one address could cause any number of key exchanges.
#[test]
fn an_address_gets_ten_handshakes_a_second() {
    let generous = Limits::default().with_connections_per_address(1000);
    let mut world = World::with(1, GOOD, config().with_limits(generous));
    for port in 0..100 {
        let token = world.issue(&grant(port));
        let link = LinkConfig::default();
        world.join_with(token, link, &format!("10.1.0.1:{}", 1000 + port));
    }
    world.run_for(SECOND);
    let after_one = world.connections().len();
    world.run_for(2 * SECOND);
    let after_three = world.connections().len();
    assert!((10..=20).contains(&after_one), "{after_one}");
    assert!((30..=40).contains(&after_three), "{after_three}");
}

/// A client that crashes and connects again gets in at once, and its old connection is closed.
/// Anonymous clients do not replace each other. Fails if `replace_sessions` does nothing, if
/// `examine` counts the session that is replaced, or if `sessions_of` finds anonymous clients.
#[test]
fn a_client_that_connects_again_replaces_itself() {
    over_seeds(20, |seed| {
        let limits = Limits::default()
            .with_connections(3)
            .with_connections_per_address(3);
        let mut world = World::with(seed, GOOD, config().with_limits(limits));
        for client in [0, 0, 7] {
            let token = world.issue(&grant(client));
            let from = format!("10.1.0.1:{}", 1000 + world.peers.len());
            world.join_with(token, LinkConfig::default(), &from);
            world.run_for(SECOND);
        }
        assert_eq!(world.connections().len(), 3);
        for restart in 0..5 {
            let token = world.issue(&grant(7));
            let from = format!("10.1.0.1:{}", 2000 + restart);
            let again = world.join_with(token, LinkConfig::default(), &from);
            world.run_for(SECOND);
            assert!(world.peers[again].connected(), "restart {restart}");
            let before = world.peers[again - 1].events.last();
            let replaced = ClientEvent::Closed(CloseReason::Replaced);
            assert_eq!(before, Some(&replaced), "restart {restart}");
            assert_eq!(world.connections().len(), 3);
        }
        let reasons: Vec<_> = world.closed().iter().map(|(_, reason)| *reason).collect();
        assert_eq!(reasons, [CloseReason::Replaced; 5]);
    });
}

/// Clients that crashed do not keep others at their address out. Fails if `has_room` counts silent
/// connections.
#[test]
fn silent_connections_do_not_count_against_an_address() {
    let limits = Limits::default().with_connections_per_address(2);
    let mut world = World::with(1, GOOD, config().with_limits(limits));
    let join = |world: &mut World, client: u64| {
        let token = world.issue(&grant(client));
        let from = format!("10.1.0.1:{}", 1000 + client);
        world.join_with(token, LinkConfig::default(), &from)
    };
    join(&mut world, 1);
    join(&mut world, 2);
    world.run_for(SECOND);
    let early = join(&mut world, 3);
    world.run_for(SECOND);
    let crowded = Some(ConnectError::Denied(Denial::Crowded));
    assert_eq!(world.peers[early].error(), crowded);
    // One of them crashes: nothing of it arrives any more, from wherever.
    world.peers.remove(1);
    world.run_for(5 * SECOND);
    let late = join(&mut world, 4);
    world.run_for(SECOND);
    assert!(world.peers[late].connected());
    let fourth = join(&mut world, 5);
    world.run_for(SECOND);
    assert_eq!(world.peers[fourth].error(), crowded);
}

/// Fails if `has_room` limits loopback addresses.
#[test]
fn a_machine_may_have_any_number_of_clients_of_its_own() {
    let mut world = World::new(1, GOOD);
    for port in 0..40 {
        let token = world.issue(&grant(0));
        world.join_with(
            token,
            LinkConfig::default(),
            &format!("127.0.0.1:{}", 1000 + port),
        );
    }
    world.run_for(6 * SECOND);
    assert_eq!(world.connections().len(), 40);
}
