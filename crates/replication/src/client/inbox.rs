//! What a client was told and has not shown yet.

use std::collections::{BTreeMap, VecDeque};

use prescient_codec::{ClientId, Tick};

use crate::stay::Stay;

/// Notices, in the order of their worlds, ticks, and arrival.
#[derive(Default)]
pub(super) struct Inbox {
    held: BTreeMap<(Stay, Tick, u64), Notice>,
    held_bytes: usize,
    arrived: u64,
    /// Without a stay: of a connection that was lost.
    due: VecDeque<(Option<Stay>, Tick, Notice)>,
    due_bytes: usize,
}

/// What a client can be told of, apart from state.
pub(super) enum Notice {
    /// Something happened.
    Event {
        about: Option<ClientId>,
        payload: Vec<u8>,
    },
    /// We are in charge of an object, or no longer.
    Charge { about: ClientId, yours: bool },
}

impl Notice {
    /// Bytes that it takes here, about.
    fn cost(&self) -> usize {
        let payload = match self {
            Self::Event { payload, .. } => payload.len(),
            Self::Charge { .. } => 0,
        };
        payload + NOTICE_COST
    }
}

impl Inbox {
    /// Whether so much may be shown and was not polled that nothing more is taken.
    pub fn is_full(&self) -> bool {
        self.due_bytes >= MAX_DUE_BYTES
    }

    pub fn put(&mut self, stay: Stay, tick: Tick, notice: Notice) {
        self.held_bytes += notice.cost();
        self.held.insert((stay, tick, self.arrived), notice);
        self.arrived += 1;
    }

    /// What is known up to a tick may be shown. Should nothing arrive but notices, few of them are
    /// kept: the others are shown before their tick.
    pub fn release(&mut self, stay: Stay, upto: Option<Tick>) {
        while let Some(entry) = self.held.first_entry()
            && {
                let &(of, tick, _) = entry.key();
                of < stay || of == stay && Some(tick) <= upto
            }
        {
            let ((stay, tick, _), notice) = entry.remove_entry();
            self.show(Some(stay), tick, notice);
        }
        while (self.held.len() > MAX_HELD || self.held_bytes > MAX_HELD_BYTES)
            && let Some(((stay, tick, _), notice)) = self.held.pop_first()
        {
            self.show(Some(stay), tick, notice);
        }
    }

    /// Puts a notice that was held among those that may be shown.
    fn show(&mut self, stay: Option<Stay>, tick: Tick, notice: Notice) {
        self.held_bytes -= notice.cost();
        self.due_bytes += notice.cost();
        self.due.push_back((stay, tick, notice));
    }

    /// Everything that waits may be shown, and is about nothing that the next connection shows.
    pub fn cut_off(&mut self) {
        for (stay, ..) in &mut self.due {
            *stay = None;
        }
        while let Some(((_, tick, _), notice)) = self.held.pop_first() {
            self.show(None, tick, notice);
        }
    }

    /// The next that may be shown.
    pub fn poll(&mut self) -> Option<(Option<Stay>, Tick, Notice)> {
        let next = self.due.pop_front()?;
        self.due_bytes -= next.2.cost();
        Some(next)
    }
}

/// Notices that wait for their tick at most, and their bytes. State takes turns with events on a
/// link, so an honest server's events wait for a tick or two.
const MAX_HELD: usize = 1024;
const MAX_HELD_BYTES: usize = 256 << 10;
/// Bytes of notices that may be shown and were not polled.
const MAX_DUE_BYTES: usize = 1 << 20;
/// What a notice takes beside its payload.
const NOTICE_COST: usize = 64;
