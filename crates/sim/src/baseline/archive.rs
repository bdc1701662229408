//! Shared by all snapshot methods: past snapshots by tick, and their acknowledgements.
//!
//! The sender encodes against snapshots that were acknowledged; the receiver keeps those that the
//! sender may still refer to. A method itself is then only an [`Encode`] and a [`Decode`].

use std::{collections::VecDeque, sync::Arc};

use super::{
    acknowledgement::Acknowledgement,
    snapshot::{Item, Snapshot, snapshot},
};
use crate::{
    harness::{Applied, LedgerRow, ReceiveError, Receiver, Sender},
    world::{TickChanges, World},
};

/// Number of acknowledged snapshots that a method may use.
pub(super) const SAMPLES: usize = 4;
/// Packets under way before the oldest is dropped.
const UNDER_WAY: usize = 512;

/// One past tick.
#[derive(Clone, Debug)]
pub(super) struct Past<M> {
    pub(super) tick: u64,
    pub(super) snapshot: Snapshot,
    pub(super) model: M,
}

/// The sending half of a method.
pub(super) trait Encode {
    /// The model learned up to a tick, archived with its snapshot.
    type Model;

    /// Whether the method needs every packet to arrive, in order.
    const RELIABLE: bool;

    /// Encodes a tick against the acknowledged snapshots, newest first, at most [`SAMPLES`] of
    /// them.
    fn encode(
        &mut self,
        tick: u64,
        current: &Snapshot,
        known: &[&Past<Self::Model>],
    ) -> (Vec<u8>, Self::Model);

    /// Memory of a model in bytes.
    fn model_bytes(&self, _model: &Self::Model) -> usize {
        0
    }

    /// Number of packets that this model has learned from; `None` if the method does not learn.
    fn taught(&self, _model: &Self::Model) -> Option<u64> {
        None
    }

    /// Bits spent, by class and field.
    fn ledger(&self) -> Option<Vec<LedgerRow>> {
        None
    }
}

/// The receiving half of a method.
pub(super) trait Decode {
    /// As in [`Encode`].
    type Model;

    /// Decodes a packet; `past` has the applied ticks.
    fn decode(
        &mut self,
        packet: &[u8],
        past: &Applications<Self::Model>,
    ) -> Result<Decoded<Self::Model>, ReceiveError>;
}

/// A decoded tick, and the oldest tick that its packet refers to.
pub(super) struct Decoded<M> {
    pub(super) past: Past<M>,
    pub(super) oldest_named: Option<u64>,
}

impl Decoded<()> {
    /// The result of a method that does not learn.
    pub(super) fn plain(tick: u64, items: Vec<Item>, oldest_named: Option<u64>) -> Self {
        let past = Past {
            tick,
            snapshot: Arc::new(items),
            model: (),
        };
        Self { past, oldest_named }
    }
}

/// A [`Sender`] around an [`Encode`].
pub(super) struct SnapshotSender<E: Encode> {
    encode: E,
    /// Sent and not acknowledged, oldest first.
    under_way: VecDeque<Past<E::Model>>,
    /// Acknowledged, newest first.
    known: VecDeque<Past<E::Model>>,
}

impl<E: Encode> SnapshotSender<E> {
    pub(super) fn new(encode: E) -> Self {
        let (under_way, known) = (VecDeque::new(), VecDeque::new());
        Self {
            encode,
            under_way,
            known,
        }
    }
}

impl<E: Encode> Sender for SnapshotSender<E> {
    fn send(
        &mut self,
        tick: u64,
        world: &World,
        _changes: &TickChanges,
        _budget: Option<usize>,
    ) -> Vec<u8> {
        let current = snapshot(world);
        let known: Vec<_> = self.known.iter().collect();
        let (packet, model) = self.encode.encode(tick, &current, &known);
        self.under_way.push_back(Past {
            tick,
            snapshot: current,
            model,
        });
        if self.under_way.len() > UNDER_WAY {
            self.under_way.pop_front();
        }
        packet
    }

    fn acknowledge(&mut self, acknowledgement: &[u8]) {
        let Ok(applied) = Acknowledgement::read(acknowledgement) else {
            return;
        };
        let waiting = std::mem::take(&mut self.under_way);
        for past in waiting {
            if applied.contains(past.tick) {
                self.known.push_front(past);
                self.known.truncate(SAMPLES);
            } else if past.tick > applied.newest || applied.newest - past.tick <= 64 {
                self.under_way.push_back(past);
            }
        }
        // A late acknowledgement may add a tick that is older than others already known.
        self.known
            .make_contiguous()
            .sort_unstable_by_key(|past| std::cmp::Reverse(past.tick));
        if let Some(newest) = self.known.front() {
            let newest = newest.tick;
            self.under_way.retain(|past| past.tick > newest);
        }
    }

    fn model_bytes(&self) -> usize {
        self.known
            .front()
            .map_or(0, |past| self.encode.model_bytes(&past.model))
    }

    fn folded(&self) -> Option<u64> {
        self.encode.taught(&self.known.front()?.model)
    }

    fn ledger(&self) -> Option<Vec<LedgerRow>> {
        self.encode.ledger()
    }

    fn assumes_reliable_stream(&self) -> bool {
        E::RELIABLE
    }
}

/// The applied ticks that a receiver still holds, oldest first.
pub(super) struct Applications<M>(VecDeque<Past<M>>);

impl<M> Applications<M> {
    /// The snapshot of `tick`, to which the packet of tick `of` refers.
    pub(super) fn find(&self, tick: u64, of: u64) -> Result<&Past<M>, ReceiveError> {
        let index = self.0.binary_search_by_key(&tick, |past| past.tick);
        index
            .map(|index| &self.0[index])
            .map_err(|_| ReceiveError::MissingBaseline { tick: of })
    }

    /// The last applied tick.
    pub(super) fn newest(&self) -> Option<&Past<M>> {
        self.0.back()
    }
}

/// A [`Receiver`] around a [`Decode`].
pub(super) struct SnapshotReceiver<D: Decode> {
    decode: D,
    applied: Applications<D::Model>,
    acknowledgement: Option<Acknowledgement>,
}

impl<D: Decode> SnapshotReceiver<D> {
    pub(super) fn new(decode: D) -> Self {
        Self {
            decode,
            applied: Applications(VecDeque::new()),
            acknowledgement: None,
        }
    }
}

impl<D: Decode> Receiver for SnapshotReceiver<D> {
    fn receive(&mut self, packet: &[u8]) -> Result<Applied, ReceiveError> {
        let decoded = self.decode.decode(packet, &self.applied)?;
        let tick = decoded.past.tick;
        if self
            .applied
            .newest()
            .is_some_and(|newest| newest.tick >= tick)
        {
            return Err(ReceiveError::Malformed("the tick does not increase"));
        }
        let past = &mut self.applied.0;
        if let Some(oldest) = decoded.oldest_named {
            while past.front().is_some_and(|past| past.tick < oldest) {
                past.pop_front();
            }
        }
        // The sender has dropped older snapshots and cannot refer to them, except for the oldest.
        if past.len() > UNDER_WAY + SAMPLES {
            past.remove(SAMPLES);
        }
        past.push_back(decoded.past);
        self.acknowledgement = Some(Acknowledgement::after(self.acknowledgement, tick));
        Ok(Applied { tick, full: true })
    }

    fn acknowledgement(&mut self) -> Option<Vec<u8>> {
        self.acknowledgement.map(Acknowledgement::write)
    }

    fn visit_covered(&self, visit: &mut dyn FnMut(u64, u16, &[i64])) {
        self.visit_all(visit);
    }

    fn visit_all(&self, visit: &mut dyn FnMut(u64, u16, &[i64])) {
        let newest = self.applied.newest().map(|past| Arc::clone(&past.snapshot));
        for item in newest.iter().flat_map(|snapshot| snapshot.iter()) {
            visit(item.id, item.class, &item.row);
        }
    }
}
