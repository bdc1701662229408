//! Adapts what every client gets to its connection.

use std::collections::BTreeMap;

use prescient_channels::BytesPerSecond;
use prescient_replication::adaptation::{Adaptation, AdaptationReport, LinkEstimate};
use prescient_replication::{PeerError, PeerId, Quality};

use super::Server;
use super::event::ServerEvent;

/// What a program has set for single clients, and what it was not told yet.
#[derive(Default)]
pub(super) struct Adaptations {
    settings: BTreeMap<PeerId, Settings>,
    /// Qualities that changed since events were polled last; one per client.
    changed: BTreeMap<PeerId, Quality>,
}

#[derive(Clone, Copy, Default)]
struct Settings {
    /// Overrides [`ServerOptions::with_adaptation`](crate::ServerOptions::with_adaptation).
    adaptation: Option<Option<Adaptation>>,
    max_rate: Option<BytesPerSecond>,
}

impl Adaptations {
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.settings.remove(&peer);
        self.changed.remove(&peer);
    }

    /// The next change that the program has not been told of.
    pub(super) fn pop(&mut self) -> Option<ServerEvent> {
        let (peer, quality) = self.changed.pop_first()?;
        Some(ServerEvent::QualityChanged { peer, quality })
    }
}

impl Server {
    /// Adapts what a peer gets to its connection, or does not (`None`), whatever
    /// [the options](crate::ServerOptions::with_adaptation) say. While it is adapted,
    /// [`set_quality`](Self::set_quality) has an effect only until the next change of the plan. A
    /// [local client](Self::local_client) has no connection and is never degraded.
    pub fn set_adaptation(
        &mut self,
        peer: PeerId,
        adaptation: Option<Adaptation>,
    ) -> Result<(), PeerError> {
        self.about_peer(peer, |world_server| {
            world_server.set_adaptation(peer, adaptation)
        })?;
        let settings = self.adaptations.settings.entry(peer).or_default();
        settings.adaptation = Some(adaptation);
        Ok(())
    }

    /// Sets the highest rate of state to an adapted peer, with IP and UDP headers; `None` for
    /// that of [the options](crate::ServerOptions::with_max_rate). With 0 it gets no more state.
    pub fn set_max_rate(
        &mut self,
        peer: PeerId,
        rate: Option<BytesPerSecond>,
    ) -> Result<(), PeerError> {
        self.about_peer(peer, |_| Ok(()))?;
        self.adaptations.settings.entry(peer).or_default().max_rate = rate;
        Ok(())
    }

    /// What an adapted peer gets, and why; `None` if it is not adapted. Visits all entities that
    /// change for it.
    pub fn adaptation(&self, peer: PeerId) -> Option<AdaptationReport> {
        self.worlds.world_of(peer).adaptation(peer)
    }

    /// Tells the worlds what is known about connections.
    pub(super) fn update_estimates(&mut self, peers: &[PeerId]) {
        let micros = self.carriers.now().as_micros();
        let share = self.options.max_total_rate.map(|total| {
            let adapted = peers.len().max(1) as u64;
            BytesPerSecond(total.0 / adapted)
        });
        for &peer in peers {
            let settings = self.adaptations.settings.get(&peer).copied();
            let settings = settings.unwrap_or_default();
            let adaptation = settings.adaptation.unwrap_or(self.options.adaptation);
            let statistics = match adaptation {
                Some(_) => self.carriers.statistics(peer),
                None => None,
            };
            let world_server = self.worlds.world_of_mut(peer);
            // A peer that has left needs none.
            let Some(statistics) = statistics else {
                let _ = world_server.set_adaptation(peer, None);
                continue;
            };
            let _ = world_server.set_adaptation(peer, adaptation);
            let cap = settings.max_rate.or(self.options.max_rate);
            let caps = [cap, share].into_iter().flatten();
            let rate = caps.fold(statistics.rate_allowed, BytesPerSecond::min);
            let estimate = LinkEstimate {
                bytes_per_second: rate.0,
                overhead: OVERHEAD,
                micros,
            };
            let _ = world_server.set_estimate(peer, estimate);
        }
    }

    /// Notes the qualities that the last tick changed.
    pub(super) fn note_changed_qualities(&mut self) {
        for world_server in self.worlds.iter_mut() {
            let changed = world_server.changed_qualities();
            self.adaptations.changed.extend(changed);
        }
    }
}

/// About what a connection adds to a message of state, with IP and UDP headers.
const OVERHEAD: usize = 58;
