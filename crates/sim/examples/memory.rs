//! The memory of a client at the server, as the allocator counts it.
//!
//! `cargo run --release -p prescient-sim --example memory`. An encoder is cloned, and the
//! allocations of the clone are what it holds: model, logs of packets under way, list of entities
//! and scratch space. The schema and the archive are shared, not cloned and not counted.

use std::alloc::System;

use prescient_sim::{rig::Rig, world::Steady};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let fresh = held(&Rig::new(&STEADY.script().schema, 1));
    line(
        "a client that has seen nothing",
        fresh / 1024.0,
        "KiB",
        64.0,
    );
    let few = grown(STEADY);
    let more = grown(Steady {
        entities: STEADY.entities + 1000,
        ..STEADY
    });
    let goal = 64.0 + 4.0 * STEADY.fields as f64;
    line(
        "an active entity of 8 fields",
        (more - few) / 1000.0,
        "B",
        goal,
    );
    let crowd = grown(Steady {
        resting: 1000,
        ..STEADY
    });
    line("an entity at rest", (crowd - few) / 1000.0, "B", 16.0);
}

fn grown(world: Steady) -> f64 {
    let script = world.script();
    let mut rig = Rig::new(&script.schema, 1);
    for scene in &script.scenes {
        rig.play(scene);
    }
    rig.acknowledge();
    held(&rig)
}

fn held(rig: &Rig) -> f64 {
    let region = Region::new(GLOBAL);
    let copy = rig.encoder(0).cloned();
    let change = region.change();
    drop(copy);
    change.bytes_allocated as f64 - change.bytes_deallocated as f64
}

fn line(name: &str, figure: f64, unit: &str, goal: f64) {
    let verdict = if figure <= goal { "met" } else { "not met" };
    println!("{name:<40} {figure:>8.1} {unit:<3}  goal {goal:>5} {unit:<3}  {verdict}");
}

const STEADY: Steady = Steady {
    entities: 500,
    fields: 8,
    moving: 8,
    surprises: 100,
    resting: 0,
    ticks: 300,
};
