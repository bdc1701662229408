//! Recent versions of a state.

use std::collections::VecDeque;

use prescient_channels::Time;

/// Recent versions of a state, each with the time at which it was published; beyond its capacity the oldest are
/// dropped. A producer looks up the version that a consumer at a floor holds: the base of a delta, and what
/// that consumer shows.
#[derive(Clone, Debug)]
pub struct VersionLog<S> {
    versions: VecDeque<(u64, Time, S)>,
    capacity: usize,
}

impl<S> VersionLog<S> {
    /// A log of at most `capacity` versions, at least one.
    pub fn new(capacity: usize) -> Self {
        Self {
            versions: VecDeque::new(),
            capacity: capacity.max(1),
        }
    }

    /// Adds a version. It is ignored unless it is higher than all before.
    pub fn insert(&mut self, version: u64, now: Time, state: S) {
        if self.newest().is_some_and(|(newest, ..)| version <= newest) {
            return;
        }
        if self.versions.len() == self.capacity {
            self.versions.pop_front();
        }
        self.versions.push_back((version, now, state));
    }

    /// A version, with the time at which it was published.
    pub fn get(&self, version: u64) -> Option<(Time, &S)> {
        let place = self
            .versions
            .binary_search_by_key(&version, |(version, ..)| *version);
        let (_, time, state) = self.versions.get(place.ok()?)?;
        Some((*time, state))
    }

    /// The newest version.
    pub fn newest(&self) -> Option<(u64, Time, &S)> {
        let (version, time, state) = self.versions.back()?;
        Some((*version, *time, state))
    }

    /// The number of versions in the log.
    pub fn len(&self) -> usize {
        self.versions.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }
}
