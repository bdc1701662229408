//! The codec's cost against its goals: one line per figure with goal and verdict.
//!
//! `cargo run --release -p prescient-sim --example speed`. A price is the difference between two
//! worlds that differ in one thing. Times are those of the fastest tenth of ticks of settled
//! connections on one core, because other processes only ever add to them. Encoding includes
//! handling the acknowledgement; capturing is listed separately because clients share it. Memory is
//! what [`Encoder::model_bytes`](prescient_codec::Encoder::model_bytes) counts; the example
//! `memory` measures allocations.
#![expect(
    clippy::disallowed_methods,
    reason = "an example that measures time has to read the clock"
)]

use std::time::{Duration, Instant};

use prescient_sim::{
    rig::Rig,
    world::{Script, Steady},
};

fn main() {
    surprises();
    quiet();
    rest();
    let particles = world("world:particles", |_| true, 1);
    let rts = world("world:rts", |_| true, 1);
    for (name, times) in [("particles", &particles), ("rts", &rts)] {
        let ratio = times.decode / times.encode;
        line(&format!("decode to encode, {name}"), ratio, "x", 1.3);
    }
    let many = world("world:particles", |_| true, 16);
    let ratio = (many.capture + many.encode) / (particles.capture + particles.encode);
    line("16 clients to one, capture and encode", ratio, "x", 10.0);
    let view = world("world:rts", |number| number % 5 == 0, 1);
    line("packet of 100 units", view.encode / 1e3, "µs", 10.0);
    memory();
    println!("not judged, µs a tick:");
    for (name, times) in [("particles", &particles), ("rts", &rts)] {
        let [capture, encode, decode] =
            [times.capture, times.encode, times.decode].map(|nanos| nanos / 1e3);
        println!("  {name}: capture {capture:.0}, encode {encode:.0}, decode {decode:.0}");
    }
}

fn surprises() {
    let cost = |surprises| {
        let world = Steady {
            surprises,
            ..STEADY
        };
        steady(world).encode
    };
    let quiet = cost(0);
    let all = STEADY.entities * STEADY.moving;
    for share in [4, 16] {
        let surprises = all / share;
        let price = (cost(surprises) - quiet) / surprises as f64;
        let name = format!("a surprising field, one in {share} of them");
        line(&name, price, "ns", 150.0);
    }
}

fn quiet() {
    let cost = |fields, moving| {
        let world = Steady {
            fields,
            moving,
            ..STEADY
        };
        steady(world).encode / STEADY.entities as f64
    };
    let few = cost(4, 2);
    let holding = (cost(16, 2) - few) / 12.0;
    let moving = (cost(16, 16) - cost(16, 2)) / 14.0 + holding;
    line("a quiet field that holds", holding, "ns", 3.0);
    line("a quiet field that moves as expected", moving, "ns", 3.0);
    let entity = few - 2.0 * holding - 2.0 * moving;
    line("a quiet entity besides its fields", entity, "ns", 15.0);
}

fn rest() {
    let cost = |resting| steady(Steady { resting, ..STEADY });
    let (alone, among) = (cost(0), cost(RESTING));
    let price = |with: f64, without: f64| (with - without) / RESTING as f64;
    // The goal is zero; on a shared machine, times below this are noise.
    let noise = 0.1;
    let encode = price(among.encode, alone.encode);
    line("an entity at rest, encode", encode, "ns", noise);
    let capture = price(among.capture, alone.capture);
    line("an entity at rest, capture", capture, "ns", noise);
}

fn memory() {
    let model = |entities, resting| {
        let world = Steady {
            entities,
            resting,
            surprises: 100,
            ..STEADY
        };
        let script = world.script();
        let mut rig = Rig::new(&script.schema, 1);
        for scene in &script.scenes {
            rig.play(scene);
        }
        bytes(&rig)
    };
    let fresh = Rig::new(&STEADY.script().schema, 1);
    let fresh = bytes(&fresh);
    line("model that has seen nothing", fresh / 1024.0, "KiB", 64.0);
    let few = model(500, 0);
    let active = (model(1500, 0) - few) / 1000.0;
    let goal = 64.0 + 4.0 * STEADY.fields as f64;
    line("model, an active entity of 8 fields", active, "B", goal);
    let resting = (model(500, 1000) - few) / 1000.0;
    line("model, an entity at rest", resting, "B", 16.0);
}

fn bytes(rig: &Rig) -> f64 {
    rig.encoder(0).map_or(0, |encoder| encoder.model_bytes()) as f64
}

fn line(name: &str, figure: f64, unit: &str, goal: f64) {
    let verdict = if figure <= goal { "met" } else { "not met" };
    println!("{name:<40} {figure:>8.2} {unit:<3}  goal {goal:>5} {unit:<3}  {verdict}");
}

/// Nanoseconds per tick.
struct Times {
    capture: f64,
    encode: f64,
    decode: f64,
}

fn world(name: &str, visible: fn(usize) -> bool, clients: usize) -> Times {
    let script = Script::read(&format!("{name}?ticks={LENGTH}"));
    play(&script.expect("the world is built in"), visible, clients)
}

fn steady(world: Steady) -> Times {
    play(&world.script(), |_| true, 1)
}

fn play(script: &Script, visible: fn(usize) -> bool, clients: usize) -> Times {
    let mut rig = Rig::new(&script.schema, clients).see_only(visible);
    let (settling, counted) = script.scenes.split_at(SETTLED);
    for scene in settling {
        rig.play(scene);
    }
    let mut spent = [const { Vec::new() }; 3];
    for scene in counted {
        let start = Instant::now();
        rig.capture(scene);
        let captured = Instant::now();
        rig.acknowledge();
        rig.encode();
        let encoded = Instant::now();
        rig.decode();
        let decoded = Instant::now();
        let moments = [start, captured, encoded, decoded];
        for (spent, pair) in spent.iter_mut().zip(moments.windows(2)) {
            spent.push(pair[1] - pair[0]);
        }
    }
    let [capture, encode, decode] = spent.map(undisturbed);
    Times {
        capture,
        encode,
        decode,
    }
}

fn undisturbed(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 10].as_nanos() as f64
}

const SETTLED: usize = 150;
const LENGTH: usize = SETTLED + 151;
const RESTING: usize = 50_000;
const STEADY: Steady = Steady {
    entities: 500,
    fields: 8,
    moving: 8,
    surprises: 0,
    resting: 0,
    ticks: LENGTH,
};
