//! Monitoring: spans and events of `tracing`, counters and gauges of `metrics`.
//!
//! Both are features that are off by default and then cost nothing. The crate's front page lists
//! the names.

use std::collections::BTreeMap;

use prescient_channels::Traffic;
use prescient_replication::{PeerId, PeerStatistics, Server};

use crate::worlds::Worlds;

/// Opens a span for the rest of the block.
macro_rules! span {
    ($name:literal) => {
        #[cfg(feature = "tracing")]
        let _span = tracing::debug_span!(target: "prescient", $name).entered();
    };
}

/// Emits an event about a peer.
macro_rules! event {
    ($name:literal, $peer:expr $(, $field:ident = $value:expr)?) => {{
        #[cfg(feature = "tracing")]
        tracing::info!(target: "prescient", peer = $peer.0, $($field = %$value,)? $name);
        #[cfg(not(feature = "tracing"))]
        let _ = ($peer, $(&$value)?);
    }};
}

/// Emits a warning about the program's use of this crate.
macro_rules! warning {
    ($text:literal) => {{
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "prescient", $text);
    }};
}

/// Adds to a counter.
macro_rules! count {
    ($name:literal, $more:expr) => {{
        #[cfg(feature = "metrics")]
        metrics::counter!($name).increment($more);
        #[cfg(not(feature = "metrics"))]
        let _ = $more;
    }};
}

/// Sets a gauge.
macro_rules! level {
    ($name:literal, $now:expr) => {{
        #[cfg(feature = "metrics")]
        metrics::gauge!($name).set($now as f64);
        #[cfg(not(feature = "metrics"))]
        let _ = $now;
    }};
}

pub(crate) use {count, event, span, warning};

/// Totals at the last export. Counters keep the share of peers that left.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    peers: BTreeMap<PeerId, PeerStatistics>,
    socket: Traffic,
    saturated: u64,
}

impl Meters {
    /// Counts what happened since the last call.
    pub(crate) fn update(&mut self, worlds: &Worlds, socket: Traffic) {
        if !WATCHED {
            return;
        }
        let (mut peers, mut entities, mut visible, mut saturated) = (0, 0, 0, 0);
        for server in worlds.iter() {
            entities += server.world().len();
            saturated += server.world().saturated();
            for peer in server.peers() {
                peers += 1;
                visible += self.peer(server, peer);
            }
        }
        level!("prescient_peers", peers);
        level!("prescient_entities", entities);
        level!("prescient_entities_visible", visible);
        if self.saturated == 0 && saturated > 0 {
            warning!("a value did not fit its field and was changed");
        }
        // A world that was closed takes its count with it.
        let more_saturated = saturated.saturating_sub(self.saturated);
        count!("prescient_saturated_values", more_saturated);
        self.saturated = saturated.max(self.saturated);
        let before = std::mem::replace(&mut self.socket, socket);
        let more = |part: fn(&Traffic) -> u64| part(&socket) - part(&before);
        count!("prescient_socket_packets_sent", more(|of| of.packets_sent));
        count!("prescient_socket_bytes_sent", more(|of| of.bytes_sent));
        count!(
            "prescient_socket_packets_received",
            more(|of| of.packets_received)
        );
        count!(
            "prescient_socket_bytes_received",
            more(|of| of.bytes_received)
        );
    }

    /// Counts what happened to a peer that is about to be removed.
    pub(crate) fn forget(&mut self, server: &Server, peer: PeerId) {
        if WATCHED {
            self.peer(server, peer);
            self.peers.remove(&peer);
        }
    }

    /// Counts what is new about a peer, and returns the number of its visible entities.
    fn peer(&mut self, server: &Server, peer: PeerId) -> usize {
        let Some(now) = server.statistics(peer) else {
            return 0;
        };
        let before = self.peers.insert(peer, now).unwrap_or_default();
        count!("prescient_state_packets", now.packets - before.packets);
        count!("prescient_state_bytes", now.bytes - before.bytes);
        count!("prescient_events", now.events - before.events);
        let resyncs = now.codec.resyncs - before.codec.resyncs;
        count!("prescient_resyncs", resyncs);
        if resyncs > 0 {
            event!("resync", peer, times = resyncs);
        }
        now.visible
    }
}

/// Whether any monitoring is compiled in.
const WATCHED: bool = cfg!(any(feature = "tracing", feature = "metrics"));
