//! Statistics of connections and of the bytes spent on state.

use std::time::Duration;

use prescient_channels::Statistics;
use prescient_codec::ledger::{Account, Ledger};
use prescient_replication::{PeerStatistics, Tick};
use prescient_schema::Schema;

use crate::backlog::Backlog;

/// Statistics of one peer at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerReport {
    /// Statistics of its connection; `None` for a [local client](crate::Server::local_client).
    pub link: Option<Statistics>,
    /// Statistics of the state that was encoded for it.
    pub state: PeerStatistics,
    /// How many ticks its last acknowledged state is behind the world; `None` before the first
    /// acknowledgement.
    pub lag: Option<u32>,
    /// Messages of state that its connection had no room for. Later ones make up for them.
    pub dropped: u64,
    /// Events that were not sent because they exceed
    /// [the longest message](crate::ExchangeConfig::with_max_message).
    pub too_long: u64,
    /// Bytes of events that wait for room in its connection. Above
    /// [`ServerOptions::backlog`](crate::ServerOptions::backlog) the peer is closed.
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

    /// The smoothed round trip time; `None` before the first sample.
    pub fn round_trip(&self) -> Option<Duration> {
        Some(self.link?.round_trip?.smoothed)
    }

    /// Percentage of packets to it that are lost.
    pub fn loss_percent(&self) -> f64 {
        let loss = self.link.map_or(0, |link| link.loss_sent());
        f64::from(loss) / 10_000.0
    }

    /// Recent bytes per second to it, including IP and UDP headers.
    pub fn bytes_per_second_down(&self) -> u64 {
        self.link.map_or(0, |link| link.rate_sent.0)
    }

    /// Recent bytes per second from it, including IP and UDP headers.
    pub fn bytes_per_second_up(&self) -> u64 {
        self.link.map_or(0, |link| link.rate_received.0)
    }
}

/// What happened to the messages that a client received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewStatistics {
    /// Packets of state that were applied.
    pub applied: u64,
    /// Packets of state that arrived after a newer one, or before the server's welcome, and were
    /// skipped. That is normal.
    pub late: u64,
    /// Messages that could not be decoded or applied, which heals by itself. If the number keeps
    /// growing, the server runs another version of the game, or requests more than the client can
    /// answer.
    pub refused: u64,
    /// Replies that were not sent because they exceed the maximum message length.
    pub too_long: u64,
}

/// An entry of a peer's ledger: bytes spent on one field for one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Expense {
    /// The entity type, followed by a dot and the table if that is not the first; empty for costs
    /// of the whole packet.
    pub class: String,
    /// The field; empty for costs of the whole entity.
    pub field: String,
    /// The cause: `header`, `presence`, `flag`, `surprise`, `spawn` or `resend`.
    pub cause: &'static str,
    /// Bytes, summed over all packets.
    pub bytes: f64,
}

impl Expense {
    /// All entries of a ledger, the most expensive first.
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

/// A ledger counts in units of 1/65536 bit.
const UNITS_PER_BYTE: f64 = 8.0 * 65536.0;
