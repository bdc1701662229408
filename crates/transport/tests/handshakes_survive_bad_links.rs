//! Connecting where little gets through.

mod common;

use std::time::Duration;

use common::{GOOD, Link, World, seeds};

/// Fails if requests are not repeated (`*next = now.after(self.config.retry)` in
/// `Client::handle_timeout` with a minute), and if a refusal does not cover what was asked
/// (`mac(key, &[&bytes])` in `write_denied` and `read_denied`) some clients are told that they
/// speak another version.
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
