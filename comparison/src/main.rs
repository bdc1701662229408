//! Compares bevy_replicon and a delta packed by hand with our codec, on the worlds of
//! `prescient-sim`.
//!
//! All run in one process, tick by tick, in changing order, so that noise affects all. The worlds
//! are computed before the first tick. Only the server is timed; all receivers are real, send real
//! acknowledgements, and are compared with the world at the end.
//!
//! `cargo run --release -- [TICKS]`
#![expect(
    clippy::disallowed_methods,
    reason = "a program that measures time has to read the clock"
)]

mod hand;
mod link;
mod ours;
mod particles;
mod replicon;
mod rts;
mod walkers;

use std::{ops::Range, time::Duration};

use link::Link;
use prescient_sim::world::{Scene, Script, Walkers};
use replicon::Shape;

/// Ticks that are played and not counted, so that all measure settled connections.
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
    alone::<particles::Particle>("particles", ticks);
    alone::<rts::Unit>("rts", ticks);
    crowd(ticks);
}

/// One client that sees everything; acknowledgements arrive before the next tick.
fn alone<S: Shape>(name: &str, ticks: usize) {
    let script = Script::read(&format!("world:{name}?ticks={}", WARM_UP + ticks));
    let script = script.expect("the world is built in");
    let setting = "one client that sees all, nothing lost";
    compare::<S>(name, setting, &script, &[View::ALL], Link::default());
}

/// Many clients, each of which sees another part of a world of walkers.
fn crowd(ticks: usize) {
    let walkers = Walkers {
        count: 2000,
        ticks: WARM_UP + ticks,
    };
    let views: Vec<View> = (0..200).map(|client| View::new(client * 9, 100)).collect();
    let link = Link { delay: 2, loss: 5 };
    let setting = "200 clients that see 100 of 2,000 each, round trip of 4 ticks, 5 % lost";
    compare::<walkers::Walker>("walkers", setting, &walkers.script(), &views, link);
}

fn compare<S: Shape>(name: &str, setting: &str, script: &Script, views: &[View], link: Link) {
    let mut methods: [(&str, Box<dyn Method>, Cost); 3] = [
        (
            "bevy_replicon",
            Box::new(replicon::Connections::<S>::new(views, link)),
            Cost::default(),
        ),
        (
            "by hand",
            Box::new(hand::Connections::new(script, views, link)),
            Cost::default(),
        ),
        (
            "prescient",
            Box::new(ours::Connections::new(script, views, link)),
            Cost::default(),
        ),
    ];
    for (number, scene) in script.scenes.iter().enumerate() {
        for turn in 0..methods.len() {
            let (_, method, cost) = &mut methods[(number + turn) % 3];
            let played = method.play(scene, false);
            if number >= WARM_UP {
                cost.add(played);
            }
        }
    }
    for (method_name, method, _) in &mut methods {
        // Nothing is lost any more, and everything arrives.
        for _ in 0..4 * link.delay {
            method.play(&Scene::default(), true);
        }
        for (client, view) in views.iter().enumerate() {
            let truth = view.rows(script);
            assert_eq!(method.shown(client), truth, "{method_name}, client {client}");
        }
    }

    let ticks = script.scenes.len() - WARM_UP;
    println!("{name}: {ticks} ticks after the first {WARM_UP}, {setting}");
    let clients = views.len() as f64;
    let figures = methods.map(|(name, _, cost)| (name, cost.figures(clients)));
    for (name, figures) in &figures {
        println!(
            "  {name:>13}: {:8.1} bytes, server {:7.1} µs mean, {:7.1} median, per client and tick",
            figures.bytes, figures.mean, figures.median
        );
    }
    let [others @ .., (_, ours)] = &figures;
    for (name, theirs) in others {
        println!(
            "  ratio, ours to {name}: bytes 1/{:.1}, time {:.2} mean, {:.2} median",
            theirs.bytes / ours.bytes,
            ours.mean / theirs.mean,
            ours.median / theirs.median
        );
    }
}

/// A server with its clients.
trait Method {
    /// Plays a tick; nothing of it is lost if the link is good.
    fn play(&mut self, scene: &Scene, link_is_good: bool) -> Played;

    /// A client's rows, sorted.
    fn shown(&mut self, client: usize) -> Vec<Vec<i64>>;
}

/// The entities that a client sees, by their numbers.
#[derive(Clone, Copy, Debug)]
struct View {
    first: usize,
    count: usize,
}

impl View {
    const ALL: Self = Self {
        first: 0,
        count: usize::MAX,
    };

    fn new(first: usize, count: usize) -> Self {
        Self { first, count }
    }

    fn numbers(&self) -> Range<usize> {
        self.first..self.first.saturating_add(self.count)
    }

    fn contains(&self, number: usize) -> bool {
        self.numbers().contains(&number)
    }

    /// Its rows after the last scene, sorted.
    fn rows(&self, script: &Script) -> Vec<Vec<i64>> {
        match self.count {
            usize::MAX => script.last_rows(),
            // The numbers of walkers are those of their first scene, and none ever leaves.
            _ => {
                let mut rows: Vec<Vec<i64>> = Vec::new();
                for scene in &script.scenes {
                    rows.extend(scene.spawned.iter().map(|(_, row)| row.to_vec()));
                    for (number, row) in &scene.changed {
                        rows[*number] = row.to_vec();
                    }
                }
                let mut rows: Vec<_> = rows.drain(self.numbers()).collect();
                rows.sort_unstable();
                rows
            }
        }
    }
}

/// The server's cost of one tick.
struct Played {
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

    fn figures(mut self, clients: f64) -> Figures {
        self.times.sort_unstable();
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / clients;
        let count = self.times.len().max(1) as f64;
        Figures {
            bytes: self.bytes as f64 / count / clients,
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
