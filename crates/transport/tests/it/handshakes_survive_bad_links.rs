//! Handshakes on very bad links.

use crate::common;

use std::time::Duration;

use crate::common::{GOOD, Link, World, seeds};
use prescient_channels::{BASE_DATAGRAM, ConnectError, Denial};
use prescient_transport::VERSION;

/// Fails if requests are not repeated (`*next = now.after(self.config.retry)` in
/// `Client::handle_timeout` with a minute).
#[test]
fn thirty_percent_lost_and_thirty_percent_damaged() {
    let link = Link {
        loss: 30,
        corruption: 30,
        ..GOOD
    };
    let (mut failed, mut slowest) = (Vec::new(), 0);
    let seeds = seeds(1000);
    let all = seeds.end - seeds.start;
    for seed in seeds {
        let mut world = World::new(seed, link);
        let peer = world.join();
        let start = world.now;
        let both =
            |world: &World| world.peers[peer].connected() && world.server.clients().count() == 1;
        if world.run_until(Duration::from_secs(10), both) {
            slowest = slowest.max(world.now - start);
        } else {
            failed.push((seed, world.peers[peer].error()));
        }
    }
    println!(
        "{} of {all} failed, the slowest took {} ms",
        failed.len(),
        slowest / 1000
    );
    assert!(failed.len() as u64 * 1000 <= all, "failed: {failed:?}");
}

/// A bit of the version is flipped on the way, and the server denies a request that was never made.
/// Fails if the MAC of a denial does not cover the request (`mac(key, &[&bytes])` in `write_denied`
/// and `mac_is(key, &[denied], &tag)` in `read_denied`).
#[test]
fn a_refusal_of_a_damaged_request_is_not_believed() {
    for place in [0, 1, 2, 40, 100] {
        let mut world = World::new(1, GOOD);
        let peer = world.join();
        world.link.loss = 100;
        world.run_for(Duration::ZERO);
        let mut request = world.sent[0].clone();
        request.bytes[place] ^= 4;
        world.link = GOOD;
        world.inject(request.from, request.to, request.bytes, 1000);
        world.run_for(Duration::from_millis(100));
        assert_eq!(world.peers[peer].error(), None);
        assert!(world.run_until(Duration::from_secs(1), |world| {
            world.peers[peer].connected()
        }));
    }
}

/// The denial of the actual request is accepted. Fails if the server does not answer other
/// versions, or if the client ignores the answer.
#[test]
fn a_server_of_another_version_says_so() {
    let mut world = World::new(1, GOOD);
    let peer = world.join();
    world.run_for(Duration::ZERO);
    // The answer of a server of version 9 to this request.
    let request = &world.sent[0].bytes;
    let echo = &request[2..10];
    let mut denied = [&[4][..], echo, &[1, 9, 0]].concat();
    let signed = [&denied[..], &request[..10]].concat();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &[0; 32]);
    denied.extend_from_slice(&ring::hmac::sign(&key, &signed).as_ref()[..16]);
    let (from, to) = (world.server_address, world.peers[peer].address);
    world.inject(from, to, denied, 1);
    world.run_for(Duration::from_millis(10));
    let version = Denial::Version { server: 9 };
    assert_eq!(
        world.peers[peer].error(),
        Some(ConnectError::Denied(version))
    );

    // Our answer to a request of version 9.
    let mut world = World::new(1, GOOD);
    let mut request = vec![0; BASE_DATAGRAM];
    request[..10].copy_from_slice(&[1, 9, 1, 2, 3, 4, 5, 6, 7, 8]);
    let from = common::address("10.0.0.1:1");
    world.inject(from, world.server_address, request, 1);
    world.run_for(Duration::from_millis(10));
    assert_eq!(world.sent.len(), 1);
    let answer = &world.sent[0];
    assert_eq!(answer.to, from);
    assert_eq!(
        answer.bytes[..12],
        [4, 1, 2, 3, 4, 5, 6, 7, 8, 1, VERSION, 0]
    );
}

/// An attacker that did not see the request cannot make the client use a wrong cookie. Fails if
/// `handle_challenge` does not compare the echo.
#[test]
fn a_strangers_challenge_is_not_answered() {
    let mut world = World::new(1, GOOD);
    let peer = world.join();
    world.link.loss = 100;
    world.run_for(Duration::ZERO);
    let (from, to) = (world.server_address, world.peers[peer].address);
    let mut challenge = [7; 33];
    challenge[0] = 2;
    world.inject(from, to, challenge.to_vec(), 1);
    world.run_for(Duration::from_millis(500));
    assert!(world.sent.len() > 3);
    for request in &world.sent {
        assert_eq!(request.bytes[730..754], [0; 24], "still without a cookie");
    }
    // The genuine challenge is accepted.
    challenge[1..9].copy_from_slice(&world.sent[0].bytes[2..10]);
    world.inject(from, to, challenge.to_vec(), 1);
    world.run_for(Duration::from_millis(10));
    let last = &world.sent.last().expect("asked at once").bytes;
    assert_eq!(last[730..754], [7; 24]);
}
