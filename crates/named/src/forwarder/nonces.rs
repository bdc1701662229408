//! The dead nonce list: nonces of Interests that are no longer pending, for loop detection.
//!
//! A PIT entry holds the nonces of its Interests. A loop can take longer than the entry exists, so a hash
//! of name and nonce is kept for some seconds after that.

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashTable;
use prescient_channels::Time;

/// How long a nonce is kept after its Interest was pending.
const LIFETIME: Duration = Duration::from_secs(6);

#[derive(Debug)]
pub(crate) struct DeadNonces {
    /// The oldest first.
    queue: VecDeque<(Time, u64)>,
    /// Never iterated. Contains each hash as often as the queue does.
    table: HashTable<u64>,
    max: usize,
}

impl DeadNonces {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            table: HashTable::new(),
            max,
        }
    }

    /// `name` is the hash of the Interest's name.
    pub(crate) fn insert(&mut self, now: Time, name: u64, nonce: [u8; 4]) {
        if self.max == 0 {
            return;
        }
        self.expire(now);
        while self.queue.len() >= self.max {
            self.pop();
        }
        let hash = combine(name, nonce);
        self.queue.push_back((now, hash));
        self.table.insert_unique(hash, hash, |&hash| hash);
    }

    pub(crate) fn contains(&mut self, now: Time, name: u64, nonce: [u8; 4]) -> bool {
        self.expire(now);
        let hash = combine(name, nonce);
        self.table.find(hash, |&known| known == hash).is_some()
    }

    fn expire(&mut self, now: Time) {
        let is_over = |&(since, _): &(Time, u64)| now.since(since) >= LIFETIME;
        while self.queue.front().is_some_and(is_over) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        let Some((_, hash)) = self.queue.pop_front() else {
            return;
        };
        if let Ok(found) = self.table.find_entry(hash, |&known| known == hash) {
            found.remove();
        }
    }
}

/// Unpredictable for senders, since the name's hash is keyed.
fn combine(name: u64, nonce: [u8; 4]) -> u64 {
    let nonce = u64::from(u32::from_be_bytes(nonce));
    (name ^ nonce)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
        ^ name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if nonces are never removed, or too early.
    #[test]
    fn nonces_are_kept_for_six_seconds() {
        let mut nonces = DeadNonces::new(1000);
        let start = Time::from_micros(5);
        nonces.insert(start, 7, [1; 4]);
        nonces.insert(start, 7, [1; 4]);
        let almost = start.after(LIFETIME - Duration::from_micros(1));
        assert!(nonces.contains(almost, 7, [1; 4]));
        assert!(!nonces.contains(almost, 7, [2; 4]));
        assert!(!nonces.contains(almost, 8, [1; 4]));
        assert!(!nonces.contains(start.after(LIFETIME), 7, [1; 4]));
        for number in 0..5000_u32 {
            nonces.insert(start, 9, number.to_be_bytes());
            assert!(nonces.queue.len() <= 1000);
            assert_eq!(nonces.table.len(), nonces.queue.len());
        }
    }
}
