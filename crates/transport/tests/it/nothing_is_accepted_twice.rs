//! Half of all packets are duplicated, up to a minute late and in any order, some of them at the
//! edge of the replay window.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::{GOOD, Link, World, over_seeds};

/// Fails if `PacketProtection::open` does not record what it accepted
/// (`self.replay.accept(sequence)`), or if `Replay::is_new` accepts packets behind the window
/// (`is_behind(sequence) ||` instead of `!is_behind(sequence) &&`).
#[test]
fn replays_up_to_a_minute_late_are_dropped() {
    over_seeds(20, |seed| {
        let link = Link {
            delayed: 30,
            delay: 100_000,
            duplicated: 50,
            repeat: 60_000_000,
            ..GOOD
        };
        let mut world = World::new(seed, link);
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        for number in 0..2500u32 {
            for peer in 0..3 {
                let up = [number.to_le_bytes(), (peer as u32).to_le_bytes()].concat();
                world.client_send(peer, &up).expect("connected");
                let connection = world.connection_of(peer).expect("connected");
                world.server_send(connection, &up).expect("connected");
            }
            world.run_for(Duration::from_millis(16));
        }
        world.run_for(Duration::from_secs(61));
        let up: Vec<_> = world.received();
        assert_eq!(up.len(), 7500, "all arrive, none twice");
        assert_eq!(up.iter().collect::<BTreeSet<_>>().len(), 7500);
        // Of an old packet, the low byte of its number means a newer one.
        let (mut replayed, mut dropped) = (0, 0);
        for peer in 0..3 {
            let down = world.peers[peer].messages();
            assert_eq!(down.len(), 2500);
            assert_eq!(down.iter().collect::<BTreeSet<_>>().len(), 2500);
            let connection = world.connection_of(peer).expect("still connected");
            let statistics = world.server_statistics(connection);
            replayed += statistics.duplicate;
            dropped += statistics.duplicate + statistics.forged;
        }
        assert!(replayed > 100, "{replayed} replays were seen");
        assert!(dropped > 3000, "{dropped} packets were dropped");
    });
}
