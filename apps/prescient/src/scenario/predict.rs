//! `prescient scenario predict`: a client that moves at once, and how often the server corrects it.
//!
//! The client presses keys in every tick, and its runner is shown where they move it in the same
//! frame. The server applies each input once. Where both ends compute the same, nothing is ever
//! corrected; with `--pushed`, other runners push this one about in a way that the client cannot
//! know before the server tells.

use std::path::PathBuf;

use clap::Args;
use prescient::PeerId;
use prescient::playout::PredictionStatistics;
use prescient_sim::world::Random;
use serde_json::json;

use super::ScenarioError;
use super::plot::{Line, Plot};
use super::smooth::motion::{Player, Runner};
use super::virtual_link::{Host, Way, tick};
use crate::text;

/// Options of `prescient scenario predict`.
#[derive(Clone, Debug, Args)]
pub(crate) struct PredictOptions {
    /// Latencies in one direction, in milliseconds; a fifth of each is random.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 50, 150, 300])]
    latencies: Vec<u64>,
    /// Losses in percent.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 5])]
    losses: Vec<u32>,
    /// Simulated seconds of each run.
    #[arg(long, default_value_t = 120)]
    seconds: u32,
    /// The seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only without others, or only with others that push.
    #[arg(long)]
    pushed: Option<bool>,
    /// Write a plot of a run into this folder.
    #[arg(long)]
    plots: Option<PathBuf>,
    /// Print a JSON object per line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn predict(options: &PredictOptions) -> Result<(), ScenarioError> {
    if options.seconds < 10 {
        return Err(ScenarioError::TooShort);
    }
    for pushed in [false, true] {
        if options.pushed.is_some_and(|only| only != pushed) {
            continue;
        }
        for &loss in &options.losses {
            for &latency in &options.latencies {
                let run = Run::play(options, (latency, loss), pushed);
                run.print(options.json, (latency, loss), pushed);
                if let Some(folder) = &options.plots
                    && pushed
                    && (latency, loss) == (150, 5)
                {
                    run.plot(folder)?;
                }
            }
        }
    }
    Ok(())
}

/// Figures of a run.
#[derive(Default)]
struct Run {
    ticks: u32,
    /// Ticks in which the shown runner did not move by the input of the same tick.
    late: u32,
    /// Ticks with a correction, and with one larger than a tenth of a body.
    corrections: u32,
    large: u32,
    largest: f64,
    /// How far the runner was drawn from where it moved, because of corrections that were mended.
    largest_jump: f64,
    /// Time, where it was shown, and where the server had it at that time.
    path: Vec<(f64, f64, f64)>,
}

impl Run {
    fn play(options: &PredictOptions, (latency, loss): (u64, u32), pushed: bool) -> Self {
        let mut random = Random::new(options.seed);
        let mut host = Host::new::<Runner>(options.seed);
        let mut client = host.client::<Runner>(Way::of(latency, loss));
        host.wait_for(&mut client);
        let others = if pushed { PUSHERS } else { 0 };
        let mut runners: Vec<_> = (0..=others)
            .map(|number| (Runner::new(number, &mut random), Player::new(random.bits())))
            .collect();
        let mut step = host.step();
        let spawned = runners.iter().map(|(runner, _)| step.spawn(runner));
        let entities: Vec<_> = spawned.collect::<Result<_, _>>().expect("sound runners");
        step.finish();
        host.send();
        let mut run = Self::default();
        let mut own = None;
        let (mut before, mut last) = (None::<Runner>, PredictionStatistics::default());
        for number in 0..options.seconds * 30 {
            host.pass(tick());
            let mut inputs = Vec::new();
            host.receive(|_: PeerId, _, input| inputs.push(input.keys_down.bits()));
            for keys in inputs {
                runners[0].0.step(keys);
            }
            for (runner, player) in &mut runners[1..] {
                runner.step(player.keys());
            }
            push_apart(&mut runners);
            let mut step = host.step();
            for (entity, (runner, _)) in entities.iter().zip(&runners) {
                step.set(*entity, runner).expect("it is there");
            }
            step.finish();
            host.send();
            while client.poll().is_some() {}
            let found = client
                .all::<Runner>()
                .find(|(_, runner)| runner.number == 0);
            let Some((entity, _)) = found else {
                continue;
            };
            if own.is_none() {
                own = Some(entity);
                let predicted = client.predict(entity, |runner: &mut Runner, input| {
                    runner.step(input.keys_down.bits());
                });
                predicted.expect("it is shown");
            }
            // The correction of this tick's state, if there was one.
            let statistics = client.prediction_statistics(entity).unwrap_or_default();
            if number > 90 && statistics.corrected > last.corrected {
                let moved = statistics.moved - last.moved;
                run.corrections += 1;
                run.large += u32::from(moved > BODY / 10.0);
                run.largest = run.largest.max(moved);
            }
            last = statistics;
            let keys = runners[0].1.keys();
            client.press(keys).expect("connected");
            client.begin_frame();
            let Some(now) = client.shown::<Runner>(entity) else {
                continue;
            };
            if let Some(mut expected) = before.replace(now).filter(|_| number > 90) {
                run.ticks += 1;
                expected.step(keys);
                let gap = distance(expected.position, now.position);
                run.largest_jump = run.largest_jump.max(gap);
                // Half of what a key moves in a tick at full speed.
                run.late += u32::from(!pushed && gap > 0.08);
            }
            if (300..450).contains(&number) {
                let seconds = f64::from(number) / 30.0;
                let server = runners[0].0.position[0];
                run.path.push((seconds, now.position[0], server));
            }
        }
        run
    }

    fn print(&self, json: bool, (latency, loss): (u64, u32), pushed: bool) {
        let share = f64::from(self.large) / f64::from(self.ticks.max(1));
        if json {
            let line = json!({
                "pushed": pushed,
                "latency_ms": latency,
                "loss": loss,
                "ticks": self.ticks,
                "late_ticks": self.late,
                "corrections": self.corrections,
                "large_corrections": self.large,
                "large_share": share,
                "largest": self.largest,
                "largest_jump": self.largest_jump,
            });
            println!("{line}");
            return;
        }
        let text = format!(
            "{latency:>3} ms, {loss} % lost{}: {} of {} ticks corrected, {:.2} % by more than a tenth \
             of the body, at most {:.2} m; drawn at most {:.3} m from there; {} ticks not shown at once",
            if pushed { ", pushed" } else { "" },
            self.corrections,
            self.ticks,
            share * 100.0,
            self.largest,
            self.largest_jump,
            self.late,
        );
        println!("{}", text::wrapped(&text));
    }

    fn plot(&self, folder: &std::path::Path) -> std::io::Result<()> {
        let line = |name: &str, value: fn(&(f64, f64, f64)) -> f64| Line {
            name: name.to_owned(),
            points: self
                .path
                .iter()
                .map(|point| (point.0, value(point)))
                .collect(),
        };
        let plot = Plot {
            title: "A predicted runner that is pushed about, at 150 ms and 5 % loss",
            across: "seconds",
            up: "metres",
            lines: vec![line("shown", |it| it.1), line("at the server", |it| it.2)],
        };
        plot.write(folder, "predict.svg")
    }
}

/// Runners that overlap move each other apart, half of it each.
fn push_apart(runners: &mut [(Runner, Player)]) {
    for one in 0..runners.len() {
        for other in one + 1..runners.len() {
            let (a, b) = (runners[one].0.position, runners[other].0.position);
            let gap = distance(a, b);
            if gap >= BODY || gap == 0.0 {
                continue;
            }
            for axis in 0..2 {
                let by = (b[axis] - a[axis]) / gap * (BODY - gap) / 2.0;
                let by = (by * 1000.0).round() / 1000.0;
                runners[one].0.position[axis] -= by;
                runners[other].0.position[axis] += by;
            }
        }
    }
}

fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// The diameter of a runner.
const BODY: f64 = 1.0;
const PUSHERS: u8 = 6;
