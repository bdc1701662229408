//! Keyed hashes of names and their prefixes.
//!
//! Names are chosen by senders, so hash tables over them need a hash with unpredictable collisions:
//! SipHash-1-3 with a secret key.

use crate::name::NameRef;
use crate::tlv::Reader;

/// SipHash-1-3 under one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hasher {
    start: State,
}

/// A prefix of a name: where it ends in the name's bytes, and its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) end: usize,
    pub(crate) hash: u64,
}

impl Hasher {
    pub(crate) fn new(key: [u8; 16]) -> Self {
        let (low, high) = key.split_at(8);
        let word = |half: &[u8]| {
            half.iter()
                .rev()
                .fold(0, |word, &byte| word << 8 | u64::from(byte))
        };
        let (low, high) = (word(low), word(high));
        Self {
            start: State([
                low ^ 0x736f_6d65_7073_6575,
                high ^ 0x646f_7261_6e64_6f6d,
                low ^ 0x6c79_6765_6e65_7261,
                high ^ 0x7465_6462_7974_6573,
            ]),
        }
    }

    pub(crate) fn hash(&self, bytes: &[u8]) -> u64 {
        let mut state = self.start;
        let (words, tail) = bytes.as_chunks();
        words.iter().for_each(|word| state.absorb(*word));
        state.finish(tail, bytes.len())
    }

    /// The hashes of all prefixes of a name, from the empty one to the name itself, in one pass over
    /// its bytes. Each equals [`hash`](Self::hash) of the prefix's bytes.
    pub(crate) fn prefixes(&self, name: NameRef<'_>, prefixes: &mut Vec<Prefix>) {
        let bytes = name.as_bytes();
        let (words, _) = bytes.as_chunks();
        let mut state = self.start;
        let mut absorbed = 0;
        let mut reader = Reader::new(bytes);
        prefixes.clear();
        loop {
            let end = bytes.len() - reader.left();
            while absorbed < end / 8 {
                state.absorb(words[absorbed]);
                absorbed += 1;
            }
            let hash = state.finish(&bytes[absorbed * 8..end], end);
            prefixes.push(Prefix { end, hash });
            if reader.is_empty() || reader.element().is_err() {
                return;
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct State([u64; 4]);

impl State {
    fn absorb(&mut self, word: [u8; 8]) {
        let word = u64::from_le_bytes(word);
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    /// `tail` holds the last bytes, fewer than eight; `length` is that of the whole input.
    fn finish(mut self, tail: &[u8], length: usize) -> u64 {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        word[7] = length as u8;
        self.absorb(word);
        self.0[2] ^= 0xff;
        (0..3).for_each(|_| self.round());
        self.0.iter().fold(0, |hash, word| hash ^ word)
    }

    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.0 = [a, b, c, d];
    }
}

#[cfg(test)]
mod tests {
    #[expect(
        clippy::disallowed_types,
        reason = "the standard library's default hash is SipHash-1-3 with a key of zeros"
    )]
    use std::hash::{DefaultHasher, Hasher as _};

    use super::*;
    use crate::Name;

    /// Fails if any step of a round differs (13 rotated by 12).
    #[test]
    #[expect(clippy::disallowed_types, reason = "as above")]
    fn another_implementation_says_the_same() {
        let hasher = Hasher::new([0; 16]);
        for length in 0..70 {
            let bytes: Vec<u8> = (0..length).collect();
            let mut other = DefaultHasher::new();
            other.write(&bytes);
            assert_eq!(hasher.hash(&bytes), other.finish());
        }
        assert_ne!(hasher.hash(&[]), Hasher::new([1; 16]).hash(&[]));
    }

    /// Fails if a prefix is hashed with bytes behind its end.
    #[test]
    fn prefixes_hash_as_if_they_were_alone() {
        let hasher = Hasher::new(*b"any key of these");
        let name: Name = "/a/bcdefghijklmnop/q/v=70000/...".parse().expect("a name");
        let mut prefixes = Vec::new();
        hasher.prefixes(name.view(), &mut prefixes);
        assert_eq!(prefixes.len(), 6);
        for (count, prefix) in prefixes.iter().enumerate() {
            let bytes = name.view().prefix(count).as_bytes();
            assert_eq!(prefix.end, bytes.len());
            assert_eq!(prefix.hash, hasher.hash(bytes));
        }
    }
}
