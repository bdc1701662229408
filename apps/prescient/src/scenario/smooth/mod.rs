//! `prescient scenario smooth`: how smoothly and how correctly a client shows what it receives.
//!
//! A server and a client of the facade are joined by a simulated link. Balls bounce, other players
//! run about, and so does the client's own runner. Every frame the client draws all of them by every
//! method, from the same packets.

mod figures;
mod methods;
pub(super) mod motion;
mod plots;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use prescient::playout::{Moment, PhysicsRewind};
use prescient::{Client, EntityHandle, Ref};
use prescient_sim::world::Random;
use serde_json::json;

use super::ScenarioError;
use super::virtual_link::{Host, Way, tick};
use figures::Figures;
use methods::{Drawn, Everything, Local, Places, Reckoned, Tracks};
use motion::{Ball, Player, Runner};

/// Options of `prescient scenario smooth`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SmoothOptions {
    /// Latencies in one direction, in milliseconds; a fifth of each is random.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 50, 100, 200, 350, 400])]
    latencies: Vec<u64>,
    /// Losses in percent.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 5])]
    losses: Vec<u32>,
    /// Simulated seconds of each run.
    #[arg(long, default_value_t = 30)]
    seconds: u32,
    /// The seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write plots of the runs into this folder.
    #[arg(long)]
    plots: Option<PathBuf>,
    /// Print a JSON object per line.
    #[arg(long)]
    json: bool,
}

/// The methods, in the order of [`Run::drawn`].
const METHODS: [&str; 6] = [
    "naive",
    "interpolate",
    "extrapolate",
    "smooth",
    "rewind",
    "all",
];

pub(crate) fn smooth(options: &SmoothOptions) -> Result<(), ScenarioError> {
    if options.seconds < 10 {
        return Err(ScenarioError::TooShort);
    }
    let mut jumps = plots::Jumps::default();
    for &loss in &options.losses {
        for &latency in &options.latencies {
            let run = Run::play(options, Way::of(latency, loss));
            for (method, drawn) in METHODS.iter().zip(&run.drawn) {
                let figures = Figures::of(drawn, &run.truth);
                jumps.note(method, latency, loss, figures.jump_p99);
                print(options.json, method, (latency, loss), &figures);
            }
            if let Some(folder) = &options.plots
                && (latency, loss) == (200, 5)
            {
                plots::trace(folder, &run)?;
            }
        }
    }
    if let Some(folder) = &options.plots {
        jumps.write(folder)?;
    }
    Ok(())
}

fn print(json: bool, method: &str, (latency, loss): (u64, u32), figures: &Figures) {
    let Figures {
        error_mean,
        error_p95,
        error_p99,
        jump_p99,
        jerk_mean,
    } = figures;
    let jitter = latency / 5;
    if json {
        let line = json!({
            "method": method,
            "latency_ms": latency,
            "jitter_ms": jitter,
            "loss": loss,
            "error_mean": error_mean,
            "error_p95": error_p95,
            "error_p99": error_p99,
            "jump_p99": jump_p99,
            "jerk_mean": jerk_mean,
        });
        println!("{line}");
        return;
    }
    println!(
        "{latency:>3} ms ± {jitter:>2}, {loss} % lost, {method:<11} error {error_mean:.2} m (99 % \
         {error_p99:.2}), jump {jump_p99:.3} m, jerk {:.1} km/s3",
        jerk_mean / 1e3
    );
}

/// A run: where everything was, and where each method drew it, by frame.
struct Run {
    truth: Vec<Places>,
    drawn: [Vec<Places>; 6],
}

impl Run {
    fn play(options: &SmoothOptions, way: Way) -> Self {
        let mut scene = Scene::new(options.seed, way);
        let mut run = Self {
            truth: Vec::new(),
            drawn: [const { Vec::new() }; 6],
        };
        let mut screen = Screen::new();
        let frames = options.seconds * 60;
        for frame in 0..frames {
            scene.frame(frame.is_multiple_of(2));
            run.truth.push(scene.truth());
            let drawn = screen.draw(&mut scene.client, scene.host.now());
            for (frames, drawn) in run.drawn.iter_mut().zip(drawn) {
                frames.push(drawn);
            }
        }
        // Joining, and the first measurements of the link.
        let skipped = 5 * 60;
        run.truth.drain(..skipped);
        run.drawn
            .iter_mut()
            .for_each(|frames| drop(frames.drain(..skipped)));
        run
    }
}

/// The world, and one client of it.
struct Scene {
    host: Host,
    client: Client,
    balls: Vec<(Ref<Ball>, Ball)>,
    /// Other players' runners.
    runners: Vec<(Ref<Runner>, Runner, Player)>,
    own: (Ref<Runner>, Runner),
    /// The client's own player, and where their keys would have moved the runner at once.
    player: Player,
    ideal: Runner,
    is_tick: bool,
    is_predicted: bool,
}

impl Scene {
    fn new(seed: u64, way: Way) -> Self {
        let mut random = Random::new(seed);
        let mut host = Host::new::<(Ball, Runner)>(seed);
        let mut client = host.client::<(Ball, Runner)>(way);
        host.wait_for(&mut client);
        let mut step = host.step();
        let mut balls = Vec::new();
        for number in 0..BALLS {
            let ball = Ball::new(number, &mut random);
            balls.push((step.spawn(&ball).expect("a sound ball"), ball));
        }
        let mut runners = Vec::new();
        for number in BALLS..BALLS + RUNNERS {
            let runner = Runner::new(number, &mut random);
            let entity = step.spawn(&runner).expect("a sound runner");
            let player = Player::new(random.bits());
            runners.push((entity, runner, player));
        }
        let own = Runner::new(OWN, &mut random);
        let own = (step.spawn(&own).expect("a sound runner"), own);
        step.finish();
        host.send();
        Self {
            host,
            client,
            balls,
            runners,
            own,
            player: Player::new(random.bits()),
            ideal: own.1,
            is_tick: false,
            is_predicted: false,
        }
    }

    /// Lets a frame pass, and a tick every second frame.
    fn frame(&mut self, is_tick: bool) {
        self.is_tick = is_tick;
        self.host.pass(tick() / 2);
        let own = &mut self.own.1;
        self.host
            .receive(|_, _, input| own.step(input.keys_down.bits()));
        if is_tick {
            let mut step = self.host.step();
            for (entity, ball) in &mut self.balls {
                ball.step(motion::TICK);
                step.set(*entity, ball).expect("it is there");
            }
            for (entity, runner, player) in &mut self.runners {
                runner.step(player.keys());
                step.set(*entity, runner).expect("it is there");
            }
            step.set(self.own.0, &self.own.1).expect("it is there");
            step.finish();
            self.host.send();
        }
        while self.client.poll().is_some() {}
        if is_tick {
            self.act();
        }
    }

    fn act(&mut self) {
        let mine = |(_, runner): &(EntityHandle, Runner)| runner.number == OWN;
        let Some((own, _)) = self.client.all::<Runner>().find(mine) else {
            return;
        };
        if !self.is_predicted {
            self.is_predicted = true;
            let predicted = self.client.predict(own, |runner: &mut Runner, input| {
                runner.step(input.keys_down.bits());
            });
            predicted.expect("it is shown");
        }
        let keys = self.player.keys();
        self.client.press(keys).expect("connected");
        self.ideal.step(keys);
    }

    /// Where everything is now: the own runner where its player wants it, and the others where the
    /// server has them.
    fn truth(&self) -> Places {
        let mut truth = Places::new();
        for (_, ball) in &self.balls {
            let mut ball = *ball;
            if !self.is_tick {
                ball.step(motion::TICK / 2.0);
            }
            truth.insert(ball.number, ball.position);
        }
        for (_, runner, ..) in &self.runners {
            let mut runner = *runner;
            if !self.is_tick {
                runner.coast(motion::TICK / 2.0);
            }
            truth.insert(runner.number, runner.position);
        }
        truth.insert(OWN, self.ideal.position);
        truth
    }
}

/// All methods side by side.
struct Screen {
    naive: Local,
    drawn: Tracks<Drawn>,
    reckoned: Tracks<Reckoned>,
    smooth: Local,
    rewind: Local,
    all: Everything,
    clock: prescient::playout::PlaybackClock,
    newest: Option<u64>,
}

impl Screen {
    fn new() -> Self {
        let rewind = PhysicsRewind::new(tick()).expect("above zero");
        Self {
            naive: Local::new(1.0, None),
            drawn: Tracks::new(),
            reckoned: Tracks::new(),
            smooth: Local::new(ALPHA, None),
            rewind: Local::new(1.0, Some(rewind)),
            all: Everything::new(),
            clock: methods::playback(tick()),
            newest: None,
        }
    }

    fn draw(&mut self, client: &mut Client, now: Duration) -> [Places; 6] {
        let newest = client.tick().map(|tick| tick.0);
        if let Some(tick) = newest.filter(|_| newest > self.newest) {
            self.newest = newest;
            self.clock.handle_state(tick, now).expect("it is newer");
        }
        let playback = self.clock.advance(now).unwrap_or_default();
        let moment = Moment {
            playback,
            present: client.server_tick().unwrap_or(playback),
            now,
            tick_seconds: motion::TICK,
        };
        [
            self.naive.show(client, now),
            self.drawn.show(client, &moment),
            self.reckoned.show(client, &moment),
            self.smooth.show(client, now),
            self.rewind.show(client, now),
            self.all.show(client),
        ]
    }
}

const BALLS: u8 = 12;
const RUNNERS: u8 = 6;
const OWN: u8 = BALLS + RUNNERS;
/// The share of an update that smoothing takes over.
const ALPHA: f64 = 0.2;
