//! Published tables, reproduced next to their printed numbers.

mod buckets;
mod particles;
mod printed;

use clap::Subcommand;

use crate::CommandError;

/// Reports that can be reproduced.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Report {
    /// Bucket schemes, particle table and learning curve of the document about the learned
    /// protocol.
    Codec,
}

/// Prints a report.
pub(crate) fn report(what: &Report) -> Result<(), CommandError> {
    let mut output = std::io::stdout();
    match what {
        Report::Codec => {
            buckets::print(&mut output)?;
            particles::print(&mut output)
        }
    }
}
