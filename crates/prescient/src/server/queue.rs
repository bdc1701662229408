//! Events that wait to be polled, with a bound on those of one client.
//!
//! Nothing that arrives makes [`wait`](crate::Server::wait) return early, and nobody fills the
//! memory while it lasts: whoever has as many events waiting as it may is paused, and goes on when
//! all of them were polled.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use prescient_replication::PeerId;

use crate::server::ServerEvent;

/// The events of all clients, in the order in which they arrived.
#[derive(Default)]
pub(super) struct EventQueue {
    waiting: VecDeque<ServerEvent>,
    /// What each client has added since it was last empty.
    shares: BTreeMap<PeerId, Share>,
    paused: BTreeSet<PeerId>,
}

#[derive(Default)]
struct Share {
    events: usize,
    bytes: usize,
}

impl EventQueue {
    /// Adds something that no client can cause at will.
    pub fn push(&mut self, event: ServerEvent) {
        self.waiting.push_back(event);
    }

    /// Adds something that a client said, which takes that many bytes besides; `true` if the client is
    /// to be paused now.
    pub fn push_from_client(&mut self, peer: PeerId, bytes: usize, event: ServerEvent) -> bool {
        self.waiting.push_back(event);
        let share = self.shares.entry(peer).or_default();
        share.events += 1;
        share.bytes += bytes + size_of::<ServerEvent>();
        let has_enough = share.events >= MAX_EVENTS || share.bytes >= MAX_BYTES;
        (has_enough || self.waiting.len() >= MAX_ALL_EVENTS) && self.paused.insert(peer)
    }

    pub fn pop(&mut self) -> Option<ServerEvent> {
        self.waiting.pop_front()
    }

    /// Everybody who was paused, once all events were polled.
    pub fn take_paused(&mut self) -> BTreeSet<PeerId> {
        self.shares.clear();
        std::mem::take(&mut self.paused)
    }
}

/// Events of one client that may wait, and their bytes; a packet that arrives then is the last.
const MAX_EVENTS: usize = 1024;
const MAX_BYTES: usize = 256 << 10;
/// From here on every client is paused after its next packet.
const MAX_ALL_EVENTS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut EventQueue, peer: u64, bytes: usize) -> bool {
        let peer = PeerId(peer);
        queue.push_from_client(peer, bytes, ServerEvent::Silent(peer))
    }

    /// Fails if a client is not paused by the count, by the bytes, or by what all others have
    /// waiting; or if one is told so twice.
    #[test]
    fn whoever_has_enough_waiting_is_paused_once() {
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
