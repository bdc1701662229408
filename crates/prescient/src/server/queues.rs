//! What waits at a server, bounded per client: events to be polled, and events to be sent.
//!
//! [`wait`](crate::Server::wait) never returns early, so clients could fill the memory meanwhile. A
//! client that reaches its bound is paused and continues when all events were polled.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use prescient_channels::{ChannelId, SendError};
use prescient_replication::PeerId;

use crate::server::ServerEvent;

/// The events of all clients, in the order in which they arrived.
#[derive(Default)]
pub(super) struct EventQueue {
    waiting: VecDeque<ServerEvent>,
    /// What each client has added since the queue was last empty.
    shares: BTreeMap<PeerId, Share>,
    paused: BTreeSet<PeerId>,
}

#[derive(Default)]
struct Share {
    events: usize,
    bytes: usize,
}

impl EventQueue {
    /// Adds an event that clients cannot cause at will.
    pub(super) fn push(&mut self, event: ServerEvent) {
        self.waiting.push_back(event);
    }

    /// Adds an event caused by a client, with `bytes` of content; returns `true` if the client must
    /// be paused now.
    pub(super) fn push_from_client(
        &mut self,
        peer: PeerId,
        bytes: usize,
        event: ServerEvent,
    ) -> bool {
        self.waiting.push_back(event);
        let share = self.shares.entry(peer).or_default();
        share.events += 1;
        share.bytes += bytes + size_of::<ServerEvent>();
        let has_enough = share.events >= MAX_EVENTS || share.bytes >= MAX_BYTES;
        (has_enough || self.waiting.len() >= MAX_ALL_EVENTS) && self.paused.insert(peer)
    }

    pub(super) fn pop(&mut self) -> Option<ServerEvent> {
        self.waiting.pop_front()
    }

    /// Returns the paused clients and resets the counts; to be called when all events were polled.
    pub(super) fn take_paused(&mut self) -> BTreeSet<PeerId> {
        self.shares.clear();
        std::mem::take(&mut self.paused)
    }
}

/// Events that wait for room in a peer's connection, and counts of what was not sent.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    events: VecDeque<(ChannelId, Vec<u8>)>,
    bytes: usize,
    /// Messages of state without room; they do not wait.
    pub dropped: u64,
    /// Events longer than a message may be.
    pub too_long: u64,
    /// Whether an event was dropped since the last [`take_broken`](Self::take_broken).
    is_broken: bool,
}

impl Backlog {
    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, channel: ChannelId, event: Vec<u8>) {
        self.bytes += event.len();
        self.events.push_back((channel, event));
    }

    /// Sends as many events as there is room for.
    pub(super) fn send(&mut self, mut send: impl FnMut(ChannelId, &[u8]) -> Result<(), SendError>) {
        while let Some((channel, event)) = self.events.front() {
            match send(*channel, event) {
                Err(SendError::Backlogged) => return,
                Err(SendError::TooLong { .. }) => {
                    self.too_long += 1;
                    self.is_broken = true;
                }
                // Without a connection there is no receiver.
                Ok(()) | Err(_) => {}
            }
            self.bytes -= self.events.pop_front().map_or(0, |(_, event)| event.len());
        }
    }

    /// Whether events in order after the dropped one cannot be read.
    pub(super) fn take_broken(&mut self) -> bool {
        std::mem::take(&mut self.is_broken)
    }

    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.bytes = 0;
    }
}

/// Bounds on one client's waiting events. The packet that reaches a bound is the last one handled.
const MAX_EVENTS: usize = 1024;
const MAX_BYTES: usize = 256 << 10;
/// With this many events in all, every client is paused after its next packet.
const MAX_ALL_EVENTS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut EventQueue, peer: u64, bytes: usize) -> bool {
        let peer = PeerId(peer);
        queue.push_from_client(peer, bytes, ServerEvent::Silent(peer))
    }

    /// Fails if a client is not paused by its count, by its bytes, or by the total of all clients;
    /// or if it is reported twice.
    #[test]
    fn a_client_at_its_bound_is_paused_once() {
        let mut queue = EventQueue::default();
        let paused: Vec<_> = (1..3000).filter(|_| push(&mut queue, 1, 0)).collect();
        assert_eq!(paused, [MAX_EVENTS]);
        assert!(!push(&mut queue, 2, 1000));
        assert!(push(&mut queue, 2, MAX_BYTES));
        let mut more = |peer| (0..1000).any(|_| push(&mut queue, peer, 0));
        assert_eq!((3..=100).find(|&peer| more(peer)), Some(65));
        while queue.pop().is_some() {}
        assert_eq!(queue.take_paused().len(), 3);
        assert!(!push(&mut queue, 1, 0), "it may go on");
        assert!(queue.take_paused().is_empty());
    }
}
