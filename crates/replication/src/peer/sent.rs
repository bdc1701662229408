//! What a client was sent, and what is known of it.

use std::collections::VecDeque;

use prescient_codec::{Sequence, Tick};

#[derive(Debug, Default)]
pub(super) struct Sent {
    pub packets: u64,
    pub bytes: u64,
    /// The ticks of packets of which nothing is known yet.
    ticks: VecDeque<(Sequence, Tick)>,
    pub applied: Option<Tick>,
    /// The newest packet that was acknowledged as applied, and how many were sent since that one
    /// became known. It may be too old to be learned from; it still shows that somebody is there.
    newest: Sequence,
    pub unapplied: u32,
}

impl Sent {
    pub fn note(&mut self, sequence: Sequence, tick: Tick, length: usize) {
        self.packets += 1;
        self.bytes += length as u64;
        self.unapplied = self.unapplied.saturating_add(1);
        if self.ticks.len() == MAX_TICKS {
            self.ticks.pop_front();
        }
        self.ticks.push_back((sequence, tick));
    }

    pub fn apply(&mut self, newest: Sequence) {
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

/// Packets that may be under way before it is no longer told how old they are.
const MAX_TICKS: usize = 1024;
