//! Clocks that jump, and machines that are suspended. No connection ends unnecessarily.

use crate::common;

use std::time::Duration;

use crate::common::{GOOD, SECOND, UNIX, World, over_seeds};
use prescient_channels::CloseReason;
use prescient_transport::UnixTime;

const HOUR: i64 = 3_600_000_000;

fn world(seed: u64) -> World {
    let mut world = World::new(seed, GOOD);
    for _ in 0..3 {
        world.join();
    }
    world.connect_all();
    world.run_for(3 * SECOND);
    world
}

fn all_is_well(world: &mut World) {
    assert_eq!(world.closed(), []);
    for peer in 0..3 {
        let connection = world.connection_of(peer).expect("connected");
        let before = world.peers[peer].messages().len();
        world.server_send(connection, b"state").expect("connected");
        world.client_send(peer, b"input").expect("connected");
        world.run_for(SECOND);
        assert_eq!(world.peers[peer].messages().len(), before + 1);
        assert_eq!(world.peers[peer].closed(), None);
    }
}

/// Fails if a step of the caller's clock counts in full (`AttendedClock::advance` without
/// `.min(self.max_step)`).
#[test]
fn an_hour_forward_or_back_ends_nothing() {
    over_seeds(20, |seed| {
        let mut world = world(seed);
        for ahead in [HOUR, 0, -HOUR, 0, 1 << 49, 0, -(1 << 49), 0] {
            world.server_ahead = ahead;
            world.run_for(2 * SECOND);
            all_is_well(&mut world);
            world.client_ahead = ahead;
            world.run_for(2 * SECOND);
            all_is_well(&mut world);
        }
    });
}

/// The server's machine is suspended for ten minutes; datagrams of clients wait in its socket.
/// Fails for the same mutation, since timers run before the socket is read. Nor is a client
/// reported as silent, which fails if a step may be three keep-alives long
/// (`LinkConfig::max_step`).
#[test]
fn ten_minutes_of_sleep_end_nothing_that_woke_together() {
    over_seeds(20, |seed| {
        let mut world = world(seed);
        // Varies the time since the last packet.
        world.run_for(Duration::from_millis(seed * 49));
        world.now += 600_000_000;
        world.run_for(5 * SECOND);
        all_is_well(&mut world);
        assert_eq!(world.silences(), 0);
    });
}

/// A client that is gone is still detected. Fails if steps do not count at all.
#[test]
fn silence_is_noticed_in_time() {
    over_seeds(20, |seed| {
        let mut world = world(seed);
        world.link.loss = 100;
        world.run_for(59 * SECOND);
        assert_eq!(world.closed(), []);
        assert_eq!(world.silences(), 3);
        world.run_for(2 * SECOND);
        assert_eq!(world.closed().len(), 3);
        assert!(
            world
                .closed()
                .iter()
                .all(|(_, reason)| *reason == CloseReason::TimedOut)
        );
        for peer in &world.peers {
            assert_eq!(peer.closed(), Some(CloseReason::TimedOut));
            assert_eq!(peer.client.next_timeout(), None);
        }
        assert_eq!(world.server.next_timeout(), None);
        assert_eq!(world.server.footprint().connections, 0);
    });
}

/// A client whose clock runs a thousandth faster, for ten minutes. Fails if no keep-alives are sent
/// meanwhile (`keep_alive` of a minute in `LinkConfig::default`).
#[test]
fn a_skew_of_a_thousandth_ends_nothing() {
    let mut world = world(1);
    for _ in 0..1200 {
        world.client_ahead += 500;
        world.run_for(Duration::from_millis(500));
    }
    all_is_well(&mut world);
}

/// The wall clock affects new tokens only. Fails if `UsedTokens::is_expired` leaves out `forgotten`
/// (`expires <= unix`): an hour forward and back would make a used token valid again.
#[test]
fn a_wall_clock_that_leaps_ends_nothing_and_revives_no_token() {
    over_seeds(20, |seed| {
        let mut world = world(seed);
        let token = world.issue(&common::grant(3));
        let link = prescient_transport::LinkConfig::default();
        let first = world.join_with(token.clone(), link.clone(), "10.1.0.1:1");
        world.run_for(SECOND);
        assert!(world.peers[first].connected());
        for unix in [UNIX.0 + 3600, UNIX.0 - 3600, 0, u64::MAX] {
            world.unix = UnixTime(unix);
            // A handshake, so that the server is given the new time.
            let knock = world.issue(&common::grant(4));
            world.join_with(
                knock,
                link.clone(),
                &format!("10.2.0.1:{}", unix % 1000 + 1),
            );
            world.run_for(2 * SECOND);
            assert_eq!(world.closed(), []);
        }
        world.unix = UNIX;
        let again = world.join_with(token, link.clone(), "10.1.0.2:1");
        world.run_for(12 * SECOND);
        assert!(!world.peers[again].connected());
        // A token that was issued since is valid, however far the clock had jumped.
        let mut fresh = common::grant(5);
        fresh.expires = UnixTime(UNIX.0 + 31);
        let fresh = world.issue(&fresh);
        let new = world.join_with(fresh, link, "10.1.0.3:1");
        world.run_for(SECOND);
        assert!(world.peers[new].connected());
    });
}
