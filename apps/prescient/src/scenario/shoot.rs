//! `prescient scenario shoot`: a player who aims perfectly at what they see.
//!
//! Every shot names the target, the place where the client drew it, and the tick that it drew. The
//! server judges each twice: by where the target is when the shot arrives, and by where it was when
//! the client saw it.

use std::path::PathBuf;

use clap::Args;
use prescient::playout::SeenTick;
use prescient::{Input, Ref, Rewind, State};
use prescient_sim::world::Random;
use serde_json::json;

use super::ScenarioError;
use super::plot::{Line, Plot};
use super::virtual_link::{Host, Way, tick};

/// Options of `prescient scenario shoot`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShootOptions {
    /// Latencies in one direction, in milliseconds; a fifth of each is random.
    #[arg(long, value_delimiter = ',', default_values_t = [30, 100, 200, 300])]
    latencies: Vec<u64>,
    /// Loss in percent.
    #[arg(long, default_value_t = 5)]
    loss: u32,
    /// Simulated seconds of each run.
    #[arg(long, default_value_t = 120)]
    seconds: u32,
    /// The seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write a plot into this folder.
    #[arg(long)]
    plots: Option<PathBuf>,
    /// Print a JSON object per line.
    #[arg(long)]
    json: bool,
}

/// A target that runs to and fro.
#[derive(State, Clone, Copy)]
#[state(tick_hz = 30)]
struct Target {
    #[state(step = 0.001, position)]
    position: [f64; 2],
    #[state(step = 0.001, velocity_of = "position", per_second)]
    velocity: [f64; 2],
    #[state(only_on_spawn)]
    number: u8,
    /// Ticks until it turns.
    #[state(skip)]
    left: u32,
}

pub(crate) fn shoot(options: &ShootOptions) -> Result<(), ScenarioError> {
    if options.seconds < 10 {
        return Err(ScenarioError::TooShort);
    }
    let mut lines = [Vec::new(), Vec::new()];
    for &latency in &options.latencies {
        let score = Score::play(options, latency);
        let share = |hits: u32| f64::from(hits) / f64::from(score.shots.max(1));
        let (with, without) = (share(score.with), share(score.without));
        lines[0].push((latency as f64, with * 100.0));
        lines[1].push((latency as f64, without * 100.0));
        if options.json {
            let line = json!({
                "latency_ms": latency,
                "loss": options.loss,
                "shots": score.shots,
                "hits_with": score.with,
                "hits_without": score.without,
                "share_with": with,
                "share_without": without,
            });
            println!("{line}");
        } else {
            println!(
                "{latency:>3} ms, {} % lost: {} shots, {:.1} % hit with lag compensation, {:.1} % without",
                options.loss,
                score.shots,
                with * 100.0,
                without * 100.0
            );
        }
    }
    if let Some(folder) = &options.plots {
        let names = ["with", "without"].into_iter().zip(lines);
        let lines = names.map(|(name, points)| Line {
            name: name.to_owned(),
            points,
        });
        let plot = Plot {
            title: "Shots that hit, with and without lag compensation",
            across: "latency in one direction, ms",
            up: "percent",
            lines: lines.collect(),
        };
        plot.write(folder, "shoot.svg")?;
    }
    Ok(())
}

#[derive(Default)]
struct Score {
    shots: u32,
    with: u32,
    without: u32,
}

impl Score {
    fn play(options: &ShootOptions, latency: u64) -> Self {
        let mut random = Random::new(options.seed);
        let mut host = Host::new::<Target>(options.seed);
        let mut client = host.client::<Target>(Way::of(latency, options.loss));
        host.wait_for(&mut client);
        let mut step = host.step();
        let mut targets: Vec<(Ref<Target>, Target)> = Vec::new();
        for number in 0..TARGETS {
            let target = Target {
                position: [random.range(0, 20) as f64, f64::from(number)],
                velocity: [SPEED, 0.0],
                number,
                left: 10,
            };
            targets.push((step.spawn(&target).expect("a sound target"), target));
        }
        step.finish();
        host.send();
        let mut score = Self::default();
        for number in 0..options.seconds * 60 {
            host.pass(tick() / 2);
            let mut shots = Vec::new();
            host.receive(|_, _, input| shots.extend(Shot::of(&input.fields)));
            for shot in shots {
                score.judge(&host, &targets, &shot);
            }
            if number.is_multiple_of(2) {
                let mut step = host.step();
                for (entity, target) in &mut targets {
                    target.run(&mut random);
                    step.set(*entity, target).expect("it is there");
                }
                step.finish();
                host.send();
            }
            while client.poll().is_some() {}
            client.begin_frame();
            // Frames are not ticks: some shots are fired between two.
            if number > 180 && number.is_multiple_of(7) {
                let aimed_at = (number / 7 % u32::from(TARGETS)) as u8;
                let found = client
                    .all::<Target>()
                    .find(|(_, target)| target.number == aimed_at);
                let shown = found.and_then(|(entity, _)| client.shown::<Target>(entity));
                if let (Some(target), Some(seen)) = (shown, client.seen_tick()) {
                    let shot = Shot {
                        seen,
                        target: aimed_at,
                        x: target.position[0],
                    };
                    let input = Input {
                        fields: shot.to_bytes(),
                        ..Input::default()
                    };
                    client.act(input).expect("connected");
                }
            } else {
                client.act(Input::default()).expect("connected");
            }
            // Everything that may be shot at is drawn in every frame.
            let entities: Vec<_> = client.entities().collect();
            for entity in entities {
                client.shown::<Target>(entity);
            }
        }
        score
    }

    fn judge(&mut self, host: &Host, targets: &[(Ref<Target>, Target)], shot: &Shot) {
        let Some((entity, now)) = targets.get(usize::from(shot.target)) else {
            return;
        };
        self.shots += 1;
        let is_hit = |x: f64| (x - shot.x).abs() <= RADIUS;
        self.without += u32::from(is_hit(now.position[0]));
        let rewind = Rewind::of(host.server.world(), MAX_REWIND_TICKS, shot.seen);
        let then = rewind.ok().and_then(|rewind| rewind.get(*entity));
        self.with += u32::from(then.is_some_and(|then| is_hit(then.position[0])));
    }
}

impl Target {
    fn run(&mut self, random: &mut Random) {
        self.left = self.left.saturating_sub(1);
        let ahead = self.position[0] + self.velocity[0] / 30.0;
        if self.left == 0 || !(0.0..=20.0).contains(&ahead) {
            self.left = random.range(10, 45) as u32;
            self.velocity[0] = -self.velocity[0];
        }
        self.position[0] += self.velocity[0] / 30.0;
    }
}

/// A client's report of a shot; the place is quantised finer than a hit needs.
struct Shot {
    seen: SeenTick,
    target: u8,
    x: f64,
}

impl Shot {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.seen.to_bytes().to_vec();
        bytes.push(self.target);
        bytes.extend(self.x.to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let seen = SeenTick::from_bytes(bytes)?;
        let rest = &bytes[SeenTick::BYTES..];
        let (&target, x) = rest.split_first()?;
        let x = f64::from_le_bytes(x.try_into().ok()?);
        Some(Self { seen, target, x })
    }
}

const TARGETS: u8 = 8;
/// Metres per second.
const SPEED: f64 = 5.0;
/// Metres around the middle of a target.
const RADIUS: f64 = 0.25;
/// A second.
const MAX_REWIND_TICKS: f64 = 30.0;
