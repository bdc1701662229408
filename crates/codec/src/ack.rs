//! The acknowledgement of applied packets.

use alloc::vec::Vec;

use crate::{encoder::WINDOW, numbers, units::Sequence};

/// Names the newest applied packet and which of those before it were applied, so the next
/// acknowledgement makes up for a lost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The epoch of the packets named here.
    pub epoch: u8,
    /// The newest applied packet.
    pub newest: Sequence,
    /// Which packets were applied.
    pub applied: AppliedSet,
    /// The receiver cannot decode any more and requests a new epoch.
    pub resync: bool,
}

/// Which of the last 256 packets of an epoch were applied. The newest was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedSet([u64; WORDS]);

impl AppliedSet {
    /// All of them.
    pub const ALL: Self = Self([u64::MAX; WORDS]);
    /// None of them; [`advance`](Self::advance) adds the newest.
    pub(crate) const NONE: Self = Self([0; WORDS]);

    /// Whether the packet this many before the newest was applied.
    pub fn contains(&self, back: u32) -> bool {
        let word = self.0.get(back as usize / 64);
        word.is_some_and(|word| word >> (back % 64) & 1 == 1)
    }

    /// Adds the packet this many before the newest.
    pub(crate) fn insert(&mut self, back: u32) {
        if let Some(word) = self.0.get_mut(back as usize / 64) {
            *word |= 1 << (back % 64);
        }
    }

    /// Adds the packet this many before the newest, and all before that one.
    pub(crate) fn insert_before(&mut self, back: u32) {
        for (word, from) in self.0.iter_mut().zip((0..).step_by(64)) {
            *word |= match back.saturating_sub(from) {
                bits @ 0..64 => u64::MAX << bits,
                _ => 0,
            };
        }
    }

    /// Removes the packet this many before the newest, which itself stays.
    pub fn remove(&mut self, back: u32) {
        if let Some(word) = self.0.get_mut(back as usize / 64).filter(|_| back > 0) {
            *word &= !(1 << (back % 64));
        }
    }

    /// Makes a packet the newest that comes this many after the one before.
    pub(crate) fn advance(&mut self, by: u32) {
        let (words, bits) = (by as usize / 64, by % 64);
        let word = |at: usize| at.checked_sub(words).map_or(0, |at| self.0[at]);
        let shifted = |at: usize| {
            let below = at.checked_sub(1).map_or(0, word);
            word(at) << bits | below.checked_shr(64 - bits).unwrap_or(0)
        };
        self.0 = core::array::from_fn(shifted);
        self.insert(0);
    }

    /// A bit for each packet before the newest that was not applied, the newest of them first.
    fn missing(&self) -> [u8; WORDS * 8] {
        let mut bytes = [0; WORDS * 8];
        for back in (1..WINDOW).filter(|&back| !self.contains(back)) {
            bytes[(back as usize - 1) / 8] |= 1 << ((back - 1) % 8);
        }
        // The last bit, which stands for no packet, continues those before it.
        bytes[WORDS * 8 - 1] |= bytes[WORDS * 8 - 1] << 1 & 0x80;
        bytes
    }
}

impl Ack {
    /// Longest acknowledgement, in bytes.
    pub const MAX_LEN: usize = 1 + 5 + WORDS * 8;

    /// The bytes to send.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = alloc::vec![self.epoch];
        let missing = self.applied.missing();
        // What all packets before those of the bitmap are.
        let rest = !self.applied.contains(WINDOW - 1);
        let mut number = u64::from(self.newest.0) << 2 | u64::from(rest) << 1;
        number |= u64::from(self.resync);
        numbers::put(&mut bytes, number);
        let len = missing.iter().rposition(|&byte| byte != fill(rest));
        bytes.extend_from_slice(&missing[..len.map_or(0, |last| last + 1)]);
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None` for anything else.
    pub fn from_bytes(whole: &[u8]) -> Option<Self> {
        let (&epoch, mut rest) = whole.split_first()?;
        let number = numbers::take(&mut rest)?;
        let newest = Sequence(u32::try_from(number >> 2).ok()?);
        let fill = fill(number & 2 != 0);
        if rest.len() > WORDS * 8 {
            return None;
        }
        let mut applied = AppliedSet::ALL;
        let bytes = rest.iter().copied().chain(core::iter::repeat(fill));
        for (at, byte) in bytes.take(WORDS * 8).enumerate() {
            for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                applied.remove((at * 8 + bit + 1) as u32);
            }
        }
        let ack = Self {
            epoch,
            newest,
            applied,
            resync: number & 1 == 1,
        };
        // Only the shortest form is allowed.
        (ack.to_bytes() == whole).then_some(ack)
    }
}

/// A byte of packets that are all missing, or all there.
fn fill(missing: bool) -> u8 {
    if missing { 0xff } else { 0 }
}

const WORDS: usize = WINDOW as usize / 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a packet is forgotten or moved when others follow (`below` left out of `advance`).
    #[test]
    fn a_set_remembers_what_was_applied() {
        let mut set = AppliedSet::NONE;
        let mut applied: Vec<u32> = Vec::new();
        let mut newest = 0;
        for gap in (0..400).map(|at| [1, 1, 1, 2, 65, 1, 7, 1, 64, 1][at % 10]) {
            newest += gap;
            set.advance(gap);
            applied.push(newest);
            for back in 0..WINDOW.min(newest) {
                let was_applied = applied.contains(&(newest - back));
                assert_eq!(set.contains(back), was_applied, "{back} before {newest}");
            }
        }
    }

    /// Fails if a packet is added that comes after the given one, or one before it is left out
    /// (`u64::MAX >> bits`).
    #[test]
    fn all_before_a_packet_are_added() {
        for back in [0, 1, 5, 63, 64, 65, 200, 255, 256, 1000] {
            let mut set = AppliedSet::NONE;
            set.insert_before(back);
            for at in 0..WINDOW {
                assert_eq!(set.contains(at), at >= back, "{at}, all from {back}");
            }
        }
    }

    /// Fails if a part is written in one order and read in another, or if what nobody writes is
    /// read.
    #[test]
    fn what_is_written_is_read() {
        let mut applied = AppliedSet::NONE;
        for gap in [1, 1, 300, 1, 1, 3, 90, 1, 2] {
            applied.advance(gap);
            for newest in [0, 1, 63, 64, 100_000, u32::MAX] {
                let ack = Ack {
                    epoch: gap as u8,
                    newest: Sequence(newest),
                    applied,
                    resync: newest % 2 == 1,
                };
                let bytes = ack.to_bytes();
                assert!(bytes.len() <= Ack::MAX_LEN);
                assert_eq!(Ack::from_bytes(&bytes), Some(ack));
                for more in [0, 0xff] {
                    let longer = [&bytes[..], &[more]].concat();
                    assert!(Ack::from_bytes(&longer).is_none_or(|other| other != ack));
                }
            }
        }
        let plain = Ack {
            epoch: 0,
            newest: Sequence(9000),
            applied: AppliedSet::ALL,
            resync: false,
        };
        assert_eq!(plain.to_bytes().len(), 4);
        let mut first = AppliedSet::NONE;
        first.advance(1);
        let first = Ack {
            applied: first,
            ..plain
        };
        assert_eq!(first.to_bytes().len(), 4);
        assert_eq!(Ack::from_bytes(&first.to_bytes()), Some(first));
        assert_eq!(Ack::from_bytes(&[0, 0x80, 0]), None);
        assert_eq!(Ack::from_bytes(&[0, 0x80, 0x80, 0x80, 0x80, 0x80, 1]), None);
    }
}
