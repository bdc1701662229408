//! Runs a method over a world, checks what arrives, and counts what it cost.
//!
//! A method is two halves that share nothing but bytes: a [`Sender`] that sees the world and a
//! [`Receiver`] that is built from the schema alone. [`run`] carries packets one way and
//! acknowledgements the other, loses some of both if asked to, and compares every covered entity
//! with the truth after every applied packet.

mod link;
mod process;
mod run;
mod statistics;
mod verify;

pub use link::Link;
pub use process::{ProcessError, Reply, digest, read_reply, serve_receiver, write_packet};
pub use run::{Measurement, RunError, RunOptions, TickRange, run};
pub use statistics::Series;
pub use verify::{Difference, Mismatch};

use crate::world::{TickChanges, World};

/// The half of a method that knows the truth.
pub trait Sender {
    /// Encodes one tick; called exactly once for every tick, in order. With a budget the packet
    /// must not be longer than that, if the method [obeys budgets](Self::obeys_budget).
    fn send(
        &mut self,
        tick: u64,
        world: &World,
        changes: &TickChanges,
        budget: Option<usize>,
    ) -> Vec<u8>;

    /// Takes what the receiver's [`Receiver::acknowledgement`] returned some ticks ago.
    fn acknowledge(&mut self, acknowledgement: &[u8]);

    /// Which entity of the world the receiver's key stands for; the same number by default.
    fn truth_id(&self, key: u64) -> Option<u64> {
        Some(key)
    }

    /// Memory held by what was learned, in bytes; 0 for methods that do not learn.
    fn model_bytes(&self) -> usize {
        0
    }

    /// How many packets have taught the model; `None` if the method does not learn.
    fn folded(&self) -> Option<u64> {
        None
    }

    /// Where the bits went so far; `None` if the method keeps no account.
    fn ledger(&self) -> Option<Vec<LedgerRow>> {
        None
    }

    /// Whether the method needs every packet to arrive, in order; it is then run without loss.
    fn assumes_reliable_stream(&self) -> bool {
        false
    }

    /// Whether the last packet is longer than the budget because a single entity needs more.
    fn is_oversize(&self) -> bool {
        false
    }

    /// Whether the method can cut its packets at a byte limit.
    fn obeys_budget(&self) -> bool {
        false
    }
}

/// The half of a method that knows nothing but the schema and the packets.
pub trait Receiver {
    /// Applies one packet, entirely or not at all.
    fn receive(&mut self, packet: &[u8]) -> Result<Applied, ReceiveError>;

    /// What to tell the sender now. Called every tick, also when no packet arrived, so that a
    /// lost acknowledgement is repeated by the next one.
    fn acknowledgement(&mut self) -> Option<Vec<u8>>;

    /// The entities that the last applied packet covered: key, class, values.
    fn visit_covered(&self, visit: &mut dyn FnMut(u64, u16, &[i64]));

    /// All known entities: key, class, values.
    fn visit_all(&self, visit: &mut dyn FnMut(u64, u16, &[i64]));
}

/// What a packet did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The tick whose truth the covered entities now hold.
    pub tick: u64,
    /// Whether the packet covered everything that is visible.
    pub full: bool,
}

/// Why a packet was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// It builds on a packet that never arrived: wait for another one.
    #[error("the packet of tick {tick} builds on one that did not arrive")]
    MissingBaseline {
        /// The packet's tick.
        tick: u64,
    },
    /// Its bytes make no sense: drop it.
    #[error("the packet is malformed: {0}")]
    Malformed(&'static str),
}

/// One line of the account of bits.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerRow {
    /// Class name; empty for what belongs to no class.
    pub class: String,
    /// Field name; empty for what belongs to no field.
    pub field: String,
    /// Why the bits were spent: `spawn`, `surprise`, `resend`, `header` and the like.
    pub cause: String,
    /// How many, as the entropy coder counts them.
    pub bits: f64,
}
