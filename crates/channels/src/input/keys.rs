//! A set of keys.

/// A set of up to 256 keys, numbered by the game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys([u64; 4]);

impl Keys {
    /// No key.
    pub const NONE: Self = Self([0; 4]);

    /// The set of those of the first 64 keys whose bits are set.
    pub const fn from_bits(bits: u64) -> Self {
        Self([bits, 0, 0, 0])
    }

    /// The first 64 keys, one bit each.
    pub const fn bits(self) -> u64 {
        self.0[0]
    }

    /// Adds a key.
    pub fn insert(&mut self, key: u8) {
        self.0[usize::from(key >> 6)] |= 1 << (key & 63);
    }

    /// Removes a key.
    pub fn remove(&mut self, key: u8) {
        self.0[usize::from(key >> 6)] &= !(1 << (key & 63));
    }

    /// Whether a key is in the set.
    pub fn contains(&self, key: u8) -> bool {
        self.0[usize::from(key >> 6)] >> (key & 63) & 1 == 1
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The keys, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |&key| self.contains(key))
    }

    /// The union.
    pub fn or(self, other: Self) -> Self {
        self.with(other, |a, b| a | b)
    }

    /// The intersection.
    pub fn and(self, other: Self) -> Self {
        self.with(other, |a, b| a & b)
    }

    /// The symmetric difference.
    pub fn xor(self, other: Self) -> Self {
        self.with(other, |a, b| a ^ b)
    }

    /// The difference.
    pub fn without(self, other: Self) -> Self {
        self.with(other, |a, b| a & !b)
    }

    pub(super) fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; 32]) -> Self {
        let mut keys = Self::NONE;
        for key in 0..=u8::MAX {
            if bytes[usize::from(key >> 3)] >> (key & 7) & 1 == 1 {
                keys.insert(key);
            }
        }
        keys
    }

    fn with(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        let mut words = self.0;
        for (word, other) in words.iter_mut().zip(other.0) {
            *word = join(*word, other);
        }
        Self(words)
    }
}

impl FromIterator<u8> for Keys {
    fn from_iter<I: IntoIterator<Item = u8>>(keys: I) -> Self {
        let mut set = Self::NONE;
        for key in keys {
            set.insert(key);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Fails if a key maps to another's bit (`key >> 5` in any of the three).
        #[test]
        fn it_agrees_with_a_set(
            one in prop::collection::btree_set(any::<u8>(), 0..40),
            other in prop::collection::btree_set(any::<u8>(), 0..40),
        ) {
            let (a, b): (Keys, Keys) = (one.iter().copied().collect(), other.iter().copied().collect());
            prop_assert!(a.iter().eq(one.iter().copied()));
            prop_assert!(a.or(b).iter().eq(one.union(&other).copied()));
            prop_assert!(a.and(b).iter().eq(one.intersection(&other).copied()));
            prop_assert!(a.without(b).iter().eq(one.difference(&other).copied()));
            prop_assert!(a.xor(b).iter().eq(one.symmetric_difference(&other).copied()));
            prop_assert_eq!(Keys::from_bytes(a.to_bytes()), a);
            prop_assert_eq!((a.len(), a.is_empty()), (one.len(), one.is_empty()));
            prop_assert!(Keys::from_bits(a.bits()).iter().eq(one.range(..64).copied()));
            let mut fewer = a;
            b.iter().for_each(|key| fewer.remove(key));
            prop_assert_eq!(fewer, a.without(b));
        }
    }
}
