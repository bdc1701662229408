//! Published tables, reproduced next to their printed numbers.

mod adaptation;
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
    /// Tables of the document about adaptive compression: bits per entity, loss and latency,
    /// quantisation, and derived against hand-written encoding.
    Adaptation,
}

/// Prints a report.
pub(crate) fn report(what: &Report) -> Result<(), CommandError> {
    let mut output = std::io::stdout();
    match what {
        Report::Adaptation => adaptation::print(&mut output),
        Report::Codec => {
            buckets::print(&mut output)?;
            particles::print(&mut output)
        }
    }
}
