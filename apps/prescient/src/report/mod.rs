//! Published tables, reproduced next to their printed numbers.

use clap::Subcommand;

use crate::CommandError;

/// What to reproduce.
#[derive(Clone, Debug, Subcommand)]
pub enum Report {
    /// The learned protocol's bucket schemes, particle table and learning curve.
    Codec,
}

/// Prints a report.
pub fn report(what: &Report) -> Result<(), CommandError> {
    match what {
        Report::Codec => Ok(()),
    }
}
