//! A fixed workload for counting instructions: `.ci/instructions` runs it under callgrind.
//!
//! Times on a shared machine do not show a change of a few per cent; instruction counts are the
//! same in every run. Only `counted_capture`, `counted_encode` and `counted_decode` are counted,
//! over some ticks of a settled connection.

use prescient_sim::{
    rig::{Rig, Route},
    world::{Scene, Script, Walkers},
};

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let source = match name.as_str() {
        "particles" => "world:particles?count=300",
        "rts" => "world:rts?count=300",
        "idle" => "world:idle?count=1000&moving=100",
        "walkers" => return walkers(),
        _ => {
            eprintln!("usage: instructions particles|rts|idle|walkers");
            std::process::exit(2);
        }
    };
    let script = Script::read(&format!("{source}&ticks={}", SETTLED + COUNTED));
    let script = script.expect("the world is built in");
    let rig = count(Rig::new(&script.schema, 1), &script);
    assert_eq!(rig.shown(0), script.last_rows());
}

/// A client as in `prescient swarm`: a hundred visible entities of two thousand, a round trip of
/// four ticks, one packet in twenty lost.
fn walkers() {
    let walkers = Walkers {
        count: 2000,
        ticks: SETTLED + COUNTED,
    };
    let route = Route {
        budget: Some(1200),
        delay: 3,
        loss: 20,
    };
    let script = walkers.script();
    let rig = Rig::new(&script.schema, 1);
    // Ten rows of ten on a grid of 44.
    let rig =
        rig.see_only(|number| (15..25).contains(&(number % 44)) && (660..1100).contains(&number));
    let rig = count(rig.over(route), &script);
    assert_eq!(rig.shown(0).len(), 100);
}

fn count(mut rig: Rig, script: &Script) -> Rig {
    let (settling, counted) = script.scenes.split_at(SETTLED);
    for scene in settling {
        rig.play(scene);
    }
    for scene in counted {
        counted_capture(&mut rig, scene);
        counted_encode(&mut rig);
        counted_decode(&mut rig);
    }
    rig
}

#[inline(never)]
fn counted_capture(rig: &mut Rig, scene: &Scene) {
    rig.capture(scene);
}

#[inline(never)]
fn counted_encode(rig: &mut Rig) {
    rig.acknowledge();
    rig.encode();
}

#[inline(never)]
fn counted_decode(rig: &mut Rig) {
    rig.decode();
}

/// Longer than it takes until idle entities are at rest.
const SETTLED: usize = 90;
const COUNTED: usize = 30;
