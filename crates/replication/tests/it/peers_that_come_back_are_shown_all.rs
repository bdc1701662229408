//! Cases 9 and 11: silent peers are sent less and less state, and all of it once they resume.

use crate::common;

use crate::common::battle::Battle;
use crate::common::{TestWorld, good};
use prescient_replication::{Everything, PeerId};
use prescient_sim::link::Conditions;
use prescient_tests::seeds::over_seeds;

/// A link that loses everything.
fn down() -> Conditions {
    good().with_loss(1_000_000)
}

/// Three clients that have played a battle for a while.
fn play(seed: u64) -> (Battle, TestWorld) {
    let mut battle = Battle::new();
    let mut test_world = TestWorld::new(seed, 3, good(), Everything);
    for _ in 0..60 {
        battle.step(&mut test_world);
        test_world.exchange();
        battle.check(&test_world);
    }
    (battle, test_world)
}

fn packets(test_world: &TestWorld) -> [u64; 3] {
    let packets = |peer| {
        let statistics = test_world.server.statistics(PeerId(peer));
        statistics.expect("it is there").packets
    };
    [1, 2, 3].map(packets)
}

/// Runs until all clients show the complete tick before the last, which is the latency of the
/// links.
fn recover(battle: &mut Battle, test_world: &mut TestWorld, max: u32) {
    for _ in 0..max {
        battle.step(test_world);
        test_world.exchange();
        let now = test_world.tick;
        let is_shown = |test_client: &common::TestClient| {
            test_client
                .client
                .tick()
                .is_some_and(|tick| tick.0 + 1 >= now.into())
                && battle.agrees(test_client)
        };
        if test_world.clients.iter().all(is_shown) {
            return;
        }
    }
    panic!("not within {max} ticks");
}

/// Runs on and asserts that clients show only true states.
fn go_on(battle: &mut Battle, test_world: &mut TestWorld) {
    for _ in 0..60 {
        battle.step(test_world);
        test_world.exchange();
        battle.check(test_world);
    }
}

/// A blackout of 30 seconds at 30 Hz: few packets are encoded meanwhile, and a client that resumes
/// shows everything after a round trip and one more packet. Fails if `Pace::turn` is always `Full`,
/// or if `Pace::resume` does nothing (then it takes a second).
#[test]
fn a_blackout_ends_with_the_next_tick() {
    over_seeds(20, |seed| {
        let (mut battle, mut test_world) = play(seed);
        let now = test_world.now();
        for test_client in &mut test_world.clients {
            test_client.down.change(now, down());
            test_client.up.change(now, down());
        }
        let before = packets(&test_world);
        for _ in 0..900 {
            battle.step(&mut test_world);
            test_world.exchange();
        }
        let after = packets(&test_world);
        for (before, after) in before.into_iter().zip(after) {
            assert!(after - before <= 120, "{} packets", after - before);
        }
        test_world.heal();
        for peer in (1..=3).map(PeerId) {
            test_world.server.resume(peer).expect("it is there");
        }
        recover(&mut battle, &mut test_world, 5);
        go_on(&mut battle, &mut test_world);
    });
}

/// The same without a notice that a peer resumed: a probe finds out within a second. Fails if
/// `Pace::turn` clamps the pause to more than `probe_every`, or if `Encoder::settle` checks only
/// the window (an acknowledgement of a packet whose log was dropped, `oldest` left out of `floor`).
#[test]
fn a_probe_finds_peers_that_resumed() {
    over_seeds(20, |seed| {
        let (mut battle, mut test_world) = play(seed);
        let now = test_world.now();
        test_world.clients.iter_mut().for_each(|test_client| {
            test_client.up.change(now, down());
        });
        let silence = 100 + seed as u32 * 40;
        for _ in 0..silence {
            battle.step(&mut test_world);
            test_world.exchange();
        }
        test_world.heal();
        recover(&mut battle, &mut test_world, 35);
        go_on(&mut battle, &mut test_world);
    });
}
