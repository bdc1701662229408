//! Checks that all clients have the server's state at the end.

use super::super::verdict::{Fault, Verdict};
use super::super::verify::Witness;
use super::Game;

impl Game {
    /// The differences that remain between the clients and the server.
    pub(super) fn missing(&mut self) -> Vec<String> {
        let mut missing = Vec::new();
        for client in &self.clients {
            let peer = client.peer;
            let Some(visit) = client.visit.as_ref().filter(|visit| visit.connected) else {
                missing.push(format!("{peer:?} is not connected"));
                continue;
            };
            let tick = visit.view.complete_tick();
            let behind = tick.is_none_or(|tick| tick.0 + 6 < self.tick.0);
            if behind {
                missing.push(format!("{peer:?} shows {tick:?} at {:?}", self.tick));
                continue;
            }
            let promise = &self.promises[&(peer, client.visits)];
            let silent = promise.lost(true);
            if !silent.is_empty() {
                missing.push(format!("{peer:?} did not receive events {silent:?}"));
            }
            let received = self
                .received
                .get(&(peer, client.visits))
                .copied()
                .unwrap_or(0);
            if received != visit.events_sent {
                missing.push(format!(
                    "{peer:?} sent {} events, the server received {received}",
                    visit.events_sent
                ));
            }
            let mut verdict = Verdict::default();
            let witness = Witness {
                truth: &self.truth,
                promise,
                peer,
                settled: true,
            };
            witness.compare(&visit.view, &mut verdict);
            missing.extend(verdict.stories);
        }
        missing
    }

    /// Records the events that each connection missed.
    pub(super) fn conclude(&mut self) {
        let current: Vec<_> = (self.clients.iter())
            .map(|client| (client.peer, client.visits))
            .collect();
        for (visit, promise) in &self.promises {
            for number in promise.lost(current.contains(visit)) {
                let about = promise.events[&number];
                self.verdict.note(Fault::EventLost, || {
                    format!(
                        "{:?} did not receive event {number} about entity {about}",
                        visit.0
                    )
                });
            }
        }
    }
}
