//! Runs tests over many seeds, so that a failing one can be replayed.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds to try: `PRESCIENT_SEEDS` of them from `PRESCIENT_SEED` on.
pub fn seeds(usual: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let start = number("PRESCIENT_SEED").unwrap_or(0);
    start..start + number("PRESCIENT_SEEDS").unwrap_or(usual)
}

/// Runs a case over seeds and names the one that fails.
pub fn over_seeds(usual: u64, case: impl Fn(u64)) {
    for seed in seeds(usual) {
        if catch_unwind(AssertUnwindSafe(|| case(seed))).is_err() {
            panic!("seed {seed} fails; PRESCIENT_SEED={seed} PRESCIENT_SEEDS=1 replays it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a failure is swallowed, or the seed not named.
    #[test]
    #[should_panic(expected = "seed 3 fails")]
    fn the_seed_that_fails_is_named() {
        over_seeds(5, |seed| assert_ne!(seed, 3));
    }
}
