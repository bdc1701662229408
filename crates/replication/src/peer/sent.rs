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
}

impl Sent {
    pub fn note(&mut self, sequence: Sequence, tick: Tick, length: usize) {
        self.packets += 1;
        self.bytes += length as u64;
        if self.ticks.len() == MOST_TICKS {
            self.ticks.pop_front();
        }
        self.ticks.push_back((sequence, tick));
    }

    pub fn apply(&mut self, newest: Sequence) {
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
const MOST_TICKS: usize = 1024;
