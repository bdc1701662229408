//! Counts the packets sent to a client and what it acknowledged of them.

use std::collections::VecDeque;

use prescient_codec::{Sequence, Tick};

#[derive(Debug, Default)]
pub(super) struct Sent {
    pub packets: u64,
    pub bytes: u64,
    /// The ticks of packets that were not acknowledged yet.
    ticks: VecDeque<(Sequence, Tick)>,
    pub applied: Option<Tick>,
    /// The newest acknowledged packet, and how many packets were sent since its acknowledgement
    /// arrived. It may be too old for the model to learn from; it still shows that the client
    /// applies packets.
    newest: Sequence,
    pub unapplied: u32,
}

impl Sent {
    pub(super) fn note(&mut self, sequence: Sequence, tick: Tick, length: usize) {
        self.packets += 1;
        self.bytes += length as u64;
        self.unapplied = self.unapplied.saturating_add(1);
        if self.ticks.len() == MAX_TICKS {
            self.ticks.pop_front();
        }
        self.ticks.push_back((sequence, tick));
    }

    pub(super) fn apply(&mut self, newest: Sequence) {
        if newest > self.newest {
            (self.newest, self.unapplied) = (newest, 0);
        }
        while let Some(&(sequence, tick)) = self.ticks.front()
            && sequence <= newest
        {
            self.ticks.pop_front();
            if sequence == newest {
                self.applied = Some(tick);
            }
        }
    }
}

/// Maximum packets whose ticks are kept; older ones no longer update `applied`.
const MAX_TICKS: usize = 1024;
