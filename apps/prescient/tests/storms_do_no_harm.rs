//! `prescient scenario storm` on a small scale.

use std::process::Command;

use serde_json::Value;

/// Fails if a client keeps entities that left (`Client::follow` without `leave`), or with any other
/// of the mutations that `./check storm` was tried with.
#[test]
fn nobody_sees_or_hears_what_was_never_so() {
    let output = Command::new(env!("CARGO_BIN_EXE_prescient"))
        .args(["scenario", "storm", "--seeds", "20", "--json"])
        .output()
        .expect("the binary of this package");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let line = text.lines().last().expect("a line");
    let report: Value = serde_json::from_str(line).expect("an object");
    let keys: Vec<_> = report.as_object().expect("an object").keys().collect();
    let promised = [
        "seeds",
        "packets",
        "divergences",
        "events_lost",
        "events_doubled",
        "leaks",
        "failures",
    ];
    assert_eq!(keys, promised);
    assert!(report["packets"].as_u64() > Some(10_000), "{report}");
    for count in &promised[2..] {
        assert_eq!(report[count], 0, "{report}");
    }
}

/// Seeds wrap around. Fails if the last seed takes the place of those after it
/// (`seed.saturating_add`), if they are left out, or if a run without any seed succeeds.
#[test]
fn the_last_seeds_are_played_and_nothing_is_no_success() {
    let storm = |seed: u64, seeds: &str| {
        Command::new(env!("CARGO_BIN_EXE_prescient"))
            .args(["scenario", "storm", "--seed", &seed.to_string()])
            .args(["--seeds", seeds, "--json"])
            .output()
            .expect("the binary of this package")
    };
    let packets = |seed, seeds| {
        let output = storm(seed, seeds);
        assert!(output.status.success());
        let report: Value = serde_json::from_slice(&output.stdout).expect("an object");
        report["packets"].as_u64().expect("a number")
    };
    let (last, first, second) = (packets(u64::MAX, "1"), packets(0, "1"), packets(1, "1"));
    assert!(last > 100 && first > 100 && second > 100);
    assert_ne!(last, first);
    assert_eq!(packets(u64::MAX, "2"), last + first);
    assert_eq!(packets(u64::MAX, "3"), last + first + second);
    let nothing = storm(1, "0");
    assert!(!nothing.status.success());
    let error = String::from_utf8_lossy(&nothing.stderr);
    assert!(error.contains("nothing was played"), "{error}");
}

/// A seed reproduces its storm. Fails if a clock or the order of a hash map decides anything.
#[test]
fn a_seed_is_the_same_storm_each_time() {
    let run = || {
        let output = Command::new(env!("CARGO_BIN_EXE_prescient"))
            .args(["scenario", "storm", "--seed", "7", "--seeds", "3", "--json"])
            .output();
        output.expect("the binary of this package").stdout
    };
    assert_eq!(run(), run());
}
