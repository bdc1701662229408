//! How coarse and how rare entities of each priority are.
//!
//! A ladder of steps, the least harmful first: each makes the entities of one priority one level
//! coarser, or halves how often they are sent. Steps are taken until what a tick needs fits its
//! packet, several at once if it is far from fitting; they are taken back as soon as it would fit
//! without. Between two adjustments a few ticks pass, so that their effect is seen.

use prescient_codec::{Quality, Tick};
use prescient_schema::Priority;

/// The present plan of one peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    step: usize,
    /// Smoothed bytes that a tick needs.
    demand: u64,
    adjusted: Option<Tick>,
}

impl Plan {
    /// How many steps are taken.
    pub(crate) fn step(&self) -> usize {
        self.step
    }

    /// Notes that the last tick needed `demand` bytes of `message`; true if the plan changed.
    pub(crate) fn adjust(&mut self, demand: usize, message: usize, now: Tick) -> bool {
        let demand = demand as u64;
        self.demand = match self.demand {
            0 => demand,
            old => (old.saturating_mul(3).saturating_add(demand)) / 4,
        };
        let is_early = |at: Tick| now.since(at) < SETTLES;
        if self.adjusted.is_some_and(is_early) || message == 0 {
            return false;
        }
        let room = message as u64;
        let before = self.step;
        if self.demand.saturating_mul(100) > room.saturating_mul(TOO_MUCH) {
            let excess = self.demand.saturating_mul(100) / room.max(1) - 100;
            self.step = (self.step + steps_for(excess)).min(LADDER.len());
        } else if self.demand.saturating_mul(100) < room.saturating_mul(ENOUGH) {
            let spare = room.saturating_mul(100) / self.demand.max(1) - 100;
            self.step -= steps_for(spare).min(self.step);
        }
        if self.step != before {
            self.adjusted = Some(now);
        }
        self.step != before
    }

    /// The quality of the present steps.
    pub(crate) fn quality(&self) -> Quality {
        let mut quality = Quality::FULL;
        for &(number, is_coarser) in &LADDER[..self.step] {
            let Some(priority) = Priority::new(number) else {
                continue;
            };
            quality = match is_coarser {
                true => quality.with_level_bias(priority, quality.level_bias(priority) + 1),
                false => quality.with_rate_divisor(priority, quality.rate_divisor(priority) * 2),
            };
        }
        quality
    }
}

/// How many steps a difference of so many hundredths is worth.
fn steps_for(hundredths: u64) -> usize {
    match hundredths {
        0..12 => 1,
        12..30 => 2,
        30..60 => 3,
        60..100 => 5,
        _ => 7,
    }
}

/// What a rate yields in a span of microseconds.
pub(super) fn yield_of(rate: u64, micros: u64) -> usize {
    let bytes = u128::from(rate) * u128::from(micros) / 1_000_000;
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// For each step the priority, and whether its entities become coarser or rarer.
const LADDER: [(u8, bool); 15] = [
    (3, true),
    (2, true),
    (3, true),
    (1, true),
    (2, true),
    (3, false),
    (3, true),
    (2, false),
    (1, true),
    (2, true),
    (3, false),
    (1, false),
    (2, false),
    (1, true),
    (3, false),
];
/// Ticks until the effect of an adjustment is seen.
const SETTLES: u64 = 4;
/// A step is taken above this share of the room, in hundredths, and taken back below the other.
const TOO_MUCH: u64 = 130;
const ENOUGH: u64 = 90;

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Priority> {
        (0..4).filter_map(Priority::new)
    }

    /// Fails if a step names priority 0, or if one makes anything finer or more frequent.
    #[test]
    fn every_step_is_possible_and_spares_priority_zero() {
        let mut before = Quality::FULL;
        for step in 0..=LADDER.len() {
            let plan = Plan {
                step,
                ..Plan::default()
            };
            let quality = plan.quality();
            assert_eq!(quality.check(), Ok(()), "step {step}");
            for priority in all() {
                assert!(quality.level_bias(priority) >= before.level_bias(priority));
                assert!(quality.rate_divisor(priority) >= before.rate_divisor(priority));
            }
            before = quality;
        }
    }

    /// A tick needs 300 bytes, a twentieth less with every step; the packet holds 160 for a while.
    /// Fails if steps are never taken back, or only one at a time.
    #[test]
    fn a_plan_fits_and_is_taken_back_soon() {
        let mut plan = Plan::default();
        let run = |plan: &mut Plan, from: u64, to: u64, message: usize| {
            for tick in from..to {
                let demand = 300 * (100 - 4 * plan.step()) / 100;
                plan.adjust(demand, message, Tick(tick));
            }
        };
        run(&mut plan, 0, 60, 160);
        let needed = 300 * (100 - 4 * plan.step()) / 100;
        assert!(needed <= 160 * TOO_MUCH as usize / 100, "{needed}");
        run(&mut plan, 60, 90, 400);
        assert_eq!(plan.step(), 0);
    }
}
