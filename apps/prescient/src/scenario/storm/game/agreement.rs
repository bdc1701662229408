//! Whether everybody agrees in the end.

use super::super::verdict::{Fault, Verdict};
use super::super::verify::Witness;
use super::Game;

impl Game {
    /// What is still to come before everybody agrees.
    pub(super) fn missing(&mut self) -> Vec<String> {
        let mut missing = Vec::new();
        for seat in &self.seats {
            let peer = seat.peer;
            let Some(visit) = seat.visit.as_ref().filter(|visit| visit.connected) else {
                missing.push(format!("{peer:?} is not here"));
                continue;
            };
            let tick = visit.view.complete_tick();
            let behind = tick.is_none_or(|tick| tick.0 + 6 < self.tick.0);
            if behind {
                missing.push(format!("{peer:?} shows {tick:?} at {:?}", self.tick));
                continue;
            }
            let promise = &self.promises[&(peer, seat.visits)];
            let silent = promise.lost(true);
            if !silent.is_empty() {
                missing.push(format!("{peer:?} did not hear of {silent:?}"));
            }
            let heard = self.heard.get(&(peer, seat.visits)).copied().unwrap_or(0);
            if heard != visit.said {
                missing.push(format!("{peer:?} said {}, heard were {heard}", visit.said));
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

    /// What every visit missed.
    pub(super) fn conclude(&mut self) {
        let current: Vec<_> = (self.seats.iter())
            .map(|seat| (seat.peer, seat.visits))
            .collect();
        for (visit, promise) in &self.promises {
            for number in promise.lost(current.contains(visit)) {
                let about = promise.events[&number];
                self.verdict.note(Fault::EventLost, || {
                    format!(
                        "{:?} did not hear of event {number} about object {about}",
                        visit.0
                    )
                });
            }
        }
    }
}
