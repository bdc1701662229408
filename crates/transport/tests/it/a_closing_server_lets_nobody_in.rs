//! A server that shuts down closes all connections; reconnecting clients cannot keep it from
//! ending.

use std::time::Duration;

use crate::common::{GOOD, Link, PROTOCOL, Peer, SECOND, World, grant, over_seeds};
use prescient_channels::*;
use prescient_transport::*;

const BAD: Link = Link {
    loss: 10,
    delayed: 30,
    delay: 100_000,
    ..GOOD
};

/// All clients reconnect as soon as they are closed, with a new token each time, and new clients
/// connect, too.
///
/// Fails if `close_all` admits new clients (without `self.closing = true`): the server never ends.
#[test]
fn whoever_comes_back_is_told_that_it_closes() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, if seed % 2 == 0 { GOOD } else { BAD });
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        // A client whose accept packet is still in flight.
        world.join();
        let half_in = |world: &World| world.server.footprint().connections == 4;
        assert!(world.run_until(SECOND, half_in));
        let now = world.server_time();
        world.server.close_all(CloseReason::ShuttingDown, now);
        let end = world.now + 1_000_000;
        let mut denied = 0;
        while world.server.next_timeout().is_some() {
            assert!(world.now < end, "it goes on");
            let over = |peer: &Peer| peer.closed().is_some() || peer.error().is_some();
            let step = |world: &World| {
                world.server.next_timeout().is_none() || world.peers.iter().any(over)
            };
            world.run_until(Duration::from_micros(end - world.now), step);
            for number in 0..world.peers.len() {
                if over(&world.peers[number]) {
                    denied += u32::from(is_denied(&world.peers[number]));
                    come_back(&mut world, number);
                }
            }
        }
        assert_eq!(world.server.footprint().connections, 0);
        assert_eq!(world.closed().len(), 3, "all that were there left");
        // The remaining clients are denied, since the server is still polled.
        world.run_for(SECOND);
        let left = world.peers.iter().filter(|peer| is_denied(peer)).count();
        assert_ne!(denied as usize + left, 0);
        let others = |peer: &&Peer| peer.error().is_some() && !is_denied(peer);
        assert_eq!(world.peers.iter().filter(others).count(), 0);
    });
}

fn is_denied(peer: &Peer) -> bool {
    peer.error() == Some(ConnectError::Denied(Denial::Closing))
}

fn come_back(world: &mut World, number: usize) {
    let token = world.issue(&grant(number as u64));
    let (link, now) = (LinkConfig::default(), world.client_time());
    let client = Client::connect(token, PROTOCOL, link, &mut world.random, now);
    world.peers[number].client = client.expect("the same protocol");
    world.peers[number].events.clear();
}
