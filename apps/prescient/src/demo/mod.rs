//! `prescient demo`: a server, a dozen clients on links of all kinds, and a web page that shows
//! them.
//!
//! Sockets, encryption and packet loss are real; only the distance is simulated. Each client's view
//! is compared with the server's state at the tick it shows, value by value.

mod board;
mod bots;
mod creature;
mod links;
mod page;
mod plane;
mod pond;
mod server;
mod truth;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Args;
use prescient::WorldError;
use prescient_net::{Clock, OpenError, SystemEntropy, TextError, key_from_text, new_key};
use serde_json::json;

use crate::interrupt::{Interrupt, InterruptError};
use crate::progress;
use crate::text;
use board::{Board, ViewState};
use bots::{BotError, Bots};
use creature::raw_bytes;
use page::Page;
use pond::HZ;
use server::DemoServer;
use truth::Verdict;

/// Options of `prescient demo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoOptions {
    /// Print only the address of the page; it is served all the same.
    #[arg(long)]
    headless: bool,
    /// End after N seconds instead of at Ctrl-C.
    #[arg(long, value_name = "N")]
    seconds: Option<u32>,
    /// Print one JSON line at the end.
    #[arg(long)]
    json: bool,
    /// Port of the page; if it is taken, one of the next.
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self {
            headless: false,
            seconds: None,
            json: false,
            port: PORT,
        }
    }
}

/// Why the demo did not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The server could not start.
    #[error(transparent)]
    Server(#[from] prescient::ServeError),
    /// A change of the world was refused.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A client could not be started.
    #[error(transparent)]
    Bot(#[from] BotError),
    /// The page cannot be served.
    #[error("cannot serve the page: {0}")]
    Page(io::Error),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The generated key is invalid.
    #[error(transparent)]
    Key(#[from] TextError),
    /// The system has no random numbers.
    #[error(transparent)]
    Entropy(#[from] OpenError),
    /// Ctrl-C cannot be handled.
    #[error(transparent)]
    Interrupt(#[from] InterruptError),
    /// A thread panicked and printed its message.
    #[error("a thread of the demo panicked; its message is above")]
    Broken,
}

/// Runs the demo until the time is over or Ctrl-C is pressed.
pub(crate) fn demo(options: &DemoOptions) -> Result<(), DemoError> {
    let interrupt = Interrupt::listen()?;
    let key = key_from_text(&new_key(&mut SystemEntropy::new()?))?;
    let demo_server = DemoServer::open(key.clone())?;
    let links = links::links();
    let bots = Bots::start(&links, &key, demo_server.address())?;
    let board = Arc::new(Board::new(links));
    let page = Page::open(options.port, board.clone()).map_err(DemoError::Page)?;
    let url = page.url();
    introduce(options, &url);

    let (here, there) = (board.clone(), board.clone());
    let serving = start("server", move || demo_server.run(&here))?;
    let looking = start("clients", move || bots.run(&there))?;
    watch(options, &board, &interrupt, || {
        serving.is_finished() || looking.is_finished()
    });
    board.write(|notes| notes.is_over = true);
    looking.join().map_err(|_| DemoError::Broken)??;
    let ticks = serving.join().map_err(|_| DemoError::Broken)??;
    page.close();
    Totals::of(&board).print(options, ticks, &url);
    Ok(())
}

fn introduce(options: &DemoOptions, url: &str) {
    if options.headless {
        eprintln!("the page is at {url}");
        return;
    }
    println!(
        "A server with a pond, and twelve clients on links from a LAN to a train.\n\
         \n    open {url}\n"
    );
    match options.seconds {
        Some(seconds) => println!("It ends after {seconds} s, or with Ctrl-C."),
        None => println!("Ctrl-C ends it."),
    }
}

fn start<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, DemoError> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map_err(DemoError::Thread)
}

/// Prints the figures now and then until the demo ends.
fn watch(
    options: &DemoOptions,
    board: &Board,
    interrupt: &Interrupt,
    has_ended: impl Fn() -> bool,
) {
    let clock = Clock::start();
    let line = progress::status(!options.headless);
    let seconds = options.seconds.map(u64::from);
    let mut printed = 0;
    while !has_ended() {
        let passed = clock.now().as_micros();
        let left = seconds.map(|seconds| (seconds * 1_000_000).saturating_sub(passed));
        let pause = left.map_or(POLL_INTERVAL, |left| {
            Duration::from_micros(left).min(POLL_INTERVAL)
        });
        if interrupt.wait(pause) || left == Some(0) {
            break;
        }
        let totals = Totals::of(board);
        line.set_message(totals.line());
        if line.is_hidden() && !options.headless && passed / SPEAKS_EVERY > printed {
            printed = passed / SPEAKS_EVERY;
            eprintln!("{}", totals.line());
        }
    }
    line.finish_and_clear();
}

/// The figures of all clients together.
struct Totals {
    clients: usize,
    live: usize,
    bytes: u64,
    seconds: f64,
    verdict: Verdict,
    /// Bytes per second to send the whole uncompressed state of each tick to one client.
    raw: f64,
}

impl Totals {
    fn of(board: &Board) -> Self {
        let notes = board.read();
        let views = || notes.views.iter();
        let mut verdict = Verdict::default();
        views().for_each(|view| verdict += view.figures.verdict);
        let seconds = views().map(|view| view.figures.connected.as_secs_f64());
        Self {
            clients: notes.views.len(),
            live: views().filter(|view| view.state == ViewState::Live).count(),
            bytes: views().map(|view| view.figures.bytes).sum(),
            seconds: seconds.sum(),
            verdict,
            raw: (raw_bytes() * notes.truth.rows().len()) as f64 * f64::from(HZ),
        }
    }

    /// Bytes per second that a client received, with IP and UDP headers.
    fn rate(&self) -> f64 {
        if self.seconds > 0.0 {
            self.bytes as f64 / self.seconds
        } else {
            0.0
        }
    }

    fn line(&self) -> String {
        format!(
            "{} of {} clients live, {:.1} kB/s each (raw state: {:.1}), {} values compared, {} wrong",
            self.live,
            self.clients,
            self.rate() / 1e3,
            self.raw / 1e3,
            self.verdict.compared,
            self.verdict.wrong,
        )
    }

    fn print(&self, options: &DemoOptions, ticks: u64, url: &str) {
        if options.json {
            let all = json!({
                "clients": self.clients,
                "ticks": ticks,
                "desyncs": self.verdict.wrong,
                "bytes_per_client_second": self.rate().round(),
                "page": url,
                "values_compared": self.verdict.compared,
                "values_late": self.verdict.late,
                "raw_bytes_per_client_second": self.raw,
            });
            println!("{all}");
            return;
        }
        let goodbye = format!(
            "Goodbye. In {ticks} ticks, {} values of {} clients were compared with the server's, and {} were wrong.\n\
             A client received {:.1} kB/s with all headers; the raw state of the same world takes {:.1} kB/s without any.",
            self.verdict.compared,
            self.clients,
            self.verdict.wrong,
            self.rate() / 1e3,
            self.raw / 1e3,
        );
        println!("{}", text::wrapped(&goodbye));
    }
}

/// Default port of the page.
const PORT: u16 = 7777;
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Microseconds between two lines if there is no terminal for a progress line.
const SPEAKS_EVERY: u64 = 10_000_000;
