//! The options of `measure`, and their translation into the harness's terms.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use clap::{Args, ValueEnum};
use prescient_codec::{HISTORY, Prior};
use prescient_sim::{
    baseline::{METHODS, MethodOptions, Profile},
    harness::{RunOptions, TickRange},
};

use crate::CommandError;

/// Options of `prescient measure`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MeasureOptions {
    /// Trace files, or built-in worlds: world:particles, world:rts, world:idle, with options such
    /// as ?seed=7&ticks=500&count=100.
    #[arg(required = true)]
    pub traces: Vec<String>,
    /// Methods to run, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = METHODS.iter().map(|name| name.to_string()))]
    pub methods: Vec<String>,
    /// Round trip in ticks: the acknowledgement of tick t is known when tick t + N is encoded.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rtt_ticks: u32,
    /// Percentage of packets, and of acknowledgements, that are lost.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub loss: f64,
    /// Replicate only the entities of this owner, and those of classes without an owner.
    #[arg(long, value_name = "OWNER", allow_negative_numbers = true)]
    pub viewer: Option<i64>,
    /// Count only ticks from A up to but not including B; the replay still starts at the beginning.
    #[arg(long, value_name = "A..B")]
    pub ticks: Option<Ticks>,
    /// Maximum size of a packet.
    #[arg(long, value_name = "BYTES")]
    pub budget: Option<usize>,
    /// Start from a prior that `prescient train` wrote; method `prescient` only.
    #[arg(long, value_name = "FILE")]
    pub prior: Option<PathBuf>,
    /// Do not update the models, for comparison.
    #[arg(long)]
    pub no_learning: bool,
    /// Speed against size: `best` makes better predictions and takes more time.
    #[arg(long, value_enum, default_value_t = ProfileName::Default)]
    pub profile: ProfileName,
    /// Seed of the random packet loss.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print the bits spent by class and field.
    #[arg(long)]
    pub ledger: bool,
    /// Print one JSON object per line instead of a table.
    #[arg(long)]
    pub json: bool,
}

impl MeasureOptions {
    /// Options of the harness.
    pub(crate) fn run_options(&self) -> RunOptions {
        RunOptions {
            rtt_ticks: self.rtt_ticks,
            loss: (self.loss * 10_000.0).round() as u32,
            viewer: self.viewer,
            ticks: self.ticks.map(|ticks| ticks.0),
            budget: self.budget,
            seed: self.seed,
        }
    }

    /// Options of the methods.
    pub(crate) fn method_options(&self) -> Result<MethodOptions, CommandError> {
        Ok(MethodOptions {
            learning: !self.no_learning,
            ledger: self.ledger,
            prior: self.prior.as_deref().map(read_prior).transpose()?,
            profile: self.profile.into(),
            // A round trip of losses may take twice as long.
            history: (2 * self.rtt_ticks).max(HISTORY),
        })
    }
}

/// `default` or `best`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileName {
    /// Fast.
    Default,
    /// Slower, with smaller packets.
    Best,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Default => Profile::Default,
            ProfileName::Best => Profile::Best,
        }
    }
}

/// Reads a file written by `prescient train`.
pub(crate) fn read_prior(path: &Path) -> Result<Arc<Prior>, CommandError> {
    let failed = |error| CommandError::Prior {
        path: path.display().to_string(),
        error,
    };
    let bytes = std::fs::read(path).map_err(|error| failed(error.into()))?;
    let prior = Prior::from_bytes(&bytes).map_err(|error| failed(error.into()))?;
    Ok(Arc::new(prior))
}

/// The same, if a path is given.
pub(crate) fn optional_prior(path: Option<&Path>) -> Result<Option<Prior>, CommandError> {
    let prior = path.map(read_prior).transpose()?;
    Ok(prior.map(Arc::unwrap_or_clone))
}

/// `A..B` on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks(pub TickRange);

impl FromStr for Ticks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || format!("expected A..B with A smaller than B, got {text:?}");
        let (start, end) = text.split_once("..").ok_or_else(bad)?;
        let number = |text: &str, empty| match text {
            "" => Ok(empty),
            _ => text.parse().map_err(|_| bad()),
        };
        let range = TickRange {
            start: number(start, 0)?,
            end: number(end, u64::MAX)?,
        };
        if range.start < range.end {
            Ok(Self(range))
        } else {
            Err(bad())
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err(format!(
            "expected a share from 0 to below 100, got {text:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tick_ranges_are_half_open_and_may_lack_an_end() {
        let range = |text: &str| {
            text.parse::<Ticks>()
                .map(|ticks| (ticks.0.start, ticks.0.end))
        };
        assert_eq!(range("11..1000"), Ok((11, 1000)));
        assert_eq!(range("11.."), Ok((11, u64::MAX)));
        assert_eq!(range("..7"), Ok((0, 7)));
        assert!(range("7..7").is_err() && range("7").is_err() && range("a..b").is_err());
    }
}
