//! Compares bevy_replicon with our codec on the worlds of `prescient-sim`, one client each.
//!
//! Both run in one process, tick by tick, in alternating order, so that noise affects both. The
//! worlds are computed before the first tick. Only the server is timed; both receivers are real,
//! send real acknowledgements, which arrive before the next tick, and are compared with the world
//! at the end.
//!
//! `cargo run --release -- [TICKS]`
#![expect(
    clippy::disallowed_methods,
    reason = "a program that measures time has to read the clock"
)]

mod ours;
mod particles;
mod replicon;
mod rts;

use std::time::Duration;

use prescient_sim::world::Script;
use replicon::Shape;

/// Ticks that are played and not counted, so that both measure a settled connection.
const WARM_UP: usize = 100;

fn main() {
    let ticks = match std::env::args().nth(1).map(|text| text.parse()) {
        None => 600,
        Some(Ok(ticks)) => ticks,
        Some(Err(_)) => {
            eprintln!("usage: prescient-comparison [TICKS]");
            std::process::exit(2);
        }
    };
    compare::<particles::Particle>("particles", ticks);
    compare::<rts::Unit>("rts", ticks);
}

fn compare<S: Shape>(name: &str, ticks: usize) {
    let script = Script::read(&format!("world:{name}?ticks={}", WARM_UP + ticks));
    let script = script.expect("the world is built in");
    let mut theirs = replicon::Connection::<S>::new();
    let mut ours = ours::Connection::new(&script);
    let mut costs = [Cost::default(), Cost::default()];
    for (number, scene) in script.scenes.iter().enumerate() {
        let mut played = [None, None];
        for turn in 0..2 {
            let which = (number + turn) % 2;
            played[which] = Some(match which {
                0 => theirs.play(scene),
                _ => ours.play(scene),
            });
        }
        if number >= WARM_UP {
            for (cost, played) in costs.iter_mut().zip(played.into_iter().flatten()) {
                cost.add(played);
            }
        }
    }
    let truth = script.last_rows();
    assert_eq!(theirs.shown(), truth, "bevy_replicon's client");
    assert_eq!(ours.shown(), truth, "our client");

    println!("{name}: {ticks} ticks after the first {WARM_UP}, one client, nothing lost");
    let [theirs, ours] = costs.map(Cost::figures);
    for (method, figures) in [("bevy_replicon", &theirs), ("prescient", &ours)] {
        println!(
            "  {method:>13}: {:8.1} bytes/tick, server {:7.1} µs/tick mean, {:7.1} median",
            figures.bytes, figures.mean, figures.median
        );
    }
    println!(
        "  ratio, ours to theirs: bytes 1/{:.1}, time {:.2} mean, {:.2} median",
        theirs.bytes / ours.bytes,
        ours.mean / theirs.mean,
        ours.median / theirs.median
    );
}

/// The server's cost of one tick.
pub struct Played {
    bytes: usize,
    time: Duration,
}

#[derive(Default)]
struct Cost {
    bytes: usize,
    times: Vec<Duration>,
}

impl Cost {
    fn add(&mut self, played: Played) {
        self.bytes += played.bytes;
        self.times.push(played.time);
    }

    fn figures(mut self) -> Figures {
        self.times.sort_unstable();
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let count = self.times.len().max(1) as f64;
        Figures {
            bytes: self.bytes as f64 / count,
            mean: micros(self.times.iter().sum()) / count,
            median: self
                .times
                .get(self.times.len() / 2)
                .map_or(0.0, |&time| micros(time)),
        }
    }
}

struct Figures {
    bytes: f64,
    mean: f64,
    median: f64,
}
