//! What a client was told and has not shown yet.

use std::collections::{BTreeMap, VecDeque};

use prescient_codec::{ClientId, Tick};

use crate::stay::Stay;

/// Notices, in the order of their worlds, ticks, and arrival.
#[derive(Default)]
pub(super) struct Inbox {
    held: BTreeMap<(Stay, Tick, u64), Notice>,
    arrived: u64,
    /// Without a stay: of a connection that was lost.
    due: VecDeque<(Option<Stay>, Tick, Notice)>,
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

impl Inbox {
    pub fn put(&mut self, stay: Stay, tick: Tick, notice: Notice) {
        self.held.insert((stay, tick, self.arrived), notice);
        self.arrived += 1;
    }

    /// What is known up to a tick may be shown. Should nothing arrive but notices, they are not
    /// kept for ever.
    pub fn release(&mut self, stay: Stay, upto: Option<Tick>) {
        while let Some(entry) = self.held.first_entry()
            && {
                let &(of, tick, _) = entry.key();
                of < stay || of == stay && Some(tick) <= upto
            }
        {
            let ((stay, tick, _), notice) = entry.remove_entry();
            self.due.push_back((Some(stay), tick, notice));
        }
        while self.held.len() > MOST_HELD
            && let Some(((stay, tick, _), notice)) = self.held.pop_first()
        {
            self.due.push_back((Some(stay), tick, notice));
        }
    }

    /// Everything that waits may be shown, and is about nothing that the next connection shows.
    pub fn cut_off(&mut self) {
        for (stay, ..) in &mut self.due {
            *stay = None;
        }
        while let Some(((_, tick, _), notice)) = self.held.pop_first() {
            self.due.push_back((None, tick, notice));
        }
    }

    /// The next that may be shown.
    pub fn poll(&mut self) -> Option<(Option<Stay>, Tick, Notice)> {
        self.due.pop_front()
    }
}

/// Notices that wait for their tick at most.
const MOST_HELD: usize = 1024;
