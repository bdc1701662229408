//! Events that wait for room in a connection.

use std::collections::VecDeque;

use prescient_channels::SendError;

/// A peer's waiting events, and counts of what was not sent.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    events: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Messages of state without room; they do not wait.
    pub dropped: u64,
    /// Events longer than a message may be.
    pub too_long: u64,
}

impl Backlog {
    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, event: Vec<u8>) {
        self.bytes += event.len();
        self.events.push_back(event);
    }

    /// Sends as many events as there is room for.
    pub(crate) fn send(&mut self, mut send: impl FnMut(&[u8]) -> Result<(), SendError>) {
        while let Some(event) = self.events.front() {
            match send(event) {
                Err(SendError::Backlogged) => return,
                Err(SendError::TooLong { .. }) => self.too_long += 1,
                // Without a connection there is no receiver.
                Ok(()) | Err(_) => {}
            }
            self.bytes -= self.events.pop_front().map_or(0, |event| event.len());
        }
    }

    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.bytes = 0;
    }
}
