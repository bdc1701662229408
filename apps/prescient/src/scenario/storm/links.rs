//! Links that lose, delay, reorder, duplicate and corrupt packets, and change over time.

use std::time::Duration;

use prescient_sim::link::Conditions;

use super::dice::Dice;

/// A good link.
pub(super) fn good() -> Conditions {
    Conditions::default().with_latency(Duration::from_millis(12))
}

/// A random link.
pub(super) fn random(dice: &mut Dice) -> Conditions {
    let millis = |dice: &mut Dice, max| Duration::from_millis(1 + dice.below(max) as u64);
    let share = |dice: &mut Dice, percent: usize| 10_000 * dice.below(percent + 1) as u32;
    let mut link = Conditions::default().with_latency(millis(dice, 70));
    if dice.of_thousand(400) {
        link = match dice.below(2) {
            0 => link.with_jitter(millis(dice, 60)),
            _ => link.with_reordering_jitter(millis(dice, 60)),
        };
    }
    if dice.of_thousand(500) {
        link = link.with_loss(share(dice, 40));
    }
    if dice.of_thousand(250) {
        link = link.with_bursts(share(dice, 20), 2 + dice.below(6) as u32);
    }
    if dice.of_thousand(300) {
        link = link.with_reordering(share(dice, 50), millis(dice, 200));
    }
    if dice.of_thousand(300) {
        link = link.with_duplication(share(dice, 50), millis(dice, 400));
    }
    if dice.of_thousand(300) {
        link = link.with_corruption(share(dice, 30));
    }
    if dice.of_thousand(100) {
        link = link.with_bandwidth(64_000 + 1000 * dice.below(1000) as u64);
        link = link.with_queue_limit(20_000);
    }
    if dice.of_thousand(100) {
        link = link.with_mtu(1200 + dice.below(300));
    }
    link
}
