//! The loop of a run: world, sender, link, receiver, verification, statistics.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use prescient_schema::Schema;

use super::{LedgerRow, Link, Mismatch, ReceiveError, Receiver, Sender, Series, verify::verify};
use crate::world::{Source, SourceError, TickChanges, View, World};

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Round trip: the acknowledgement of a tick is known this many ticks later; at least 1.
    pub rtt_ticks: u32,
    /// Parts per million of packets, and of acknowledgements, that are lost.
    pub loss: u32,
    /// Replicates only what this owner may see.
    pub viewer: Option<i64>,
    /// Counts only these ticks; the run starts with the recording's first tick and ends after them.
    pub ticks: Option<TickRange>,
    /// Maximum size of a packet.
    pub budget: Option<usize>,
    /// Seed of the packet loss.
    pub seed: u64,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            rtt_ticks: 1,
            loss: 0,
            viewer: None,
            ticks: None,
            budget: None,
            seed: 1,
        }
    }
}

/// Ticks `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickRange {
    /// First counted tick.
    pub start: u64,
    /// First tick after the counted ones.
    pub end: u64,
}

/// Results of a run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Measurement {
    /// Packet bytes of every counted tick.
    pub bytes: Series,
    /// Microseconds of encoding, and of handling the acknowledgements before it.
    pub encode_us: Series,
    /// Microseconds of decoding, of packets that arrived.
    pub decode_us: Series,
    /// Packets that arrived and were applied.
    pub applied: u64,
    /// Packets that the link lost.
    pub lost: u64,
    /// Packets that arrived but could not be applied, because they refer to a lost one.
    pub unusable: u64,
    /// Packets that exceed the budget because a single entity needs more.
    pub oversize: u64,
    /// Longest time for which a visible entity was out of date, in ticks; only with a budget.
    pub stalest_ticks: Option<u64>,
    /// See [`Sender::model_bytes`].
    pub model_bytes: usize,
    /// Share of the applied packets that the model has learned from, as the receiver counts them:
    /// packets whose acknowledgement is under way or was lost count as not folded.
    pub folded_share: Option<f64>,
    /// See [`Sender::ledger`].
    pub ledger: Option<Vec<LedgerRow>>,
    /// The method needs a reliable stream, so no packet was lost.
    pub reliable_stream_assumed: bool,
    /// The method cannot limit its packets, so the budget was not applied.
    pub budget_ignored: bool,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The receiver's state differs from the world.
    #[error("the receiver differs from the world: {0}")]
    Mismatch(#[from] Mismatch),
    /// The receiver refused a packet of its own sender.
    #[error(
        "tick {tick}: the receiver refused its sender's packet: {error} (replay with --seed {seed})"
    )]
    Refused {
        /// The tick.
        tick: u64,
        /// The seed of the run.
        seed: u64,
        /// The cause.
        error: ReceiveError,
    },
    /// The sender could not encode a tick.
    #[error("tick {tick}: {reason}")]
    NotEncoded {
        /// The tick.
        tick: u64,
        /// The sender's error.
        reason: String,
    },
    /// A packet is longer than the budget.
    #[error("tick {tick}: a packet of {length} bytes exceeds the budget of {budget}")]
    OverBudget {
        /// The tick.
        tick: u64,
        /// Size of the packet.
        length: usize,
        /// The limit.
        budget: usize,
    },
    /// Nothing was measured: the source has no ticks, or the range has none of them.
    #[error("none of the source's {ticks} ticks was to be counted")]
    NothingCounted {
        /// Ticks of the source up to the end of the range.
        ticks: u64,
    },
}

/// Runs one method over one source; `progress` is called every tick.
pub fn run(
    source: &mut dyn Source,
    sender: &mut dyn Sender,
    receiver: &mut dyn Receiver,
    options: &RunOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Measurement, RunError> {
    let schema: Arc<Schema> = source.schema()?;
    let mut view = options.viewer.map(|owner| View::new(schema.clone(), owner));
    let mut world = World::default();
    let reliable = sender.assumes_reliable_stream();
    let loss = if reliable { 0 } else { options.loss };
    let mut link = Link::new(options.seed, loss, options.rtt_ticks);
    let budget = options.budget.filter(|_| sender.obeys_budget());
    let mut freshness = budget.map(|_| Freshness::default());
    let mut result = Measurement {
        reliable_stream_assumed: reliable,
        budget_ignored: options.budget.is_some() && budget.is_none(),
        ..Measurement::default()
    };

    let (mut uncounted, mut ledger_before) = (false, None);
    let mut now = 0;
    let mut first = None;
    while let Some(update) = source.next_tick()? {
        let tick = update.tick;
        let since_start = tick - *first.get_or_insert(tick);
        if options.ticks.is_some_and(|range| since_start >= range.end) {
            break;
        }
        progress(tick);
        let update = match &mut view {
            Some(view) => view.filter(update),
            None => update,
        };
        let changes = world.apply(update);
        let counted = options.ticks.is_none_or(|range| since_start >= range.start);
        if !counted {
            uncounted = true;
        } else if std::mem::take(&mut uncounted) {
            ledger_before = sender.ledger();
        }
        // A receiver learns when it decodes, a sender when it handles an acknowledgement.
        let (_, acknowledge_us) = timed(|| {
            while let Some(acknowledgement) = link.arrived_back(now) {
                sender.acknowledge(&acknowledgement);
            }
        });
        let (packet, send_us) = timed(|| sender.send(tick, &world, &changes, budget));
        if let Some(reason) = sender.refusal() {
            return Err(RunError::NotEncoded { tick, reason });
        }
        let encode_us = acknowledge_us + send_us;
        if let Some(budget) = budget.filter(|&budget| packet.len() > budget) {
            if !sender.is_oversize() {
                return Err(RunError::OverBudget {
                    tick,
                    length: packet.len(),
                    budget,
                });
            }
            result.oversize += 1;
        }
        if counted {
            result.bytes.push(packet.len() as f64);
            result.encode_us.push(encode_us);
        }
        if let Some(freshness) = &mut freshness {
            freshness.note(&changes, &world);
        }

        if link.delivers_packet() {
            let (received, decode_us) = timed(|| receiver.receive(&packet));
            if counted {
                result.decode_us.push(decode_us);
            }
            match received {
                Ok(applied) => {
                    result.applied += 1;
                    let stamp = (tick, options.seed);
                    let covered = verify(&schema, &world, sender, receiver, applied, stamp)?;
                    if let Some(freshness) = &mut freshness {
                        freshness.cover(&covered, &world);
                    }
                }
                Err(ReceiveError::MissingBaseline { .. }) if loss > 0 => result.unusable += 1,
                Err(error) => {
                    return Err(RunError::Refused {
                        tick,
                        seed: options.seed,
                        error,
                    });
                }
            }
        } else {
            result.lost += 1;
        }
        if let Some(acknowledgement) = receiver.acknowledgement() {
            link.send_back(now, acknowledgement);
        }
        if let Some(freshness) = &freshness
            && counted
        {
            let stalest = freshness.stalest(tick);
            result.stalest_ticks = result.stalest_ticks.max(Some(stalest));
        }
        now += 1;
    }
    result.model_bytes = sender.model_bytes();
    result.folded_share = sender
        .folded()
        .map(|folded| folded as f64 / result.applied.max(1) as f64);
    if result.bytes.is_empty() {
        return Err(RunError::NothingCounted { ticks: now });
    }
    result.ledger = sender.ledger();
    if let (Some(ledger), Some(before)) = (&mut result.ledger, ledger_before) {
        subtract(ledger, &before);
    }
    Ok(result)
}

/// Takes the bits of an earlier ledger off a later one of the same run.
fn subtract(ledger: &mut [LedgerRow], before: &[LedgerRow]) {
    let key = |row: &LedgerRow| (row.class.clone(), row.field.clone(), row.cause.clone());
    let before: BTreeMap<_, f64> = before.iter().map(|row| (key(row), row.bits)).collect();
    for row in ledger {
        row.bits -= before.get(&key(row)).copied().unwrap_or(0.0);
    }
}

/// Runs `work` and measures its microseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the harness measures time; no packet depends on it"
)]
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let started = Instant::now();
    let result = work();
    (result, started.elapsed().as_secs_f64() * 1e6)
}

/// Per entity: the tick since which the receiver's copy has been out of date.
///
/// An entity that has not changed since it was last covered is not stale, however long ago that
/// was.
#[derive(Default)]
struct Freshness {
    /// The first tick whose state the receiver does not have.
    unseen_since: BTreeMap<u64, u64>,
    /// The last row that the receiver was sent.
    told: BTreeMap<u64, Arc<[i64]>>,
}

impl Freshness {
    /// An entity that has returned to the receiver's last row is not out of date.
    fn note(&mut self, changes: &TickChanges, world: &World) {
        for id in changes.despawned.iter().chain(&changes.spawned) {
            self.unseen_since.remove(id);
            self.told.remove(id);
        }
        for &id in changes.spawned.iter().chain(&changes.changed) {
            let row = world.get(id).map(|entity| &entity.row);
            if row.is_some() && self.told.get(&id) == row {
                self.unseen_since.remove(&id);
            } else {
                self.unseen_since.entry(id).or_insert(changes.tick);
            }
        }
    }

    fn cover(&mut self, covered: &[u64], world: &World) {
        for id in covered {
            self.unseen_since.remove(id);
            if let Some(entity) = world.get(*id) {
                self.told.insert(*id, entity.row.clone());
            }
        }
    }

    /// An entity that is sent in the tick in which it changes was never stale.
    fn stalest(&self, tick: u64) -> u64 {
        self.unseen_since
            .values()
            .map(|since| tick + 1 - since)
            .max()
            .unwrap_or(0)
    }
}
