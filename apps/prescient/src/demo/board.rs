//! What the demo's threads tell each other: the truth, what each client makes of it, and figures.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prescient::Tick;

use super::links::Link;
use super::truth::{Shown, Truth, Verdict};

/// The one place that all threads know. The server and the clients write here, the page reads.
pub struct Board {
    notes: Mutex<Notes>,
    /// Something was written that somebody may wait for.
    changed: Condvar,
}

/// What stands on the board.
pub struct Notes {
    /// The truth.
    pub truth: Truth,
    /// Taps on the water, where and when they happened.
    pub ripples: Ripples,
    /// One for each client.
    pub views: Vec<View>,
    /// Whether the demo is over.
    pub is_over: bool,
}

/// What a client shows, and how it fares.
pub struct View {
    /// How it is connected.
    pub link: Link,
    /// What it is doing.
    pub state: ViewState,
    /// The tick that it shows.
    pub tick: Option<Tick>,
    /// All creatures that it shows.
    pub shown: Vec<Shown>,
    /// Taps on the water that it heard of.
    pub ripples: Ripples,
    /// What it cost and how well it went.
    pub figures: Figures,
}

/// What a client is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewState {
    /// Knocking at the server's door, for the first time or again.
    Joining,
    /// Seeing the world.
    Live,
    /// Hearing nothing for a while.
    Silent,
}

/// The figures of a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Bytes that arrived in the last second, with the headers of IP and UDP.
    pub rate: u64,
    /// Bytes that ever arrived, with the headers of IP and UDP.
    pub bytes: u64,
    /// How long it has been connected, altogether.
    pub connected: Duration,
    /// How long an answer takes, if that is known.
    pub round_trip: Option<Duration>,
    /// The share of packets that did not arrive, in parts per million.
    pub loss: u32,
    /// How what it showed compares with the truth.
    pub verdict: Verdict,
    /// Connections that ended before the demo did.
    pub drops: u32,
}

impl Board {
    /// A board for clients on these links.
    pub fn new(links: Vec<Link>) -> Self {
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

    /// What stands there. Nobody panics while holding it, and if somebody did, it is still good.
    pub fn read(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes something that others wait for.
    pub fn write(&self, change: impl FnOnce(&mut Notes)) {
        change(&mut self.read());
        self.changed.notify_all();
    }

    /// Writes how a client fares, which nobody waits for.
    pub fn write_view(&self, number: usize, change: impl FnOnce(&mut View, &Truth)) {
        let notes = &mut *self.read();
        if let Some(view) = notes.views.get_mut(number) {
            change(view, &notes.truth);
        }
    }

    /// Waits until the truth is newer than this tick or the demo is over.
    pub fn wait_beyond(&self, tick: Option<Tick>) -> MutexGuard<'_, Notes> {
        let same = |notes: &mut Notes| notes.truth.tick() == tick && !notes.is_over;
        let waited = self.changed.wait_while(self.read(), same);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the demo is over.
    pub fn is_over(&self) -> bool {
        self.read().is_over
    }
}

/// The latest taps on the water, each with a place.
#[derive(Debug, Default)]
pub struct Ripples {
    positions: VecDeque<[i64; 2]>,
    /// How many there ever were.
    count: u64,
}

impl Ripples {
    /// One more.
    pub fn push(&mut self, position: [i64; 2]) {
        if self.positions.len() == MAX_RIPPLES {
            self.positions.pop_front();
        }
        self.positions.push_back(position);
        self.count += 1;
    }

    /// How many there ever were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Those after so many, as far as they are remembered.
    pub fn since(&self, count: u64) -> impl Iterator<Item = [i64; 2]> {
        let new = usize::try_from(self.count.saturating_sub(count)).unwrap_or(usize::MAX);
        let known = self.positions.len().saturating_sub(new);
        self.positions.iter().skip(known).copied()
    }
}

const MAX_RIPPLES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if old ones come again (`skip` of nothing), or new ones are left out.
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
