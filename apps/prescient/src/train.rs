//! `prescient train`: makes a prior from recordings.

use std::{io::Write, path::PathBuf};

use clap::Args;
use prescient_codec::{Config, Trainer};
use prescient_sim::{harness::RunOptions, world::open};

use crate::{
    CommandError,
    options::ProfileName,
    progress::spinner,
    table::{Table, number},
};

/// Options of `prescient train`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TrainOptions {
    /// Trace files or built-in worlds, as for `measure`; the last one has the most influence.
    #[arg(required = true)]
    pub traces: Vec<String>,
    /// File to write the prior to.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Profile of the connections that will use the prior.
    #[arg(long, value_enum, default_value_t = ProfileName::Default)]
    pub profile: ProfileName,
    /// Round trip, in ticks, of the connections that will use the prior.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rtt_ticks: u32,
}

/// Replays every world once and writes the prior.
pub(crate) fn train(options: &TrainOptions) -> Result<(), CommandError> {
    let mut trainer = Trainer::new(Config::default().with_profile(options.profile.into()));
    let run_options = RunOptions {
        rtt_ticks: options.rtt_ticks,
        ..RunOptions::default()
    };
    let mut table = Table::new(&["learned from", "ticks", "mean B"]);
    for trace in &options.traces {
        let mut source = open(trace)?;
        let bar = spinner(trace, "train");
        let learned = prescient_sim::training::train(
            &mut trainer,
            source.as_mut(),
            &run_options,
            &mut |tick| bar.set_position(tick),
        );
        bar.finish_and_clear();
        let measured = learned.map_err(|error| CommandError::Training {
            name: trace.clone(),
            error: Box::new(error),
        })?;
        let bytes = &measured.bytes;
        table.row([trace.clone(), bytes.len().to_string(), number(bytes.mean())]);
    }
    let prior = trainer.finish();
    let bytes = prior.to_bytes();
    std::fs::write(&options.output, &bytes)?;
    let mut output = std::io::stdout().lock();
    table.print(&mut output)?;
    writeln!(
        output,
        "{}: {} bytes, profile {}, hash {}",
        options.output.display(),
        bytes.len(),
        prior.profile().name(),
        prior.fingerprint()
    )?;
    Ok(())
}
