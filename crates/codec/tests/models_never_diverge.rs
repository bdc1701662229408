//! The proof of the learning scheme: thousands of seeds of loss, lost acknowledgements, reorder,
//! duplication, corruption and blackout, with the digests of both models compared after every
//! packet and every value compared with the truth.
//!
//! Mutations tried: folding in arrival order (fails), folding unacknowledged packets (fails),
//! leaving in-packet adaptation in place (fails), ignoring exclusions (fails).

mod common;

use common::{Random, Trouble, config, is_chance, quiet, run, setting};
use prescient_codec::{Policy, Profile};

#[test]
fn a_quiet_link_folds_every_packet() {
    let run = run(1, 600, quiet(), config(Policy::Confirmed, Profile::Default));
    let statistics = run.encoder.statistics();
    assert_eq!(run.applied, run.packets);
    assert_eq!(statistics.applied, statistics.folded);
    assert!(statistics.folded + 2 >= run.packets as u64);
    assert_eq!(statistics.resyncs, 0);
}

#[test]
fn any_trouble_leaves_both_models_identical() {
    let seeds = setting(
        "PRESCIENT_SEEDS",
        if cfg!(debug_assertions) { 12 } else { 300 },
    );
    let first = setting("PRESCIENT_SEED", 0);
    let (mut checked, mut fooled) = (0, 0);
    for seed in first..first + seeds {
        let trouble = Trouble::random(&mut Random::new(seed));
        let profile = if seed % 5 == 4 {
            Profile::Best
        } else {
            Profile::Default
        };
        let run = run(seed, 400, trouble, config(Policy::Confirmed, profile));
        assert!(
            run.applied > 0 || run.fooled > 0 || trouble.loss > 40,
            "seed {seed}: nothing arrived, {trouble:?}"
        );
        if run.fooled > 0 {
            println!("seed {seed}: the check let a damaged packet through");
        }
        checked += run.checked;
        fooled += run.fooled;
    }
    println!("the check let {fooled} of {checked} damaged packets through");
    assert!(is_chance(checked, fooled), "{fooled} of {checked}");
}

#[test]
fn streams_learn_at_once_and_agree() {
    for seed in 0..20 {
        let run = run(
            seed,
            400,
            quiet(),
            config(Policy::Immediate, Profile::Default),
        );
        assert_eq!(run.encoder.statistics().folded, run.packets as u64);
    }
}

#[test]
fn stateless_packets_serve_anybody_in_any_company() {
    for seed in 0..20 {
        let trouble = Trouble {
            loss: 50,
            jitter: 3,
            ..quiet()
        };
        let run = run(
            seed,
            200,
            trouble,
            config(Policy::Stateless, Profile::Default),
        );
        assert_eq!(run.encoder.statistics().folded, 0);
        assert!(run.applied > 20);
    }
}
