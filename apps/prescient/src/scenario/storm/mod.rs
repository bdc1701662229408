//! `prescient scenario storm`: randomised tests of replication and transport through their public
//! interfaces, on a virtual clock.
//!
//! Schemas, worlds, visibility, links, budgets and faults are derived from a seed, so a seed
//! reproduces its storm. Every value that a client shows is compared with the server's state at the
//! tick it is shown as of, and every event with the record of those sent. Each storm is played
//! twice, with and without entities that are hidden from all peers but one: the messages to the
//! other peers must be identical.

mod client;
mod dice;
mod game;
mod host;
mod links;
mod policy;
mod promise;
mod schemas;
mod truth;
mod values;
mod verdict;
mod verify;

use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::Args;
use prescient_replication::Tick;
use rayon::prelude::*;
use serde_json::json;

use super::ScenarioError;
use game::{Game, Sent};
use truth::NEIGHBOUR;
use verdict::{Fault, Verdict};

/// Options of `prescient scenario storm`.
#[derive(Args, Clone, Debug)]
pub(crate) struct StormOptions {
    /// Number of seeds to play.
    #[arg(long, default_value_t = 100)]
    pub seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON line at the end.
    #[arg(long)]
    pub json: bool,
}

/// Plays storms and prints the failures.
pub(crate) fn storm(options: &StormOptions) -> Result<(), ScenarioError> {
    let StormOptions { seeds, seed, json } = *options;
    // Seeds wrap around.
    let all: Vec<u64> = (0..seeds).map(|number| seed.wrapping_add(number)).collect();
    let verdicts: Vec<(u64, Verdict)> =
        all.into_par_iter().map(|seed| (seed, play(seed))).collect();
    let failed = verdicts.iter().filter(|(_, verdict)| verdict.is_bad());
    let failures = failed.clone().count() as u64;
    for (seed, verdict) in failed {
        println!("prescient scenario storm --seed {seed} --seeds 1");
        let stories = if seeds == 1 { usize::MAX } else { 1 };
        for story in verdict.stories.iter().take(stories) {
            println!("  {story}");
        }
    }
    let sum = verdicts.into_iter().map(|(_, verdict)| verdict);
    let sum = sum.fold(Verdict::default(), Verdict::and);
    let report = json!({
        "seeds": seeds,
        "packets": sum.packets,
        "divergences": sum.divergences,
        "events_lost": sum.events_lost,
        "events_doubled": sum.events_doubled,
        "leaks": sum.leaks,
        "failures": failures,
    });
    if json {
        println!("{report}");
    } else {
        for (name, value) in report.as_object().into_iter().flatten() {
            println!("{:<15} {value}", name.replace('_', " "));
        }
    }
    match failures {
        0 if sum.packets == 0 => Err(ScenarioError::Nothing),
        0 => Ok(()),
        failures => Err(ScenarioError::Failed { failures, seeds }),
    }
}

/// Plays a seed's storm with and without the hidden entities.
fn play(seed: u64) -> Verdict {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let with = Game::new(seed, true).play();
        let without = Game::new(seed, false).play();
        let mut verdict = with.verdict.and(without.verdict);
        // The two games need not end at the same tick: each ends when its peers have seen
        // everything, including the neighbour.
        let end = with.tick.min(without.tick);
        for (peer, messages) in with.messages.iter().filter(|(peer, _)| **peer != NEIGHBOUR) {
            let other = without.messages.get(peer).map_or(&[][..], Vec::as_slice);
            if let Some((tick, what)) = difference(until(end, messages), until(end, other)) {
                verdict.note(Fault::Leak, || {
                    format!("{peer:?}, {tick:?}: {what} with and without what is hidden")
                });
            }
        }
        verdict
    }));
    played.unwrap_or_else(|_| {
        let mut verdict = Verdict::default();
        verdict.note(Fault::Failure, || "a panic, see above".into());
        verdict
    })
}

fn until(end: Tick, messages: &[Sent]) -> &[Sent] {
    &messages[..messages.partition_point(|(tick, ..)| *tick <= end)]
}

/// The first difference between the messages sent to a peer in two games.
fn difference(one: &[Sent], other: &[Sent]) -> Option<(Tick, String)> {
    let differs = one.iter().zip(other).find(|(one, other)| one != other);
    if let Some(((tick, is_state, message), (_, _, instead))) = differs {
        let what = if *is_state { "state" } else { "an event" };
        let (with, without) = (message.len(), instead.len());
        return Some((
            *tick,
            format!("{what} differs, {with} and {without} bytes,"),
        ));
    }
    (one.len() != other.len()).then(|| {
        let (with, without) = (one.len(), other.len());
        (Tick(0), format!("{with} and {without} messages"))
    })
}
