//! Plots of runs.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::{BALLS, METHODS, OWN, Run};
use crate::scenario::plot::{Line, Plot};

/// Jumps by method and latency, at the highest loss.
#[derive(Default)]
pub(super) struct Jumps {
    by_method: BTreeMap<(u32, &'static str), Vec<(f64, f64)>>,
}

impl Jumps {
    pub(super) fn note(&mut self, method: &'static str, latency: u64, loss: u32, jump: f64) {
        let line = self.by_method.entry((loss, method)).or_default();
        line.push((latency as f64, jump));
    }

    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let Some(&(max_latency, _)) = self.by_method.keys().next_back() else {
            return Ok(());
        };
        let lines = METHODS.iter().filter_map(|&method| {
            let points = self.by_method.get(&(max_latency, method))?.clone();
            let name = method.to_owned();
            Some(Line { name, points })
        });
        let plot = Plot {
            title: "Jumps: what 99 % of all frames stay below",
            across: "latency in one direction, ms; a fifth of it is random, 5 % are lost",
            up: "metres",
            lines: lines.collect(),
        };
        plot.write(folder, "smooth-jumps.svg")
    }
}

/// Two seconds of another player's runner and of the own one.
pub(super) fn trace(folder: &Path, run: &Run) -> io::Result<()> {
    let window = 240..360;
    let line = |name: &str, frames: &[super::Places], number: u8| {
        let points = window.clone().filter_map(|frame| {
            let place = frames.get(frame)?.get(&number)?;
            Some((frame as f64 / 60.0, place[0]))
        });
        Line {
            name: name.to_owned(),
            points: points.collect(),
        }
    };
    let plot = |title, number, methods: &[usize]| {
        let mut lines = vec![line("truth", &run.truth, number)];
        let drawn = methods.iter();
        lines.extend(drawn.map(|&at| line(METHODS[at], &run.drawn[at], number)));
        Plot {
            title,
            across: "seconds",
            up: "metres",
            lines,
        }
    };
    let others = plot("Another player's runner at 200 ms", BALLS, &[1, 2, 5]);
    others.write(folder, "smooth-others.svg")?;
    let ball = plot("A ball at 200 ms", 0, &[0, 4, 5]);
    ball.write(folder, "smooth-ball.svg")?;
    let own = plot("The own runner at 200 ms", OWN, &[1, 5]);
    own.write(folder, "smooth-own.svg")
}
