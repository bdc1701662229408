//! `prescient join`: a client of `prescient serve` that verifies every value it receives.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use prescient::{
    Change, Client, ClientEvent, ClientOptions, CloseReason, ConnectError, ConnectToken,
    EntityHandle, Prior, Reconnect, loopback_token, token_from_text,
};
use prescient_net::{Clock, TextError};
use serde_json::json;

use crate::interrupt::{Interrupt, InterruptError};
use crate::table::byte_text;
use crate::walkers::{is_true, schema};

/// Options of `prescient join`.
#[derive(Args, Clone, Debug)]
pub(crate) struct JoinOptions {
    /// A server on this machine, as host:port.
    #[arg(required_unless_present = "token_file")]
    address: Option<String>,
    /// File with a token for any server, as `prescient token` makes it.
    #[arg(long, value_name = "FILE", conflicts_with = "address")]
    token_file: Option<PathBuf>,
    /// Seconds to run; by default until Ctrl-C or until the server ends.
    #[arg(long)]
    seconds: Option<u64>,
    /// Exit when the connection is lost instead of reconnecting.
    ///
    /// A reconnect reads the token file again: after a restart of the server the token is accepted
    /// once more until it expires, and the issuer may replace it.
    #[arg(long)]
    no_reconnect: bool,
    /// The server's `--prior`.
    #[arg(long, value_name = "FILE")]
    pub(crate) prior: Option<PathBuf>,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
}

/// Why the client could not join, or what went wrong afterwards.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The token cannot be read.
    #[error("cannot read the token {path} ({error}): name a file that `prescient token -o` made")]
    Read {
        /// Its path as given.
        path: String,
        /// The cause.
        error: io::Error,
    },
    /// The file contains no token.
    #[error("{path}: {error}")]
    Token {
        /// Its path as given.
        path: String,
        /// The cause.
        error: TextError,
    },
    /// The server cannot be reached, or refused the client.
    #[error(transparent)]
    Client(#[from] prescient::JoinError),
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Left(CloseReason),
    /// The connection was lost, and reconnecting failed.
    #[error("the connection was lost and reconnecting failed: {0}")]
    Lost(ConnectError),
    /// The client received values that the server never had.
    #[error("{wrong} of {checked} values differ from the server's: please report this")]
    Wrong {
        /// Number of wrong values.
        wrong: u64,
        /// Number of verified values.
        checked: u64,
    },
    /// Ctrl-C cannot be handled.
    #[error(transparent)]
    Interrupt(#[from] InterruptError),
}

/// Runs until `--seconds` have passed, the server ends, or Ctrl-C is pressed.
pub(crate) fn join(options: &JoinOptions, prior: Option<Prior>) -> Result<(), JoinError> {
    let interrupt = Interrupt::listen()?;
    let token = token(options)?;
    let mut settings = ClientOptions::default().with_cancel(interrupt.cancel());
    if let Some(prior) = prior {
        settings = settings.with_prior(prior);
    }
    if !options.no_reconnect {
        let again = options.clone();
        let reconnect = Reconnect::new(move || self::token(&again).ok());
        settings = settings.with_reconnect(reconnect);
    }
    if !options.json {
        let servers = token.servers().iter().map(ToString::to_string);
        let servers: Vec<String> = servers.collect();
        println!("connecting to {} …", servers.join(", "));
    }
    let mut watcher = Watcher {
        client: Client::join_with(token, schema(), settings)?,
        all: None,
        checked: 0,
        wrong: 0,
        is_back: false,
        json: options.json,
    };
    let clock = Clock::start();
    let (begun, mut told) = (clock.now(), clock.now());
    let over = options.seconds.map(Duration::from_secs);
    let mut end = None;
    while end.is_none() && !interrupt.is_asked() {
        if over.is_some_and(|over| clock.now().since(begun) >= over) {
            break;
        }
        watcher.client.wait(Duration::from_millis(20));
        end = watcher.listen();
        if clock.now().since(told) >= SECOND {
            told = told.after(SECOND);
            watcher.report("second");
        }
    }
    watcher.report("ended");
    match end {
        Some(Err(error)) => return Err(JoinError::Lost(error)),
        Some(Ok(CloseReason::ShuttingDown)) => {}
        Some(Ok(reason)) => return Err(JoinError::Left(reason)),
        None => watcher.client.leave(),
    }
    let (wrong, checked) = (watcher.wrong, watcher.checked);
    match wrong {
        0 => Ok(()),
        _ => Err(JoinError::Wrong { wrong, checked }),
    }
}

/// Reads the token file, or makes a token for a server on this machine.
fn token(options: &JoinOptions) -> Result<ConnectToken, JoinError> {
    let Some(path) = &options.token_file else {
        let address = options.address.as_deref().unwrap_or_default();
        return Ok(loopback_token(address).map_err(prescient::JoinError::from)?);
    };
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| {
        let path = name.clone();
        JoinError::Read { path, error }
    })?;
    let token = token_from_text(&text);
    token.map_err(|error| JoinError::Token { path: name, error })
}

struct Watcher {
    client: Client,
    /// Number of walkers in the world, once the server has sent it.
    all: Option<u32>,
    checked: u64,
    wrong: u64,
    /// Reconnected, and no value verified since.
    is_back: bool,
    json: bool,
}

impl Watcher {
    /// Handles all events; returns the reason if the connection ended.
    fn listen(&mut self) -> Option<Result<CloseReason, ConnectError>> {
        while let Some(event) = self.client.poll() {
            match event {
                ClientEvent::Change(Change::Created(entity) | Change::Updated(entity)) => {
                    self.check(entity);
                }
                ClientEvent::Change(Change::Event { payload, .. }) => {
                    self.all = payload.try_into().ok().map(u32::from_le_bytes);
                }
                ClientEvent::Disconnected(reason) => {
                    self.tell(
                        "disconnected",
                        &format!("the connection was lost: {reason}"),
                    );
                }
                ClientEvent::Reconnected => {
                    (self.all, self.is_back) = (None, true);
                    self.tell("reconnected", "reconnected to the server");
                }
                ClientEvent::Left(reason) => return Some(Ok(reason)),
                ClientEvent::Failed(error) => return Some(Err(error)),
                _ => {}
            }
        }
        None
    }

    /// Prints a change of the connection, with its time.
    fn tell(&self, event: &str, text: &str) {
        if self.json {
            let unix_ms = Clock::unix_millis();
            println!(
                "{}",
                json!({"event": event, "unix_ms": unix_ms, "text": text})
            );
        } else {
            println!("{text}");
        }
    }

    fn check(&mut self, entity: EntityHandle) {
        let is_true = self.all.and_then(|all| is_true(&self.client, entity, all));
        if is_true.is_some() && std::mem::take(&mut self.is_back) {
            self.tell("playing", "values are verified again");
        }
        self.checked += u64::from(is_true.is_some());
        self.wrong += u64::from(is_true == Some(false));
    }

    fn report(&self, event: &str) {
        let entities = self.client.entities().count();
        let tick = self.client.tick().map(|tick| tick.0);
        let link = self.client.statistics().unwrap_or_default();
        let round_trip = link
            .round_trip
            .map(|trip| trip.smoothed.as_secs_f64() * 1e3);
        let loss = f64::from(link.loss_received()) / 10_000.0;
        let Self { checked, wrong, .. } = self;
        if self.json {
            let line = json!({
                "event": event,
                "tick": tick,
                "entities": entities,
                "bytes_per_second": link.rate_received.0,
                "round_trip_ms": round_trip,
                "loss_percent": loss,
                "checked": checked,
                "wrong": wrong,
            });
            println!("{line}");
            return;
        }
        let round_trip = round_trip.map_or("not known yet".into(), |ms| format!("{ms:.1} ms"));
        println!(
            "tick {}: {entities} entities, {} a second, round trip {round_trip}, {loss:.1} % lost; \
             {wrong} of {checked} values wrong",
            tick.unwrap_or(0),
            byte_text(link.rate_received.0),
        );
    }
}

const SECOND: Duration = Duration::from_secs(1);
