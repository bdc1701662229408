//! Where the ticks of a server's worlds begin and end.

use std::collections::BTreeSet;

use crate::watch;
use crate::worlds::WorldId;

/// The ticks that the program has begun and not ended.
#[derive(Default)]
pub(super) struct Ticks {
    open: BTreeSet<WorldId>,
    /// Worlds that had a tick since the last [`schedule`](Self::schedule), if the program calls it.
    scheduled: Option<BTreeSet<WorldId>>,
    pub(super) unscheduled: u64,
}

impl Ticks {
    /// Notes that a world is to be changed; returns whether that begins a tick.
    pub(super) fn open(&mut self, world: WorldId) -> bool {
        if !self.open.insert(world) {
            return false;
        }
        if let Some(scheduled) = &mut self.scheduled
            && !scheduled.insert(world)
        {
            if self.unscheduled == 0 {
                watch::warning!("a tick without a `next_tick` of its own");
            }
            self.unscheduled += 1;
        }
        true
    }

    /// Ends the tick of a world.
    pub(super) fn end_of(&mut self, world: WorldId) {
        self.open.remove(&world);
    }

    /// Ends all open ticks.
    pub(super) fn end(&mut self) {
        self.open.clear();
    }

    /// Ends all open ticks and lets each world have another.
    pub(super) fn schedule(&mut self) {
        self.end();
        self.scheduled = Some(BTreeSet::new());
    }
}
