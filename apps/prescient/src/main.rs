//! The command line of Prescient.
//!
//! Without a command it runs the demo.

mod advise;
mod colour;
mod demo;
mod interrupt;
mod join;
mod measure;
mod named;
mod options;
mod progress;
mod receive;
mod record;
mod replay;
mod report;
mod scenario;
mod serve;
mod shooter;
mod sources;
mod swarm;
mod table;
mod text;
mod token;
mod topology;
mod train;
mod walkers;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Returns the memory of disconnected clients to the system; glibc's allocator keeps nearly all of
/// it.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser)]
#[command(version, about = "Learned, entropy-coded state replication", long_about = None)]
#[command(max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the demo, which is the default command.
    ///
    /// A web page on this machine shows a server's world beside the views of clients on good and bad
    /// links.
    Demo(demo::DemoOptions),
    /// Replay two small worlds through every replication method and print bytes and times.
    Compare,
    /// Replay worlds through replication methods, verify the decoded state and count the bytes.
    Measure(options::MeasureOptions),
    /// Train a prior from worlds; connections can start from it instead of an untrained model.
    Train(train::TrainOptions),
    /// Reproduce published tables next to their printed numbers.
    Report {
        #[command(subcommand)]
        what: report::Report,
    },
    /// Make keys that backends and servers share, and connect tokens for players.
    Token(token::TokenOptions),
    /// Run a server with a small world, and print clients and traffic once a second.
    Serve(serve::ServeOptions),
    /// Join a `prescient serve` server, print what it sends, and verify every value.
    Join(join::JoinOptions),
    /// Run a server process and many encrypted clients on this machine, and verify their views.
    ///
    /// Real clients have machines of their own. Here the clients share the server's, so they join a
    /// few at a time, and 50 or more of them run at idle priority. On a machine that is busy
    /// otherwise they get no time.
    Swarm(swarm::SwarmOptions),
    /// Play random worlds over random networks, and verify what clients see.
    Scenario {
        #[command(subcommand)]
        what: scenario::Scenario,
    },
    /// Record a live session by joining its server, or a trace, into a file that can be replayed.
    Record(record::RecordOptions),
    /// Show recordings, seek in them, compare two, or convert them to traces, CSV, MCAP or a page.
    Replay(replay::ReplayOptions),
    /// Tell what each field of a recording or trace costs, and what would be cheaper.
    ///
    /// Measures, per field: the codec's bytes, the best predictor, the step for an acceptable error, and
    /// keyframes of fitted curves, against sending every value.
    Advise(advise::AdviseOptions),
    /// Named-data networking (NDN): runs a forwarder.
    Named {
        #[command(subcommand)]
        what: named::Named,
    },
    /// The server of a swarm; reads its key from standard input.
    #[command(hide = true)]
    SwarmServer(swarm::ServeOptions),
    /// The receiving half of a method alone: packets on standard input, replies on standard output.
    #[command(hide = true)]
    Receive(receive::ReceiveOptions),
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    let done = match command.unwrap_or_else(|| Command::Demo(demo::DemoOptions::default())) {
        Command::Demo(options) => demo::demo(&options).map_err(CommandError::from),
        Command::Compare => measure::compare(),
        Command::Measure(options) => measure::measure(&options),
        Command::Train(options) => train::train(&options),
        Command::Report { what } => report::report(&what),
        Command::Token(options) => token::token(&options).map_err(CommandError::from),
        Command::Serve(options) => options::optional_prior(options.prior.as_deref())
            .and_then(|prior| Ok(serve::serve(&options, prior)?)),
        Command::Join(options) => options::optional_prior(options.prior.as_deref())
            .and_then(|prior| Ok(join::join(&options, prior)?)),
        Command::Swarm(options) => swarm::swarm(&options).map_err(CommandError::from),
        Command::Scenario { what } => scenario::play(&what).map_err(CommandError::from),
        Command::Record(options) => record::record(&options).map_err(CommandError::from),
        Command::Replay(options) => replay::replay(&options).map_err(CommandError::from),
        Command::Advise(options) => advise::advise(&options).map_err(CommandError::from),
        Command::Named { what } => named::named(&what).map_err(CommandError::from),
        Command::SwarmServer(options) => swarm::serve(&options).map_err(CommandError::from),
        Command::Receive(options) => receive::receive(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = text::wrapped(&format!("prescient: {error}"));
            let error = error.trim_start_matches("prescient:");
            eprintln!("{}{error}", colour::failure("prescient:"));
            ExitCode::FAILURE
        }
    }
}

/// Errors that end a command.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A world could not be read, or a method failed on it.
    #[error("{name}, {method}: {error}")]
    Run {
        /// The world.
        name: String,
        /// The method.
        method: String,
        /// The cause.
        error: Box<prescient_sim::harness::RunError>,
    },
    /// A world could not be opened.
    #[error(transparent)]
    Source(#[from] prescient_sim::world::SourceError),
    /// No such method.
    #[error(transparent)]
    Method(#[from] prescient_sim::baseline::UnknownMethod),
    /// The schema given to `receive` is unusable.
    #[error(transparent)]
    Header(#[from] prescient_sim::trace::HeaderError),
    /// The packet stream of `receive` broke off.
    #[error(transparent)]
    Process(#[from] prescient_sim::harness::ProcessError),
    /// A prior could not be read.
    #[error("cannot read the prior {path}: {error}")]
    Prior {
        /// Its path as given.
        path: String,
        /// The cause.
        error: PriorFileError,
    },
    /// Training on a world failed.
    #[error("{name}: {error}")]
    Training {
        /// The world.
        name: String,
        /// The cause.
        error: Box<prescient_sim::training::TrainingError>,
    },
    /// `record` failed.
    #[error(transparent)]
    Record(#[from] record::RecordCommandError),
    /// `replay` failed.
    #[error(transparent)]
    Replay(#[from] replay::ReplayError),
    /// `advise` failed.
    #[error(transparent)]
    Advise(#[from] advise::AdviseError),
    /// `named` failed.
    #[error(transparent)]
    Named(#[from] named::NamedError),
    /// A key or a token could not be issued.
    #[error(transparent)]
    Issue(#[from] token::IssueError),
    /// `serve` failed.
    #[error(transparent)]
    Serve(#[from] serve::ServeError),
    /// `join` failed, or received wrong values.
    #[error(transparent)]
    Join(#[from] join::JoinError),
    /// `swarm` failed.
    #[error(transparent)]
    Swarm(#[from] swarm::SwarmError),
    /// The server of a swarm failed.
    #[error(transparent)]
    SwarmServer(#[from] swarm::ServeError),
    /// A scenario did not pass.
    #[error(transparent)]
    Scenario(#[from] scenario::ScenarioError),
    /// The demo failed.
    #[error(transparent)]
    Demo(#[from] demo::DemoError),
    /// Standard output is gone.
    #[error("cannot write: {0}")]
    Write(#[from] std::io::Error),
}

/// Why a file could not be read as a prior.
#[derive(Debug, thiserror::Error)]
pub enum PriorFileError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The content is not a prior.
    #[error(transparent)]
    Prior(#[from] prescient_codec::PriorError),
}
