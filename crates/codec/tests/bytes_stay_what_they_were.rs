//! The wire format is that of `vectors/codec/v4`: the encoder writes those bytes, and the decoder
//! reads them. If this fails without an intended change of the format, fix the code; vectors are
//! never rewritten to make a test pass.

#[path = "common/scenarios.rs"]
mod scenarios;

use prescient_codec::{DecodeError, Decoder, HISTORY, NetEntityId, Policy, Slot, history::Archive};
use prescient_schema::{Level, Library};
use scenarios::{SCENARIOS, Scenario, World, rows_digest, unhex};

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
        let mut decoder = Decoder::new(scenario.schema(), scenario.config());
        let mut last = Vec::new();
        for line in kept(&scenario).lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [sequence, tick, full, outcome, model, rows, bytes] = words[..] else {
                panic!("{line}");
            };
            let bytes = unhex(bytes);
            if outcome == "kept" {
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

/// The vectors must contain every feature of the format.
#[test]
fn everything_happens_in_the_vectors() {
    for scenario in SCENARIOS {
        let text = kept(&scenario);
        let name = scenario.name;
        assert!(text.contains(" full kept "), "{name}");
        let lossy = scenario.policy != Policy::Immediate;
        assert_eq!(text.contains(" full lost "), lossy, "{name}");
        // A long header, apart from the first ones, starts a new epoch.
        let epochs = text.lines().filter(|line| {
            let bytes = unhex(line.split(' ').next_back().unwrap());
            bytes[0] & 0x90 == 0x90 && bytes[1] == 1
        });
        let confirmed = scenario.policy == Policy::Confirmed;
        assert_eq!(epochs.count() > 0, confirmed, "{name}");
        if scenario.world == World::Crew {
            let cut = scenario.policy != Policy::Stateless;
            assert_eq!(text.contains(" part kept "), cut, "{name}");
            all_of_a_crew_is_shown(&scenario, text);
        }
    }
    assert!(kept(&SCENARIOS[0]).contains(" part kept "));
}

/// Containers of every kind are empty and not, references are empty and not, and the first rocket
/// is sent at every level.
fn all_of_a_crew_is_shown(scenario: &Scenario, text: &str) {
    let schema = scenario.schema();
    let mut decoder = Decoder::new(schema.clone(), scenario.config());
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let [sailor, rocket] = [0, 1].map(|class| &schema.classes[class].fields);
    let mut held = vec![[false; 2]; sailor.len()];
    let mut levels = [false; 4];
    for (time, line) in (1..).zip(text.lines()) {
        scenario.capture(&mut archive, time);
        if !line.contains(" kept ") {
            continue;
        }
        let bytes = unhex(line.split(' ').next_back().unwrap());
        decoder.decode(&bytes).unwrap();
        let world = decoder.world();
        for slot in world
            .living_slots()
            .filter(|slot| world.class(*slot) == Some(0))
        {
            for (at, &cell) in world.latest(slot).unwrap().iter().enumerate() {
                held[at][usize::from(cell != 0)] = true;
                if sailor[at].kind.container().is_some() && cell != 0 {
                    assert_eq!(world.content(cell).unwrap().cell(), cell);
                }
            }
        }
        let truth = archive.latest(Slot(3)).unwrap();
        let shown = decoder.row(NetEntityId(3)).unwrap();
        let at = |level: &usize| -> Vec<i64> {
            let level = Level::new(*level as u8).unwrap();
            let cells = rocket.iter().zip(truth);
            cells
                .map(|(field, &cell)| field.at_level(level, cell))
                .collect()
        };
        levels[(0..4).find(|level| at(level) == shown).unwrap_or(0)] = true;
    }
    for (field, [nothing, something]) in sailor.iter().zip(held) {
        let always = ["origin", "crew"].contains(&&*field.name);
        assert!(
            something && (nothing || always),
            "{}: {}",
            scenario.name,
            field.name
        );
    }
    let coarse = scenario.policy != Policy::Stateless;
    assert_eq!(levels, [true, coarse, coarse, coarse], "{}", scenario.name);
}

/// The vectors are part of the program, so that it runs where there are no files.
macro_rules! golden {
    ($($name:literal)*) => {
        [$((
            $name,
            include_str!(concat!("../../../vectors/codec/v4/", $name, ".txt")),
        )),*]
    };
}

const GOLDEN: [(&str, &str); SCENARIOS.len()] = golden![
    "confirmed" "confirmed_best" "immediate" "immediate_best" "stateless" "stateless_best"
    "crew_confirmed" "crew_confirmed_best" "crew_immediate" "crew_immediate_best"
    "crew_stateless" "crew_stateless_best"
];

fn kept(scenario: &Scenario) -> &'static str {
    let found = GOLDEN.iter().find(|(name, _)| *name == scenario.name);
    found.expect("every scenario has vectors").1
}
