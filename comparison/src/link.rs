//! What lies between a server and its clients: a delay in ticks, and loss by a seed.

use std::collections::VecDeque;

/// A link of every client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// Ticks that everything takes in each direction.
    pub delay: usize,
    /// How many of 100 packets and acknowledgements are lost.
    pub loss: u64,
}

impl Link {
    /// Whether what a client sends or gets in a tick is lost.
    pub fn loses(&self, client: usize, tick: usize, to_server: bool) -> bool {
        let number = (tick * 1000 + client) as u64 * 2 + u64::from(to_server);
        // SplitMix64.
        let mut hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (hash ^ hash >> 31) % 100 < self.loss
    }
}

/// What is under way in one direction.
pub struct UnderWay<T>(VecDeque<(usize, T)>);

impl<T> Default for UnderWay<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> UnderWay<T> {
    /// Sends something that arrives in the tick `due`.
    pub fn send(&mut self, due: usize, what: T) {
        self.0.push_back((due, what));
    }

    /// What arrives now, in the order in which it was sent.
    pub fn receive(&mut self, now: usize) -> Option<T> {
        let is_due = self.0.front().is_some_and(|&(due, _)| due <= now);
        self.0.pop_front_if(|_| is_due).map(|(_, what)| what)
    }
}
