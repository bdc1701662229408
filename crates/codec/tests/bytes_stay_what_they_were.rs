//! The wire format is what `vectors/codec/v2` says: today's encoder writes those bytes, and
//! today's decoder understands them. If this fails and you did not mean to change the format,
//! mend the code; the vectors are never written anew to make a test pass.

#[path = "common/scenarios.rs"]
mod scenarios;

use prescient_codec::{DecodeError, Decoder};
use scenarios::{SCENARIOS, Scenario, rows_digest, schema, unhex};

#[test]
fn the_same_world_becomes_the_same_bytes() {
    let mut packets = 0;
    for scenario in SCENARIOS {
        let played = scenario.play();
        let kept = kept(&scenario);
        for (line, (now, then)) in played.lines().zip(kept.lines()).enumerate() {
            assert_eq!(now, then, "{}, line {}", scenario.name, line + 1);
        }
        assert_eq!(played.lines().count(), kept.lines().count());
        packets += kept.lines().count();
    }
    println!("compared: {packets} packets written");
}

#[test]
fn the_same_bytes_become_the_same_world() {
    let mut packets = 0;
    for scenario in SCENARIOS {
        let mut decoder = Decoder::new(schema(), scenario.config());
        let mut last = Vec::new();
        for line in kept(&scenario).lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [sequence, tick, full, fate, model, rows, bytes] = words[..] else {
                panic!("{line}");
            };
            let bytes = unhex(bytes);
            if fate == "kept" {
                let done = decoder.decode(&bytes).unwrap();
                assert_eq!(done.sequence.0.to_string(), sequence);
                assert_eq!(done.tick.0.to_string(), tick);
                assert_eq!(done.full, full == "full");
                last = bytes;
                packets += 1;
            }
            assert_eq!(format!("{:016x}", decoder.digest()), model, "{line}");
            assert_eq!(format!("{:016x}", rows_digest(&decoder)), rows, "{line}");
        }
        assert_eq!(decoder.decode(&last), Err(DecodeError::Late));
    }
    println!("compared: {packets} packets read");
}

/// The vectors are worth little unless everything happens in them.
#[test]
fn everything_happens_in_the_vectors() {
    let confirmed = kept(&SCENARIOS[0]);
    for mark in [" full kept ", " part kept ", " full lost "] {
        assert!(confirmed.contains(mark), "{mark}");
    }
    // A long header, apart from the first ones, is a new epoch.
    let epochs = confirmed.lines().filter(|line| {
        let bytes = unhex(line.split(' ').next_back().unwrap());
        bytes[0] == 0 && bytes[1] == 1
    });
    assert!(epochs.count() > 0);
}

fn kept(scenario: &Scenario) -> String {
    let path = scenario.path();
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
