//! Events and notices that a client received and has not reported to the program yet.

use std::collections::{BTreeMap, VecDeque};

use prescient_codec::{NetEntityId, Tick};

use prescient_schema::Parcel;

use crate::message::TypedKind;
use crate::typed_event::parcel_bytes;
use crate::world_generation::WorldGeneration;

/// Notices, ordered by world, tick and arrival.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: BTreeMap<(WorldGeneration, Tick, u64), Notice>,
    waiting_bytes: usize,
    arrived: u64,
    /// Without a generation: of a connection that was lost.
    due: VecDeque<(Option<WorldGeneration>, Tick, Notice)>,
    due_bytes: usize,
}

/// A message of the server besides state.
pub(super) enum Notice {
    /// An event.
    Event {
        about: Option<NetEntityId>,
        payload: Vec<u8>,
    },
    /// A typed event, whose references are ids plus one.
    Typed {
        kind: TypedKind,
        class: u16,
        parcel: Parcel,
    },
    /// Authority over an entity was granted or revoked.
    Authority { about: NetEntityId, granted: bool },
}

impl Notice {
    /// Approximate memory.
    fn cost(&self) -> usize {
        let payload = match self {
            Self::Event { payload, .. } => payload.len(),
            Self::Typed { parcel, .. } => parcel_bytes(parcel),
            Self::Authority { .. } => 0,
        };
        payload + NOTICE_COST
    }
}

impl Inbox {
    /// Whether so many bytes may be polled already that nothing more is accepted.
    pub(super) fn is_full(&self) -> bool {
        self.due_bytes >= MAX_DUE_BYTES
    }

    pub(super) fn put(&mut self, world_generation: WorldGeneration, tick: Tick, notice: Notice) {
        self.waiting_bytes += notice.cost();
        self.waiting
            .insert((world_generation, tick, self.arrived), notice);
        self.arrived += 1;
    }

    /// Releases the notices up to a tick for polling. If only notices arrive and no state, few of
    /// them are kept waiting; the others are released before their tick.
    pub(super) fn release(&mut self, world_generation: WorldGeneration, upto: Option<Tick>) {
        while let Some(entry) = self.waiting.first_entry()
            && {
                let &(of, tick, _) = entry.key();
                of < world_generation || of == world_generation && Some(tick) <= upto
            }
        {
            let ((world_generation, tick, _), notice) = entry.remove_entry();
            self.show(Some(world_generation), tick, notice);
        }
        while (self.waiting.len() > MAX_WAITING || self.waiting_bytes > MAX_WAITING_BYTES)
            && let Some(((world_generation, tick, _), notice)) = self.waiting.pop_first()
        {
            self.show(Some(world_generation), tick, notice);
        }
    }

    /// Moves a notice from the waiting to the due ones.
    fn show(&mut self, world_generation: Option<WorldGeneration>, tick: Tick, notice: Notice) {
        self.waiting_bytes -= notice.cost();
        self.due_bytes += notice.cost();
        self.due.push_back((world_generation, tick, notice));
    }

    /// Releases everything and detaches it from any world: it is about nothing that the next
    /// connection shows.
    pub(super) fn cut_off(&mut self) {
        for (world_generation, ..) in &mut self.due {
            *world_generation = None;
        }
        while let Some(((_, tick, _), notice)) = self.waiting.pop_first() {
            self.show(None, tick, notice);
        }
    }

    /// The next notice that is due.
    pub(super) fn poll(&mut self) -> Option<(Option<WorldGeneration>, Tick, Notice)> {
        let next = self.due.pop_front()?;
        self.due_bytes -= next.2.cost();
        Some(next)
    }
}

/// Maximum notices that wait for their tick, and their bytes. State and events alternate on a link,
/// so an honest server's events wait for a tick or two.
const MAX_WAITING: usize = 1024;
const MAX_WAITING_BYTES: usize = 256 << 10;
/// Bytes of due notices, from which on nothing more is accepted.
const MAX_DUE_BYTES: usize = 1 << 20;
/// Approximate memory of a notice besides its payload.
const NOTICE_COST: usize = 64;
