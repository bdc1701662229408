//! Replay protection: no packet is accepted twice.

const WORDS: usize = 32;
/// How far behind the newest packet a packet may arrive and still be checked for replay.
pub(crate) const WINDOW: u64 = (WORDS as u64 - 1) * 64;

/// A bitmap of the newest packet numbers, as a ring of words. Older packets are rejected as if they
/// had been received.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    /// One more than the highest packet number; 0 before the first packet.
    end: u64,
    seen: [u64; WORDS],
}

impl Replay {
    pub(crate) fn new() -> Self {
        Self {
            end: 0,
            seen: [0; WORDS],
        }
    }

    /// One more than the highest packet number accepted.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Whether this packet is older than the window.
    pub(crate) fn is_behind(&self, sequence: u64) -> bool {
        self.end.saturating_sub(sequence) > WINDOW
    }

    /// Whether this packet could be accepted. Changes nothing: the packet is not authenticated yet.
    pub(crate) fn is_new(&self, sequence: u64) -> bool {
        if sequence >= self.end {
            return sequence < u64::MAX;
        }
        !self.is_behind(sequence) && self.seen[word(sequence)] >> (sequence % 64) & 1 == 0
    }

    /// Records an authentic packet.
    pub(crate) fn accept(&mut self, sequence: u64) {
        if sequence >= self.end {
            let newest = self.end.saturating_sub(1) / 64;
            let fresh = (sequence / 64 - newest).min(WORDS as u64);
            for step in 1..=fresh {
                self.seen[word((newest + step) * 64)] = 0;
            }
            self.end = sequence + 1;
        }
        self.seen[word(sequence)] |= 1 << (sequence % 64);
    }
}

fn word(sequence: u64) -> usize {
    (sequence / 64 % WORDS as u64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn take(window: &mut Replay, sequence: u64) -> bool {
        let new = window.is_new(sequence);
        if new {
            window.accept(sequence);
        }
        new
    }

    #[test]
    fn each_is_accepted_once_in_any_order() {
        let mut window = Replay::new();
        for sequence in (0..1000).rev() {
            assert!(take(&mut window, sequence));
        }
        for sequence in 0..1000 {
            assert!(!take(&mut window, sequence));
        }
    }

    #[test]
    fn the_window_is_as_long_as_it_says() {
        const { assert!(WINDOW >= 1024) };
        let mut window = Replay::new();
        assert!(take(&mut window, 10_000));
        assert!(take(&mut window, 10_001 - WINDOW));
        assert!(!take(&mut window, 10_000 - WINDOW));
        assert!(!take(&mut window, 0));
    }

    #[test]
    fn a_leap_forgets_what_fell_out_and_nothing_else() {
        let mut window = Replay::new();
        assert!(take(&mut window, 70));
        assert!(take(&mut window, 70 + WINDOW));
        assert!(!take(&mut window, 70));
        assert!(take(&mut window, 71));
        assert!(take(&mut window, 1 << 40));
        assert!(!take(&mut window, 70 + WINDOW));
        assert!(take(&mut window, (1 << 40) - 64));
    }

    #[test]
    fn the_last_number_is_never_used() {
        let mut window = Replay::new();
        assert!(!take(&mut window, u64::MAX));
        assert!(take(&mut window, u64::MAX - 1));
        assert!(!take(&mut window, u64::MAX - 1));
        assert!(take(&mut window, u64::MAX - 2));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set(steps in prop::collection::vec((0u8..4, 0u64..5000), 1..400)) {
            let mut window = Replay::new();
            let mut seen = BTreeSet::new();
            let mut base = 0u64;
            for (kind, offset) in steps {
                let sequence = match kind {
                    0 => base + offset % 100,
                    1 => base.saturating_sub(offset),
                    2 => base + 1,
                    _ => base.saturating_sub(offset % 64),
                };
                let newest: u64 = seen.last().copied().unwrap_or(0);
                let expected = !seen.contains(&sequence) && sequence + WINDOW > newest;
                prop_assert_eq!(take(&mut window, sequence), expected);
                if expected {
                    seen.insert(sequence);
                    base = base.max(sequence);
                }
            }
        }
    }
}
