//! Entities that a client shows before the server has spawned them, such as its own projectiles.
//!
//! A client that fires shows the projectile at once. The server's arrives a round trip later and is
//! the same one, so the client's must give way to it. Where both ends can compute a key for it (the
//! tick of the input that fired, and a number), they match by key; else by how near they are.

use thiserror::Error;

/// No room for another entity that waits to be matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} entities wait for the server's already")]
pub struct TooManyPreSpawns(pub usize);

/// What a client spawned ahead of the server.
#[derive(Clone, Debug)]
pub struct PreSpawns<K, T> {
    max: usize,
    waiting: Vec<PreSpawn<K, T>>,
    matched: u64,
    expired: u64,
}

#[derive(Clone, Debug)]
struct PreSpawn<K, T> {
    key: K,
    /// The tick of the input that spawned it.
    tick: u64,
    value: T,
}

impl<K: PartialEq, T> PreSpawns<K, T> {
    /// At most `max` entities may wait.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            waiting: Vec::new(),
            matched: 0,
            expired: 0,
        }
    }

    /// Adds an entity that the input of a tick spawns.
    pub fn spawn(&mut self, key: K, tick: u64, value: T) -> Result<(), TooManyPreSpawns> {
        if self.waiting.len() >= self.max {
            return Err(TooManyPreSpawns(self.waiting.len()));
        }
        self.waiting.push(PreSpawn { key, tick, value });
        Ok(())
    }

    /// The entity with this key, which the server's replaces: hand its place on to that one
    /// ([`Correction`](crate::Correction) mends the difference).
    pub fn take(&mut self, key: &K) -> Option<T> {
        let at = self
            .waiting
            .iter()
            .position(|waiting| waiting.key == *key)?;
        self.matched += 1;
        Some(self.waiting.remove(at).value)
    }

    /// The entity nearest to the server's, for entities without a key. `distance` returns how far
    /// apart they are, and `None` or NaN if they cannot be the same; further than `limit` is none.
    pub fn take_nearest(
        &mut self,
        limit: f64,
        mut distance: impl FnMut(&T) -> Option<f64>,
    ) -> Option<T> {
        let distances = self.waiting.iter().enumerate();
        let distances = distances.filter_map(|(at, waiting)| Some((at, distance(&waiting.value)?)));
        let near = distances.filter(|(_, distance)| *distance <= limit);
        let (at, _) = near.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        self.matched += 1;
        Some(self.waiting.remove(at).value)
    }

    /// The entities whose input the server has consumed without spawning them, after so many more
    /// inputs as patience: it did not agree, so they are to vanish.
    pub fn expire(&mut self, consumed: Option<u64>, patience: u64) -> Vec<T> {
        let Some(consumed) = consumed else {
            return Vec::new();
        };
        let is_over =
            |waiting: &mut PreSpawn<K, T>| waiting.tick.saturating_add(patience) <= consumed;
        let expired = self.waiting.extract_if(.., is_over);
        let expired: Vec<T> = expired.map(|waiting| waiting.value).collect();
        self.expired += expired.len() as u64;
        expired
    }

    /// The entities that wait, to be moved and drawn.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut T)> {
        let waiting = self.waiting.iter_mut();
        waiting.map(|waiting| (&waiting.key, &mut waiting.value))
    }

    /// How many were matched, and how many the server did not agree to.
    pub fn counts(&self) -> (u64, u64) {
        (self.matched, self.expired)
    }
}
