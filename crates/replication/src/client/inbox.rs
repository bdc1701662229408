//! What a client was told and has not shown yet.

use std::collections::{BTreeMap, VecDeque};

use prescient_codec::{NetEntityId, Tick};

use crate::world_generation::WorldGeneration;

/// Notices, in the order of their worlds, ticks, and arrival.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: BTreeMap<(WorldGeneration, Tick, u64), Notice>,
    waiting_bytes: usize,
    arrived: u64,
    /// Without a stay: of a connection that was lost.
    due: VecDeque<(Option<WorldGeneration>, Tick, Notice)>,
    due_bytes: usize,
}

/// What a client can be told of, apart from state.
pub(super) enum Notice {
    /// Something happened.
    Event {
        about: Option<NetEntityId>,
        payload: Vec<u8>,
    },
    /// We are in charge of an entity, or no longer.
    Authority { about: NetEntityId, granted: bool },
}

impl Notice {
    /// Bytes that it takes here, about.
    fn cost(&self) -> usize {
        let payload = match self {
            Self::Event { payload, .. } => payload.len(),
            Self::Authority { .. } => 0,
        };
        payload + NOTICE_COST
    }
}

impl Inbox {
    /// Whether so much may be shown and was not polled that nothing more is taken.
    pub fn is_full(&self) -> bool {
        self.due_bytes >= MAX_DUE_BYTES
    }

    pub fn put(&mut self, world_generation: WorldGeneration, tick: Tick, notice: Notice) {
        self.waiting_bytes += notice.cost();
        self.waiting
            .insert((world_generation, tick, self.arrived), notice);
        self.arrived += 1;
    }

    /// What is known up to a tick may be shown. Should nothing arrive but notices, few of them are
    /// kept: the others are shown before their tick.
    pub fn release(&mut self, world_generation: WorldGeneration, upto: Option<Tick>) {
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

    /// Puts a notice that was held among those that may be shown.
    fn show(&mut self, world_generation: Option<WorldGeneration>, tick: Tick, notice: Notice) {
        self.waiting_bytes -= notice.cost();
        self.due_bytes += notice.cost();
        self.due.push_back((world_generation, tick, notice));
    }

    /// Everything that waits may be shown, and is about nothing that the next connection shows.
    pub fn cut_off(&mut self) {
        for (world_generation, ..) in &mut self.due {
            *world_generation = None;
        }
        while let Some(((_, tick, _), notice)) = self.waiting.pop_first() {
            self.show(None, tick, notice);
        }
    }

    /// The next that may be shown.
    pub fn poll(&mut self) -> Option<(Option<WorldGeneration>, Tick, Notice)> {
        let next = self.due.pop_front()?;
        self.due_bytes -= next.2.cost();
        Some(next)
    }
}

/// Notices that wait for their tick at most, and their bytes. State takes turns with events on a
/// link, so an honest server's events wait for a tick or two.
const MAX_WAITING: usize = 1024;
const MAX_WAITING_BYTES: usize = 256 << 10;
/// Bytes of notices that may be shown and were not polled.
const MAX_DUE_BYTES: usize = 1 << 20;
/// What a notice takes beside its payload.
const NOTICE_COST: usize = 64;
