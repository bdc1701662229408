//! `prescient join`: a client of `prescient serve`, which checks everything that it is shown.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use prescient::{
    Change, Client, ClientEvent, ClientOptions, CloseReason, ConnectError, ConnectToken,
    EntityHandle, Reconnect, loopback_token, token_from_text,
};
use prescient_net::{Clock, TextError};
use serde_json::json;

use crate::interrupt::{Interrupt, InterruptError};
use crate::walkers::{is_true, schema};

/// Options of `prescient join`.
#[derive(Args, Clone, Debug)]
pub struct JoinOptions {
    /// A server on this machine, as host:port.
    #[arg(required_unless_present = "token_file")]
    address: Option<String>,
    /// A token for a server anywhere, as `prescient token` makes it.
    #[arg(long, value_name = "FILE", conflicts_with = "address")]
    token_file: Option<PathBuf>,
    /// Seconds; without it, until Ctrl-C or the end of the server.
    #[arg(long)]
    seconds: Option<u64>,
    /// Ends when the connection is lost, instead of joining the server again when it is back. With
    /// a token, its file is read again for that: after a restart of the server it is good once more
    /// until it expires, and whoever issues tokens may put a new one there.
    #[arg(long)]
    no_reconnect: bool,
    /// JSON lines.
    #[arg(long)]
    json: bool,
}

/// Why no server was joined, or what was wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The token cannot be read.
    #[error("cannot read the token {path} ({error}): name a file that `prescient token -o` made")]
    Read {
        /// Its path as it was given.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// The file has no token in it.
    #[error("{path}: {error}")]
    Token {
        /// Its path as it was given.
        path: String,
        /// What is wrong with it.
        error: TextError,
    },
    /// The server cannot be reached, or does not let us in.
    #[error(transparent)]
    Client(#[from] prescient::JoinError),
    /// The connection broke.
    #[error("the connection is over: {0}")]
    Left(CloseReason),
    /// The connection was lost, and the server does not let us in again.
    #[error("the connection was lost and cannot be made again: {0}")]
    Lost(ConnectError),
    /// What was shown was never true.
    #[error("{wrong} of {checked} values were never true: please tell us")]
    Wrong {
        /// So many values,
        wrong: u64,
        /// of so many.
        checked: u64,
    },
    /// Nobody could end it.
    #[error(transparent)]
    Interrupt(#[from] InterruptError),
}

/// Watches until the time is over, the server ends, or somebody presses Ctrl-C.
pub fn join(options: &JoinOptions) -> Result<(), JoinError> {
    let interrupt = Interrupt::listen()?;
    let token = token(options)?;
    let again = options.clone();
    let reconnect = Reconnect::new(move || self::token(&again).ok());
    let settings = ClientOptions {
        cancel: interrupt.cancel(),
        reconnect: (!options.no_reconnect).then_some(reconnect),
        ..ClientOptions::default()
    };
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

/// A token for the server that was asked for, as it is to be had now.
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
    /// How many walkers there are in all, once the server said so.
    all: Option<u32>,
    checked: u64,
    wrong: u64,
    /// It was in again after its connection was lost, and has not checked anything since.
    is_back: bool,
    json: bool,
}

impl Watcher {
    /// Takes in what happened, and says why the connection is over if it is.
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
                    self.tell("disconnected", &format!("the connection is lost: {reason}"));
                }
                ClientEvent::Reconnected => {
                    (self.all, self.is_back) = (None, true);
                    self.tell("reconnected", "the server let us in again");
                }
                ClientEvent::Left(reason) => return Some(Ok(reason)),
                ClientEvent::Failed(error) => return Some(Err(error)),
                _ => {}
            }
        }
        None
    }

    /// What became of the connection, and when.
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
            self.tell("playing", "what it shows is true again");
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
            "tick {}: {entities} entities, {} bytes a second, round trip {round_trip}, {loss:.1} % \
             lost; {wrong} of {checked} values wrong",
            tick.unwrap_or(0),
            link.rate_received.0,
        );
    }
}

const SECOND: Duration = Duration::from_secs(1);
