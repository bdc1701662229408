//! The command line of Prescient.
//!
//! Without a command it runs the demo: the shortest way to see what the library is for.

mod demo;
mod interrupt;
mod join;
mod measure;
mod options;
mod progress;
mod receive;
mod report;
mod scenario;
mod serve;
mod swarm;
mod table;
mod token;
mod train;
mod walkers;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Returns the memory of clients that left to the system; glibc's allocator keeps nearly all of it.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser)]
#[command(version, about = "Learned, entropy-coded state replication", long_about = None)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Shows a server's world beside what clients on links of all kinds see of it, on a page on
    /// this machine. This is what happens without a command.
    Demo(demo::DemoOptions),
    /// Replays two small worlds through every method, and prints bytes and times.
    Compare,
    /// Replays worlds through replication methods, verifies what arrives and counts the bytes.
    Measure(options::MeasureOptions),
    /// Learns from worlds what connections may start from.
    Train(train::TrainOptions),
    /// Reproduces published tables next to their printed numbers.
    Report {
        #[command(subcommand)]
        what: report::Report,
    },
    /// Makes the keys that backends and servers share, and tokens that let players connect.
    Token(token::TokenOptions),
    /// Runs an open server with a small world, and says who comes and what it costs.
    Serve(serve::ServeOptions),
    /// Joins such a server, says what it sees, and checks that it was true.
    Join(join::JoinOptions),
    /// Runs a server process and many encrypted clients on this machine, and checks what they see.
    ///
    /// Real clients have machines of their own. So they come a few at a time, and 50 and more of them
    /// run only where the server leaves them time. A machine that is busy otherwise has none left.
    Swarm(swarm::SwarmOptions),
    /// Plays made-up worlds over made-up networks, and checks what comes of it.
    Scenario {
        #[command(subcommand)]
        what: scenario::Scenario,
    },
    /// The server of a swarm; its key comes on standard input.
    #[command(hide = true)]
    SwarmServer(swarm::ServeOptions),
    /// The receiving half of a method alone: packets on standard input, answers on standard output.
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
        Command::Serve(options) => serve::serve(&options).map_err(CommandError::from),
        Command::Join(options) => join::join(&options).map_err(CommandError::from),
        Command::Swarm(options) => swarm::swarm(&options).map_err(CommandError::from),
        Command::Scenario { what } => scenario::play(&what).map_err(CommandError::from),
        Command::SwarmServer(options) => swarm::serve(&options).map_err(CommandError::from),
        Command::Receive(options) => receive::receive(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("prescient: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whatever ends a command early.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A world could not be read, or a method failed on it.
    #[error("{name}, {method}: {error}")]
    Run {
        /// The world.
        name: String,
        /// The method.
        method: String,
        /// What happened.
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
    /// The conversation of `receive` broke off.
    #[error(transparent)]
    Process(#[from] prescient_sim::harness::ProcessError),
    /// A prior could not be read.
    #[error("cannot read the prior {path}: {error}")]
    Prior {
        /// Its path as it was given.
        path: String,
        /// What is wrong with it.
        error: PriorFileError,
    },
    /// A world could not be learned from.
    #[error("{name}: {error}")]
    Training {
        /// The world.
        name: String,
        /// What happened.
        error: Box<prescient_sim::training::TrainingError>,
    },
    /// A key or a token could not be made.
    #[error(transparent)]
    Issue(#[from] token::IssueError),
    /// There was no server, or it ended.
    #[error(transparent)]
    Serve(#[from] serve::ServeError),
    /// No server was joined, or what it showed was wrong.
    #[error(transparent)]
    Join(#[from] join::JoinError),
    /// A swarm did not come about.
    #[error(transparent)]
    Swarm(#[from] swarm::SwarmError),
    /// Nor did its server.
    #[error(transparent)]
    SwarmServer(#[from] swarm::ServeError),
    /// A scenario did not pass.
    #[error(transparent)]
    Scenario(#[from] scenario::ScenarioError),
    /// The demo did not come about.
    #[error(transparent)]
    Demo(#[from] demo::DemoError),
    /// Standard output is gone.
    #[error("cannot write: {0}")]
    Write(#[from] std::io::Error),
}

/// What may be wrong with a file that shall be a prior.
#[derive(Debug, thiserror::Error)]
pub enum PriorFileError {
    /// The system has a problem with it.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It is no prior.
    #[error(transparent)]
    Prior(#[from] prescient_codec::PriorError),
}
