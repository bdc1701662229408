//! State shared by the demo's threads: the server's world, each client's view of it, and figures.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prescient::Tick;

use super::links::Link;
use super::truth::{Shown, Truth, Verdict};

/// The shared state. The server and the clients write it, the page reads it.
pub(super) struct Board {
    notes: Mutex<Notes>,
    /// Notified after a write that threads may wait for.
    changed: Condvar,
}

/// The content of the board.
pub(super) struct Notes {
    /// The server's state by tick.
    pub truth: Truth,
    /// Taps on the water at the server, with their positions.
    pub ripples: Ripples,
    /// One per client.
    pub views: Vec<View>,
    /// Whether the demo is over.
    pub is_over: bool,
}

/// A client's view of the world, with its figures.
pub(super) struct View {
    /// Its link.
    pub link: Link,
    /// State of its connection.
    pub state: ViewState,
    /// The tick that it shows.
    pub tick: Option<Tick>,
    /// All creatures that it shows.
    pub shown: Vec<Shown>,
    /// Taps on the water that it received as events.
    pub ripples: Ripples,
    /// Traffic and verification.
    pub figures: Figures,
}

/// State of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewState {
    /// Connecting, for the first time or again.
    Joining,
    /// Connected and receiving.
    Live,
    /// Connected, but nothing has arrived for a while.
    Silent,
}

/// The figures of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    /// Bytes received in the last second, with IP and UDP headers.
    pub rate: u64,
    /// Bytes received in total, with IP and UDP headers.
    pub bytes: u64,
    /// Time connected, in total.
    pub connected: Duration,
    /// Round-trip time, if known.
    pub round_trip: Option<Duration>,
    /// Share of lost packets, in parts per million.
    pub loss: u32,
    /// Result of comparing its view with the server's state.
    pub verdict: Verdict,
    /// Connections that ended before the demo did.
    pub drops: u32,
}

impl Board {
    /// A board with one view per link.
    pub(super) fn new(links: Vec<Link>) -> Self {
        let view = |link| View {
            link,
            state: ViewState::Joining,
            tick: None,
            shown: Vec::new(),
            ripples: Ripples::default(),
            figures: Figures::default(),
        };
        Self {
            notes: Mutex::new(Notes {
                truth: Truth::default(),
                ripples: Ripples::default(),
                views: links.into_iter().map(view).collect(),
                is_over: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Locks the content. A panic of another thread leaves it usable.
    pub(super) fn read(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the content and notifies waiting threads.
    pub(super) fn write(&self, change: impl FnOnce(&mut Notes)) {
        change(&mut self.read());
        self.changed.notify_all();
    }

    /// Changes a client's view; no thread waits for that.
    pub(super) fn write_view(&self, number: usize, change: impl FnOnce(&mut View, &Truth)) {
        let notes = &mut *self.read();
        if let Some(view) = notes.views.get_mut(number) {
            change(view, &notes.truth);
        }
    }

    /// Waits until the truth is newer than this tick or the demo is over.
    pub(super) fn wait_beyond(&self, tick: Option<Tick>) -> MutexGuard<'_, Notes> {
        let same = |notes: &mut Notes| notes.truth.tick() == tick && !notes.is_over;
        let waited = self.changed.wait_while(self.read(), same);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the demo is over.
    pub(super) fn is_over(&self) -> bool {
        self.read().is_over
    }
}

/// The positions of the latest taps on the water.
#[derive(Debug, Default)]
pub(super) struct Ripples {
    positions: VecDeque<[i64; 2]>,
    /// Number of taps so far.
    count: u64,
}

impl Ripples {
    /// Adds a tap.
    pub(super) fn push(&mut self, position: [i64; 2]) {
        if self.positions.len() == MAX_RIPPLES {
            self.positions.pop_front();
        }
        self.positions.push_back(position);
        self.count += 1;
    }

    /// Number of taps so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The taps after the first `count`, as far as they are remembered.
    pub(super) fn since(&self, count: u64) -> impl Iterator<Item = [i64; 2]> {
        let new = usize::try_from(self.count.saturating_sub(count)).unwrap_or(usize::MAX);
        let known = self.positions.len().saturating_sub(new);
        self.positions.iter().skip(known).copied()
    }
}

const MAX_RIPPLES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if `since` repeats taps (`skip` of nothing) or leaves out new ones.
    #[test]
    fn ripples_come_once() {
        let mut ripples = Ripples::default();
        for number in 0..100 {
            ripples.push([number, 0]);
        }
        assert_eq!(ripples.since(98).collect::<Vec<_>>(), [[98, 0], [99, 0]]);
        assert_eq!(ripples.since(100).count(), 0);
        assert_eq!(ripples.since(0).count(), MAX_RIPPLES);
    }
}
