//! Forwarders on a virtual clock.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use prescient::named::{FaceConfig, FaceId, Forwarder, ForwarderConfig, Time};

/// How often forwarders are checked for timeouts.
pub(super) const HOUSEKEEPING: Duration = Duration::from_millis(20);

/// Forwarders, what is at the other end of each of their faces, and what happens when.
pub(super) struct Simulation<End, Event> {
    pub(super) now: Time,
    pub(super) nodes: Vec<Forwarder>,
    ends: BTreeMap<(usize, FaceId), End>,
    events: BinaryHeap<Reverse<Scheduled<Event>>>,
    scheduled: u64,
}

impl<End: Copy, Event> Simulation<End, Event> {
    pub(super) fn new() -> Self {
        Self {
            now: Time::from_micros(1_000_000),
            nodes: Vec::new(),
            ends: BTreeMap::new(),
            events: BinaryHeap::new(),
            scheduled: 0,
        }
    }

    pub(super) fn add_node(&mut self, store_bytes: usize, key: u64) -> usize {
        let mut whole = [0; 16];
        whole[..8].copy_from_slice(&key.to_be_bytes());
        let config = ForwarderConfig::default().max_store_bytes(store_bytes);
        self.nodes.push(Forwarder::new(config, whole));
        self.nodes.len() - 1
    }

    pub(super) fn add_face(&mut self, node: usize, config: &FaceConfig, end: End) -> FaceId {
        let face = self.nodes[node].add_face(config);
        let face = face.expect("fewer faces than a forwarder may have");
        self.ends.insert((node, face), end);
        face
    }

    pub(super) fn remove_face(&mut self, node: usize, face: FaceId) {
        self.nodes[node].remove_face(face);
        self.ends.remove(&(node, face));
    }

    /// Sets what is at the other end of a face.
    pub(super) fn connect(&mut self, node: usize, face: FaceId, end: End) {
        self.ends.insert((node, face), end);
    }

    pub(super) fn schedule(&mut self, time: Time, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse(Scheduled {
            time,
            order: self.scheduled,
            event,
        }));
    }

    /// The next event until a time, to which the clock advances; at the end the clock advances to that time.
    pub(super) fn next_until(&mut self, end: Time) -> Option<Event> {
        let is_due = |Reverse(next): &Reverse<Scheduled<Event>>| next.time <= end;
        if !self.events.peek().is_some_and(is_due) {
            self.now = end;
            return None;
        }
        let Reverse(next) = self.events.pop()?;
        self.now = next.time;
        Some(next.event)
    }

    /// A packet arrives at a node. A malformed one is counted by the forwarder.
    pub(super) fn arrive(&mut self, node: usize, face: FaceId, packet: &[u8]) {
        let _ = self.nodes[node].handle_packet(self.now, face, packet);
    }

    /// The next packet that a node sends.
    pub(super) fn poll_transmit(&mut self, node: usize) -> Option<(End, Vec<u8>)> {
        let mut bytes = Vec::new();
        while let Some(face) = self.nodes[node].poll_transmit(&mut bytes) {
            if let Some(end) = self.ends.get(&(node, face)) {
                return Some((*end, bytes));
            }
        }
        None
    }

    /// Handles the timeouts of all nodes, and returns those that had one.
    pub(super) fn handle_timeouts(&mut self) -> Vec<usize> {
        let now = self.now;
        let is_due = |node: &Forwarder| node.next_timeout().is_some_and(|due| due <= now);
        let nodes = self.nodes.iter_mut().enumerate();
        let due = nodes.filter(|(_, node)| is_due(node));
        due.map(|(number, node)| {
            node.handle_timeout(now);
            number
        })
        .collect()
    }
}

/// Events are ordered by time, and those of one time as they were scheduled.
struct Scheduled<Event> {
    time: Time,
    order: u64,
    event: Event,
}

impl<Event> Ord for Scheduled<Event> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time, self.order).cmp(&(other.time, other.order))
    }
}

impl<Event> PartialOrd for Scheduled<Event> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<Event> PartialEq for Scheduled<Event> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<Event> Eq for Scheduled<Event> {}
