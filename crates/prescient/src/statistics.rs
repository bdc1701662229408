//! What it costs, and how well it goes.

use std::time::Duration;

use prescient_codec::ledger::{Account, Ledger};
use prescient_replication::{PeerStatistics, Tick};
use prescient_schema::Schema;
use prescient_transport::Statistics;

use crate::backlog::Backlog;

/// What happened between a server and one of its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerReport {
    /// What its connection has seen; `None` for a [local client](crate::Server::local_client), which has none.
    pub link: Option<Statistics>,
    /// What was made of the world for it.
    pub state: PeerStatistics,
    /// How many ticks what it is known to show is behind the world; `None` before it shows
    /// anything.
    pub lag: Option<u32>,
    /// Messages of state that its connection had no room for. The next ones make up for them.
    pub dropped: u64,
    /// Events that were not sent because they are longer than messages may be
    /// ([`LinkConfig::max_message`](crate::LinkConfig::max_message)).
    pub too_long: u64,
    /// Bytes of events that wait for room in its connection. Too many of them, and it is thrown
    /// out ([`ServerOptions::backlog`](crate::ServerOptions::backlog)).
    pub backlog: usize,
}

impl PeerReport {
    pub(crate) fn new(
        link: Option<Statistics>,
        state: PeerStatistics,
        now: Tick,
        backlog: Option<&Backlog>,
    ) -> Self {
        Self {
            link,
            state,
            lag: state.applied.map(|applied| now.0.wrapping_sub(applied.0)),
            dropped: backlog.map_or(0, |backlog| backlog.dropped),
            too_long: backlog.map_or(0, |backlog| backlog.too_long),
            backlog: backlog.map_or(0, Backlog::bytes),
        }
    }

    /// How long an answer takes; `None` before the first.
    pub fn round_trip(&self) -> Option<Duration> {
        Some(self.link?.round_trip?.smoothed)
    }

    /// Of 100 packets to it, how many get lost.
    pub fn loss_percent(&self) -> f64 {
        let loss = self.link.map_or(0, |link| link.loss_sent());
        f64::from(loss) / 10_000.0
    }

    /// Bytes a second to it, lately, with the headers of IP and UDP.
    pub fn bytes_per_second_down(&self) -> u64 {
        self.link.map_or(0, |link| link.rate_sent.0)
    }

    /// Bytes a second from it, lately, with the headers of IP and UDP.
    pub fn bytes_per_second_up(&self) -> u64 {
        self.link.map_or(0, |link| link.rate_received.0)
    }
}

/// What became of the messages that a client got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewStatistics {
    /// Messages that were taken in.
    pub applied: u64,
    /// Packets of state that came after a later one, or before the server's welcome, and were left
    /// out. That is normal.
    pub late: u64,
    /// Messages that could not be understood, which heals by itself. If it does not stop, the
    /// server runs another version of the game, or asks more than it can be told.
    pub refused: u64,
    /// Answers that were not sent because they are longer than messages may be.
    pub too_long: u64,
}

/// What bytes for a peer were spent on.
#[derive(Clone, Debug, PartialEq)]
pub struct Expense {
    /// The type, with its table behind a dot if it is not the first; empty for what concerns the
    /// whole packet.
    pub class: String,
    /// The field; empty for what concerns the whole entity.
    pub field: String,
    /// Why: one of `header`, `presence`, `flag`, `surprise`, `spawn` and `resend`.
    pub cause: &'static str,
    /// How many bytes, in all packets together.
    pub bytes: f64,
}

impl Expense {
    /// All accounts of a ledger, the dearest first.
    pub(crate) fn list(ledger: &Ledger, schema: &Schema) -> Vec<Self> {
        let expense = |(account, cost): (Account, u64)| {
            let class = account
                .class
                .and_then(|at| schema.classes.get(usize::from(at)));
            let field = class.zip(account.field);
            let field = field.and_then(|(class, at)| class.fields.get(usize::from(at)));
            Self {
                class: class.map_or_else(String::new, |class| class.name.clone()),
                field: field.map_or_else(String::new, |field| field.name.clone()),
                cause: account.cause.name(),
                bytes: cost as f64 / UNITS_PER_BYTE,
            }
        };
        let mut expenses: Vec<Self> = ledger.entries().map(expense).collect();
        expenses.sort_by(|one, other| other.bytes.total_cmp(&one.bytes));
        expenses
    }
}

/// A ledger counts in 1/65536 bit.
const UNITS_PER_BYTE: f64 = 8.0 * 65536.0;
