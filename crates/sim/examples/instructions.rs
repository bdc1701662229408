//! A fixed piece of work to count instructions of: `.ci/instructions` runs it under callgrind.
//!
//! Time on a shared machine says too little about a change of a few per cent; instructions are the
//! same in every run. Only what happens inside `counted_capture`, `counted_encode` and
//! `counted_decode` is counted: some ticks of a connection that has settled.

use prescient_sim::{
    rig::Rig,
    world::{Scene, Script},
};

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let source = match name.as_str() {
        "particles" => "world:particles?count=300",
        "rts" => "world:rts?count=300",
        "idle" => "world:idle?count=1000&moving=100",
        _ => {
            eprintln!("usage: instructions particles|rts|idle");
            std::process::exit(2);
        }
    };
    let script = Script::read(&format!("{source}&ticks={}", SETTLED + COUNTED));
    let script = script.expect("the world is built in");
    let mut rig = Rig::new(&script.schema, 1);
    let (settling, counted) = script.scenes.split_at(SETTLED);
    for scene in settling {
        rig.play(scene);
    }
    for scene in counted {
        counted_capture(&mut rig, scene);
        counted_encode(&mut rig);
        counted_decode(&mut rig);
    }
    assert_eq!(rig.shown(0), script.last_rows());
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

/// Longer than it takes entities to come to rest.
const SETTLED: usize = 90;
const COUNTED: usize = 30;
