//! What a server costs with more clients, more entities, and more visible entities: time, bytes and
//! memory, in one process over a perfect link.
//!
//! ```sh
//! cargo run --release -p prescient-replication --example growth -- book/src
//! ```
//!
//! prints tables, and draws a plot of each into that folder. `--memory` prints the memory figures
//! alone, `--stay` the memory held for clients that stay connected for half an hour.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the part that reads a clock"
)]

mod plot;

use std::alloc::System;
use std::path::Path;
use std::time::Instant;

use plot::{Line, Plot};
use prescient_replication::{Client, Distance, PeerId, Position, Room, Server, ServerConfig, Tick};
use prescient_schema::{Ref, Schema, State};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// An entity on a square grid that runs to and fro, or stands.
#[derive(State, Clone, Debug, PartialEq)]
#[state(rename = "runner")]
struct Runner {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    #[state(only_on_spawn)]
    number: u32,
    turns: u16,
}

/// The varied parameters.
#[derive(Clone, Copy, Debug)]
struct Setup {
    clients: usize,
    entities: usize,
    /// Visible entities per client, approximately.
    visible: usize,
    /// How many of three entities run.
    running: usize,
}

/// The cost of a server's tick once all clients know everything.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Microseconds to write the tick; then to evaluate visibility, encode and handle
    /// acknowledgements.
    step: f64,
    serve: f64,
    bytes_per_client: f64,
    /// Bytes that the server holds per client, everything included.
    memory_per_client: f64,
    /// Of that, the codec's model.
    model_per_client: f64,
}

/// A server, its clients, and the bytes that the server has allocated since there were any.
struct TestServer {
    setup: Setup,
    server: Server,
    clients: Vec<Client>,
    runners: Vec<Ref<Runner>>,
    tick: u32,
    memory: i64,
}

impl TestServer {
    fn new(setup: Setup) -> Self {
        let reach = SPACING * (setup.visible as f64 / std::f64::consts::PI).sqrt();
        let config = ServerConfig::default().with_grid_cell(reach.max(1.0) / 2.0);
        let policy = Distance::new(reach, reach * 1.1).expect("sound");
        let schema = || Schema::of::<Runner>().expect("a sound schema");
        let client = |_| Client::new(schema(), Default::default()).expect("a sound schema");
        let mut test_server = Self {
            setup,
            server: Server::new(schema(), config, policy).expect("a sound schema"),
            clients: (0..setup.clients).map(client).collect(),
            runners: Vec::new(),
            tick: 0,
            memory: 0,
        };
        // The world's own memory is not counted: it fills its history first.
        for _ in 0..HISTORY {
            test_server.step();
            test_server.server.encode(&|_| Room::UNLIMITED);
        }
        for number in 0..test_server.clients.len() {
            let peer = PeerId(number as u64);
            let hello = test_server.clients[number].poll_message();
            let hello = hello.expect("it greets first");
            let region = Region::new(GLOBAL);
            test_server.server.connect(peer);
            let greeted = test_server.server.handle(peer, &hello);
            greeted.expect("it has the same schema");
            let welcome = test_server.server.poll_transmit(peer).expect("an answer");
            let set = test_server
                .server
                .set_view_position(peer, test_server.view_position(number, reach));
            set.expect("it has just joined");
            test_server.memory += held(&region);
            let begins = test_server.clients[number].handle(welcome.message());
            begins.expect("it adopts the server's settings");
            let region = Region::new(GLOBAL);
            drop(welcome);
            test_server.memory += held(&region);
        }
        test_server
    }

    /// A client's view position: spread over the world, but not so near its edge that it sees less.
    fn view_position(&self, number: usize, reach: f64) -> Position {
        let side = (self.setup.entities as f64).sqrt() * SPACING;
        let margin = reach.min(side / 2.0);
        let across = (number as f64 * GOLDEN).fract();
        let up = (number as f64 + 0.5) / self.setup.clients as f64;
        let at = |share: f64| margin + share * (side - 2.0 * margin);
        Position([at(across), at(up), 0.0])
    }

    /// An entity's home: one every [`SPACING`] units.
    fn home(&self, number: usize) -> Position {
        let side = (self.setup.entities as f64).sqrt().ceil() as usize;
        let at = |index: usize| index as f64 * SPACING;
        Position([at(number % side), at(number / side), 0.0])
    }

    fn step(&mut self) {
        self.tick += 1;
        let values: Vec<Runner> = (0..self.setup.entities)
            .map(|number| self.runner(number))
            .collect();
        let mut step = self.server.step(Tick(self.tick.into())).expect("in order");
        for (number, runner) in values.iter().enumerate() {
            let done = match self.runners.get(number) {
                Some(&entity) => step.set(entity, runner),
                None => step.spawn(runner).map(|entity| self.runners.push(entity)),
            };
            done.expect("sound values");
        }
        step.finish();
    }

    fn runner(&self, number: usize) -> Runner {
        let Position([x, y, _]) = self.home(number);
        let tick = self.tick as usize;
        let (speed, span) = (4 + number % 17, 30 + number % 41);
        let since = tick + number * 13;
        let away = match number % 3 < self.setup.running {
            true => speed * (since % (2 * span)).abs_diff(span),
            false => 0,
        };
        Runner {
            position: [x as f32 + away as f32 / 100.0, y as f32],
            number: number as u32,
            turns: if away > 0 { (since / span) as u16 } else { 0 },
        }
    }

    /// Serves all clients once; returns microseconds of the server and bytes sent.
    fn exchange(&mut self) -> (f64, usize) {
        let region = Region::new(GLOBAL);
        let start = Instant::now();
        self.server.encode(&|_| Room::one(PACKET));
        let mut messages = Vec::new();
        for peer in (0..self.clients.len() as u64).map(PeerId) {
            while let Some(transmit) = self.server.poll_transmit(peer) {
                messages.push((peer, transmit.into_message()));
            }
        }
        let mut spent = start.elapsed().as_secs_f64();
        self.memory += held(&region);
        let sent = messages.iter().map(|(_, message)| message.len()).sum();
        let mut answers = Vec::new();
        for (peer, message) in &messages {
            let client = &mut self.clients[peer.0 as usize];
            client.handle(message).expect("an honest packet");
            while client.poll_change().is_some() {}
            answers.extend(client.acknowledgement().map(|answer| (*peer, answer)));
        }
        let region = Region::new(GLOBAL);
        drop(messages);
        let start = Instant::now();
        for (peer, answer) in &answers {
            let taken = self.server.handle(*peer, answer);
            taken.expect("an honest answer");
        }
        spent += start.elapsed().as_secs_f64();
        self.memory += held(&region);
        (spent * 1e6, sent)
    }

    /// Bytes of all models.
    fn model(&self) -> usize {
        let models = self
            .server
            .peers()
            .filter_map(|peer| self.server.statistics(peer));
        models.map(|statistics| statistics.model_bytes).sum()
    }

    /// Runs until all clients know everything and standing entities are at rest, and then measures.
    fn measure(mut self) -> Cost {
        for _ in 0..SETTLED {
            self.step();
            self.exchange();
        }
        let (mut steps, mut serves, mut bytes) = (Vec::new(), Vec::new(), 0);
        for _ in 0..MEASURED {
            let start = Instant::now();
            self.step();
            steps.push(start.elapsed().as_secs_f64() * 1e6);
            let (spent, sent) = self.exchange();
            serves.push(spent);
            bytes += sent;
        }
        let clients = self.setup.clients as f64;
        Cost {
            step: median(steps),
            serve: median(serves),
            bytes_per_client: bytes as f64 / MEASURED as f64 / clients,
            memory_per_client: self.memory as f64 / clients,
            model_per_client: self.model() as f64 / clients,
        }
    }
}

fn main() {
    // One thread, so that time is work.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.expect("a thread");
    let folder = std::env::args().nth(1);
    if folder.as_deref() == Some("--memory") {
        return pool.install(print_memory);
    }
    if folder.as_deref() == Some("--stay") {
        return pool.install(print_stay);
    }
    let usual = Setup {
        clients: 20,
        entities: 10_000,
        visible: 100,
        running: 2,
    };
    let clients = [1, 5, 20, 50, 100, 200, 500].map(|clients| {
        let entities = 2000;
        (
            clients,
            Setup {
                clients,
                entities,
                ..usual
            },
        )
    });
    let entities = [100, 1000, 10_000, 30_000, 100_000]
        .map(|entities| (entities, Setup { entities, ..usual }));
    let visible =
        [10, 50, 100, 300, 1000, 2000].map(|visible| (visible, Setup { visible, ..usual }));
    let draw = |name: &str, rows: &[(usize, Setup)]| {
        let costs = rows.iter().map(|&(at, setup)| {
            let cost = pool.install(|| TestServer::new(setup).measure());
            (at as f64, cost)
        });
        let costs: Vec<_> = costs.collect();
        print_table(name, &costs);
        if let Some(folder) = &folder {
            let file = Path::new(folder).join(format!("growth-{name}.svg"));
            let drawn = std::fs::write(&file, picture(name, &costs).to_svg());
            drawn.expect("the folder can be written to");
        }
    };
    draw("clients", &clients);
    draw("entities", &entities);
    draw("visible", &visible);
    pool.install(print_memory);
}

fn print_table(name: &str, costs: &[(f64, Cost)]) {
    println!("| {name} | step µs | serve µs | bytes per client | KiB per client | of that model |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for (at, cost) in costs {
        println!(
            "| {at} | {:.0} | {:.0} | {:.1} | {:.0} | {:.0} |",
            cost.step,
            cost.serve,
            cost.bytes_per_client,
            cost.memory_per_client / 1024.0,
            cost.model_per_client / 1024.0
        );
    }
    println!();
}

fn picture(name: &str, costs: &[(f64, Cost)]) -> Plot {
    let line = |name: &str, of: fn(&Cost) -> f64| Line {
        name: name.to_owned(),
        points: costs.iter().map(|(at, cost)| (*at, of(cost))).collect(),
    };
    Plot {
        title: format!("A tick by number of {name}"),
        across: name.to_owned(),
        lines: vec![
            line("step µs", |cost| cost.step),
            line("serve µs", |cost| cost.serve),
            line("bytes per client", |cost| cost.bytes_per_client),
            line("KiB per client", |cost| cost.memory_per_client / 1024.0),
        ],
    }
}

/// The memory that the server holds for a client, against the goals of the design.
fn print_memory() {
    let held = |visible: usize, running: usize| {
        let setup = Setup {
            clients: 4,
            entities: 20_000,
            visible,
            running,
        };
        TestServer::new(setup).measure().memory_per_client
    };
    let more = |running: usize| (held(4000, running) - held(2000, running)) / 2000.0;
    let line = |what: &str, held: f64, goal: f64| {
        let verdict = if held <= goal { "met" } else { "not met" };
        println!("{what}: {held:.0} bytes of the server's memory, goal {goal}: {verdict}");
    };
    line("a client that sees nothing", held(0, 2), 65_536.0);
    line("a visible entity at rest", more(0), 16.0);
    line("a visible entity that runs, of 4 fields", more(3), 80.0);
}

/// The memory that the server holds for a client, and its model's share, over time.
fn print_stay() {
    let setup = Setup {
        clients: 4,
        entities: 600,
        visible: 50,
        running: 2,
    };
    let mut test_server = TestServer::new(setup);
    let clients = setup.clients as f64;
    for minutes in [1, 3, 10, 20, 30] {
        while test_server.tick < HISTORY + minutes * 60 * 30 {
            test_server.step();
            test_server.exchange();
        }
        println!(
            "{minutes} minutes at 30 Hz: {:.1} KiB for a client, of that {:.1} model",
            test_server.memory as f64 / clients / 1024.0,
            test_server.model() as f64 / clients / 1024.0
        );
    }
}

/// Bytes that were allocated and not freed.
fn held(region: &Region<'_, System>) -> i64 {
    let change = region.change();
    change.bytes_allocated as i64 - change.bytes_deallocated as i64
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

const SPACING: f64 = 10.0;
/// Its multiples are spread evenly between whole numbers.
const GOLDEN: f64 = 0.618_033_988_75;
/// Maximum bytes of a packet.
const PACKET: usize = 1100;
/// Ticks that a world remembers, ticks until everything is known and at rest, ticks measured.
const HISTORY: u32 = 130;
const SETTLED: u32 = 200;
const MEASURED: usize = 60;
