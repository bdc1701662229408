//! Links that delay and lose packets, by seed, and count what they carry.

use std::time::Duration;

use prescient::named::Time;
use prescient_sim::world::Random;

use super::graph::Graph;

/// Bytes of the UDP and IP headers around every packet.
const HEADERS: u64 = 28;

pub(crate) struct Wires {
    links: Vec<Wire>,
    random: Random,
}

struct Wire {
    delay: Duration,
    jitter_micros: i64,
    loss_parts: u32,
    is_cut: bool,
    /// When the last packet in each direction arrives: no packet overtakes another.
    last: [Time; 2],
    bytes: [u64; 2],
}

impl Wires {
    pub(crate) fn new(graph: &Graph, seed: u64) -> Self {
        let wire = |link: &super::graph::Link| Wire {
            delay: Duration::from_secs_f64(link.delay / 1e3),
            jitter_micros: (link.jitter * 1e3) as i64,
            loss_parts: (link.loss * 1e4) as u32,
            is_cut: false,
            last: [Time::default(); 2],
            bytes: [0; 2],
        };
        Self {
            links: graph.links.iter().map(wire).collect(),
            random: Random::new(seed ^ 0x311c),
        }
    }

    /// Sends a packet over a link from one of its ends; returns when it arrives.
    pub(crate) fn cross(&mut self, link: usize, end: usize, now: Time, len: usize) -> Option<Time> {
        let wire = &mut self.links[link];
        wire.bytes[end] += len as u64 + HEADERS;
        let late = self.random.range(0, wire.jitter_micros + 1) as u64;
        if wire.is_cut || self.random.chance(wire.loss_parts) {
            return None;
        }
        let arrives = now.after(wire.delay + Duration::from_micros(late));
        wire.last[end] = wire.last[end].max(arrives);
        Some(wire.last[end])
    }

    /// Cuts or restores a link.
    #[cfg(test)]
    pub(crate) fn set_cut(&mut self, link: usize, is_cut: bool) {
        self.links[link].is_cut = is_cut;
    }

    /// Bytes that entered a link at an end, with UDP and IP headers.
    pub(crate) fn bytes(&self, link: usize, end: usize) -> u64 {
        self.links[link].bytes[end]
    }

    pub(crate) fn all_bytes(&self) -> u64 {
        self.links.iter().flat_map(|wire| wire.bytes).sum()
    }
}
