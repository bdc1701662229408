//! Runs a method over a world, verifies the received state, and measures cost.
//!
//! A method is two halves that share nothing but bytes: a [`Sender`] that has the world and a
//! [`Receiver`] that is built from the schema alone. [`run`] carries packets one way and
//! acknowledgements the other, loses some of both if asked to, and compares every covered entity
//! with the world after every applied packet.

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

/// The half of a method that has the world.
pub trait Sender {
    /// Encodes one tick; called exactly once for every tick, in order. If the method [obeys
    /// budgets](Self::obeys_budget), the packet must not be longer than `budget`.
    fn send(
        &mut self,
        tick: u64,
        world: &World,
        changes: &TickChanges,
        budget: Option<usize>,
    ) -> Vec<u8>;

    /// Why the last tick could not be encoded at all.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// Handles an acknowledgement that [`Receiver::acknowledgement`] returned some ticks ago.
    fn acknowledge(&mut self, acknowledgement: &[u8]);

    /// The id in the world of an entity that the receiver names by `key`; the same by default.
    fn truth_id(&self, key: u64) -> Option<u64> {
        Some(key)
    }

    /// Memory of the learned model, in bytes; 0 for methods that do not learn.
    fn model_bytes(&self) -> usize {
        0
    }

    /// Number of packets that the model has learned from; `None` if the method does not learn.
    fn folded(&self) -> Option<u64> {
        None
    }

    /// Bits spent so far, by class and field; `None` if the method does not count them.
    fn ledger(&self) -> Option<Vec<LedgerRow>> {
        None
    }

    /// Whether the method needs every packet to arrive, in order; it is then run without loss.
    fn assumes_reliable_stream(&self) -> bool {
        false
    }

    /// Whether the last packet exceeds the budget because a single entity needs more.
    fn is_oversize(&self) -> bool {
        false
    }

    /// Whether the method can limit its packets to a number of bytes.
    fn obeys_budget(&self) -> bool {
        false
    }
}

/// The half of a method that has only the schema and the packets.
pub trait Receiver {
    /// Applies one packet, entirely or not at all.
    fn receive(&mut self, packet: &[u8]) -> Result<Applied, ReceiveError>;

    /// The acknowledgement to send now. Called every tick, also when no packet arrived, so that the
    /// next acknowledgement makes up for a lost one.
    fn acknowledgement(&mut self) -> Option<Vec<u8>>;

    /// The entities that the last applied packet covered: key, class, values.
    fn visit_covered(&self, visit: &mut dyn FnMut(u64, u16, &[i64]));

    /// All known entities: key, class, values.
    fn visit_all(&self, visit: &mut dyn FnMut(u64, u16, &[i64]));
}

/// The effect of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The tick whose state the covered entities now have.
    pub tick: u64,
    /// Whether the packet covered all visible entities.
    pub full: bool,
}

/// Why a packet was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// It refers to a packet that never arrived: wait for another one.
    #[error("the packet of tick {tick} refers to one that did not arrive")]
    MissingBaseline {
        /// The packet's tick.
        tick: u64,
    },
    /// Its bytes are invalid: drop it.
    #[error("the packet is malformed: {0}")]
    Malformed(&'static str),
}

/// One row of the ledger of bits.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerRow {
    /// Class name; empty for bits that belong to no class.
    pub class: String,
    /// Field name; empty for bits that belong to no field.
    pub field: String,
    /// The cause: `spawn`, `surprise`, `resend`, `header` and so on.
    pub cause: String,
    /// Number of bits, as the entropy coder counts them.
    pub bits: f64,
}
