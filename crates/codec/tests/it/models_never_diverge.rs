//! The test of the learning scheme: thousands of seeds of loss, lost acknowledgements, reordering,
//! duplication, corruption and blackout, with the digests of both models compared after every
//! packet and every value compared with the true one.
//!
//! Mutations tried: folding in arrival order (fails), folding unacknowledged packets (fails),
//! keeping in-packet adaptation (fails), ignoring exclusions (fails).

use crate::common::{Random, Trouble, config, is_chance, quiet, run, run_from, setting, trained};
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
    let priors = [Profile::Default, Profile::Best].map(|profile| trained(1 << 40, 300, profile));
    for seed in first..first + seeds {
        let trouble = Trouble::random(&mut Random::new(seed));
        let profile = if seed % 5 == 4 {
            Profile::Best
        } else {
            Profile::Default
        };
        let prior = priors.iter().find(|prior| prior.profile() == profile);
        let prior = prior.filter(|_| seed % 3 == 1);
        let config = config(Policy::Confirmed, profile);
        let run = run_from(prior, seed, 400, trouble, config);
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

#[test]
fn stateless_packets_may_rest_on_a_prior() {
    let prior = trained(77, 300, Profile::Default);
    let config = config(Policy::Stateless, Profile::Default);
    let trouble = Trouble {
        loss: 50,
        ..quiet()
    };
    let (mut with, mut without) = (0, 0);
    for seed in 0..5 {
        let prior_run = run_from(Some(&prior), seed, 200, trouble, config);
        assert!(prior_run.applied > 20);
        with += prior_run.bytes;
        without += run(seed, 200, trouble, config).bytes;
    }
    println!("{with} bytes with a prior, {without} without");
    assert!(with < without, "{with} of {without} bytes");
}
