//! The cost of each step of a tick, on worlds with many, few and no changes.
//!
//! `cargo bench -p prescient-sim` prints the distribution of each; the example `speed` prints what
//! follows from their differences (per mispredicted field, per predicted entity). A sample is one
//! tick of a settled connection, because no two ticks are alike.

use std::cell::RefCell;

use divan::Bencher;
use prescient_sim::{
    rig::Rig,
    world::{Script, Steady},
};

fn main() {
    divan::main();
}

/// A world, its visible part, and its name.
const WORLDS: [World; 4] = [
    world("particles", "world:particles", |_| true),
    world("rts", "world:rts", |_| true),
    world("idle", "world:idle?count=20000&moving=100", |_| true),
    // A hundred visible units of five hundred.
    world("view of 100", "world:rts", |number| number % 5 == 0),
];

#[divan::bench(args = WORLDS, sample_count = SAMPLES, sample_size = 1)]
fn capture(bencher: Bencher, world: &World) {
    let play = RefCell::new(Play::new(world, 1));
    bencher
        .with_inputs(|| play.borrow_mut().advance_to(Stage::Decoded))
        .bench_local_values(|()| play.borrow_mut().capture());
}

/// Handles the acknowledgement of the last packet and encodes the next.
#[divan::bench(args = WORLDS, sample_count = SAMPLES, sample_size = 1)]
fn encode(bencher: Bencher, world: &World) {
    let play = RefCell::new(Play::new(world, 1));
    bencher
        .with_inputs(|| play.borrow_mut().advance_to(Stage::Captured))
        .bench_local_values(|()| play.borrow_mut().serve());
}

#[divan::bench(args = WORLDS, sample_count = SAMPLES, sample_size = 1)]
fn decode(bencher: Bencher, world: &World) {
    let play = RefCell::new(Play::new(world, 1));
    bencher
        .with_inputs(|| play.borrow_mut().advance_to(Stage::Encoded))
        .bench_local_values(|()| play.borrow_mut().decode());
}

/// A server's whole tick: one capture, then acknowledgement and packet of every client.
#[divan::bench(args = [1, 16], sample_count = SAMPLES / 4, sample_size = 1)]
fn clients(bencher: Bencher, clients: usize) {
    let play = RefCell::new(Play::new(&WORLDS[0], clients));
    bencher
        .with_inputs(|| play.borrow_mut().advance_to(Stage::Decoded))
        .bench_local_values(|()| {
            let mut play = play.borrow_mut();
            play.capture();
            play.serve();
        });
}

/// A tick in which a known number of fields is mispredicted, or none: the difference is their cost.
#[divan::bench(args = [0, 250, 1000], sample_count = SAMPLES, sample_size = 1)]
fn surprising_fields(bencher: Bencher, surprises: usize) {
    let steady = Steady {
        entities: 500,
        fields: 8,
        moving: 8,
        surprises,
        resting: 0,
        ticks: LENGTH,
    };
    measure_steady(bencher, steady);
}

/// A tick in which all entities move as predicted.
#[divan::bench(args = [250, 1000], sample_count = SAMPLES, sample_size = 1)]
fn quiet_entities(bencher: Bencher, entities: usize) {
    let steady = Steady {
        entities,
        fields: 8,
        moving: 2,
        surprises: 0,
        resting: 0,
        ticks: LENGTH,
    };
    measure_steady(bencher, steady);
}

fn measure_steady(bencher: Bencher, steady: Steady) {
    let play = RefCell::new(Play::of(steady.script(), |_| true, 1));
    bencher
        .with_inputs(|| play.borrow_mut().advance_to(Stage::Captured))
        .bench_local_values(|()| play.borrow_mut().serve());
}

#[derive(Clone, Copy, Debug)]
struct World {
    name: &'static str,
    source: &'static str,
    visible: fn(usize) -> bool,
}

const fn world(name: &'static str, source: &'static str, visible: fn(usize) -> bool) -> World {
    World {
        name,
        source,
        visible,
    }
}

impl std::fmt::Display for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The steps of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Captured,
    Encoded,
    Decoded,
}

/// A settled connection and the rest of its script.
struct Play {
    rig: Rig,
    script: Script,
    next: usize,
    stage: Stage,
}

impl Play {
    fn new(world: &World, clients: usize) -> Self {
        let mark = if world.source.contains('?') { '&' } else { '?' };
        let name = format!("{}{mark}ticks={LENGTH}", world.source);
        let script = Script::read(&name).expect("the world is built in");
        Self::of(script, world.visible, clients)
    }

    fn of(script: Script, visible: fn(usize) -> bool, clients: usize) -> Self {
        let mut rig = Rig::new(&script.schema, clients).see_only(visible);
        for scene in &script.scenes[..SETTLED] {
            rig.play(scene);
        }
        Self {
            rig,
            script,
            next: SETTLED,
            stage: Stage::Decoded,
        }
    }

    fn advance_to(&mut self, stage: Stage) {
        while self.stage != stage {
            match self.stage {
                Stage::Decoded => self.capture(),
                Stage::Captured => self.serve(),
                Stage::Encoded => self.decode(),
            }
        }
    }

    fn capture(&mut self) {
        self.rig.capture(&self.script.scenes[self.next]);
        self.next += 1;
        self.stage = Stage::Captured;
    }

    fn serve(&mut self) {
        self.rig.acknowledge();
        self.rig.encode();
        self.stage = Stage::Encoded;
    }

    fn decode(&mut self) {
        self.rig.decode();
        self.stage = Stage::Decoded;
    }
}

/// Ticks before the first sample, so that all idle entities are at rest.
const SETTLED: usize = 200;
const SAMPLES: u32 = 200;
/// One tick more than samples, because a sample may end in the next one.
const LENGTH: usize = SETTLED + SAMPLES as usize + 1;
