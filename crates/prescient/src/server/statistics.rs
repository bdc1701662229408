//! The statistics and the ledger that a server keeps per client.

use std::time::Duration;

use prescient_channels::{Statistics, Traffic};
use prescient_codec::ledger::{Account, Ledger};
use prescient_replication::{PeerError, PeerId, PeerStatistics, Tick};
use prescient_schema::Schema;

use super::Server;
use super::queues::Backlog;

impl Server {
    /// Packets and bytes that passed the sockets of all carriers.
    pub fn traffic(&self) -> Traffic {
        self.carriers.traffic()
    }

    /// A peer's round trip, loss and rates, and how much state it is sent.
    pub fn statistics(&self, peer: PeerId) -> Option<PeerReport> {
        let world_server = self.worlds.world_of(peer);
        let state = world_server.statistics(peer)?;
        let link = self.carriers.statistics(peer);
        let backlog = self.backlogs.get(&peer);
        let tick = world_server.world().tick().unwrap_or_default();
        Some(PeerReport::new(link, state, tick, backlog))
    }

    /// How many values were changed because they did not fit fields that are declared `saturate`, in
    /// all open worlds. Values that do not fit other fields are refused
    /// ([`WorldError::DoesNotFit`](crate::WorldError::DoesNotFit)). With the feature `tracing`, the
    /// first one is also an event of level warn.
    ///
    /// ```
    /// use prescient::{Everything, Schema, Server, State};
    ///
    /// #[derive(State)]
    /// struct Tank {
    ///     #[state(bits = 4, saturate)]
    ///     ammunition: u8,
    ///     #[state(bits = 4)]
    ///     fuel: u8,
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Server::offline(Schema::of::<Tank>()?, Everything)?;
    /// server.step()?.spawn(&Tank { ammunition: 200, fuel: 15 })?; // 15 of both
    /// assert_eq!(server.saturated_values(), 1);
    /// let refused = server.step()?.spawn(&Tank { ammunition: 15, fuel: 200 }).unwrap_err();
    /// assert!(refused.to_string().contains("`Tank.fuel`"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn saturated_values(&self) -> u64 {
        let worlds = self.worlds.iter();
        worlds
            .map(|world_server| world_server.world().saturated())
            .sum()
    }

    /// Starts or stops recording what a peer's bytes are spent on. Recording makes
    /// [`send`](Self::send) slower.
    pub fn keep_ledger(&mut self, peer: PeerId, keep: bool) -> Result<(), PeerError> {
        self.about_peer(peer, |world_server| world_server.keep_ledger(peer, keep))
    }

    /// What a peer's bytes were spent on since its [ledger](Self::keep_ledger) was started, the
    /// most expensive first; empty without a ledger.
    pub fn ledger(&self, peer: PeerId) -> Vec<Expense> {
        let world_server = self.worlds.world_of(peer);
        let schema = world_server.world().archive().schema();
        let ledger = world_server.ledger(peer);
        ledger.map_or_else(Vec::new, |ledger| Expense::list(ledger, schema))
    }
}

/// Statistics of one peer at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerReport {
    /// Statistics of its connection; `None` for a [local client](crate::Server::local_client).
    pub link: Option<Statistics>,
    /// Statistics of the state that was encoded for it.
    pub state: PeerStatistics,
    /// How many ticks its last acknowledged state is behind the world; `None` before the first
    /// acknowledgement.
    pub lag: Option<u64>,
    /// Messages of state that its connection had no room for. Later ones make up for them.
    pub dropped: u64,
    /// Events that were not sent because they exceed
    /// [the longest message](crate::ExchangeConfig::with_max_message).
    pub too_long: u64,
    /// Bytes of events that wait for room in its connection. Above
    /// [`ServerOptions::with_backlog`](crate::ServerOptions::with_backlog) the peer is closed.
    pub backlog: usize,
}

impl PeerReport {
    fn new(
        link: Option<Statistics>,
        state: PeerStatistics,
        now: Tick,
        backlog: Option<&Backlog>,
    ) -> Self {
        Self {
            link,
            state,
            lag: state.applied.map(|applied| now.since(applied)),
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

    /// Bytes of state that were sent to it, of [`bytes_down`](Self::bytes_down).
    pub fn state_bytes_down(&self) -> u64 {
        self.state.bytes
    }

    /// All other bytes that were sent to it: headers, events, acknowledgements, pings and what was
    /// sent again.
    pub fn overhead_bytes_down(&self) -> u64 {
        self.bytes_down().saturating_sub(self.state.bytes)
    }

    /// Bytes that were sent to it, including IP and UDP headers; those of state alone for a
    /// [local client](crate::Server::local_client).
    ///
    /// ```
    /// # use prescient::{Everything, Schema, Server, ServerEvent, State};
    /// # #[derive(State)]
    /// # struct Tank { #[state(step = 0.01)] x: f32 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut server = Server::offline(Schema::of::<Tank>()?, Everything)?;
    /// # let client = server.local_client();
    /// # server.step()?.spawn(&Tank { x: 1.0 })?;
    /// # server.send();
    /// for peer in server.peers() {
    ///     let report = server.statistics(peer).expect("it is connected");
    ///     println!(
    ///         "{peer:?}: {:?}, {:.1} % lost, {} B/s down, of it {} % state, {} ticks behind",
    ///         report.round_trip(),
    ///         report.loss_percent(),
    ///         report.bytes_per_second_down(),
    ///         100 * report.state_bytes_down() / report.bytes_down().max(1),
    ///         report.lag.unwrap_or(0),
    ///     );
    /// #   assert!(report.state_bytes_down() > 0 && report.overhead_bytes_down() == 0);
    /// #   assert_eq!((report.bytes_up(), report.bytes_per_second_up()), (0, 0));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn bytes_down(&self) -> u64 {
        self.link.map_or(self.state.bytes, |link| {
            link.bytes_sent + link.packets_sent * IP_AND_UDP
        })
    }

    /// Bytes that were received from it, including IP and UDP headers: inputs, events,
    /// acknowledgements.
    pub fn bytes_up(&self) -> u64 {
        self.link.map_or(0, |link| {
            link.bytes_received + link.packets_received * IP_AND_UDP
        })
    }

    /// Recent bytes per second from it, including IP and UDP headers.
    pub fn bytes_per_second_up(&self) -> u64 {
        self.link.map_or(0, |link| link.rate_received.0)
    }
}

/// An entry of a peer's ledger: bytes spent on one field for one cause.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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
    fn list(ledger: &Ledger, schema: &Schema) -> Vec<Self> {
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

/// Bytes of the headers of IPv4 and UDP.
const IP_AND_UDP: u64 = 28;
